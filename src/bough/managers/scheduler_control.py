"""Control calls to the schedulers: each has an id, so that any number can be under way at the same time.

All schedulers reply, and a call has succeeded once it has on each of them.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bough.config.ranks import SCHEDULER, ProcessKey
from bough.errors import BadRequest, BoughError, EngineDead, Overloaded, RequestFailed
from bough.ipc.messages import ControlReply, ControlReq, ControlStage
from bough.merging import merge_fields

CONTROL_TIMEOUT = 60.0
"""Seconds that a control call may take, unless it says otherwise."""


class _Call:
    """Replies to one call, as they arrive; ``done`` when all are there."""

    def __init__(self, schedulers: Sequence[ProcessKey]) -> None:
        self.replies: dict[ProcessKey, ControlReply | None] = dict.fromkeys(schedulers)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def missing(self) -> list[ProcessKey]:
        """Schedulers that have not replied."""
        return [key for key, reply in self.replies.items() if reply is None]

    def add(self, reply: ControlReply) -> None:
        """Take a reply, unless its process has replied before or was not called."""
        if self.replies.get(reply.process, reply) is None:
            self.replies[reply.process] = reply
            if not self.missing and not self.done.done():
                self.done.set_result(None)


class OutcomeUnknown(RequestFailed):
    """A scheduler did not say what has become of a call that all were to carry out, or none; others may have."""


class SchedulerControl:
    """Calls named handlers of the ``schedulers``, which answer no call while they load weights.

    ``send`` hands a message to all of them.
    """

    def __init__(self, send: Callable[[ControlReq], None], schedulers: Sequence[ProcessKey] = (SCHEDULER,)) -> None:
        self._send = send
        self._schedulers = tuple(schedulers)
        self._waiting: dict[str, _Call] = {}
        self._dead: BoughError | None = None
        self._num_loads = 0
        self._loaded = asyncio.Event()
        self._loaded.set()
        self._in_stages = asyncio.Lock()
        """Held by one call in stages: what is withdrawn must be what came last, on each scheduler."""
        self.last_loaded = -math.inf
        """Monotonic seconds at which the last update ended."""

    @property
    def is_loading(self) -> bool:
        """True while the scheduler is busy with new weights, or about to be."""
        return self._num_loads > 0

    @property
    def num_schedulers(self) -> int:
        """Schedulers that a call reaches."""
        return len(self._schedulers)

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
        """Call a handler once the schedulers have the weights that they may be loading; returns one reply, merged.

        Sent earlier, the call would be carried out after its caller has given up. ``timeout`` is in seconds,
        ``with_loading`` for the wait for weights as well.

        Raises:
            Overloaded: if weights are being loaded all that time.
            RequestFailed: (504) if a reply did not come in time; it names the schedulers.
            EngineDead: if the engine has died.
        """
        return merged(await self.call_each(method, params, timeout, with_loading=with_loading))

    async def call_each(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        timeout: float = CONTROL_TIMEOUT,
        *,
        with_loading: bool = False,
    ) -> list[ControlReply]:
        """Call a handler as :meth:`call`, and raise as it; returns the reply of each scheduler, in order."""
        begun = time.monotonic()
        await self.wait_until_loaded(timeout if with_loading else None)
        return await self._exchange(method, params, timeout - (time.monotonic() - begun if with_loading else 0.0))

    async def call_all_or_none(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = CONTROL_TIMEOUT
    ) -> ControlReply:
        """Call a handler as :meth:`call`, but run it on no scheduler unless all have promised that they can.

        None of them launches a step between its promise and the last reply. One such call is made at a time, and
        ``timeout`` begins with it.

        Raises:
            OutcomeUnknown: if a reply did not come in time after they had promised.
        """
        await self.wait_until_loaded()
        async with self._in_stages:
            return merged(await self._exchange_stages(method, params, timeout, ("promise", "run")))

    async def load(self, method: str, params: dict[str, Any], timeout: float) -> list[ControlReply]:
        """Call a handler that loads weights as :meth:`call_all_or_none`, once all schedulers have prepared it as well,
        while other calls wait for its end; return the reply of each scheduler.

        ``timeout`` is that of each stage.
        """
        self._num_loads += 1
        self._loaded.clear()
        try:
            async with self._in_stages:
                return await self._exchange_stages(method, params, timeout, ("promise", "prepare", "run"))
        finally:
            self.last_loaded = time.monotonic()
            self._num_loads -= 1
            if not self._num_loads:
                self._loaded.set()

    def post(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Call a handler without waiting for its reply; nothing if the engine is dead."""
        if self._dead is None:
            self._send(ControlReq(uuid.uuid4().hex, method, params or {}))

    async def _exchange_stages(
        self, method: str, params: dict[str, Any] | None, timeout: float, stages: Sequence[ControlStage]
    ) -> list[ControlReply]:
        """Go through the stages of a call until one of them fails on a scheduler; return the replies to the last."""
        call_id = uuid.uuid4().hex
        last: ControlStage = "withdraw"
        replies: list[ControlReply] = []
        try:
            for stage in stages:
                try:
                    replies = await self._exchange(method, params, timeout, call_id, stage)
                except RequestFailed as error:
                    if stage != "run":
                        raise
                    raise OutcomeUnknown(error.message, status_code=error.status_code) from None
                if not all(reply.success for reply in replies):
                    return replies
            last = "release"
            return replies
        finally:
            if self._dead is None:
                self._send(ControlReq(call_id, method, params or {}, last))

    async def _exchange(
        self,
        method: str,
        params: dict[str, Any] | None,
        timeout: float,
        call_id: str | None = None,
        stage: ControlStage = "run",
    ) -> list[ControlReply]:
        if self._dead is not None:
            raise EngineDead(self._dead.message)
        call_id = call_id or uuid.uuid4().hex
        self._waiting[call_id] = call = _Call(self._schedulers)
        try:
            self._send(ControlReq(call_id, method, params or {}, stage))
            await asyncio.wait_for(call.done, timeout)
            return [reply for reply in call.replies.values() if reply is not None]
        except asyncio.TimeoutError:
            missing = " and the ".join(map(str, call.missing))
            message = f"the {missing} did not answer {method} in {round(timeout, 3):g} s"
            raise RequestFailed(message, status_code=504) from None
        finally:
            del self._waiting[call_id]

    def on_reply(self, reply: ControlReply) -> None:
        """Hand a reply to its caller; drop one without a caller."""
        call = self._waiting.get(reply.call_id)
        if call is not None:
            call.add(reply)

    def fail_all(self, error: BoughError) -> None:
        """End calls under way, and refuse later ones: no more replies will come."""
        self._dead = self._dead or error
        for call in self._waiting.values():
            if not call.done.done():
                call.done.set_exception(EngineDead(error.message))


def merged(replies: Sequence[ControlReply]) -> ControlReply:
    """Return one reply that stands for those of several schedulers, at least one, by the rules that they bring.

    Of those that have failed it is the first, which then names its scheduler.
    """
    first = replies[0]
    if len(replies) == 1:
        return first
    for reply in replies:
        if not reply.success:
            return msgspec.structs.replace(reply, message=f"{reply.process}: {reply.message}")
    data = merge_fields(first.merge, [reply.data for reply in replies])
    return msgspec.structs.replace(first, data=data)


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
