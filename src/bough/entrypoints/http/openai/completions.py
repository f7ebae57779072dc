"""``POST /v1/completions``."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.constraints import constraint_param
from bough.entrypoints.chat.core import ChatCore, last_tokens
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.logprobs import CompletionLogprobs, Echo, TokenNames, prompt_logprobs
from bough.entrypoints.http.openai.fill_in_middle import find_gap_format
from bough.entrypoints.http.openai.headers import check_headers
from bough.entrypoints.http.openai.protocol import COMPLETIONS, MAX_TOKENS, CompletionRequest
from bough.entrypoints.http.openai.sampling import max_tokens_of
from bough.entrypoints.http.openai.serving import (
    Answer,
    ChoiceFrame,
    ChoiceWriter,
    CompletionFrame,
    OpenAIHandler,
    UsageAnswer,
    check_session,
    check_stream_options,
    request_ids,
    tokens_to_keep,
)
from bough.entrypoints.http.openai.structured import find_constraint
from bough.entrypoints.http.openai.vector_protocol import check_batch
from bough.entrypoints.http.pacing import add_paced, compile_patterns
from bough.entrypoints.http.route import OPENAI, Route, Text
from bough.entrypoints.http.unknown_fields import Unknown
from bough.errors import BadRequest
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import GenerateRequest, pack_token_ids
from bough.managers.tokenizer_manager import TokenizerManager
from bough.tokenization.tokenizer import TokenIds

_encode = msgspec.json.encode


class CompletionChoice(ChoiceFrame, kw_only=True):
    """One continuation, or a piece of one."""

    text: Text
    meta_info: Annotated[dict[str, Any] | UnsetType, Meta(description="Id, counts and times.")] = UNSET


class CompletionChunk(CompletionFrame, kw_only=True):
    """Event of ``/v1/completions``."""

    object: Literal["text_completion"]
    choices: Annotated[list[CompletionChoice], Meta(description="The answers: `n` for each prompt.")]
    usage: UsageAnswer | UnsetType | None = UNSET


class CompletionAnswer(CompletionChunk, kw_only=True):
    """Answer of ``/v1/completions``."""

    usage: UsageAnswer


class CompletionHandler(OpenAIHandler):
    """Answers completion requests."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._gap_format = None if manager.tokenizer is None else find_gap_format(manager.tokenizer)

    @Route("POST /v1/completions", OPENAI, COMPLETIONS, CompletionAnswer, CompletionChunk)
    async def complete(self, call: Call) -> Response | EventStream:
        """Continue one or more prompts.

        Choices are in order of prompts, and those of one prompt next to each other.
        """
        return await self.answer(call, *await self._prepare(call))

    async def _prepare(self, call: Call) -> tuple[Answer, list[GenerateRequest], list[CompletionChoiceWriter]]:
        """Read a request, of which nothing is left but what is returned."""
        manager = self._manager
        check_headers(call.headers)
        body, given = await call.parse_given(COMPLETIONS)
        check_stream_options(body)
        if manager.tokenizer is None:  # the ids are all that there is to an answer
            body = msgspec.structs.replace(body, return_token_ids=True)
            if body.echo:
                self.require_tokenizer("echo")
        prompts = self._with_gaps(split_prompts(body.prompt), body)
        n = _samples(body)
        self._check_choices(len(prompts), n, body)
        asked = await self._asked(body, given, n, call.unknown)
        keep = asked.truncate_prompt_tokens
        if body.echo and keep is not None:
            prompts = [await self._last_tokens(prompt, keep, body) for prompt in prompts]
        rids = request_ids(body.rid, len(prompts) * n)
        requests = list(_requests(body, prompts, asked, rids))
        echoes = [Echo()] * len(prompts)
        if body.echo:
            names = [request.prompt_param for request in requests]
            skips = asked.sampling_params.skip_special_tokens
            echoes = [await self._echo(prompt, name, skips) for prompt, name in zip(prompts, names, strict=True)]
        answer = Answer("text_completion", "text_completion", rids[0], self.model_name(body.model), body)
        writers = [
            CompletionChoiceWriter(
                answer.chunk_start,
                index,
                self.names(as_ids=body.return_tokens_as_token_ids),
                body,
                requests[index // n],
                echoes[index // n],
            )
            for index in range(len(rids))
        ]
        return answer, requests, writers

    def _check_choices(self, num_prompts: int, n: int, body: CompletionRequest) -> None:
        most = self._manager.server_args.max_outputs_per_request
        if num_prompts * n > most:
            raise BadRequest(
                f"{num_prompts} prompts with n={n} are {num_prompts * n} choices; at most {most} are allowed",
                param="prompt",
            )
        check_session(body, num_prompts * n)

    async def _asked(
        self, body: CompletionRequest, given: AbstractSet[str], n: int, unknown: Unknown | None
    ) -> GenerateRequest:
        """What the engine is asked of every prompt, for each of which ``n`` outputs are made, without the prompt."""
        manager = self._manager
        given_max = body.max_tokens if "max_tokens" in given else None
        max_tokens, max_tokens_field = max_tokens_of(given_max, body.max_completion_tokens, until_full=MAX_TOKENS)
        if max_tokens is None and "max_new_tokens" not in self._core.sampling.defaults:
            max_tokens = body.max_tokens
        constraint = find_constraint(body, given, unknown)
        params = self.sampling_params(body, given, max_tokens, max_tokens_field, constraint)
        if n > body.n:
            params = msgspec.structs.replace(params, n=n)
            manager.limits.check_params(params, named=_with_best_of)
        await compile_patterns(manager.prompt_encoder, {params.stop_regex}, "stop_regex")
        wants_prompt_logprobs = (body.echo and body.logprobs is not None) or body.prompt_logprobs is not None
        return GenerateRequest(
            rids=[],
            sampling_params=params,
            grammar_param=constraint_param(constraint),
            stream=body.stream,
            truncate_prompt_tokens=tokens_to_keep(body, manager.limits, max_tokens),
            add_special_tokens=body.add_special_tokens,
            return_logprob=body.logprobs is not None or body.prompt_logprobs is not None or n > body.n,
            logprob_start_len=0 if wants_prompt_logprobs else -1,
            top_logprobs_num=max(body.logprobs or 0, body.prompt_logprobs or 0),
            extras=body.extras,
            session_params=body.session_params,
        )

    def _with_gaps(self, prompts: list[str | TokenIds], body: CompletionRequest) -> list[str | TokenIds]:
        """The prompts that make a model fill the gap before ``suffix``, if there is one."""
        if not body.suffix:
            return prompts
        format_ = self._gap_format
        if format_ is None:
            raise BadRequest(
                "suffix: this model has no tokens for filling gaps", param="suffix", code="unsupported_parameter"
            )
        texts = [prompt for prompt in prompts if isinstance(prompt, str)]
        if len(texts) != len(prompts):
            raise BadRequest("suffix needs prompts that are text", param="suffix")
        if body.echo:
            raise BadRequest("suffix cannot be combined with echo", param="suffix")
        sizes = [len(text) for text in texts]
        check_batch(self._manager.server_args, "prompt", "suffix", len(body.suffix), sizes)
        return [format_.prompt(text, body.suffix) for text in texts]

    async def _last_tokens(self, prompt: str | TokenIds, keep: int, body: CompletionRequest) -> str | TokenIds:
        """A prompt of which no more than ``keep`` tokens are left; only that is echoed."""
        if isinstance(prompt, str):
            encoder = self._manager.prompt_encoder
            assert encoder is not None, "there is a tokenizer"
            text = encoder.ending(prompt, keep)
            (ids,) = await encoder.encode([text], ["prompt"], add_special_tokens=body.add_special_tokens)
            if text == prompt and len(ids) <= keep:
                return prompt
            prompt = ids
        return last_tokens(prompt, keep)

    async def _echo(self, prompt: str | TokenIds, param: str, skip_special_tokens: bool) -> Echo:
        """The text of a prompt, unless it is certainly too long."""
        manager = self._manager
        assert manager.tokenizer is not None, "checked before"
        assert manager.prompt_encoder is not None, "there is a tokenizer"
        if isinstance(prompt, str):
            manager.prompt_encoder.check_length(len(prompt), param)
            return Echo(prompt)
        manager.limits.check_token_ids(prompt, param)
        decode = manager.tokenizer.decode
        return Echo(
            await manager.prompt_encoder.run(
                4 * len(prompt), lambda: decode(prompt, skip_special_tokens=skip_special_tokens)
            )
        )


def _requests(
    body: CompletionRequest, prompts: Sequence[str | TokenIds], asked: GenerateRequest, rids: Sequence[str]
) -> Iterator[GenerateRequest]:
    """``asked`` for each prompt; ``rids`` has the ids of each one's outputs side by side."""
    n = len(rids) // len(prompts)
    is_list = isinstance(body.prompt, list) and not isinstance(body.prompt[0], int)
    for index, prompt in enumerate(prompts):
        yield msgspec.structs.replace(
            asked,
            rids=list(rids[index * n : (index + 1) * n]),
            text=prompt if isinstance(prompt, str) else None,
            input_ids=None if isinstance(prompt, str) else last_tokens(prompt, asked.truncate_prompt_tokens),
            prompt_param=f"prompt[{index}]" if is_list else "prompt",
        )


class CompletionChoiceWriter(ChoiceWriter):
    """Writes one choice of a completion.

    Args:
        chunk_start: beginning of every event, up to the first choice.
    """

    def __init__(
        self,
        chunk_start: bytes,
        index: int,
        names: TokenNames,
        body: CompletionRequest,
        request: GenerateRequest,
        echo: Echo,
    ) -> None:
        self._names = names
        self._request = request
        self._echo = echo.text
        self._token_ids = body.return_token_ids
        self._prompt_token_ids = body.return_token_ids or body.return_prompt_token_ids
        self._prompt_logprobs = body.prompt_logprobs
        self._echoes_logprobs = body.echo
        self.is_text_only = body.logprobs is None and not body.return_token_ids
        self._text_start = b'%b{"index":%d,"text":' % (chunk_start, index)
        self._logprobs: CompletionLogprobs | None = None
        if body.logprobs is not None:
            skips = request.sampling_params.skip_special_tokens
            self._logprobs = CompletionLogprobs(names, skips, body.logprobs, echo)

    def text_event(self, text: bytes, usage: bytes) -> bytes:
        return self._event(self._choice(text), usage)

    async def events(self, delta: OutputDelta, usage: bytes) -> bytes:
        """One event; none if there is neither text nor logprobs nor an end to report."""
        if self.is_started and delta.finish_reason is None and self.is_text_only and not delta.text:
            return b""
        return self._event(await self._body(delta), usage)

    async def whole(self, delta: OutputDelta) -> bytes:
        return b'"text":%b' % await self._body(delta)

    async def _body(self, delta: OutputDelta) -> bytes:
        text = delta.text or ""
        extra = b""
        if not self.is_started:
            self.is_started = True
            text = self._echo + text
            extra = await self._about_prompt(delta)
        if self._token_ids:
            extra += b',"token_ids":%b' % _encode(delta.token_ids)
        logprobs = b"null"
        if self._logprobs is not None:
            await add_paced(self._add_logprobs, delta)
            logprobs = self._logprobs.to_json()
            self._logprobs.clear()
        reason = delta.finish_reason
        matched = _encode(None if reason is None else reason.matched)
        if reason is not None:
            extra += b',"stop_reason":%b' % matched
        return self._choice(_encode(text), logprobs, _encode(None if reason is None else reason.type), matched, extra)

    def _event(self, choice: bytes, usage: bytes) -> bytes:
        return b"%b%b]%b}\n\n" % (self._text_start, choice, usage)

    def _choice(
        self,
        text: bytes,
        logprobs: bytes = b"null",
        reason: bytes = b"null",
        matched: bytes = b"null",
        extra: bytes = b"",
    ) -> bytes:
        return b'%b,"logprobs":%b,"finish_reason":%b,"matched_stop":%b%b}' % (text, logprobs, reason, matched, extra)

    async def _about_prompt(self, delta: OutputDelta) -> bytes:
        extra = b""
        if self._prompt_token_ids:
            assert self._request.input_ids is not None, "encoded before it was sent"
            extra += b',"prompt_token_ids":%b' % _encode(self._request.input_ids.tolist())
        if self._prompt_logprobs is not None:
            listed = await prompt_logprobs(delta.input_logprobs or (), self._names, self._prompt_logprobs)
            extra += b',"prompt_logprobs":%b' % listed
        return extra

    def _add_logprobs(self, delta: OutputDelta) -> None:
        assert self._logprobs is not None, "called only if they are wanted"
        if self._echoes_logprobs:
            self._logprobs.add_prompt(delta.input_logprobs or ())
        self._logprobs.add(delta.logprobs or ())


def _with_best_of(field: str) -> str:
    """What the client called a sampling parameter whose ``n`` was ``best_of``."""
    return "best_of" if field == "n" else field


def _samples(body: CompletionRequest) -> int:
    """Outputs per prompt, of which the best ``n`` are returned."""
    best_of = body.n if body.best_of is None else body.best_of
    if best_of < body.n:
        raise BadRequest(f"best_of ({best_of}) must be at least n ({body.n})", param="best_of")
    if best_of > body.n and body.stream:
        raise BadRequest("best_of cannot be streamed: the best is known at the end", param="best_of")
    return best_of


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
