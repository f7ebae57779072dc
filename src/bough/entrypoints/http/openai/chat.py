"""``POST /v1/chat/completions``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.openai.logprobs import TokenNames, chat_logprobs
from bough.entrypoints.http.openai.messages import ChatMessage, require_content
from bough.entrypoints.http.openai.protocol import CHAT, ChatCompletionRequest
from bough.entrypoints.http.openai.sampling import to_sampling_params
from bough.entrypoints.http.openai.serving import (
    Answer,
    ChoiceWriter,
    OpenAIHandler,
    check_stream_options,
    prefix_namespace,
    request_ids,
)
from bough.entrypoints.http.pacing import SLICE_POSITIONS, compile_patterns
from bough.errors import BadRequest
from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.io_struct import GenerateRequest, pack_token_ids
from bough.tokenization.tokenizer import TokenIds

_encode = msgspec.json.encode

_FIRST_DELTA = b'{"role":"assistant","content":"","reasoning_content":null}'
_LAST_DELTA = b'{"reasoning_content":null}'


class ChatHandler(OpenAIHandler):
    """Answers chat completion requests."""

    async def __call__(self, call: Call) -> Response | EventStream:
        """Answer one request."""
        call.require_json()
        manager = self.manager
        body = await CHAT.parse(
            call.body,
            allow_unknown=manager.server_args.allow_unknown_fields,
            max_tokens=manager.limits.max_prompt_tokens,
        )
        check_stream_options(body)
        names = self.require_names("messages")
        if body.top_logprobs and not body.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
        max_tokens, max_tokens_field = _max_tokens(body)
        params = to_sampling_params(
            body, max_tokens, max_tokens_field, self.sampling_defaults, manager.limits.vocab_size
        )
        await compile_patterns(manager.prompt_encoder, {params.stop_regex}, "stop_regex")
        request = GenerateRequest(
            rids=request_ids(body.rid, body.n),
            input_ids=await self._prompt(body),
            ids_are_ours=body.input_ids is None,
            prompt_param="messages" if body.input_ids is None else "input_ids",
            sampling_params=params,
            stream=body.stream,
            return_logprob=body.logprobs,
            top_logprobs_num=body.top_logprobs or 0,
            priority=body.priority,
            extra_key=prefix_namespace(body),
            exact_max_new_tokens=max_tokens_field if max_tokens is not None else None,
        )
        answer = Answer("chat.completion", "chat.completion.chunk", request.rids[0], self.model_name(body), body)
        writers = [ChatChoiceWriter(answer.chunk_start, index, names, request) for index in range(body.n)]
        return await self.answer(answer, body, [request], writers)

    async def _prompt(self, body: ChatCompletionRequest) -> TokenIds:
        if body.input_ids is not None:
            return pack_token_ids(body.input_ids, "input_ids")
        require_content(body.messages)
        return await self.manager.apply_chat_template(
            [to_template(message) for message in body.messages],
            continue_final_message=body.continue_final_message,
            template_kwargs=body.chat_template_kwargs or {},
        )


class ChatChoiceWriter(ChoiceWriter):
    """Writes one choice of a chat completion.

    Args:
        chunk_start: beginning of every event, up to the first choice.
        index: number of the choice.
        names: shows tokens as text.
        request: what the choice answers.
    """

    def __init__(self, chunk_start: bytes, index: int, names: TokenNames, request: GenerateRequest) -> None:
        self._index = index
        self._names = names
        self._skip_special_tokens = request.sampling_params.skip_special_tokens
        self._wants_logprobs = request.return_logprob
        self._started = False
        self._delta_start = b'%b{"index":%d,"delta":' % (chunk_start, index)
        self._content_start = self._delta_start + b'{"content":'
        self._content_end = b',"reasoning_content":null},"logprobs":'
        self._plain_end = self._content_end + b'null,"finish_reason":null,"matched_stop":null}]'

    async def events(self, delta: OutputDelta, usage: bytes) -> bytes:
        """A first event with the role, one with the text, a last one with the finish reason, as far as they are due."""
        text, reason = delta.text, delta.finish_reason
        if self._started and reason is None and not self._wants_logprobs:
            return b"%b%b%b%b}\n\n" % (self._content_start, _encode(text), self._plain_end, usage) if text else b""
        events = []
        if not self._started:
            self._started = True
            none_yet = b'{"content":[]}' if self._wants_logprobs else b"null"
            events.append(self._event(_FIRST_DELTA, none_yet, b"null", b"null", usage))
        if text or delta.logprobs:
            logprobs = await self._logprobs(delta)
            content = b'{"content":%b,"reasoning_content":null}' % _encode(text or "")
            events.append(self._event(content, logprobs, b"null", b"null", usage))
        if reason is not None:
            events.append(self._event(_LAST_DELTA, b"null", _encode(reason.type), _encode(reason.matched), usage))
        return b"".join(events)

    def _event(self, content: bytes, logprobs: bytes, reason: bytes, matched: bytes, usage: bytes) -> bytes:
        return b'%b%b,"logprobs":%b,"finish_reason":%b,"matched_stop":%b}]%b}\n\n' % (
            self._delta_start, content, logprobs, reason, matched, usage,
        )  # fmt: skip

    async def whole(self, delta: OutputDelta) -> bytes:
        """The choice object of an answer that comes at once."""
        reason = delta.finish_reason
        return (
            b'{"index":%d,"message":{"role":"assistant","content":%b,"reasoning_content":null,"tool_calls":null},'
            b'"logprobs":%b,"finish_reason":%b,"matched_stop":%b}'
        ) % (
            self._index,
            _encode(delta.text or ""),
            await self._logprobs(delta),
            _encode(reason.type if reason is not None else None),
            _encode(reason.matched if reason is not None else None),
        )

    async def _logprobs(self, delta: OutputDelta) -> bytes:
        if not self._wants_logprobs:
            return b"null"
        return b'{"content":[%b]}' % await self._entries(delta.logprobs or ())

    async def _entries(self, entries: Sequence[PositionLogprobs]) -> bytes:
        if len(entries) <= SLICE_POSITIONS:
            return chat_logprobs(entries, self._names, self._skip_special_tokens)
        parts = []
        for start in range(0, len(entries), SLICE_POSITIONS):
            part = entries[start : start + SLICE_POSITIONS]
            parts.append(chat_logprobs(part, self._names, self._skip_special_tokens))
            await asyncio.sleep(0)
        return b",".join(parts)


def _max_tokens(body: ChatCompletionRequest) -> tuple[int | None, str]:
    if body.max_completion_tokens is not None:
        if body.max_tokens is not None and body.max_tokens != body.max_completion_tokens:
            raise BadRequest("max_tokens and max_completion_tokens differ; give one of them", param="max_tokens")
        return body.max_completion_tokens, "max_completion_tokens"
    return body.max_tokens, "max_tokens"


def to_template(message: ChatMessage) -> dict[str, Any]:
    """A message as templates expect it: a plain object without what is absent."""
    content: Any = message.content
    if isinstance(content, list):
        content = [{"type": "text", "text": part.text} for part in content]
    values: dict[str, Any] = {"role": message.role, "content": content}
    if message.name is not None:
        values["name"] = message.name
    if message.reasoning_content is not None:
        values["reasoning_content"] = message.reasoning_content
    return values
