"""Native answers as JSON, put together from pieces that are encoded once.

A stream of ``/generate`` repeats everything with every event. What was encoded for one event is kept as bytes for the
next, so an event costs its own tokens and a copy. :class:`~bough.managers.native_output.NativeOutput` is the same
thing as Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.native_output import DEFAULT_WEIGHT_VERSION, TokenText, finish_reason_dict, triple
from bough.managers.req_state import ReqState

_encode = msgspec.json.encode
_CONSTANT_META = b',"reasoning_tokens":0,"weight_version":%b' % _encode(DEFAULT_WEIGHT_VERSION)


class NativeRenderer:
    """One output in the making, as JSON.

    Args:
        state: the output.
        token_text: gives texts to the tokens in logprobs, if the request wants them.
        incremental: whether each answer carries only what is new since the one before.
        has_text: whether the server has a tokenizer, so that there is text at all.
        with_index: whether answers say which output they belong to.
    """

    def __init__(
        self, state: ReqState, *, token_text: TokenText | None, incremental: bool, has_text: bool, with_index: bool
    ) -> None:
        request = state.obj
        self._state = state
        self._incremental = incremental
        self._text = bytearray()
        self._ids = bytearray()
        self._start = b'{"text":"' if has_text else b'{"output_ids":['
        self._has_text = has_text
        prompt = b""
        if request.return_prompt_token_ids and request.input_ids is not None:
            prompt = b'"prompt_token_ids":%b,' % _encode(request.input_ids.tolist())
        self._meta = b'],%b"meta_info":{"id":%b,"finish_reason":' % (prompt, _encode(state.rid))
        self._end = b'},"index":%d}' % state.index if with_index else b"}}"
        self._logprobs: _LogprobLists | None = None
        if request.return_logprob:
            self._logprobs = _LogprobLists(state, token_text if request.return_text_in_logprobs else None)

    def add(self, delta: OutputDelta) -> None:
        """Take a delta in."""
        if delta.text:
            self._text += _encode(delta.text)[1:-1]
        if delta.token_ids:
            if self._ids:
                self._ids += b","
            self._ids += _encode(delta.token_ids)[1:-1]
        if self._logprobs is not None:
            self._logprobs.add(delta)

    def to_json(self, delta: OutputDelta) -> bytes:
        """The answer as it is now; ``delta`` is what was added last, and gives the counts."""
        reason = delta.finish_reason
        parts: list[bytes | bytearray] = [self._start]
        if self._has_text:
            parts += (self._text, b'","output_ids":[')
        parts += (
            self._ids,
            self._meta,
            b"null" if reason is None else _encode(finish_reason_dict(reason)),
            b',"prompt_tokens":%d,"completion_tokens":%d,"cached_tokens":%d,"num_retractions":%d'
            % (delta.prompt_tokens, delta.completion_tokens, delta.cached_tokens, delta.num_retractions),
            _CONSTANT_META,
        )
        if reason is not None:
            parts.append(b',"e2e_latency":%b' % _encode(self._state.finished_time - self._state.created_time))
        if self._logprobs is not None:
            self._logprobs.append_to(parts)
        parts.append(self._end)
        answer = b"".join(parts)
        if self._incremental:
            self._text.clear()
            self._ids.clear()
            if self._logprobs is not None:
                self._logprobs.clear()
        return answer


class _LogprobLists:
    """The logprob lists of ``meta_info``, each as the inside of a JSON array."""

    def __init__(self, state: ReqState, token_text: TokenText | None) -> None:
        self._token_text = token_text
        self._has_top = state.obj.top_logprobs_num > 0
        self._has_chosen = state.obj.token_ids_logprob is not None
        self._num_output = 0
        kinds = ["token_logprobs"]
        if self._has_top:
            kinds.append("top_logprobs")
        if self._has_chosen:
            kinds.append("token_ids_logprobs")
        self._lists = {f"{side}_{kind}": bytearray() for side in ("input", "output") for kind in kinds}

    def clear(self) -> None:
        self._num_output = 0
        for encoded in self._lists.values():
            encoded.clear()

    def add(self, delta: OutputDelta) -> None:
        if delta.input_logprobs:
            self._extend("input", delta.input_logprobs)
        if delta.logprobs:
            self._extend("output", delta.logprobs)
            self._num_output += len(delta.logprobs)

    def append_to(self, parts: list[bytes | bytearray]) -> None:
        for name, encoded in self._lists.items():
            parts += (b',"%b":[' % name.encode(), encoded, b"]")
        parts.append(b',"output_token_logprobs_length":%d' % self._num_output)

    def _extend(self, side: str, entries: Sequence[PositionLogprobs]) -> None:
        text = self._token_text
        _append(
            self._lists[f"{side}_token_logprobs"], [triple(entry.logprob, entry.token_id, text) for entry in entries]
        )
        if self._has_top:
            _append(self._lists[f"{side}_top_logprobs"], [_triples(entry.top, text) for entry in entries])
        if self._has_chosen:
            _append(self._lists[f"{side}_token_ids_logprobs"], [_triples(entry.chosen, text) for entry in entries])


def _triples(pairs: Sequence[tuple[float, int]] | None, text: TokenText | None) -> object:
    return None if pairs is None else [triple(logprob, token, text) for logprob, token in pairs]


def _append(target: bytearray, values: Sequence[object]) -> None:
    if target:
        target += b","
    target += _encode(values)[1:-1]
