"""Control calls: a registry of named handlers, so that a new one is one function and no branch in the loop."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

from bough.errors import BadRequest, BoughError, EngineDead
from bough.ipc.messages import ControlReply, ControlReq, PauseMode

if TYPE_CHECKING:
    from bough.scheduler.scheduler import Scheduler
    from bough.weight_sync.worker_weights import WorkerWeights

logger = logging.getLogger(__name__)

Handler = Callable[["Scheduler", dict[str, Any]], dict[str, Any]]
Condition = Callable[["Scheduler", dict[str, Any]], bool]


@dataclass(frozen=True)
class ControlHandler:
    """A handler and its condition.

    Attributes:
        run: does the work and returns the reply's data; a :class:`BoughError` becomes a failed reply.
        may_run: whether the scheduler is in the state that it needs, which no handler brings about itself: what a step
            in flight raises is the loop's to deal with, and not an answer to a control call.
        needs: that state in words. A call may bring ``timeout`` (seconds) to wait for it; without it, it fails at once.
            ``None``: the next step brings it, and the call waits.
        drains: whether a call that waits has no step stay in flight beyond the next one.
        on_arrival: what is done at once, whether or not ``run`` has to wait; a :class:`BoughError` refuses the call.
        on_failure: what is done when the call is answered with a failure, whether or not ``run`` has begun.
    """

    run: Handler
    may_run: Condition = lambda scheduler, params: True
    needs: str | None = None
    drains: bool = False
    on_arrival: Callable[[Scheduler, dict[str, Any]], None] | None = None
    on_failure: Callable[[Scheduler, dict[str, Any]], None] | None = None


@dataclass
class _Waiting:
    handler: ControlHandler
    request: ControlReq
    deadline: float


class ControlCalls:
    """Runs control calls, at once or when the scheduler is ready for them."""

    def __init__(self, scheduler: Scheduler, handlers: dict[str, ControlHandler], rank: int = 0) -> None:
        self._scheduler = scheduler
        self._handlers = handlers
        self._rank = rank
        self._waiting: list[_Waiting] = []

    def submit(self, request: ControlReq) -> list[ControlReply]:
        """Take a call; returns its reply unless it waits."""
        handler = self._handlers.get(request.method)
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            return [self._failed(request, f"unknown control method {request.method!r}; known: {known}")]
        reply = self._guarded(request, lambda: self._arrive(handler, request))
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
        """Whether a call waits for something."""
        return bool(self._waiting)

    @property
    def wait_for_drain(self) -> bool:
        """Whether a call waits until no step is in flight."""
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

    def _arrive(self, handler: ControlHandler, request: ControlReq) -> ControlReply | None:
        if handler.on_arrival is not None:
            handler.on_arrival(self._scheduler, request.params)
        return self._run_if_ready(handler, request)

    def _run_if_ready(self, handler: ControlHandler, request: ControlReq) -> ControlReply | None:
        """The reply to a call; ``None`` if it has to wait."""

        def run() -> ControlReply | None:
            if not handler.may_run(self._scheduler, request.params):
                return None
            data = handler.run(self._scheduler, request.params)
            return ControlReply(request.call_id, self._rank, True, "", data)

        return self._guarded(request, run)

    def _guarded(self, request: ControlReq, work: Callable[[], ControlReply | None]) -> ControlReply | None:
        """What ``work`` returns; a failed reply if it raises, since no call may end the loop."""
        try:
            return work()
        except BoughError as error:
            if isinstance(error, EngineDead):
                self._scheduler.end_with(error)
            told = {"status_code": error.status_code, "param": error.param, "code": error.code}
            return self._failed(request, error.message, told)
        except Exception:
            logger.exception("Control call %s failed", request.method)
            return self._failed(request, f"{request.method} failed; see the server's log")

    def _failed(self, request: ControlReq, message: str, told: dict[str, Any] | None = None) -> ControlReply:
        handler = self._handlers.get(request.method)
        if handler is not None and handler.on_failure is not None:
            try:
                handler.on_failure(self._scheduler, request.params)
            except Exception:
                logger.exception("After control call %s had failed", request.method)
        return ControlReply(request.call_id, self._rank, False, message, told or {})


def _flush_cache(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.kv.prefix_cache.reset()
    return {}


def _get_internal_state(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    return scheduler.internal_state()


def _get_cache_outline(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    cache = scheduler.kv.prefix_cache
    nodes = cache.outline(params["max_nodes"])
    return {
        "nodes": [asdict(node) for node in nodes],
        "protected_tokens": cache.protected_size,
        "evictable_tokens": cache.evictable_size,
    }


def _holds_nothing(scheduler: Scheduler, params: dict[str, Any]) -> bool:
    return not scheduler.requests.in_flight and scheduler.requests.num_holding == 0


def _is_drained(scheduler: Scheduler, params: dict[str, Any]) -> bool:
    return not scheduler.requests.in_flight


def _is_settled(scheduler: Scheduler, params: dict[str, Any]) -> bool:
    """Whether no pause is under way: whoever ends one must not overtake it."""
    return not scheduler.paused or _is_drained(scheduler, params)


def _begin_pause(scheduler: Scheduler, params: dict[str, Any]) -> None:
    mode = params.get("mode")
    if mode not in get_args(PauseMode):
        raise BadRequest(f"mode must be one of {', '.join(get_args(PauseMode))}, got {mode!r}", param="mode")
    scheduler.pause()


def _pause_generation(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.settle_pause(params["mode"])
    return {}


def _continue_generation(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.resume()
    return {}


def _may_change_weights(scheduler: Scheduler, params: dict[str, Any]) -> bool:
    if scheduler.requests.in_flight:
        return False
    # Of a pause that has ended meanwhile there is nothing to wait for: that is an answer.
    return params["while_paused"] or scheduler.paused or len(scheduler.requests) == 0


def _update_weights(
    load: Callable[[WorkerWeights, dict[str, Any]], int],
    on_failure: Callable[[Scheduler, dict[str, Any]], None] | None = None,
) -> ControlHandler:
    """A handler that has other weights loaded."""

    def run(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
        if params["while_paused"] and not scheduler.paused:
            raise BadRequest("the pause has ended before the update could be made")
        scheduler.announce(scheduler.weights.expected_silence)
        return scheduler.weights.change(lambda weights: load(weights, params), flush_cache=params["flush_cache"])

    needs = "an engine without requests, or a pause"
    return ControlHandler(run, _may_change_weights, needs, on_failure=on_failure)


def _from_disk(weights: WorkerWeights, params: dict[str, Any]) -> int:
    return weights.from_disk(params["model_path"], params["load_format"])


def _from_file(weights: WorkerWeights, params: dict[str, Any]) -> int:
    return weights.from_file(params["path"])


def _from_group(weights: WorkerWeights, params: dict[str, Any]) -> int:
    return weights.from_group(params["group_name"], params["names"], params["dtypes"], params["shapes"])


def _spoil_group(scheduler: Scheduler, params: dict[str, Any]) -> None:
    """The trainer sends, or has sent, what nobody has received."""
    scheduler.weights.spoil_group(params.get("group_name", ""))


def _begin_to_join(scheduler: Scheduler, params: dict[str, Any]) -> None:
    scheduler.weights.of_worker.groups.begin_to_join(
        params["group_name"],
        address=params["master_address"],
        port=params["master_port"],
        rank=params["rank_offset"],
        world_size=params["world_size"],
        backend=params["backend"],
    )


def _has_joined(scheduler: Scheduler, params: dict[str, Any]) -> bool:
    return not scheduler.weights.of_worker.groups.is_joining(params["group_name"])


def _init_weights_update_group(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.weights.of_worker.groups.finish_joining(params["group_name"])
    return {}


def _destroy_weights_update_group(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.weights.of_worker.groups.leave(params["group_name"])
    return {}


def _get_output_lens(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    return {"output_lens": scheduler.weights.output_lens()}


def _get_weights_by_name(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    return {"rows": scheduler.weights.of_worker.rows(params["name"], params["truncate_size"])}


def _start_profile(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    scheduler.start_profile(params)
    return {}


def _stop_profile(scheduler: Scheduler, params: dict[str, Any]) -> dict[str, Any]:
    return {"paths": scheduler.stop_profile()}


CONTROL_HANDLERS: dict[str, ControlHandler] = {
    "continue_generation": ControlHandler(_continue_generation, _is_settled),
    "destroy_weights_update_group": ControlHandler(_destroy_weights_update_group),
    "flush_cache": ControlHandler(_flush_cache, _holds_nothing, needs="an idle engine"),
    "get_cache_outline": ControlHandler(_get_cache_outline),
    "get_internal_state": ControlHandler(_get_internal_state),
    "get_output_lens": ControlHandler(_get_output_lens),
    "get_weights_by_name": ControlHandler(_get_weights_by_name, _is_drained, drains=True),
    "init_weights_update_group": ControlHandler(_init_weights_update_group, _has_joined, on_arrival=_begin_to_join),
    "pause_generation": ControlHandler(_pause_generation, _is_drained, on_arrival=_begin_pause),
    "start_profile": ControlHandler(_start_profile),
    "stop_profile": ControlHandler(_stop_profile),
    "update_weights_from_disk": _update_weights(_from_disk),
    "update_weights_from_distributed": _update_weights(_from_group, _spoil_group),
    "update_weights_from_file": _update_weights(_from_file),
}
