"""Profiles of a running server: a timeline of the scheduler, and what torch's profiler sees.

Both are written in Chrome's trace format, which Perfetto shows.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bough.config.ranks import ProcessKey
from bough.errors import BadRequest, BoughError, RequestFailed
from bough.scheduler.control import ControlHandler, Params
from bough.scheduler.planned import Planned
from bough.scheduler.requests import Requests

logger = logging.getLogger(__name__)

WRITING_SECONDS = 600.0
"""Silence that writing a profile may take: those of a GPU can have millions of events."""

MAX_STEPS = 10_000
"""A profile ends by itself after so many steps, since it is kept in memory until then."""

StepEvent = Callable[[str, Planned | None, float], None]
"""Called when something begins: ``plan``, ``launch``, ``launched``, ``wait``, ``process`` or ``processed``; with the
step that it is about, and how many seconds that took on the device, once it is known."""

_SCHEDULER, _DEVICE = 1, 2
"""Tracks of the timeline."""

_SPANS = {
    "plan": "plan",
    "launch": "launch",
    "launched": "look for results",
    "wait": "wait for the device",
    "process": "process results",
    "processed": "receive and admit",
}
"""Names of the spans from a mark to the next."""

_IDLE = "idle"


class ProfileSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a profile."""

    directory: str
    """Directory of the files; it exists."""
    name: str
    """Beginning of their names."""
    call: str = ""
    """Identity of the call that starts it."""
    num_steps: int | None = None
    """End after so many steps; ``None`` for :data:`MAX_STEPS`."""
    torch_activities: list[str] = []
    """Activities that torch's profiler records, ``CPU`` and ``GPU``; it is off if there is none."""
    with_stack: bool = False
    record_shapes: bool = False


class Timeline:
    """Timeline of the scheduler and the device, as events of Chrome's trace format; times in microseconds.

    ``clock`` is in seconds.
    """

    def __init__(self, requests: Requests, clock: Callable[[], float] = time.perf_counter) -> None:
        self._requests = requests
        self._clock = clock
        self._start = clock()
        self._open: tuple[str, float, dict[str, Any]] | None = None
        """Span that goes on: name, beginning, arguments."""
        self._launched: dict[int, float] = {}
        self._device_free = self._start
        self.events: list[dict[str, Any]] = [
            _metadata("process_name", 0, "bough"),
            _metadata("thread_name", _SCHEDULER, "scheduler"),
            _metadata("thread_name", _DEVICE, "device"),
        ]
        self.num_steps = 0

    def mark(self, name: str, planned: Planned | None, seconds: float) -> None:
        """Something begins in the scheduler, one of :data:`_SPANS`, and what came before ends.

        ``seconds`` is the time of the step on the device, once it is known.
        """
        now = self._clock()
        if name == "plan" and self._open is not None and self._open[0] in (_SPANS["plan"], _IDLE):
            self._open = (_IDLE, self._open[1], {})  # the last turn of the loop had nothing to do
            return
        self.close(now)
        arguments = {} if planned is None else _described(planned)
        self._open = (_SPANS[name], now, arguments)
        if planned is None:
            return
        step_id = planned.plan.step_id
        if name == "launch":
            self._launched[step_id] = now
        elif name == "process":
            begin = max(self._launched.pop(step_id, now - seconds), self._device_free)
            self._device_free = min(begin + seconds, now)
            self._span(_kind(planned), _DEVICE, begin, self._device_free, arguments)
            self.num_steps += planned.num_new
            requests, kv = self._requests, self._requests.kv
            self._counter("requests", {"running": requests.num_holding, "waiting": requests.num_waiting}, now)
            self._counter("KV tokens", {"used": kv.allocator.total_size - kv.available_tokens}, now)

    def close(self, now: float | None = None) -> None:
        """End the span that goes on."""
        if self._open is not None:
            name, begin, arguments = self._open
            self._span(name, _SCHEDULER, begin, self._clock() if now is None else now, arguments)
            self._open = None

    def _span(self, name: str, track: int, begin: float, end: float, arguments: dict[str, Any]) -> None:
        times = {"ts": (begin - self._start) * 1e6, "dur": (end - begin) * 1e6}
        self.events.append({"name": name, "ph": "X", "pid": 1, "tid": track, **times, "args": arguments})

    def _counter(self, name: str, values: dict[str, int], now: float) -> None:
        self.events.append({"name": name, "ph": "C", "pid": 1, "ts": (now - self._start) * 1e6, "args": values})


