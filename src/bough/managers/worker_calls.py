"""Methods of the workers of all ranks, called by name."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from bough.errors import BadRequest, EngineDead, Overloaded, RequestFailed
from bough.ipc.call_values import WorkerResult, decode_result, decode_values, encode_arguments
from bough.managers.health import HealthMonitor
from bough.managers.scheduler_control import OutcomeUnknown, SchedulerControl, data_of, error_of, merged

CALL_TIMEOUT = 600.0
"""Seconds that a call may take unless it says otherwise; saving a large model takes minutes."""

_MOST_SECONDS = 86_400.0

_SPARE_SECONDS = 60.0
"""Seconds that schedulers may stay silent beyond the end of a call."""

_WRITING_SECONDS = 600.0


class WorkerCalls:
    """Calls methods on every rank of every replica, one call at a time.

    Weights that such a method loads are written on all ranks when it has returned on all, and on none if it fails on
    one. ``on_changed`` is notified of the number of discarded weights that are still missing.
    """

    def __init__(self, control: SchedulerControl, health: HealthMonitor, on_changed: Callable[[int], None]) -> None:
        self._control, self._health, self._on_changed = control, health, on_changed
        self._lock = asyncio.Lock()

    async def call(
        self,
        method: str,
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        as_text: bool = False,
    ) -> list[Any]:
        """Call a public method of the workers.

        Args:
            method: its name.
            timeout: seconds, with the wait for weights that are being loaded and for an earlier call.
            args, kwargs: its arguments, of the types of :func:`encode_values`.
            as_text: have results as JSON has them.

        Returns:
            What it returns on each rank, in their order.

        Raises:
            BadRequest: if there is no such method, or an argument or a result cannot be sent.
            RequestFailed: if it fails on a rank, or does not end in time; then nothing that it has loaded is written.
            Overloaded: if that wait takes all of the time.
            EngineDead: if the engine is or becomes dead, or weights were written on some ranks only.
        """
        self._health.check_serving()
        if not isinstance(method, str) or not method.isidentifier() or method.startswith("_"):
            raise BadRequest("method must be the name of a public method of the workers", param="method")
        seconds = CALL_TIMEOUT if timeout is None else timeout
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST_SECONDS:
            raise BadRequest(f"timeout must be above 0 and at most {_MOST_SECONDS:g} seconds", param="timeout")
        arguments = encode_arguments(args, kwargs)
        params = {"method": method, "arguments": arguments, "silence": math.ceil(seconds + _SPARE_SECONDS)}
        deadline = time.monotonic() + seconds
        try:
            await asyncio.wait_for(self._lock.acquire(), seconds)
        except asyncio.TimeoutError:
            raise Overloaded("an earlier call of the workers has not ended") from None
        results = await asyncio.shield(asyncio.ensure_future(self._carry_out(params, deadline)))
        return [decode_values(each.value, as_text=as_text) for each in results]

    async def _carry_out(self, params: dict[str, Any], deadline: float) -> list[WorkerResult]:
        """Call the method by a monotonic ``deadline``, write what it has loaded, and let the next call begin.

        Whole, even if the caller leaves: another call would drop what this one has loaded.
        """
        try:
            await self._control.wait_until_loaded(deadline - time.monotonic())
            return await self._call_and_write(params, deadline - time.monotonic())
        finally:
            self._lock.release()

    async def _call_and_write(self, params: dict[str, Any], timeout: float) -> list[WorkerResult]:
        succeeds = False
        try:
            data = data_of(await self._control.call("call_workers", params, timeout))
            results = [decode_result(each) for each in data["results"]]
            _check_equal(params["method"], results)
            succeeds = True
        finally:
            if not succeeds:
                self._control.post("drop_loaded_weights")
        if results[0].num_loaded:
            await self._write()
        return results

    async def _write(self) -> None:
        params = {"silence": _WRITING_SECONDS, "call": uuid.uuid4().hex}
        try:
            replies = await self._control.load("write_loaded_weights", params, _WRITING_SECONDS + _SPARE_SECONDS)
        except OutcomeUnknown as error:
            await self._give_up(error.message)
        reply = merged(replies)
        if not reply.success:
            if any(each.success and each.data.get("num_changed") for each in replies):
                await self._give_up(reply.message)
            raise error_of(reply)
        self._on_changed(reply.data["num_missing"])

    async def _give_up(self, cause: str) -> NoReturn:
        """End the engine."""
        cause = f"the schedulers have different weights: {cause}"
        await self._control.call("give_up", {"cause": cause})
        raise EngineDead(cause)


def _check_equal(method: str, results: Sequence[WorkerResult]) -> None:
    """Refuse weights whose names, shapes or dtypes differ between ranks."""
    if len({each.digest for each in results}) > 1:
        counts = ", ".join(str(each.num_loaded) for each in results)
        raise RequestFailed(f"{method} has loaded {counts} weights on the ranks, and each must get the same ones")
