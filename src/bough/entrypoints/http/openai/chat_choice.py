"""One choice of a chat completion, as a whole or in events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bough.entrypoints.chat.reader import ChoiceReader, joined
from bough.entrypoints.http.logprobs import TokenNames, paced_chat_logprobs, prompt_logprobs
from bough.entrypoints.http.openai.serving import ChoiceWriter
from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.io_struct import GenerateRequest
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallStart

_encode = msgspec.json.encode

_FIRST_DELTA = b'{"role":"assistant","content":"","reasoning_content":null,"refusal":null}'
_CONTENT = b'{"content":%b,"reasoning_content":null}'
_LAST_DELTA = b'{"reasoning_content":null}'
_LOGPROBS = b'{"content":[%b],"refusal":null}'


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the choices of an answer say besides text.

    Attributes:
        skip_special_tokens: whether special tokens add nothing to the text.
        token_ids: whether the ids of the output are wanted.
        prompt_of: has the ids of the prompt, if they are wanted.
        prompt_logprobs: alternatives per prompt token; ``None``: no logprobs of the prompt.
        echo: text that goes before the output.
    """

    names: TokenNames
    logprobs: bool = False
    top_logprobs: int = 0
    skip_special_tokens: bool = True
    token_ids: bool = False
    prompt_of: GenerateRequest | None = None
    prompt_logprobs: int | None = None
    echo: str = ""


