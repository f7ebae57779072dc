"""Rendering of long results in slices, so that other streams get their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from bough.ipc.messages import OutputDelta

SLICE_POSITIONS = 256
"""Positions rendered between two turns of the event loop: about 0.3 ms with a few alternatives each."""


async def add_paced(add: Callable[[OutputDelta], None], delta: OutputDelta) -> None:
    """Call ``add`` with ``delta``, or with pieces of it if it is long."""
    if len(delta.token_ids) <= SLICE_POSITIONS and len(delta.input_logprobs or ()) <= SLICE_POSITIONS:
        add(delta)
        return
    for piece in _slices(delta):
        add(piece)
        await asyncio.sleep(0)


def _slices(delta: OutputDelta) -> Iterator[OutputDelta]:
    """Deltas that say together what ``delta`` says: prompt logprobs first, all text with the first of the rest."""
    prompt = delta.input_logprobs or []
    for start in range(0, len(prompt), SLICE_POSITIONS):
        yield OutputDelta(delta.rid, [], input_logprobs=prompt[start : start + SLICE_POSITIONS])
    for start in range(0, max(len(delta.token_ids), 1), SLICE_POSITIONS):
        end = start + SLICE_POSITIONS
        yield OutputDelta(
            delta.rid,
            delta.token_ids[start:end],
            text=delta.text if start == 0 else None,
            logprobs=None if delta.logprobs is None else delta.logprobs[start:end],
        )
