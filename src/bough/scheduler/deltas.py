"""Deltas of requests: the news of an output, and the logprobs of its tokens."""

from __future__ import annotations

import numpy as np

from bough.ipc.messages import DecodeInit, OutputDelta, PositionLogprobs
from bough.scheduler.req import Req
from bough.step_plan import IntArray, RowLogprobResult

PROMPT_TAIL_TOKENS = 5
"""Prompt tokens that a detokenizer gets as context: enough for any byte-fallback character and a leading space."""


def delta_of(req: Req, output: IntArray) -> OutputDelta:
    """Return everything of the whole ``output`` that no delta of ``req`` has carried yet."""
    text = None
    until = len(output)
    if req.text_stops is not None:
        text, until = req.text_stops.take_text()
    elif req.sampling_params.has_text_stops:  # lost to an error; no detokenizer knows the request
        text, until = "", req.sent_len
    delta = OutputDelta(
        rid=req.rid,
        token_ids=output[req.sent_len : until].tolist(),
        text=text,
        completion_tokens=until,
        prompt_tokens=req.prompt_tokens,
        cached_tokens=req.cached_tokens,
    )
    if req.return_logprob:
        count = until - req.sent_len
        delta.logprobs, req.pending_logprobs = req.pending_logprobs[:count], req.pending_logprobs[count:]
        if req.input_logprobs:
            delta.input_logprobs, req.input_logprobs = req.input_logprobs, []
    if not req.announced:
        req.announced = True
        if text is None and req.pooling is None:
            delta.decode = DecodeInit(
                req.prompt[-PROMPT_TAIL_TOKENS:].tolist(),
                req.sampling_params.skip_special_tokens,
                req.sampling_params.spaces_between_special_tokens,
                req.sampling_params.no_stop_trim,
            )
        delta.dp_rank = req.extras.routed_dp_rank
        if req.first_step_time is not None:
            delta.queue_time = req.first_step_time - req.arrival_time
        if req.first_token_time is not None:
            delta.first_token_delay = req.first_token_time - req.arrival_time
    req.sent_len = until
    return delta


def add_input_logprobs(req: Req, result: RowLogprobResult | None, start: int, first_position: int) -> None:
    """Append the logprobs of the tokens of a piece of the prompt, which begins at position ``start``.

    ``result`` has those from ``first_position`` on; ``None`` if the piece has none.
    """
    if req.logprob_next == 0 and start == 0:
        # Nothing precedes the first token, so nothing predicts it.
        req.input_logprobs.append(PositionLogprobs(None, int(req.prompt[0])))
        req.logprob_next = 1
    if result is None or len(result.target_logprobs) == 0:
        return
    targets = req.prompt[first_position : first_position + len(result.target_logprobs)].tolist()
    tops = _pair_lists(result.target_top)
    chosen = result.target_chosen
    for i, (token, logprob) in enumerate(zip(targets, result.target_logprobs.tolist(), strict=True)):
        req.input_logprobs.append(
            PositionLogprobs(
                logprob,
                token,
                tops[i] if tops is not None else None,
                list(zip(chosen[i].tolist(), req.token_ids_logprob, strict=True)) if chosen is not None else None,
            )
        )
    req.logprob_next = first_position + len(targets)


def sampled_logprobs(req: Req, token: int, result: RowLogprobResult) -> PositionLogprobs:
    """Return the logprobs of a token that a row has sampled."""
    top = None
    if result.sampled_top is not None:
        values, ids = result.sampled_top
        top = list(zip(values.tolist(), ids.tolist(), strict=True))
    chosen = None
    if result.sampled_chosen is not None:
        chosen = list(zip(result.sampled_chosen.tolist(), req.token_ids_logprob, strict=True))
    return PositionLogprobs(result.sampled_logprob, token, top, chosen)


def _pair_lists(top: tuple[np.ndarray, np.ndarray] | None) -> list[list[tuple[float, int]]] | None:
    if top is None:
        return None
    values, ids = top
    return [list(zip(v, i, strict=True)) for v, i in zip(values.tolist(), ids.tolist(), strict=True)]
