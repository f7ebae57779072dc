"""Long work for one client, done such that the streams of others get their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator

from bough.errors import BadRequest
from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.prompt_encoder import PromptEncoder
from bough.sampling.sampling_params import MAX_STOP_STRINGS
from bough.tokenization.stop_regex import compile_stop_regex

SLICE_POSITIONS = 256
"""Positions rendered between two turns of the event loop: about 0.3 ms with a few alternatives each."""


async def compile_patterns(encoder: PromptEncoder | None, lists: Collection[tuple[str, ...]], param: str) -> None:
    """Find out whether the stop patterns of a request are valid, in a thread: that can take a quarter of a second.

    Args:
        encoder: has the threads; ``None`` for a server without a tokenizer, which refuses patterns anyway.
        lists: the different values of ``stop_regex`` in the request.

    Raises:
        BadRequest: if a pattern is invalid, or there are more than ``MAX_STOP_STRINGS`` in all.
    """
    given = [patterns for patterns in lists if patterns]
    if not given or encoder is None:
        return
    if sum(map(len, given)) > MAX_STOP_STRINGS:
        raise BadRequest(f"{param}: at most {MAX_STOP_STRINGS} patterns are allowed in a request", param=param)

    def compile_all() -> None:
        for patterns in given:
            compile_stop_regex(patterns, param)

    await encoder.run_apart(compile_all)


async def add_paced(add: Callable[[OutputDelta], None], delta: OutputDelta) -> None:
    """Call ``add`` with ``delta``, or with pieces of it if it is long: its logprobs are gone then."""
    if len(delta.token_ids) <= SLICE_POSITIONS and len(delta.input_logprobs or ()) <= SLICE_POSITIONS:
        add(delta)
        return
    for piece in _slices(delta):
        add(piece)
        await asyncio.sleep(0)


def _slices(delta: OutputDelta) -> Iterator[OutputDelta]:
    """Deltas that say together what ``delta`` says: prompt logprobs first, all text with the first of the rest."""
    prompt, entries = delta.input_logprobs or [], delta.logprobs
    for start in range(0, len(prompt), SLICE_POSITIONS):
        yield OutputDelta(delta.rid, [], input_logprobs=_cut_out(prompt, start))
    for start in range(0, max(len(delta.token_ids), 1), SLICE_POSITIONS):
        end = start + SLICE_POSITIONS
        yield OutputDelta(
            delta.rid,
            delta.token_ids[start:end],
            text=delta.text if start == 0 else None,
            logprobs=None if entries is None else _cut_out(entries, start),
            finish_reason=delta.finish_reason if end >= len(delta.token_ids) else None,
        )


def _cut_out(entries: list[PositionLogprobs], start: int) -> list[PositionLogprobs]:
    """A slice of ``entries``, which need not take memory any longer than it takes to encode it."""
    end = start + SLICE_POSITIONS
    slice_ = entries[start:end]
    entries[start:end] = [_GONE] * len(slice_)
    return slice_


_GONE = PositionLogprobs(None, 0)
