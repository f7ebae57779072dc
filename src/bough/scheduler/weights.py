"""Other weights for the model that is being served."""

from __future__ import annotations

import logging
import time
from typing import Any, Protocol, runtime_checkable

from bough.config.engine_args import LoadFormat
from bough.errors import BadRequest
from bough.model_executor.worker_info import Worker
from bough.scheduler.requests import Requests

logger = logging.getLogger(__name__)

_LEAST_SILENCE = 60.0
_SLOWEST_LOADING = 25e6
"""Bytes per second of a slow disk, from which a checkpoint is read, and may have to be read a second time."""


@runtime_checkable
class UpdatableWorker(Protocol):
    """A worker whose weights can be replaced while no step is in flight."""

    def update_weights_from_disk(self, model_path: str, load_format: LoadFormat) -> None:
        """Load another checkpoint of the same model.

        Args:
            model_path: local directory or file.
            load_format: as at the start.

        Raises:
            BoughError: if it does not fit, and the old weights are there.
            EngineDead: if neither are.
        """

    def get_weights_by_name(self, name: str, truncate_size: int) -> Any:
        """The first rows of a weight, or the first numbers of a vector, as lists.

        Raises:
            BadRequest: if there is no such weight, or that is too much.
        """


class Weights:
    """Replaces the weights of a worker, and sees to what was computed with the old ones.

    Args:
        worker: that has the weights.
        requests: that are being worked on.
        weight_bytes: of the model.
    """

    def __init__(self, worker: Worker, requests: Requests, weight_bytes: int) -> None:
        self._worker = worker if isinstance(worker, UpdatableWorker) else None
        self._requests = requests
        self.expected_silence = _LEAST_SILENCE + weight_bytes / _SLOWEST_LOADING

    def update_from_disk(self, model_path: str, load_format: LoadFormat, *, flush_cache: bool) -> dict[str, Any]:
        """Load another checkpoint; no step is in flight.

        Args:
            model_path: local directory or file.
            load_format: as at the start.
            flush_cache: whether to forget what the old weights have computed; else it goes on being used.

        Returns:
            ``num_paused_requests``, and in ``output_lens`` how many tokens these have been given so far, by id.

        Raises:
            BadRequest: if requests hold memory that is to be flushed; or as the worker's method.
        """
        worker = self._updatable()
        holding = self._requests.num_holding
        if flush_cache and holding:
            raise BadRequest(
                f"flush_cache: {holding} paused requests hold what the old weights have computed; pause with mode "
                "retract or abort, or send flush_cache false to go on with it",
                param="flush_cache",
            )
        begin = time.perf_counter()
        worker.update_weights_from_disk(model_path, load_format)
        if flush_cache:
            self._requests.kv.prefix_cache.reset()
        logger.info("The weights are those of %s, after %.2f s", model_path, time.perf_counter() - begin)
        output_lens = {req.rid: len(self._requests.table.output_ids(req)) for req in self._requests}
        return {"num_paused_requests": len(output_lens), "output_lens": output_lens}

    def by_name(self, name: str, truncate_size: int) -> Any:
        """See :meth:`UpdatableWorker.get_weights_by_name`."""
        return self._updatable().get_weights_by_name(name, truncate_size)

    def _updatable(self) -> UpdatableWorker:
        if self._worker is None:
            raise BadRequest("this model has no weights", code="unsupported_by_model")
        return self._worker
