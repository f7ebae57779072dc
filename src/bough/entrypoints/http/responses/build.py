"""A response in the making: the object, and the events that tell how it comes to be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bough.entrypoints.chat.core import ChoiceDelta
from bough.entrypoints.http.errors import error_code
from bough.entrypoints.http.pacing import add_paced
from bough.errors import BoughError
from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.io_struct import new_request_id
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallStart

_encode = msgspec.json.encode

Describe = Callable[[Sequence[PositionLogprobs]], list[bytes]]
"""From logprobs to the JSON of each."""

_MESSAGE, _REASONING, _CALL = "message", "reasoning", "function_call"

_PREFIXES = {_MESSAGE: "msg", _REASONING: "rs", _CALL: "fc"}

_DELTAS = {
    _MESSAGE: "response.output_text.delta",
    _REASONING: "response.reasoning_text.delta",
    _CALL: "response.function_call_arguments.delta",
}


class ResponseBuilder:
    """Builds one response.

    Args:
        body: the response object as it is before anything is generated; it is filled in here.
        describe: writes logprobs; ``None`` if they are not wanted.
        call_names: members that name a function that is called, by what the model calls it, where that is not its name.

    Attributes:
        final: the response object for good, as JSON; empty until then.
        num_bytes: of the output so far, about.
    """

    def __init__(
        self,
        body: dict[str, Any],
        describe: Describe | None = None,
        *,
        tells: bool,
        call_names: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.body = body
        self._call_names = call_names or {}
        self.final = b""
        self.num_bytes = 0
        self._describe = describe
        self._tells = tells
        self._parts: list[bytes] = []
        """Events that were not taken yet."""
        self._sequence_number = -1
        self._output: list[dict[str, Any]] = body["output"]
        self._item: dict[str, Any] | None = None
        """The last item, if it is not complete."""
        self._pieces: list[str] = []
        self._delta_start = b""
        self._unsaid: list[bytes] = []
        """Logprobs of tokens that belong to no item yet."""
        self._num_said = 0
        """Tokens before them."""
        self._logprobs: list[bytes] = []
        """What was said of the last item's."""

    def take(self) -> list[bytes]:
        """The events since the last call."""
        taken, self._parts = self._parts, []
        return taken

    def begin(self) -> None:
        """The work begins."""
        self.body["status"] = "in_progress"
        for kind in ("response.created", "response.in_progress"):
            self._tell(kind, {"response": self.body})

    async def add(self, delta: ChoiceDelta) -> None:
        """Take in what is new."""
        if self._describe is not None:
            await add_paced(self._add_logprobs, delta.output)
        self._add_events(delta)

    def plain_events(self, delta: ChoiceDelta) -> bytes:
        """Take in a short delta, and tell its events."""
        self._add_logprobs(delta.output)
        self._add_events(delta)
        return b"".join(self.take())

    def _add_logprobs(self, output: OutputDelta) -> None:
        if self._describe is not None:
            self._unsaid += self._describe(output.logprobs or ())

    def _add_events(self, delta: ChoiceDelta) -> None:
        begins = delta.reader.begins if self._describe is not None else []
        for number, event in enumerate(delta.events):
            self._add(
                event,
                begins[number] if begins else None,
                begins[number + 1] if number + 1 < len(begins) else None,
            )
        if delta.output.finish_reason is not None:
            self._finish(delta)

    def fail(self, error: BoughError) -> None:
        """The work has failed; what there is of the answer stays."""
        self._close_item("incomplete")
        self.body["error"] = {"code": error_code(error), "message": error.message}
        self._end("failed", "response.failed")

    def cancel(self) -> None:
        """The work was ended by the client."""
        self._close_item("incomplete")
        self._end("cancelled", "response.incomplete")

    def _finish(self, delta: ChoiceDelta) -> None:
        body = self.body
        ended = delta.reader.finish_type(delta.output)
        if not self._output:  # there is always something to look at
            self._open_item(_MESSAGE, {"role": "assistant", "content": []}, None)
        self._close_item("incomplete" if ended in ("length", "abort") else "completed")
        body["usage"] = _usage(delta)
        body["completed_at"] = int(time.time())
        if ended == "length":
            body["incomplete_details"] = {"reason": "max_output_tokens"}
            self._end("incomplete", "response.incomplete")
        elif ended == "abort":
            self._end("cancelled", "response.incomplete")
        else:
            self._end("completed", "response.completed")

    def _end(self, status: str, kind: str) -> None:
        self.body["status"] = status
        self.final = _encode(self.body)
        self._tell(kind, {"response": msgspec.Raw(self.final)})

    def _add(self, event: ParsedEvent, begin: int | None, end: int | None) -> None:
        """Take in an event, with how many tokens of the output come before it, and before the next one of the delta;
        ``None``: nobody knows, or all.
        """
        if isinstance(event, Content):
            self._open_item(_MESSAGE, {"role": "assistant", "content": []}, begin)
            self._add_text(event.text, end)
        elif isinstance(event, Reasoning):
            self._open_item(_REASONING, {"summary": [], "content": [], "encrypted_content": None}, begin)
            self._add_text(event.text, end)
        elif isinstance(event, ToolCallStart):
            self._close_item(begin=begin)
            named = self._call_names.get(event.name) or {"name": event.name}
            self._open_item(_CALL, {"call_id": event.id, **named, "arguments": ""}, begin)
        else:
            self._add_text(event.fragment, end)

    def _open_item(self, kind: str, members: dict[str, Any], begin: int | None) -> None:
        if self._item is not None and self._item["type"] == kind:
            return
        self._close_item(begin=begin)
        if begin is not None:  # what comes before it are markers, and thoughts, which have no logprobs
            del self._unsaid[: max(0, begin - self._num_said)]
            self._num_said = max(self._num_said, begin)
        item_id = f"{_PREFIXES[kind]}_{new_request_id()}"
        item = {"id": item_id, "type": kind, "status": "in_progress", **members}
        index = len(self._output)
        self._tell("response.output_item.added", {"output_index": index, "item": item})
        self._output.append(item)
        self._item = item
        place = b'"item_id":%b,"output_index":%d' % (_encode(item_id), index)
        if kind != _CALL:
            place += b',"content_index":0'
            where = {"item_id": item_id, "output_index": index, "content_index": 0}
            self._tell("response.content_part.added", {**where, "part": _part(kind, "")})
        self._delta_start = b'event: %b\ndata: {"type":"%b",%b,"delta":' % (
            _DELTAS[kind].encode(), _DELTAS[kind].encode(), place,
        )  # fmt: skip

    def _add_text(self, text: str, end: int | None = None) -> None:
        """Add to the item that is open, with the logprobs of the tokens up to ``end``."""
        assert self._item is not None, "opened before"
        logprobs = b""
        if self._item["type"] == _MESSAGE:
            said = self._say_logprobs(end)
            logprobs = b',"logprobs":[%b]' % said
            if not text and not said:
                return
        elif not text:
            return
        self._pieces.append(text)
        self.num_bytes += len(text) + len(logprobs)
        if self._tells:
            self._sequence_number += 1
            self._parts.append(
                b'%b%b%b,"sequence_number":%d}\n\n'
                % (self._delta_start, _encode(text), logprobs, self._sequence_number)
            )

    def _say_logprobs(self, end: int | None) -> bytes:
        if not self._unsaid:
            return b""
        count = len(self._unsaid) if end is None else max(0, end - self._num_said)
        said = b",".join(self._unsaid[:count])
        del self._unsaid[:count]
        self._num_said += count
        if said:
            self._logprobs.append(said)
        return said

    def _close_item(self, status: str = "completed", begin: int | None = None) -> None:
        """Complete the last item; ``begin`` is how many tokens come before the next one."""
        if self._item is not None and self._item["type"] == _MESSAGE:
            self._add_text("", begin)  # tokens without text, such as the one that ends the answer
        item, self._item = self._item, None
        if item is None:
            return
        text = "".join(self._pieces)
        self._pieces.clear()
        kind, index = item["type"], len(self._output) - 1
        where: dict[str, Any] = {"item_id": item["id"], "output_index": index}
        item["status"] = status
        if kind == _CALL:
            item["arguments"] = text
            done = {**where, "name": item["name"], "arguments": text}
            self._tell("response.function_call_arguments.done", done)
        else:
            where["content_index"] = 0
            part = _part(kind, text, b",".join(self._logprobs))
            self._logprobs.clear()
            item["content"] = [part]
            if kind == _MESSAGE:
                self._tell("response.output_text.done", {**where, "text": text, "logprobs": part["logprobs"]})
            else:
                self._tell("response.reasoning_text.done", {**where, "text": text})
            self._tell("response.content_part.done", {**where, "part": part})
        self._tell("response.output_item.done", {"output_index": index, "item": item})

    def _tell(self, kind: str, members: dict[str, Any]) -> None:
        if self._tells:
            self._sequence_number += 1
            event = _encode({"type": kind, "sequence_number": self._sequence_number, **members})
            self._parts.append(b"event: %b\ndata: %b\n\n" % (kind.encode(), event))


def _part(kind: str, text: str, logprobs: bytes = b"") -> dict[str, Any]:
    if kind == _REASONING:
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": msgspec.Raw(b"[%b]" % logprobs)}


def _usage(delta: ChoiceDelta) -> dict[str, Any]:
    output = delta.output
    return {
        "input_tokens": output.prompt_tokens,
        "input_tokens_details": {"cached_tokens": output.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": output.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": delta.reader.reasoning_tokens or 0},
        "total_tokens": output.prompt_tokens + output.completion_tokens,
    }
