"""``POST /v1/completions``."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST
from bough.entrypoints.http.openai.logprobs import CompletionLogprobs, TokenNames
from bough.entrypoints.http.openai.protocol import COMPLETIONS, CompletionRequest
from bough.entrypoints.http.openai.sampling import to_sampling_params
from bough.entrypoints.http.openai.serving import (
    Answer,
    ChoiceWriter,
    OpenAIHandler,
    check_stream_options,
    prefix_namespace,
    request_ids,
)
from bough.entrypoints.http.pacing import add_paced, compile_patterns
from bough.errors import BadRequest
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import GenerateRequest, pack_token_ids
from bough.tokenization.tokenizer import TokenIds

_encode = msgspec.json.encode

_DEFAULT_MAX_TOKENS = 16


class CompletionHandler(OpenAIHandler):
    """Answers completion requests."""

    async def __call__(self, call: Call) -> Response | EventStream:
        """Answer one request; choices are in order of prompts, and those of one prompt next to each other."""
        call.require_json()
        manager = self.manager
        body = await COMPLETIONS.parse(
            call.body,
            allow_unknown=manager.server_args.allow_unknown_fields,
            max_tokens=manager.limits.max_prompt_tokens,
        )
        check_stream_options(body)
        names = self.require_names("prompt")
        prompts = split_prompts(body.prompt)
        n = body.n
        if len(prompts) * n > MAX_OUTPUTS_PER_REQUEST:
            raise BadRequest(
                f"{len(prompts)} prompts with n={n} are {len(prompts) * n} choices; at most "
                f"{MAX_OUTPUTS_PER_REQUEST} are allowed",
                param="prompt",
            )
        is_default = body.max_tokens == _DEFAULT_MAX_TOKENS
        max_tokens = None if is_default and "max_new_tokens" in self.sampling_defaults else body.max_tokens
        params = to_sampling_params(body, max_tokens, "max_tokens", self.sampling_defaults, manager.limits.vocab_size)
        await compile_patterns(manager.prompt_encoder, {params.stop_regex}, "stop_regex")
        rids = request_ids(body.rid, len(prompts) * n)
        requests = [
            GenerateRequest(
                rids=rids[index * n : (index + 1) * n],
                text=prompt if isinstance(prompt, str) else None,
                input_ids=None if isinstance(prompt, str) else prompt,
                prompt_param="prompt" if len(prompts) == 1 else f"prompt[{index}]",
                sampling_params=params,
                stream=body.stream,
                return_logprob=body.logprobs is not None,
                logprob_start_len=0 if body.echo and body.logprobs is not None else -1,
                top_logprobs_num=body.logprobs or 0,
                priority=body.priority,
                extra_key=prefix_namespace(body),
                exact_max_new_tokens=None if is_default else "max_tokens",
            )
            for index, prompt in enumerate(prompts)
        ]
        answer = Answer("text_completion", "text_completion", rids[0], self.model_name(body), body)
        writers = [
            CompletionChoiceWriter(
                answer.chunk_start, index, names, body, await self._echo(prompts[index // n], body) if body.echo else ""
            )
            for index in range(len(rids))
        ]
        return await self.answer(answer, body, requests, writers)

    async def _echo(self, prompt: str | TokenIds, body: CompletionRequest) -> str:
        if isinstance(prompt, str):
            return prompt
        manager = self.manager
        assert manager.tokenizer is not None, "checked before"
        assert manager.prompt_encoder is not None, "there is a tokenizer"
        manager.limits.check_token_ids(prompt, "prompt")
        decode = manager.tokenizer.decode
        return await manager.prompt_encoder.run(
            4 * len(prompt), lambda: decode(prompt, skip_special_tokens=body.skip_special_tokens)
        )


class CompletionChoiceWriter(ChoiceWriter):
    """Writes one choice of a completion.

    Args:
        chunk_start: beginning of every event, up to the first choice.
        index: number of the choice.
        names: shows tokens as text.
        body: the request.
        echo: text that goes before the output.
    """

    def __init__(self, chunk_start: bytes, index: int, names: TokenNames, body: CompletionRequest, echo: str) -> None:
        self._index = index
        self._echo = echo
        self._started = False
        self._text_start = b'%b{"index":%d,"text":' % (chunk_start, index)
        self._plain_end = b',"logprobs":null,"finish_reason":null,"matched_stop":null}]'
        self._logprobs: CompletionLogprobs | None = None
        if body.logprobs is not None:
            self._logprobs = CompletionLogprobs(names, body.skip_special_tokens, alternatives=body.logprobs > 0)

    async def events(self, delta: OutputDelta, usage: bytes) -> bytes:
        """One event; none if there is neither text nor logprobs nor an end to report."""
        if self._started and delta.finish_reason is None and self._logprobs is None:
            if not delta.text:
                return b""
            return b"%b%b%b%b}\n\n" % (self._text_start, _encode(delta.text), self._plain_end, usage)
        body = await self._body(delta)
        return b"%b%b]%b}\n\n" % (self._text_start, body, usage)

    async def whole(self, delta: OutputDelta) -> bytes:
        """The choice object of an answer that comes at once."""
        return b'{"index":%d,"text":%b' % (self._index, await self._body(delta))

    async def _body(self, delta: OutputDelta) -> bytes:
        text = delta.text or ""
        if not self._started:
            self._started = True
            text = self._echo + text
        logprobs = b"null"
        if self._logprobs is not None:
            await add_paced(self._add_logprobs, delta)
            logprobs = self._logprobs.to_json()
            self._logprobs.clear()
        reason = delta.finish_reason
        return b'%b,"logprobs":%b,"finish_reason":%b,"matched_stop":%b}' % (
            _encode(text),
            logprobs,
            _encode(None if reason is None else reason.type),
            _encode(None if reason is None else reason.matched),
        )

    def _add_logprobs(self, delta: OutputDelta) -> None:
        assert self._logprobs is not None, "called only if they are wanted"
        self._logprobs.add(delta.input_logprobs or ())
        self._logprobs.add(delta.logprobs or ())


def split_prompts(prompt: Any, param: str = "prompt") -> list[str | TokenIds]:
    """The prompts of a request, from any of the four shapes: text, texts, token ids, lists of token ids.

    Args:
        prompt: what came.
        param: name of its field.

    Raises:
        BadRequest: if the list is empty or mixes shapes.
    """
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, array):
        return [pack_token_ids(prompt, param)]
    if not prompt:
        raise BadRequest(f"{param} must not be an empty list", param=param)
    if all(isinstance(each, str) for each in prompt):
        return list(prompt)
    if all(isinstance(each, int) for each in prompt):
        return [pack_token_ids(prompt, param)]
    if all(isinstance(each, (list, array)) for each in prompt):
        return [pack_token_ids(each, f"{param}[{index}]") for index, each in enumerate(prompt)]
    raise BadRequest(
        f"{param} must be a text, a list of texts, a list of token ids or a list of such lists", param=param
    )
