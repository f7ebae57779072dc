"""Executors of steps: immediately, or beside the scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.model_executor.worker_info import Launched, Worker, WorkerInfo
from bough.step_plan import StepPlan, StepResult


class StepExecutor(Protocol):
    """Runs steps in the order in which they are submitted."""

    depth: int
    """Steps that may be in flight while the next one is planned: 0 without overlap."""
    worker: Worker

    def submit(self, plan: StepPlan) -> None:
        """Start a step."""

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest submitted step; waits for it and raises what it raised.

        If nothing has been submitted since a result that goes on, that of its plan's next step.
        """

    def close(self) -> None:
        """End what runs beside the scheduler."""


def executor_for(info: WorkerInfo, *, overlap: bool | None) -> Callable[[Worker], StepExecutor]:
    """Choose how to run the steps of a worker: beside the scheduler, or not (``overlap``); ``None`` for what suits the
    device.

    On a CPU the scheduler and the model share the cores, and overlapping them gains nothing.
    """
    if overlap is None:
        overlap = info.device != "cpu"
    if overlap and info.runs_ahead:
        return AheadExecutor
    return TpModelWorkerClient if overlap else InlineExecutor


def start_executor(
    server_args: ServerArgs, worker: Worker, make_executor: Callable[[Worker], StepExecutor] | None
) -> tuple[StepExecutor, int]:
    """Start an executor, by default the one that the options and the device ask for; returns it and the most steps of a
    plan. Raises :class:`ConfigError` if more steps are wanted where there can be but one."""
    info, disabled = worker.get_worker_info(), server_args.disable_overlap_schedule
    make_executor = make_executor or executor_for(info, overlap=None if disabled is None else not disabled)
    executor = make_executor(worker)
    # Where steps overlap, the host has time to look at each.
    possible = info.max_steps if executor.depth == 0 else 1
    wanted = server_args.num_continuous_decode_steps
    if wanted is not None and wanted > 1 and possible == 1:
        executor.close()
        raise ConfigError(
            f"--num-continuous-decode-steps {wanted} is for text models on native CPU kernels without overlapping "
            "steps; here it can only be 1, so leave it out",
            param="num_continuous_decode_steps",
        )
    return executor, possible if wanted is None else min(wanted, possible)


class InlineExecutor:
    """Runs a step when it is submitted: no overlap."""

    depth = 0

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._begun: deque[StepResult | Launched | Exception] = deque()

    def submit(self, plan: StepPlan) -> None:
        """Begin a step; an error is kept for :meth:`resolve_batch_result`."""
        try:
            self._begun.append(self._begin(plan))
        except Exception as error:
            self._begun.append(error)

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest step, or of the one that follows the last result, which is run now."""
        if not self._begun:
            return self.worker.forward_further()
        begun = self._begun.popleft()
        if isinstance(begun, Exception):
            raise begun
        return begun if isinstance(begun, StepResult) else begun.result()

    def close(self) -> None:
        """Nothing runs beside the scheduler, except perhaps the device."""

    def _begin(self, plan: StepPlan) -> StepResult | Launched:
        return self.worker.forward_batch_generation(plan)


class AheadExecutor(InlineExecutor):
    """Gives the device the next step while it computes the last one: overlap without a thread.

    The inputs of a step are future tokens, which the device has when it gets there. So the device goes from step to
    step by itself, and the host waits once a step, for results that it needs to plan the step after the next.
    """

    depth = 1

    def _begin(self, plan: StepPlan) -> Launched:
        return self.worker.launch(plan)
