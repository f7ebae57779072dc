"""Answers in the native shape (``text``, ``output_ids``, ``meta_info``), of ``/generate`` and ``Engine.generate``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bough.errors import BadRequest, BoughError, Overloaded, RequestFailed
from bough.ipc.messages import FinishReason, OutputDelta, PositionLogprobs
from bough.managers.req_state import ReqState
from bough.sampling.sampling_params import GRAMMAR_KINDS

DEFAULT_WEIGHT_VERSION = "default"

TokenText = Callable[[int], str]
"""The text of one token on its own."""

Triple = tuple[float | None, int, str | None]
"""Logprob, token id, and the token's text if it was asked for."""


class NativeOutput:
    """One output in the making.

    Args:
        state: the output.
        token_text: gives texts to the tokens in logprobs; ``None`` leaves them null.
        incremental: whether each answer carries only what is new since the one before.
        has_text: whether the server has a tokenizer, so that there is text at all.
    """

    def __init__(self, state: ReqState, *, token_text: TokenText | None, incremental: bool, has_text: bool) -> None:
        self._state = state
        self._token_text = token_text if state.obj.return_text_in_logprobs else None
        self._incremental = incremental
        self._has_text = has_text
        self._text = ""
        self._output_ids: list[int] = []
        self._logprobs = NativeLogprobs(state, self._token_text) if state.obj.return_logprob else None

    def add(self, delta: OutputDelta) -> dict[str, Any]:
        """Take a delta in; returns the answer as it is now."""
        text = delta.text or ""
        if self._incremental:
            self._text, self._output_ids = text, delta.token_ids
        else:
            self._text += text
            self._output_ids = [*self._output_ids, *delta.token_ids]
        answer: dict[str, Any] = {"text": self._text} if self._has_text else {}
        answer["output_ids"] = self._output_ids
        request = self._state.obj
        if request.return_prompt_token_ids and request.input_ids is not None:
            answer["prompt_token_ids"] = request.input_ids.tolist()
        answer["meta_info"] = meta_info(self._state, delta)
        if self._logprobs is not None:
            if self._incremental:
                self._logprobs = NativeLogprobs(self._state, self._token_text)
            self._logprobs.add(delta)
            answer["meta_info"].update(self._logprobs.to_dict())
        return answer


class NativeLogprobs:
    """The logprob lists of ``meta_info``; which of them exist depends on the request."""

    def __init__(self, state: ReqState, token_text: TokenText | None) -> None:
        self._token_text = token_text
        self._lists: dict[str, list[Any]] = {"input_token_logprobs": [], "output_token_logprobs": []}
        self._has_top = state.obj.top_logprobs_num > 0
        self._has_chosen = state.obj.token_ids_logprob is not None
        for side in ("input", "output"):
            if self._has_top:
                self._lists[f"{side}_top_logprobs"] = []
            if self._has_chosen:
                self._lists[f"{side}_token_ids_logprobs"] = []

    def add(self, delta: OutputDelta) -> None:
        """Append what a delta brings."""
        self._extend("input", delta.input_logprobs or ())
        self._extend("output", delta.logprobs or ())

    def to_dict(self) -> dict[str, Any]:
        """The lists by name; copies, so that an answer handed out does not change."""
        lists: dict[str, Any] = {name: list(values) for name, values in self._lists.items()}
        lists["output_token_logprobs_length"] = len(lists["output_token_logprobs"])
        return lists

    def _extend(self, side: str, entries: Sequence[PositionLogprobs]) -> None:
        lists, text = self._lists, self._token_text
        for entry in entries:
            lists[f"{side}_token_logprobs"].append(triple(entry.logprob, entry.token_id, text))
            if self._has_top:
                lists[f"{side}_top_logprobs"].append(_triples(entry.top, text))
            if self._has_chosen:
                lists[f"{side}_token_ids_logprobs"].append(_triples(entry.chosen, text))


def triple(logprob: float | None, token_id: int, token_text: TokenText | None) -> Triple:
    """One token's entry in a logprob list."""
    return (logprob, token_id, None if token_text is None else token_text(token_id))


def _triples(pairs: Sequence[tuple[float, int]] | None, token_text: TokenText | None) -> list[Triple] | None:
    return None if pairs is None else [triple(logprob, token, token_text) for logprob, token in pairs]


def meta_info(state: ReqState, delta: OutputDelta) -> dict[str, Any]:
    """Everything of ``meta_info`` but logprobs. ``e2e_latency`` (seconds) comes with the end."""
    info: dict[str, Any] = {
        "id": state.rid,
        "finish_reason": finish_reason_dict(delta.finish_reason),
        "prompt_tokens": delta.prompt_tokens,
        "completion_tokens": delta.completion_tokens,
        "cached_tokens": delta.cached_tokens,
        "reasoning_tokens": 0,
        "weight_version": DEFAULT_WEIGHT_VERSION,
        "num_retractions": delta.num_retractions,
    }
    if delta.finish_reason is not None:
        info["e2e_latency"] = state.finished_time - state.created_time
    return info


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


def in_client_terms(reason: FinishReason, grammar_param: str | None) -> FinishReason:
    """The same reason, where it is about a grammar, under the name by which the client knows that."""
    if grammar_param is None or reason.param not in GRAMMAR_KINDS:
        return reason
    problem = (reason.message or "").removeprefix(f"{reason.param}: ")
    return msgspec.structs.replace(reason, param=grammar_param, message=f"{grammar_param}: {problem}")


def failure_of(reason: FinishReason | None) -> BoughError | None:
    """The error that a finish reason stands for; ``None`` for a normal end and for an abort that a client asked for."""
    if reason is None or reason.type != "abort" or reason.status_code is None:
        return None
    message = reason.message or "the engine could not finish the request"
    if reason.status_code == Overloaded.status_code:
        return Overloaded(message, code=reason.code or "overloaded")
    if reason.status_code == BadRequest.status_code:
        return BadRequest(message, param=reason.param, code=reason.code)
    return RequestFailed(message, status_code=reason.status_code, code=reason.code)
