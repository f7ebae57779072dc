"""Control calls: named handlers that the files of their features bring, so that a new one is no branch in the loop."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bough.config.ranks import ProcessKey
from bough.errors import BoughError, EngineDead
from bough.ipc.messages import ControlReply, ControlReq
from bough.merging import Merge

logger = logging.getLogger(__name__)

Params = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Work that a call has prepared; one of the two functions is called, once.

    Attributes:
        run: does it and returns the reply's data.
        drop: forgets it.
    """

    run: Callable[[], Params]
    drop: Callable[[], None]


@dataclass(frozen=True)
class ControlHandler:
    """A handler and its condition; all of its functions get the call's parameters.

    Attributes:
        run: does the work and returns the reply's data; a :class:`BoughError` becomes a failed reply.
        may_run: true if the scheduler is in the state that the call needs, which no handler brings about itself: an
            error of a step in flight belongs to the loop, and is not an answer to a control call.
        needs: that state in words. A call may bring ``timeout`` (seconds) to wait for it; without it, it fails
            immediately. ``None``: the next step brings it, and the call waits.
        drains: true if a waiting call lets no step stay in flight beyond the next one.
        promise: refuses what ``run`` could not do in this state, by a :class:`BoughError`; comes before ``run``, and
            in its stead where a call only asks for a promise.
        prepare: does all of ``run`` that can fail, without changing anything, on each scheduler before any of them
            runs; what it returns takes the place of ``run``. ``None``: there is nothing to prepare.
        on_arrival: runs immediately, even if ``run`` has to wait; a :class:`BoughError` refuses the call.
        on_failure: runs when the call has failed, be it on another scheduler, and even if ``run`` has not begun.
        merge: rules that make one reply of those of several schedulers, by field of the data; the first one's value
            stands where there is none. A call that fails on one of them has failed.
    """

    run: Callable[[Params], Params]
    may_run: Callable[[Params], bool] = lambda params: True
    needs: str | None = None
    drains: bool = False
    promise: Callable[[Params], None] = lambda params: None
    prepare: Callable[[Params], Work] | None = None
    on_arrival: Callable[[Params], None] = lambda params: None
    on_failure: Callable[[Params], None] = lambda params: None
    merge: Mapping[str, Merge] = field(default_factory=dict)


@dataclass
class _Waiting:
    handler: ControlHandler
    request: ControlReq
    deadline: float


class ControlCalls:
    """Runs control calls of the scheduler ``key``, immediately or when it is ready for them.

    After the error ``fatal`` no request can be served; the loop ends with it.
    """

    def __init__(self, key: ProcessKey, *features: Mapping[str, ControlHandler]) -> None:
        self._key = key
        self._handlers = {method: handler for feature in features for method, handler in feature.items()}
        self._waiting: list[_Waiting] = []
        self._promised: set[str] = set()
        """Ids of calls that this scheduler has promised to carry out."""
        self._prepared: dict[str, Work] = {}
        """Work of promised calls, by id."""
        self.fatal: EngineDead | None = None

    def submit(self, request: ControlReq) -> list[ControlReply]:
        """Take a call; returns its reply unless it waits."""
        handler = self._handlers.get(request.method)
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            return [self._failed(request, f"unknown control method {request.method!r}; known: {known}")]
        if request.stage in ("release", "withdraw"):
            self._release(handler, request)
            return []
        reply = self._guarded(request, lambda: handler.on_arrival(request.params))
        reply = reply or self._run_if_ready(handler, request)
        if reply is not None:
            return [reply]
        timeout = math.inf
        if handler.needs is not None:
            timeout = request.params.get("timeout") or 0.0
            if not isinstance(timeout, (int, float)) or not math.isfinite(timeout):
                return [self._failed(request, f"timeout must be a number of seconds, got {timeout!r}")]
            if timeout <= 0:
                return [self._failed(request, f"{request.method} needs {handler.needs}, and requests are running")]
        self._waiting.append(_Waiting(handler, request, time.monotonic() + timeout))
        return []

    @property
    def are_waiting(self) -> bool:
        """True if a call waits for its condition."""
        return bool(self._waiting)

    @property
    def has_promised(self) -> bool:
        """True if no step may be launched, lest a promise be broken."""
        return bool(self._promised)

    @property
    def wait_for_drain(self) -> bool:
        """True if a call waits until no step is in flight."""
        return any(waiting.handler.drains for waiting in self._waiting)

    def poll(self) -> list[ControlReply]:
        """Replies to calls that waited and whose time has come, one way or the other."""
        if not self._waiting:
            return []
        replies: list[ControlReply] = []
        now = time.monotonic()
        still: list[_Waiting] = []
        for waiting in self._waiting:
            reply = self._run_if_ready(waiting.handler, waiting.request)
            if reply is not None:
                replies.append(reply)
            elif now >= waiting.deadline:
                replies.append(self._failed(waiting.request, "the engine did not become idle in time"))
            else:
                still.append(waiting)
        self._waiting = still
        return replies

    def _run_if_ready(self, handler: ControlHandler, request: ControlReq) -> ControlReply | None:
        """The reply to a call; ``None`` if it has to wait."""

        def run() -> ControlReply | None:
            # What was promised is possible still: no step has been launched since.
            if request.call_id not in self._promised:
                if not handler.may_run(request.params):
                    return None
                handler.promise(request.params)
            if request.stage == "promise":
                self._promised.add(request.call_id)
                return ControlReply(request.call_id, self._key, True)
            if request.stage == "prepare":
                if handler.prepare is not None:
                    self._prepared[request.call_id] = handler.prepare(request.params)
                return ControlReply(request.call_id, self._key, True)
            work = self._prepared.pop(request.call_id, None)
            data = handler.run(request.params) if work is None else work.run()
            return ControlReply(request.call_id, self._key, True, "", data, dict(handler.merge))

        return self._guarded(request, run)

    def _release(self, handler: ControlHandler, request: ControlReq) -> None:
        """Forget a promise, be it one that was not made yet."""
        self._promised.discard(request.call_id)
        work = self._prepared.pop(request.call_id, None)
        if work is not None:
            _log_failure(request, work.drop)
        self._waiting = [each for each in self._waiting if each.request.call_id != request.call_id]
        if request.stage == "withdraw":
            self._on_failure(handler, request)

    def _guarded(self, request: ControlReq, work: Callable[[], ControlReply | None]) -> ControlReply | None:
        """Return the result of ``work``, or a failed reply if it raises: no call may end the loop."""
        try:
            return work()
        except BoughError as error:
            if isinstance(error, EngineDead):
                self.fatal = error
            data = {"status_code": error.status_code, "param": error.param, "code": error.code}
            return self._failed(request, error.message, data)
        except Exception:
            logger.exception("Control call %s failed", request.method)
            return self._failed(request, f"{request.method} failed; see the server's log")

    def _failed(self, request: ControlReq, message: str, data: Params | None = None) -> ControlReply:
        handler = self._handlers.get(request.method)
        if handler is not None:
            self._on_failure(handler, request)
        return ControlReply(request.call_id, self._key, False, message, data or {})

    def _on_failure(self, handler: ControlHandler, request: ControlReq) -> None:
        _log_failure(request, lambda: handler.on_failure(request.params))


def _log_failure(request: ControlReq, tidy_up: Callable[[], None]) -> None:
    try:
        tidy_up()
    except Exception:
        logger.exception("After control call %s", request.method)
