"""Control calls to the scheduler: each has an id, so that any number can be under way at the same time."""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable
from typing import Any

from bough.errors import BadRequest, BoughError, EngineDead, Overloaded, RequestFailed
from bough.ipc.messages import ControlReply, ControlReq

CONTROL_TIMEOUT = 60.0
"""Seconds that a control call may take, unless it says otherwise."""


class SchedulerControl:
    """Calls named handlers of the scheduler, which answers no call while it loads weights."""

    def __init__(self, send: Callable[[ControlReq], None]) -> None:
        self._send = send
        self._waiting: dict[str, asyncio.Future[ControlReply]] = {}
        self._dead: BoughError | None = None
        self._loaded = asyncio.Event()
        self._loaded.set()
        self.last_loaded = -math.inf
        """Monotonic seconds at which the last update ended."""

    @property
    def is_loading(self) -> bool:
        """True while the scheduler is busy with new weights, or about to be."""
        return not self._loaded.is_set()

    async def wait_until_loaded(self, timeout: float | None = None) -> None:
        """Wait as long as :attr:`is_loading`; raises :class:`Overloaded` if that takes longer than ``timeout``
        seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.is_loading:  # the next update may begin before this task runs
            try:
                left = None if deadline is None else deadline - time.monotonic()
                await asyncio.wait_for(self._loaded.wait(), left)
            except asyncio.TimeoutError:
                raise Overloaded("new weights are being loaded") from None

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        timeout: float = CONTROL_TIMEOUT,
        *,
        with_loading: bool = False,
    ) -> ControlReply:
        """Call a handler once the scheduler has the weights that it may be loading.

        Sent earlier, the call would be carried out after its caller has given up. ``timeout`` is in seconds,
        ``with_loading`` for the wait for weights as well.

        Raises:
            Overloaded: if weights are being loaded all that time.
            RequestFailed: (504) if no reply came in time.
            EngineDead: if the engine has died.
        """
        begun = time.monotonic()
        await self.wait_until_loaded(timeout if with_loading else None)
        return await self._exchange(method, params, timeout - (time.monotonic() - begun if with_loading else 0.0))

    async def load(self, method: str, params: dict[str, Any], timeout: float) -> ControlReply:
        """Call a handler that loads weights: other calls wait for its end; raises as :meth:`call`."""
        self._loaded.clear()
        try:
            return await self._exchange(method, params, timeout)
        finally:
            self.last_loaded = time.monotonic()
            self._loaded.set()

    async def _exchange(self, method: str, params: dict[str, Any] | None, timeout: float) -> ControlReply:
        if self._dead is not None:
            raise EngineDead(self._dead.message)
        call_id = uuid.uuid4().hex
        reply: asyncio.Future[ControlReply] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = reply
        try:
            self._send(ControlReq(call_id, method, params or {}))
            return await asyncio.wait_for(reply, timeout)
        except asyncio.TimeoutError:
            raise RequestFailed(f"the scheduler did not answer {method} in {timeout:g} s", status_code=504) from None
        finally:
            del self._waiting[call_id]

    def on_reply(self, reply: ControlReply) -> None:
        """Hand a reply to its caller; drop one without a caller."""
        waiter = self._waiting.get(reply.call_id)
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def fail_all(self, error: BoughError) -> None:
        """End calls under way, and refuse later ones: no more replies will come."""
        self._dead = self._dead or error
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(EngineDead(error.message))


def data_of(reply: ControlReply) -> dict[str, Any]:
    """Data of a reply; raises :func:`error_of` a failed one."""
    if not reply.success:
        raise error_of(reply)
    return reply.data


def error_of(reply: ControlReply) -> BoughError:
    """Error that a failed reply stands for."""
    told = reply.data
    if told.get("status_code") == BadRequest.status_code:
        return BadRequest(reply.message, param=told["param"], code=told["code"])
    status = told.get("status_code", RequestFailed.status_code)
    error = RequestFailed(reply.message, status_code=status, code=told.get("code"))
    error.param = told.get("param")
    return error
