"""Control calls to the scheduler: each has an id, so that any number can be under way at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from bough.errors import BoughError, EngineDead, RequestFailed
from bough.ipc.messages import ControlReply, ControlReq


class ControlCalls:
    """The calls that wait for their reply.

    Args:
        send: hands a call to the scheduler.
    """

    def __init__(self, send: Callable[[ControlReq], None]) -> None:
        self._send = send
        self._waiting: dict[str, asyncio.Future[ControlReply]] = {}

    async def call(self, method: str, params: dict[str, Any], timeout: float) -> ControlReply:
        """Call a handler and wait for its reply, for ``timeout`` seconds.

        Raises:
            RequestFailed: (504) if no reply came in time.
            EngineDead: if the engine dies meanwhile.
        """
        call_id = uuid.uuid4().hex
        reply: asyncio.Future[ControlReply] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = reply
        try:
            self._send(ControlReq(call_id, method, params))
            return await asyncio.wait_for(reply, timeout)
        except asyncio.TimeoutError:
            raise RequestFailed(f"the scheduler did not answer {method} in {timeout:g} s", status_code=504) from None
        finally:
            del self._waiting[call_id]

    def on_reply(self, reply: ControlReply) -> None:
        """A reply has come; one that nobody waits for any more is dropped."""
        waiter = self._waiting.get(reply.call_id)
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def fail_all(self, error: BoughError) -> None:
        """No more replies will come."""
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(EngineDead(error.message))