class ChatChoiceWriter(ChoiceWriter):
    """Writes one choice of a chat completion.

    Args:
        chunk_start: beginning of every event, up to the first choice.
    """

    def __init__(self, chunk_start: bytes, index: int, reader: ChoiceReader, options: ChatOptions) -> None:
        self._reader = reader
        self._options = options
        self._unsaid: list[PositionLogprobs] = []
        """Logprobs and ids of tokens whose text is held back."""
        self._unsaid_ids: list[int] = []
        self._parsed: list[ParsedEvent] = []
        self.parses = not reader.is_idle
        # The usual case: nothing but text and what is read from it.
        self._is_bare = not options.logprobs and not options.token_ids
        self.is_text_only = self._is_bare and not self.parses
        self._delta_start = b'%b{"index":%d,"delta":' % (chunk_start, index)

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of reasoning so far; ``None`` if the model does not reason."""
        return self._reader.reasoning_tokens

    async def parse(self, delta: OutputDelta) -> None:
        """Take the text of a delta apart, before anything is written about it."""
        self._parsed = await self._reader.read(delta)

    def plain_event(self, delta: OutputDelta, usage: bytes) -> bytes | None:
        if not (self.parses and self._is_bare and self.is_started):
            return super().plain_event(delta, usage)
        events = self._reader.read_now(delta)
        return None if events is None else b"".join([self._event(_described(event), usage) for event in events])

    def text_event(self, text: bytes, usage: bytes) -> bytes:
        return self._event(_CONTENT % text, usage)

    async def events(self, delta: OutputDelta, usage: bytes) -> bytes:
        """A first event with the role, then what is new, a last one with the finish reason, as far as they are due."""
        reason = delta.finish_reason
        events = []
        if not self.is_started:
            self.is_started = True
            events.append(self._first_event(usage))
            if self._options.echo:
                events.append(self._event(_content(self._options.echo), usage))
        pieces = self._pieces(delta, is_last=reason is not None)
        for number, piece in enumerate(pieces):
            logprobs, token_ids = (await self._extras()) if number == 0 else (b"null", b"")
            events.append(self._event(piece, usage, logprobs=logprobs, extra=token_ids))
        if reason is not None:
            ended, matched = self._reader.finish_type(delta), self._reader.matched_stop(delta)
            stop_reason = b',"stop_reason":%b' % _encode(matched)
            events.append(
                self._event(_LAST_DELTA, usage, reason=_encode(ended), matched=_encode(matched), extra=stop_reason)
            )
        return b"".join(events)

    def _first_event(self, usage: bytes) -> bytes:
        none_yet = _LOGPROBS % b"" if self._options.logprobs else b"null"
        return self._event(_FIRST_DELTA, usage, logprobs=none_yet, extra=self._prompt_token_ids())

    def _prompt_token_ids(self) -> bytes:
        request = self._options.prompt_of
        if request is None:
            return b""
        assert request.input_ids is not None, "encoded before it was sent"
        return b',"prompt_token_ids":%b' % _encode(request.input_ids.tolist())

    def _pieces(self, delta: OutputDelta, *, is_last: bool) -> list[bytes]:
        """The ``delta`` objects of the events that are due."""
        if delta.logprobs:
            self._unsaid += delta.logprobs
        if self._options.token_ids:
            self._unsaid_ids += delta.token_ids
        if self.parses:
            pieces = [_described(event) for event in self._parsed]
        else:
            pieces = [_content(delta.text)] if delta.text else []
        # Tokens without text of their own (special ones, parts of characters) speak up all the same.
        if not pieces and (self._unsaid or self._unsaid_ids) and (is_last or not self.parses):
            pieces = [_content("")]
        return pieces

    async def _extras(self) -> tuple[bytes, bytes]:
        """Logprobs and token ids of what was not said yet."""
        options = self._options
        logprobs = token_ids = b""
        if options.logprobs:
            unsaid, self._unsaid = self._unsaid, []
            logprobs = _LOGPROBS % await self._entries(unsaid)
        if options.token_ids:
            ids, self._unsaid_ids = self._unsaid_ids, []
            token_ids = b',"token_ids":%b' % _encode(ids)
        return logprobs or b"null", token_ids

    def _event(
        self,
        content: bytes,
        usage: bytes,
        *,
        logprobs: bytes = b"null",
        reason: bytes = b"null",
        matched: bytes = b"null",
        extra: bytes = b"",
    ) -> bytes:
        return b'%b%b,"logprobs":%b,"finish_reason":%b,"matched_stop":%b%b}]%b}\n\n' % (
            self._delta_start, content, logprobs, reason, matched, extra, usage,
        )  # fmt: skip

    async def whole(self, delta: OutputDelta) -> bytes:
        options, reader = self._options, self._reader
        content, reasoning, calls = options.echo, "", b"null"
        if self.parses:
            parts = joined(self._parsed)
            content += "".join(text for event, text in parts if isinstance(event, Content))
            reasoning = "".join(text for event, text in parts if isinstance(event, Reasoning))
            called = [_call(event, text) for event, text in parts if isinstance(event, ToolCallStart)]
            if called:
                calls = _encode(called)
        else:
            content += delta.text or ""
        thoughts = _encode(reasoning) if reasoning else b"null"
        matched = _encode(reader.matched_stop(delta))
        logprobs = b"null"
        if options.logprobs:
            logprobs = _LOGPROBS % await self._entries(delta.logprobs or ())
        extra = self._prompt_token_ids()
        if options.token_ids:
            ids = _encode(delta.token_ids)
            extra += b',"token_ids":%b,"response_token_ids":%b' % (ids, ids)
        return (
            b'"message":{"role":"assistant","content":%b,"refusal":null,"reasoning_content":%b,"reasoning":%b,'
            b'"tool_calls":%b},"logprobs":%b,"finish_reason":%b,"matched_stop":%b,"stop_reason":%b%b}'
        ) % (
            _encode(content),
            thoughts,
            thoughts,
            calls,
            logprobs,
            _encode(reader.finish_type(delta)),
            matched,
            matched,
            extra,
        )

    async def members(self, delta: OutputDelta) -> bytes:
        """What the whole answer says of its prompt, from the comma before it on."""
        options = self._options
        extra = self._prompt_token_ids()
        if options.prompt_logprobs is not None:
            listed = await prompt_logprobs(delta.input_logprobs or (), options.names, options.prompt_logprobs)
            extra += b',"prompt_logprobs":%b' % listed
        return extra

    async def _entries(self, entries: Sequence[PositionLogprobs]) -> bytes:
        options = self._options
        return await paced_chat_logprobs(entries, options.names, options.skip_special_tokens, options.top_logprobs)


def _content(text: str) -> bytes:
    return _CONTENT % _encode(text)


def _described(event: ParsedEvent) -> bytes:
    """An event as the ``delta`` of a chunk."""
    if isinstance(event, Content):
        return _content(event.text)
    if isinstance(event, Reasoning):
        text = _encode(event.text)
        return b'{"reasoning_content":%b,"reasoning":%b}' % (text, text)
    if isinstance(event, ToolCallStart):
        return b'{"reasoning_content":null,"tool_calls":[%b]}' % _encode(_call(event, ""))
    return b'{"reasoning_content":null,"tool_calls":[{"index":%d,"function":{"arguments":%b}}]}' % (
        event.index,
        _encode(event.fragment),
    )


def _call(start: ToolCallStart, arguments: str) -> dict[str, Any]:
    return {
        "id": start.id,
        "index": start.index,
        "type": "function",
        "function": {"name": start.name, "arguments": arguments},
    }
