"""Calls of methods of the workers of all ranks, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from bough.errors import BadRequest, BoughError, RequestFailed
from bough.ipc.call_values import WorkerResult, decode_values, encode_result, encode_values
from bough.model_executor.worker_face import WorkerFace
from bough.weight_sync.rank_weights import AllRanks

logger = logging.getLogger(__name__)

CALL_WORKER = "call_worker"
"""Name under which the first rank calls the others."""


class WorkerCalls:
    """Calls methods of one rank's worker."""

    def __init__(self, face: WorkerFace) -> None:
        self.face = face

    def call(self, method: str, arguments: bytes) -> bytes:
        """Call a public method with what :func:`encode_arguments` made of its arguments; return a
        :class:`WorkerResult`, encoded.

        Raises:
            BadRequest: if there is no such method, or what it returns cannot be sent.
            BoughError: from the method.
            RequestFailed: if it raises anything else.
        """
        found = None if method.startswith("_") else getattr(self.face, method, None)
        if not callable(found):
            raise BadRequest(f"the worker has no method {method!r}", param="method")
        args, kwargs = decode_values(arguments)
        loaded = self.face.loaded_weights
        loaded.clear()  # of a call that was given up before it began
        try:
            result = found(*args, **kwargs)
        except BoughError:
            raise
        except Exception as error:
            logger.exception("%s has failed", method)
            raise RequestFailed(f"{method}: {type(error).__name__}: {error}") from error
        value = encode_values(result, f"the result of {method}")
        return encode_result(WorkerResult(len(loaded), loaded.digest(), value))

    def call_all(self, method: str, arguments: bytes) -> list[bytes]:
        """Call a method on all ranks of the replica, at the same time; return the result of each, in order."""
        return [self.call(method, arguments)]


class LeaderCalls(WorkerCalls):
    """Calls methods of the workers of all ranks, from the first one, which has those of ``own``."""

    def __init__(self, own: WorkerCalls, ranks: AllRanks) -> None:
        super().__init__(own.face)
        self._ranks = ranks

    def call_all(self, method: str, arguments: bytes) -> list[bytes]:
        params: dict[str, Any] = {"method": method, "arguments": arguments}
        return self._ranks.call_each(CALL_WORKER, params, lambda: self.call(method, arguments))


def follower_calls(calls: WorkerCalls) -> dict[str, Callable[..., object]]:
    """Return what the first rank calls on another one, by name."""
    return {CALL_WORKER: calls.call}
