"""Answers in the native shape (``text``, ``output_ids``, ``meta_info``), of ``/generate`` and ``Engine.generate``.

A stream repeats everything with every event, so what grows with the answer (its text and its lists) is kept in the form
in which it is handed out: as Python objects, or as JSON that is put together from pieces that were encoded once. An
event of ``/generate`` thus costs its own tokens and a copy.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bough.ipc.messages import FinishReason, OutputDelta, PositionLogprobs
from bough.managers.held_answers import ENCODED_SHARE, logprob_bytes
from bough.managers.reasoning_span import ReasoningMarkers
from bough.managers.req_state import ReqState
from bough.tokenization.tokenizer import Tokenizer

TokenText = Callable[[int], str]
"""The text of one token on its own."""

Triple = tuple[float | None, int, str | None]
"""Logprob, token id, and the token's text if it was asked for."""

_encode = msgspec.json.encode
_Raw = msgspec.Raw


class _ObjectList:
    """A list of logprobs that grows, and is handed out again and again."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[Any] = []

    def extend(self, values: Sequence[Any]) -> None:
        self._values += values

    def value(self) -> Any:
        """The list as it is now; it does not change when more is added."""
        return self._values.copy()

    def clear(self) -> None:
        self._values.clear()


class _JsonList:
    """The same as JSON."""

    __slots__ = ("_inside",)

    def __init__(self) -> None:
        self._inside = bytearray(b"[")

    def extend(self, values: Sequence[Any]) -> None:
        if values:
            if len(self._inside) > 1:
                self._inside += b","
            self._inside += _encode(values)[1:-1]

    def value(self) -> Any:
        return _Raw(bytes(self._inside) + b"]")

    def clear(self) -> None:
        del self._inside[1:]


class NativeOutput:
    """One output in the making; without a tokenizer there is no text at all, without ``reasoning`` no thoughts are told
    apart.

    Each answer carries only what is new since the one before if ``incremental``, and says which output it belongs to if
    ``with_index``. If ``as_json``, answers are to be encoded; then what grows is :class:`msgspec.Raw` in them.
    """

    def __init__(
        self,
        state: ReqState,
        *,
        tokenizer: Tokenizer | None,
        reasoning: ReasoningMarkers | None,
        incremental: bool,
        with_index: bool,
        as_json: bool = False,
    ) -> None:
        request = state.obj
        self._state = state
        self._incremental = incremental
        has_text = self._has_text = tokenizer is not None
        self._text = ""
        self._ids: list[int] = []
        # The same if answers are JSON: the inside of a string and of an array.
        self._text_json = bytearray()
        self._ids_json = bytearray()
        new_list: Callable[[], _ObjectList | _JsonList] = _JsonList if as_json else _ObjectList
        self._logprobs: NativeLogprobs | None = None
        if request.return_logprob:
            token_text = None
            if tokenizer is not None and request.return_text_in_logprobs:
                token_text = tokenizer.token_text
            self._logprobs = NativeLogprobs(state, token_text, new_list)
        self._reasoning = None
        if reasoning is not None and request.input_ids is not None:
            self._reasoning = reasoning.begin(request.input_ids)
        self._as_json = as_json
        self._info = meta_info(state, OutputDelta(state.rid, []))
        self._answer: dict[str, Any] = {"text": ""} if has_text else {}
        self._answer["output_ids"] = []
        if request.return_prompt_token_ids and request.input_ids is not None:
            self._answer["prompt_token_ids"] = request.input_ids.tolist()
        self._answer["meta_info"] = self._info
        if with_index:
            self._answer["index"] = state.index
        self._frame = b""
        self._cached_tokens = self._num_retractions = -1  # as the frame says
        self._weight_versions = state.weight_versions

    def add(self, delta: OutputDelta) -> None:
        """Take a delta, or a part of one, in."""
        text, token_ids = delta.text, delta.token_ids
        if not self._as_json:
            self._text += text or ""
            self._ids += token_ids
        else:
            if text:
                self._text_json += _encode(text)[1:-1]
            if token_ids:
                if self._ids_json:
                    self._ids_json += b","
                self._ids_json += _encode(token_ids)[1:-1]
        if self._reasoning is not None:
            self._reasoning.add(token_ids, delta.finish_reason)
            if delta.finish_reason is not None:
                self._reasoning.finish()
        if self._logprobs is not None:
            self._logprobs.add(delta)
            if self._as_json and self._state.obj.stream and not self._incremental:
                self._state.hold(logprob_bytes(delta) // ENCODED_SHARE)

    def answer(self, delta: OutputDelta) -> dict[str, Any]:
        """The answer as it is now; ``delta`` is what was added last, and gives the counts.

        What is to be encoded as JSON is valid until the next call, anything else for good.
        """
        answer, info = self._answer, self._info
        if self._as_json:
            if self._has_text:
                answer["text"] = _Raw(b'"%b"' % bytes(self._text_json))
            answer["output_ids"] = _Raw(b"[%b]" % bytes(self._ids_json))
        else:
            answer, info = answer.copy(), info.copy()
            if self._has_text:
                answer["text"] = self._text
            answer["output_ids"] = self._ids.copy()
            answer["meta_info"] = info
        # Set one by one: a call per event would cost more than all of this.
        info["finish_reason"] = None if delta.finish_reason is None else finish_reason_dict(delta.finish_reason)
        info["prompt_tokens"] = delta.prompt_tokens
        info["completion_tokens"] = delta.completion_tokens
        info["cached_tokens"] = delta.cached_tokens
        info["num_retractions"] = delta.num_retractions
        info["weight_version"] = self._state.weight_versions[-1][0]
        if self._state.dp_rank is not None:  # known with the first delta
            info["dp_rank"] = self._state.dp_rank
        if self._reasoning is not None:
            info["reasoning_tokens"] = self._reasoning.total
        if delta.finish_reason is not None:
            info.update(_at_the_end(self._state, delta))
        if self._logprobs is not None:
            info.update(self._logprobs.values())
        if self._incremental:
            self._text = ""
            self._ids.clear()
            self._text_json.clear()
            self._ids_json.clear()
            if self._logprobs is not None:
                self._logprobs.clear()
        return answer

    def next_event(self, delta: OutputDelta) -> bytes:
        """Do as :meth:`add` and :meth:`answer` with a delta that is not the last; returns a server-sent event."""
        if self._logprobs is not None or not self._has_text:
            self.add(delta)
            return b"data: %b\n\n" % _encode(self.answer(delta))
        if (
            delta.cached_tokens != self._cached_tokens
            or delta.num_retractions != self._num_retractions
            or self._state.weight_versions is not self._weight_versions
        ):
            self._cached_tokens, self._num_retractions = delta.cached_tokens, delta.num_retractions
            self._weight_versions = self._state.weight_versions
            self._frame = self._make_frame(delta)
        text: bytes | bytearray
        ids: bytes | bytearray
        reasoning = self._reasoning
        if self._incremental:
            text, ids = _encode(delta.text or ""), _encode(delta.token_ids)
            if reasoning is not None:
                reasoning.add(delta.token_ids)
        else:
            self.add(delta)
            text, ids = self._text_json, self._ids_json
        return self._frame % (text, ids, delta.completion_tokens, 0 if reasoning is None else reasoning.total)

    def _make_frame(self, delta: OutputDelta) -> bytes:
        """An event to be formatted with what changes with every token: see :meth:`next_event`."""
        answer = self.answer(delta)
        info = answer["meta_info"] | dict.fromkeys(("completion_tokens", "reasoning_tokens"), _Raw(b"\0d"))
        quoted = (b"\0b", b"\0b") if self._incremental else (b'"\0b"', b"[\0b]")
        answer = answer | {"text": _Raw(quoted[0]), "output_ids": _Raw(quoted[1]), "meta_info": info}
        return b"data: %b\n\n" % _encode(answer).replace(b"%", b"%%").replace(b"\0", b"%")


class NativeLogprobs:
    """The logprob lists of ``meta_info``; which of them exist depends on the request."""

    def __init__(
        self, state: ReqState, token_text: TokenText | None, new_list: Callable[[], _ObjectList | _JsonList]
    ) -> None:
        self._token_text = token_text
        self._has_top = state.obj.top_logprobs_num > 0
        self._has_chosen = state.obj.token_ids_logprob is not None
        self._num_output = 0
        kinds = ["token_logprobs"]
        if self._has_top:
            kinds.append("top_logprobs")
        if self._has_chosen:
            kinds.append("token_ids_logprobs")
        self._lists = {f"{side}_{kind}": new_list() for kind in kinds for side in ("input", "output")}

    def add(self, delta: OutputDelta) -> None:
        """Append what a delta brings."""
        self._extend("input", delta.input_logprobs or ())
        self._extend("output", delta.logprobs or ())
        self._num_output += len(delta.logprobs or ())

    def values(self) -> dict[str, Any]:
        """The lists by name."""
        lists = {name: values.value() for name, values in self._lists.items()}
        lists["output_token_logprobs_length"] = self._num_output
        return lists

    def clear(self) -> None:
        """Begin anew."""
        self._num_output = 0
        for values in self._lists.values():
            values.clear()

    def _extend(self, side: str, entries: Sequence[PositionLogprobs]) -> None:
        if not entries:
            return
        lists, text = self._lists, self._token_text
        lists[f"{side}_token_logprobs"].extend([triple(entry.logprob, entry.token_id, text) for entry in entries])
        if self._has_top:
            lists[f"{side}_top_logprobs"].extend([_triples(entry.top, text) for entry in entries])
        if self._has_chosen:
            lists[f"{side}_token_ids_logprobs"].extend([_triples(entry.chosen, text) for entry in entries])


def triple(logprob: float | None, token_id: int, token_text: TokenText | None) -> Triple:
    """One token's entry in a logprob list."""
    return (logprob, token_id, None if token_text is None else token_text(token_id))


