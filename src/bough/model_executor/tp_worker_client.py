"""The overlapped face of a worker: steps run on a thread of their own while the caller plans the next one."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from bough.errors import EngineDead
from bough.model_executor.worker_info import Worker
from bough.step_plan import StepPlan, StepResult


class TpModelWorkerClient:
    """Submits steps and fetches their results later, both in order.

    A step may be submitted before the result of the one before is known: its decode inputs are future tokens, which
    the device knows. A step that raises does not keep later ones from running: the caller decides which requests are
    affected.

    Attributes:
        depth: steps that may be in flight while the next one is planned.
    """

    depth = 1

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.forward_thread_func = worker.forward_batch_generation
        self._pending: deque[Future[StepResult]] = deque()
        # Native programs are destroyed by finalizers at the end of the interpreter; the thread is joined before those.
        self._thread = ThreadPoolExecutor(1, "bough-forward")

    def submit(self, plan: StepPlan) -> None:
        """Queue a step; returns immediately. Raises :class:`EngineDead` after :meth:`close`."""
        try:
            self._pending.append(self._thread.submit(self.forward_thread_func, plan))
        except RuntimeError:
            raise EngineDead("the worker is closed") from None

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest step not fetched yet; waits for it.

        Raises:
            IndexError: if there is none.
            Exception: what the step raised.
        """
        return self._pending.popleft().result()

    def close(self) -> None:
        """Finish what is submitted and end the thread. Results can still be fetched; closing twice does nothing."""
        self._thread.shutdown()
