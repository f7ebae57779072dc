"""Other weights for the model that is being served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from bough.errors import BadRequest
from bough.model_executor.worker_info import Worker
from bough.scheduler.requests import Requests

if TYPE_CHECKING:
    from bough.weight_sync.worker_weights import WorkerWeights

logger = logging.getLogger(__name__)

_LEAST_SILENCE = 400.0
"""Seconds: what a trainer may take to send, and more."""

_SLOWEST_LOADING = 25e6
"""Bytes per second of a slow disk, from which a checkpoint is read, and may have to be read a second time."""


@runtime_checkable
class UpdatableWorker(Protocol):
    """A worker whose weights can be replaced while no step is in flight."""

    @property
    def weights(self) -> WorkerWeights:
        """These weights."""


class Weights:
    """Sees to what was computed with old weights when a worker gets others.

    Args:
        worker: that has the weights.
        requests: that are being worked on.
        weight_bytes: of the model.

    Attributes:
        expected_silence: seconds that a change may take.
    """

    def __init__(self, worker: Worker, requests: Requests, weight_bytes: int) -> None:
        self._worker = worker if isinstance(worker, UpdatableWorker) else None
        self._requests = requests
        self.expected_silence = _LEAST_SILENCE + weight_bytes / _SLOWEST_LOADING

    @property
    def of_worker(self) -> WorkerWeights:
        """The weights themselves; raises :class:`BadRequest` if there are none."""
        if self._worker is None:
            raise BadRequest("this model has no weights", code="unsupported_by_model")
        return self._worker.weights

    def spoil_group(self, name: str) -> None:
        """Receive no more in a group, if there is one; see :meth:`WeightGroups.spoil`."""
        if self._worker is not None:
            self._worker.weights.groups.spoil(name)

    def output_lens(self) -> dict[str, int]:
        """How many tokens each request has been given so far, by id."""
        return {req.rid: len(self._requests.table.output_ids(req)) for req in self._requests}

    def change(self, load: Callable[[WorkerWeights], int], *, flush_cache: bool) -> dict[str, Any]:
        """Load other weights; no step is in flight.

        Args:
            load: does it; returns how many pieces of memory it has filled.
            flush_cache: whether to forget what the old weights have computed; else it goes on being used.

        Returns:
            ``num_changed``, what ``load`` has returned; ``num_paused_requests``; :meth:`output_lens`.

        Raises:
            BadRequest: if requests hold memory that is to be flushed.
            BoughError: what ``load`` raises.
        """
        weights = self.of_worker
        holding = self._requests.num_holding
        if flush_cache and holding:
            raise BadRequest(
                f"flush_cache: {holding} paused requests hold what the old weights have computed; pause with mode "
                "retract or abort, or send flush_cache false to go on with it",
                param="flush_cache",
            )
        begin = time.perf_counter()
        num_changed = load(weights)
        if flush_cache:
            self._requests.kv.prefix_cache.reset()
        logger.info("The weights have changed, in %.2f s", time.perf_counter() - begin)
        output_lens = self.output_lens()
        return {"num_changed": num_changed, "num_paused_requests": len(output_lens), "output_lens": output_lens}
