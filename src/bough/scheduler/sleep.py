"""Sleep: memory goes back to the system between two phases of a program, and no step runs until it is there again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bough.errors import BadRequest
from bough.merging import Merge
from bough.model_executor.worker_info import Worker
from bough.scheduler.control import ControlHandler, Params
from bough.scheduler.endings import Endings
from bough.scheduler.pause import Pause
from bough.scheduler.requests import Requests

if TYPE_CHECKING:
    from bough.model_executor.worker_memory import WorkerMemory

logger = logging.getLogger(__name__)

_NEEDS = "an engine without requests, or a pause"

_SILENCE = 600.0
"""Seconds: what reading weights again may take, and more."""


class Sleep:
    """Gives memory of a worker back, and takes it again.

    ``announce`` sends a heartbeat with the seconds of silence that may follow.
    """

    def __init__(
        self, worker: Worker, requests: Requests, pause: Pause, endings: Endings, announce: Callable[[float], None]
    ) -> None:
        self._worker = worker
        self._requests = requests
        self._pause = pause
        self._endings = endings
        self._announce = announce

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handlers of the calls that give memory back and take it again."""
        merge: dict[str, Merge] = {"num_missing": "max", "asleep": "first"}
        return {
            "release_memory_occupation": ControlHandler(
                self._release, self._may_sleep, needs=_NEEDS, promise=self._promise_release, merge=merge
            ),
            "resume_memory_occupation": ControlHandler(
                self._resume, self._may_sleep, needs=_NEEDS, promise=self._promise_resume, merge=merge
            ),
        }

    def _may_sleep(self, params: Params) -> bool:
        """Return whether no step is in flight, and none will be until the pause ends or a request comes."""
        if self._requests.in_flight:
            return False
        return self._pause.holds_steps or len(self._requests) == 0

    @property
    def _memory(self) -> WorkerMemory:
        """Memory of the worker; raises :class:`BadRequest` if it gives none back."""
        memory = self._worker.memory
        if memory is None:
            raise BadRequest("the memory of this model cannot be given back", code="unsupported_by_model")
        return memory

    def _promise_release(self, params: Params) -> None:
        """Refuse a sleep that this scheduler could not carry out; raises :class:`BadRequest`."""
        self._memory.check_release(params["tags"])

    def _promise_resume(self, params: Params) -> None:
        """Refuse to wake in an order that this scheduler could not; raises :class:`BadRequest`."""
        self._memory.check_resume(params["tags"])

    def _release(self, params: Params) -> Params:
        memory, tags = self._memory, params["tags"]
        begin = time.perf_counter()
        self._announce(_SILENCE)
        if "kv_cache" in tags:
            # Paused requests compute their tokens again.
            self._endings.stream_output(self._endings.retract_all())
            self._requests.kv.prefix_cache.reset()
        try:
            memory.release(tags, params["what"])
        finally:
            state = self._state()
        logger.info("Memory given back (%s), in %.2f s", ", ".join(tags), time.perf_counter() - begin)
        return state

    def _resume(self, params: Params) -> Params:
        memory, tags = self._memory, params["tags"]
        begin = time.perf_counter()
        self._announce(_SILENCE)
        try:
            memory.resume(tags)
        finally:
            state = self._state()
        logger.info("Memory taken again (%s), in %.2f s", ", ".join(tags), time.perf_counter() - begin)
        return state

    def _state(self) -> Params:
        weights, asleep = self._worker.weights, self._memory.asleep
        num_missing = 0 if weights is None else weights.num_missing
        self._pause.is_asleep, self._pause.lacks_weights = bool(asleep), num_missing > 0
        return {"asleep": sorted(asleep), "num_missing": num_missing}
