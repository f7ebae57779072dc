"""The overlapped face of a worker: steps run on a thread of their own while the caller plans the next one."""

from __future__ import annotations

import atexit
import queue
import threading
from collections import deque
from concurrent.futures import Future
from typing import Protocol

from bough.errors import EngineDead
from bough.step_plan import StepPlan, StepResult


class StepRunner(Protocol):
    """What runs the steps: a :class:`TpModelWorker`, or something with this method."""

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step."""


class TpModelWorkerClient:
    """Submits steps and fetches their results later, both in order.

    A step may be submitted before the result of the one before is known: its decode inputs are future tokens, which
    the device knows. A step that raises does not keep later ones from running: who is affected by it is for the
    caller to say.

    Attributes:
        depth: steps that may be in flight while the next one is planned.
    """

    depth = 1

    def __init__(self, worker: StepRunner) -> None:
        self.worker = worker
        self._plans: queue.SimpleQueue[tuple[StepPlan, Future[StepResult]] | None] = queue.SimpleQueue()
        self._pending: deque[Future[StepResult]] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="bough-forward", daemon=True)
        self._thread.start()
        # Native programs are destroyed by finalizers, at the end of the interpreter too. The model has been loaded, so
        # these are registered already, and what is registered later runs earlier: no step is cut short by that.
        atexit.register(self.close)

    def submit(self, plan: StepPlan) -> None:
        """Queue a step; returns at once.

        Raises:
            EngineDead: after :meth:`close`.
        """
        if self._closed:
            raise EngineDead("the worker is closed")
        result: Future[StepResult] = Future()
        self._pending.append(result)
        self._plans.put((plan, result))

    def resolve_batch_result(self) -> StepResult:
        """Result of the oldest step not fetched yet; waits for it.

        Raises:
            IndexError: if there is none.
            Exception: what the step raised.
        """
        return self._pending.popleft().result()

    def close(self) -> None:
        """Finish what is submitted and end the thread. Results can still be fetched; closing twice does nothing."""
        if not self._closed:
            self._closed = True
            atexit.unregister(self.close)
            self._plans.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (item := self._plans.get()) is not None:
            plan, result = item
            try:
                result.set_result(self.worker.forward_batch_generation(plan))
            except BaseException as error:  # handed to whoever fetches the result
                result.set_exception(error)
