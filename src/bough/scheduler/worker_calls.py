"""Control calls of methods of the workers, which code of the operator may bring."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bough.errors import BadRequest
from bough.model_executor.worker_info import Worker
from bough.scheduler.control import ControlHandler, Params, Work
from bough.scheduler.pause import Pause
from bough.scheduler.requests import Requests
from bough.scheduler.silence import announced_silence

if TYPE_CHECKING:
    from bough.weight_sync.change import Change
    from bough.weight_sync.worker_weights import WorkerWeights

logger = logging.getLogger(__name__)


class WorkerMethods:
    """Calls methods of a worker between two steps, and writes the weights that they have loaded.

    Requests go on with these, with what the old ones have computed of them.

    ``announce`` sends a heartbeat with the seconds of silence that may follow.
    """

    def __init__(self, worker: Worker, requests: Requests, pause: Pause, announce: Callable[[float], None]) -> None:
        self._worker = worker
        self._requests = requests
        self._pause = pause
        self._announce = announce

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handlers of calls of methods, of which weights are written or dropped."""
        return {
            "call_workers": ControlHandler(
                self._call,
                self._is_between_steps,
                drains=True,
                on_failure=self._drop,
                merge={"results": "union"},
            ),
            "write_loaded_weights": ControlHandler(
                lambda params: self._prepare(params).run(),
                self._is_between_steps,
                drains=True,
                prepare=self._prepare,
                on_failure=self._take_back,
                merge={"num_changed": "max", "num_missing": "max"},
            ),
            "drop_loaded_weights": ControlHandler(self._forget, self._is_between_steps, drains=True),
        }

    def _is_between_steps(self, params: Params) -> bool:
        return not self._requests.in_flight

    def _call(self, params: Params) -> Params:
        calls = self._worker.calls
        if calls is None:
            raise BadRequest("the workers of this model have no methods", code="unsupported_by_model")
        with announced_silence(self._announce, params["silence"]):
            return {"results": calls.call_all(params["method"], params["arguments"])}

    def _prepare(self, params: Params) -> Work:
        """Look at what was loaded; the work writes it."""
        with announced_silence(self._announce, params["silence"]):
            change = self._weights.prepare_loaded()
        return Work(lambda: self._write(change, params), change.drop)

    def _write(self, change: Change, params: Params) -> Params:
        weights = self._weights
        begin = time.perf_counter()
        with announced_silence(self._announce, params["silence"]):
            num_changed = change.write()
        if weights.staged is None:
            self._requests.kv.namespace.leave()
        else:
            weights.staged.call = params["call"]
            num_changed = 0  # so far
        self._pause.lacks_weights = weights.num_missing > 0
        logger.info("%d weights were loaded by a worker, in %.3f s", num_changed, time.perf_counter() - begin)
        return {"num_changed": num_changed, "num_missing": weights.num_missing}

    def _forget(self, params: Params) -> Params:
        self._drop(params)
        return {}

    def _take_back(self, params: Params) -> None:
        self._drop(params)
        self._weights.unstage(params["call"])

    def _drop(self, params: Params) -> None:
        if self._worker.calls is not None:
            self._weights.drop_loaded()

    @property
    def _weights(self) -> WorkerWeights:
        """Weights of the worker; raises :class:`BadRequest` if there are none."""
        weights = self._worker.weights
        if weights is None:
            raise BadRequest("this model has no weights", code="unsupported_by_model")
        return weights