def _triples(pairs: Sequence[tuple[float, int]] | None, token_text: TokenText | None) -> list[Triple] | None:
    return None if pairs is None else [triple(logprob, token, token_text) for logprob, token in pairs]


def meta_info(state: ReqState, delta: OutputDelta) -> dict[str, Any]:
    """Everything of ``meta_info`` but logprobs; times come with the end."""
    info: dict[str, Any] = {
        "id": state.rid,
        "finish_reason": finish_reason_dict(delta.finish_reason),
        "prompt_tokens": delta.prompt_tokens,
        "completion_tokens": delta.completion_tokens,
        "cached_tokens": delta.cached_tokens,
        "reasoning_tokens": 0,
        "weight_version": state.weight_versions[-1][0],
        "num_retractions": delta.num_retractions,
    }
    if state.dp_rank is not None:
        info["dp_rank"] = state.dp_rank
    if delta.finish_reason is not None:
        info.update(_at_the_end(state, delta))
    return info


def _at_the_end(state: ReqState, delta: OutputDelta) -> dict[str, Any]:
    """Facts about a finished output alone: times, and whose tokens are whose where the weights have changed."""
    spans = version_spans(state, delta.completion_tokens)
    about = {"weight_version": spans[-1]["version"], **({"weight_versions": spans} if len(spans) > 1 else {})}
    if delta.routed_experts is not None:
        about["routed_experts"] = base64.b64encode(delta.routed_experts).decode()
    return {**_times(state, delta), **about}


