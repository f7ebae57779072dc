"""How steps are run: at once, or beside the scheduler."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from bough.errors import ConfigError
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.step_plan import StepPlan, StepResult


class StepExecutor(Protocol):
    """Runs steps in the order in which they are submitted."""

    depth: int
    """Steps that may be in flight while the next one is planned: 0 without overlap."""

    def submit(self, plan: StepPlan) -> None:
        """Start a step."""

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest submitted step; waits for it and raises what it raised.

        If nothing has been submitted since a result that goes on, that of its plan's next step.
        """

    def close(self) -> None:
        """End what runs beside the scheduler."""


class Launched(Protocol):
    """A step that the device has been given."""

    def result(self) -> StepResult:
        """What it produced; waits for it and raises what the device says of it."""


@runtime_checkable
class LaunchingWorker(Protocol):
    """A worker that can give the device a step without waiting for the one before."""

    @property
    def runs_ahead(self) -> bool:
        """Whether it does."""

    def launch(self, plan: StepPlan) -> Launched:
        """Give the device a step."""


@runtime_checkable
class MultiStepWorker(Protocol):
    """A worker that runs several steps of a plan, and may be told to stop in between."""

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on; no other plan may have come in between."""


def executor_for(worker: Worker, *, overlap: bool | None) -> Callable[[Worker], StepExecutor]:
    """How to run the steps of ``worker``.

    Args:
        worker: whose model is loaded.
        overlap: whether steps run beside the scheduler; ``None`` for what suits the device. On a CPU the scheduler and
            the model share the cores, and overlapping them gains nothing.
    """
    if overlap is None:
        overlap = worker.get_worker_info().device != "cpu"
    if overlap and isinstance(worker, LaunchingWorker) and worker.runs_ahead:
        return lambda _: AheadExecutor(worker)
    return TpModelWorkerClient if overlap else InlineExecutor


def most_steps(wanted: int | None, info: WorkerInfo, executor: StepExecutor) -> int:
    """Return the most steps that a plan may have.

    Raises:
        ConfigError: if more than one is ``wanted`` where there can be but one.
    """
    # Where steps overlap, the host has time to look at each.
    possible = info.max_steps if executor.depth == 0 else 1
    if wanted is not None and wanted > 1 and possible == 1:
        raise ConfigError(
            f"--num-continuous-decode-steps {wanted} is for text models on native CPU kernels without overlapping "
            "steps; here it can only be 1, so leave it out",
            param="num_continuous_decode_steps",
        )
    return possible if wanted is None else min(wanted, possible)


class TimedWorker:
    """A worker whose results say how long they took, whether it measures that itself or not."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._multi_step = worker if isinstance(worker, MultiStepWorker) else None
        if worker.get_worker_info().max_steps > 1 and self._multi_step is None:
            raise TypeError(f"a {type(worker).__name__} is no MultiStepWorker, but takes plans of several steps")

    def get_worker_info(self) -> WorkerInfo:
        """Limits of the loaded model."""
        return self._worker.get_worker_info()

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """See :class:`MultiStepWorker`; other workers run one step at a time."""
        if self._multi_step is not None:
            self._multi_step.interrupt_on(descriptors)

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step and measure it."""
        start = time.perf_counter()
        return _timed(self._worker.forward_batch_generation(plan), start)

    def forward_further(self) -> StepResult:
        """See :class:`MultiStepWorker`, whose result says that a step follows."""
        assert self._multi_step is not None, "other workers run one step at a time"
        start = time.perf_counter()
        return _timed(self._multi_step.forward_further(), start)


def _timed(result: StepResult, start: float) -> StepResult:
    return result if result.seconds else replace(result, seconds=time.perf_counter() - start)


class InlineExecutor:
    """Runs a step when it is submitted: no overlap."""

    depth = 0

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._multi_step = worker if isinstance(worker, MultiStepWorker) else None
        self._results: deque[StepResult | Exception] = deque()

    def submit(self, plan: StepPlan) -> None:
        """Run a step to its end; an error is kept for :meth:`resolve_batch_result`."""
        try:
            self._results.append(self._worker.forward_batch_generation(plan))
        except Exception as error:
            self._results.append(error)

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest step, or of the one that follows the last result, which is run now."""
        if not self._results:
            assert self._multi_step is not None, "a step was submitted, or one follows"
            return self._multi_step.forward_further()
        result = self._results.popleft()
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """Nothing runs beside the scheduler."""


class AheadExecutor:
    """Gives the device the next step while it computes the last one: overlap without a thread.

    The inputs of a step are future tokens, which the device has when it gets there. So the device goes from step to
    step by itself, and the host waits once a step, for results that it needs to plan the step after the next.
    """

    depth = 1

    def __init__(self, worker: LaunchingWorker) -> None:
        self._worker = worker
        self._launched: deque[Launched | Exception] = deque()

    def submit(self, plan: StepPlan) -> None:
        """Launch a step; an error is kept for :meth:`resolve_batch_result`."""
        try:
            self._launched.append(self._worker.launch(plan))
        except Exception as error:
            self._launched.append(error)

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest step; waits for the device."""
        launched = self._launched.popleft()
        if isinstance(launched, Exception):
            raise launched
        return launched.result()

    def close(self) -> None:
        """Nothing runs beside the scheduler but the device."""
