"""Results of steps, as tests look at them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from bough.step_plan import StepResult


def runs_of(result: StepResult) -> list[list[int]]:
    """The tokens of each row."""
    ends = np.cumsum(result.counts)
    assert len(result.tokens) == (ends[-1] if len(ends) else 0)
    return [run.tolist() for run in np.split(result.tokens, ends)[:-1]]


def joined(results: Sequence[StepResult]) -> StepResult:
    """The results of steps in a row as one. Only in the last step may rows have failed, which have no token then."""
    rows = np.concatenate([np.repeat(np.arange(len(each.counts)), each.counts) for each in results])
    return replace(
        results[-1],
        tokens=np.concatenate([each.tokens for each in results])[np.argsort(rows, kind="stable")],
        counts=sum(each.counts for each in results),
        logprobs=tuple(each for result in results for each in result.logprobs),
        num_steps=sum(each.num_steps for each in results),
    )


def failing(result: StepResult, *rows: int) -> StepResult:
    """The result if ``rows``, which have sampled, had failed in the last step."""
    at, counts = list(rows), result.counts.copy()
    counts[at] -= 1
    tokens = np.delete(result.tokens, np.cumsum(result.counts)[at] - 1)
    return replace(result, tokens=tokens, counts=counts, failed_rows=rows)