class Profiler:
    """Starts and ends profiles, at most one at a time; the scheduler ``key`` marks in it what it begins to do.

    The ``listener`` gets the marks while there is no profile. ``announce`` sends a heartbeat with the seconds of
    silence that may follow.
    """

    def __init__(
        self,
        key: ProcessKey,
        requests: Requests,
        announce: Callable[[float], None],
        listener: StepEvent | None = None,
    ) -> None:
        self._key = key
        self._requests = requests
        self._announce = announce
        self._listener = listener
        self._profile: tuple[ProfileSettings, Timeline, Any] | None = None
        """The profile that is being recorded, and torch's profiler beside it if it is wanted."""
        self._paths: list[str] = []
        """Files of the last profile that has ended."""

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handlers of ``start_profile`` and ``stop_profile``."""
        return {
            "start_profile": ControlHandler(self._start, promise=self._may_start, on_failure=self._discard),
            "stop_profile": ControlHandler(self._stop, promise=self._may_stop, merge={"paths": "union"}),
        }

    def mark(self, event: str, planned: Planned | None = None, seconds: float = 0.0) -> None:
        """Note what the scheduler begins to do (see :data:`StepEvent`)."""
        if self._listener is not None:
            self._listener(event, planned, seconds)

    def _may_start(self, params: Params) -> None:
        if self._profile is not None:
            raise BadRequest("a profile is being recorded already; /stop_profile ends it")
        _settings_of(params)

    def _may_stop(self, params: Params) -> None:
        if self._profile is None and not self._paths:
            raise BadRequest("no profile is being recorded; /start_profile begins one")

    def _start(self, params: Params) -> Params:
        settings = _settings_of(params)
        profiler, timeline = _start_torch(settings), Timeline(self._requests)
        self._profile = settings, timeline, profiler
        self._paths = []

        def record(event: str, planned: Planned | None, seconds: float) -> None:
            timeline.mark(event, planned, seconds)
            if event == "processed" and timeline.num_steps >= (settings.num_steps or MAX_STEPS):
                try:
                    self._stop({})
                except BoughError as error:
                    logger.error("%s", error.message)

        self._listener = record
        return {}

    def _stop(self, params: Params) -> Params:
        """End the profile; its files are reported also if it has ended by itself."""
        self._listener = None
        self._announce(WRITING_SECONDS)
        profile, self._profile = self._profile, None
        if profile is not None:
            try:
                self._paths = _write(self._key, *profile)
            except (OSError, RuntimeError) as error:
                raise RequestFailed(f"the profile cannot be written: {error}") from None
        return {"paths": self._paths}

    def _discard(self, params: Params) -> None:
        """End a profile that could not be started on all schedulers, and write nothing."""
        if self._profile is None or self._profile[0].call != params.get("call"):
            return
        _settings, _timeline, profiler = self._profile
        self._listener, self._profile = None, None
        if profiler is not None:
            profiler.stop()


def _settings_of(params: Params) -> ProfileSettings:
    try:
        return msgspec.convert(params, ProfileSettings)
    except msgspec.ValidationError as error:
        raise BadRequest(f"not a profile: {error}") from None


def _start_torch(settings: ProfileSettings) -> Any:
    """A running profiler of torch, or ``None`` if none is wanted."""
    if not settings.torch_activities:
        return None
    import torch
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] if "CPU" in settings.torch_activities else []
    if "GPU" in settings.torch_activities and torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    if not activities:
        return None
    profiler = profile(
        activities=activities,
        with_stack=settings.with_stack,
        record_shapes=settings.record_shapes,
        experimental_config=_ExperimentalConfig(profile_all_threads=True),  # steps may run beside the scheduler
    )
    try:
        profiler.start()
    except RuntimeError as error:
        raise RequestFailed(f"torch's profiler cannot be started: {error}") from None
    return profiler


def _write(key: ProcessKey, settings: ProfileSettings, timeline: Timeline, profiler: Any) -> list[str]:
    """End a profile and write its files; returns their paths."""
    timeline.close()
    if profiler is not None:
        profiler.stop()  # before anything that may fail: it would slow everything down for ever
    base = Path(settings.directory) / "-".join((settings.name, *key.ranks.split()))
    paths = [f"{base}-scheduler.trace.json.gz"]
    with open(os.open(paths[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        text = json.dumps({"displayTimeUnit": "ms", "traceEvents": timeline.events})
        file.write(gzip.compress(text.encode(), compresslevel=1))
    if profiler is not None:
        paths.append(f"{base}-torch.trace.json.gz")
        profiler.export_chrome_trace(paths[-1])
        os.chmod(paths[-1], 0o600)
    logger.info("Profile of %d steps: %s", timeline.num_steps, ", ".join(paths))
    return paths


def _metadata(name: str, track: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": 1, "tid": track, "args": {"name": value}}


def _kind(planned: Planned) -> str:
    has_decode = planned.plan.num_decode_rows > 0 or bool(planned.jumps)
    if not planned.prompts:
        return "decode"
    return "mixed" if has_decode else "prefill"


def _described(planned: Planned) -> dict[str, Any]:
    plan = planned.plan
    return {
        "step": plan.step_id,
        "decode rows": plan.num_decode_rows,
        "prompts": len(planned.prompts),
        "tokens": plan.num_tokens,
        "steps": planned.num_new or plan.num_steps,
        "context": planned.token_context,
    }
