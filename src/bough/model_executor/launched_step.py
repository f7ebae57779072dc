"""A step whose work the device has been given: what becomes of it once its results are on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bough.layers.logprobs import GatheredLogprobs
from bough.layers.sampler import SampleOutput
from bough.model_executor.logprob_results import logprob_results
from bough.model_executor.readback import Lane
from bough.step_plan import FUTURE_TOKEN, IntArray, RowEmbedding, RowLogprobResult, StepPlan, StepResult, token_runs

RowIndices = npt.NDArray[np.int64]

_Arrived = Iterator[npt.NDArray[Any]]


class SampledRows(NamedTuple):
    """Choices of the sampler."""

    rows: RowIndices
    output: SampleOutput


class CheckedRows(NamedTuple):
    """Rows that did not sample."""

    rows: RowIndices
    finite: torch.Tensor
    """bool, of each row"""


@dataclass(slots=True)
class StepOutcome:
    """Results of a step; its tensors are on the device."""

    tokens: IntArray
    """[S, R], of steps in a row, those that the host knows already; else ``FUTURE_TOKEN``"""
    finite: npt.NDArray[np.bool_]
    """[R], false for those that the host knows to have failed in the last step"""
    sampled: SampledRows | None = None
    checked: CheckedRows | None = None
    targets: tuple[GatheredLogprobs | None, ...] = ()
    """One for each of the plan's requests for logprobs; ``None`` if it has no targets"""
    logprobs: tuple[RowLogprobResult, ...] | None = None
    """Answers to all of the plan's requests, step after step; ``None`` if the host does not know them yet"""
    embeddings: tuple[RowEmbedding, ...] = ()
    goes_on: bool = False

    @classmethod
    def nothing(cls, num_rows: int) -> StepOutcome:
        """Results for rows that have not run."""
        return cls(np.full((1, num_rows), FUTURE_TOKEN, dtype=np.int32), np.ones(num_rows, dtype=np.bool_))


class LaunchedStep:
    """A step that the device computes, or has computed."""

    def __init__(
        self, plan: StepPlan, outcome: StepOutcome, lane: Lane, on_failed: Callable[[StepPlan, list[int], int], None]
    ) -> None:
        """Begin to copy what the host wants, without waiting; ``on_failed`` gets failed rows and how many steps were
        run.
        """
        self._plan, self._outcome, self._on_failed = plan, outcome, on_failed
        self._readback = lane.read(_tensors(outcome))

    def result(self) -> StepResult:
        """Wait for the device and return the step's result; call it once.

        Raises:
            RuntimeError: what the device has to say of the step's work.
        """
        plan, outcome = self._plan, self._outcome
        arrays = iter(self._readback.wait())
        tokens, finite = outcome.tokens, outcome.finite
        if outcome.sampled is not None:
            tokens[-1, outcome.sampled.rows] = next(arrays)
            finite[outcome.sampled.rows] = next(arrays)
        if outcome.checked is not None:
            finite[outcome.checked.rows] = next(arrays)
        failed = (~finite).nonzero()[0].tolist()
        if failed:
            self._on_failed(plan, failed, len(tokens))
        return StepResult(
            plan.step_id,
            *token_runs(tokens, failed),
            logprobs=self._logprobs(arrays) if outcome.logprobs is None else outcome.logprobs,
            failed_rows=tuple(failed),
            embeddings=outcome.embeddings,
            num_steps=len(tokens),
            seconds=self._readback.seconds,
            goes_on=outcome.goes_on,
        )

    def _logprobs(self, arrays: _Arrived) -> tuple[RowLogprobResult, ...]:
        outcome, requests = self._outcome, self._plan.logprobs
        is_told = outcome.sampled is not None and outcome.sampled.output.logprobs is not None
        sampled = list(islice(arrays, 4)) if is_told else None
        targets = [None if gathered is None else list(islice(arrays, 4)) for gathered in outcome.targets]
        return logprob_results(requests, targets, sampled, [bool(self._plan.sample[each.row]) for each in requests])


def _tensors(outcome: StepOutcome) -> list[torch.Tensor]:
    """Tensors that are copied, in the order in which they are taken."""
    tensors: list[torch.Tensor] = []
    if outcome.sampled is not None:
        tensors += (outcome.sampled.output.next_token_ids, outcome.sampled.output.finite)
    if outcome.checked is not None:
        tensors.append(outcome.checked.finite)
    if outcome.sampled is not None and outcome.sampled.output.logprobs is not None:
        tensors += outcome.sampled.output.logprobs
    for gathered in outcome.targets:
        tensors += gathered or ()
    return tensors
