"""A response in the making: the object, and the events that tell how it comes to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from bough.entrypoints.chat.core import ChoiceDelta
from bough.entrypoints.http.errors import error_code
from bough.errors import BoughError
from bough.ipc.messages import PositionLogprobs
from bough.managers.io_struct import new_request_id
from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallStart

_encode = msgspec.json.encode

Describe = Callable[[list[PositionLogprobs]], bytes]
"""The inside of a list of logprobs, as JSON."""

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
    """

    def __init__(self, body: dict[str, Any], describe: Describe | None = None) -> None:
        self.body = body
        self._describe = describe
        self._sequence_number = -1
        self._output: list[dict[str, Any]] = body["output"]
        self._item: dict[str, Any] | None = None
        """The last item, if it is not complete."""
        self._pieces: list[str] = []
        self._delta_start = b""
        self._unsaid: list[PositionLogprobs] = []
        self._logprobs: list[bytes] = []

    # --- the life of a response -------------------------------------------------------------------------------------

    def begin(self, parts: list[bytes]) -> None:
        """The work begins."""
        self.body["status"] = "in_progress"
        for kind in ("response.created", "response.in_progress"):
            parts.append(self._event(kind, {"response": self.body}))

    def add(self, delta: ChoiceDelta, parts: list[bytes]) -> None:
        """Take in what is new, and append the events that say it to ``parts``."""
        if self._describe is not None:
            self._unsaid += delta.output.logprobs or ()
        for event in delta.events:
            self._add(event, parts)
        if delta.output.finish_reason is not None:
            self._finish(delta, parts)

    def fail(self, error: BoughError, parts: list[bytes]) -> None:
        """The work has failed; what there is of the answer stays."""
        self._close_item(parts, "incomplete")
        self.body["status"] = "failed"
        self.body["error"] = {"code": error_code(error), "message": error.message}
        parts.append(self._event("response.failed", {"response": self.body}))

    def cancel(self) -> None:
        """The work was ended by the client."""
        self._close_item([], "incomplete")
        self.body["status"] = "cancelled"

    def _finish(self, delta: ChoiceDelta, parts: list[bytes]) -> None:
        body = self.body
        ended = delta.reader.finish_type(delta.output)
        if not self._output:  # there is always something to look at
            self._add(Content(""), parts)
        self._close_item(parts, "incomplete" if ended in ("length", "abort") else "completed")
        body["usage"] = _usage(delta)
        body["completed_at"] = int(time.time())
        kind = "response.completed"
        body["status"] = "completed"
        if ended == "length":
            kind, body["status"] = "response.incomplete", "incomplete"
            body["incomplete_details"] = {"reason": "max_output_tokens"}
        elif ended == "abort":
            kind, body["status"] = "response.incomplete", "cancelled"
        parts.append(self._event(kind, {"response": body}))

    # --- items ------------------------------------------------------------------------------------------------------

    def _add(self, event: ParsedEvent, parts: list[bytes]) -> None:
        if isinstance(event, Content):
            self._open_item(_MESSAGE, {"role": "assistant", "content": []}, parts)
            self._add_text(event.text, parts)
        elif isinstance(event, Reasoning):
            self._open_item(_REASONING, {"summary": [], "content": [], "encrypted_content": None}, parts)
            self._add_text(event.text, parts)
        elif isinstance(event, ToolCallStart):
            self._close_item(parts)
            self._open_item(_CALL, {"call_id": event.id, "name": event.name, "arguments": ""}, parts)
        else:
            self._add_text(event.fragment, parts)

    def _open_item(self, kind: str, members: dict[str, Any], parts: list[bytes]) -> None:
        if self._item is not None and self._item["type"] == kind:
            return
        self._close_item(parts)
        item_id = f"{_PREFIXES[kind]}_{new_request_id()}"
        item = {"id": item_id, "type": kind, "status": "in_progress", **members}
        index = len(self._output)
        parts.append(self._event("response.output_item.added", {"output_index": index, "item": item}))
        self._output.append(item)
        self._item = item
        place = b'"item_id":%b,"output_index":%d' % (_encode(item_id), index)
        if kind != _CALL:
            place += b',"content_index":0'
            where = {"item_id": item_id, "output_index": index, "content_index": 0}
            parts.append(self._event("response.content_part.added", {**where, "part": self._part("")}))
        self._delta_start = b'event: %b\ndata: {"type":"%b",%b,"delta":' % (
            _DELTAS[kind].encode(), _DELTAS[kind].encode(), place,
        )  # fmt: skip

    def _add_text(self, text: str, parts: list[bytes]) -> None:
        if not text and self._item is not None and self._item["type"] != _MESSAGE:
            return
        self._pieces.append(text)
        logprobs = b""
        assert self._item is not None, "opened before"
        if self._item["type"] == _MESSAGE:
            if not text and not self._unsaid:
                return
            logprobs = b',"logprobs":[%b]' % self._say_logprobs()
        self._sequence_number += 1
        parts.append(
            b'%b%b%b,"sequence_number":%d}\n\n' % (self._delta_start, _encode(text), logprobs, self._sequence_number)
        )

    def _say_logprobs(self) -> bytes:
        if self._describe is None or not self._unsaid:
            return b""
        said = self._describe(self._unsaid)
        self._unsaid = []
        self._logprobs.append(said)
        return said

    def _close_item(self, parts: list[bytes], status: str = "completed") -> None:
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
            parts.append(self._event("response.function_call_arguments.done", done))
        else:
            where["content_index"] = 0
            if kind == _MESSAGE:
                self._say_logprobs()
            part = self._part(text, kind)
            item["content"] = [part]
            if kind == _MESSAGE:
                done = {**where, "text": text, "logprobs": part["logprobs"]}
                parts.append(self._event("response.output_text.done", done))
            else:
                parts.append(self._event("response.reasoning_text.done", {**where, "text": text}))
            parts.append(self._event("response.content_part.done", {**where, "part": part}))
        parts.append(self._event("response.output_item.done", {"output_index": index, "item": item}))

    def _part(self, text: str, kind: str | None = None) -> dict[str, Any]:
        kind = kind or (self._item or {"type": _MESSAGE})["type"]
        if kind == _REASONING:
            return {"type": "reasoning_text", "text": text}
        logprobs = msgspec.Raw(b"[%b]" % b",".join(self._logprobs))
        self._logprobs.clear()
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}

    def _event(self, kind: str, members: dict[str, Any]) -> bytes:
        self._sequence_number += 1
        return b"event: %b\ndata: %b\n\n" % (
            kind.encode(),
            _encode({"type": kind, "sequence_number": self._sequence_number, **members}),
        )


def _usage(delta: ChoiceDelta) -> dict[str, Any]:
    output = delta.output
    return {
        "input_tokens": output.prompt_tokens,
        "input_tokens_details": {"cached_tokens": output.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": output.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": delta.reader.reasoning_tokens or 0},
        "total_tokens": output.prompt_tokens + output.completion_tokens,
    }