def version_spans(state: ReqState, num_tokens: int) -> list[dict[str, Any]]:
    """What the weights were called that have made the tokens of an output, of which there are ``num_tokens``."""
    versions = state.weight_versions
    ends = [*(first for _, first in versions[1:]), num_tokens]
    return [
        {"version": version, "start": first, "end": end}
        for (version, first), end in zip(versions, ends, strict=True)
        if first < end or first == 0
    ]


def _times(state: ReqState, delta: OutputDelta) -> dict[str, float]:
    """Times of a finished output: seconds, and moments in seconds since 1970."""
    since_1970 = time.time() - time.monotonic()
    times = {
        "e2e_latency": state.finished_time - state.created_time,
        "request_received_ts": since_1970 + state.created_time,
        "request_finished_ts": since_1970 + state.finished_time,
    }
    if state.sent:
        times["api_server_dispatch_finish_ts"] = since_1970 + state.sent_time
    if state.queue_time is not None:
        times["queue_time"] = state.queue_time
        times["forward_entry_time"] = since_1970 + state.sent_time + state.queue_time
    if state.first_token_time:
        times["first_token_latency"] = state.first_token_time - state.created_time
        times["prefill_finished_time"] = since_1970 + state.first_token_time
        decoding = state.finished_time - state.first_token_time
        if delta.completion_tokens > 1 and decoding > 0.0:
            times["decode_throughput"] = (delta.completion_tokens - 1) / decoding
    return times


def finish_reason_dict(reason: FinishReason | None) -> dict[str, Any] | None:
    """A finish reason as clients see it."""
    if reason is None:
        return None
    if reason.type == "stop":
        return {"type": "stop", "matched": reason.matched}
    if reason.type == "length":
        return {"type": "length", "length": reason.length}
    answer: dict[str, Any] = {"type": "abort", "message": reason.message or "aborted"}
    if reason.status_code is not None:
        answer["status_code"] = reason.status_code
    return answer
