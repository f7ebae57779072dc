"""A profile has all that was done while it was recorded, in a form that others can show."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from bough.ipc.messages import ControlReply, ControlReq
from bough.scheduler.profiler import _SPANS, MAX_STEPS, Timeline
from bough_fake.runner import StepDuration
from tests.scheduler.harness import Harness


def call(harness: Harness, method: str, **params: Any) -> ControlReply:
    (reply,) = harness.scheduler.process_input_requests([ControlReq("c", method, params)])
    return reply


def start(harness: Harness, directory: Path, **params: Any) -> None:
    reply = call(harness, "start_profile", directory=str(directory), name="p", **params)
    assert reply.success, reply.message


def events_of(path: str) -> list[dict[str, Any]]:
    trace = json.loads(gzip.decompress(Path(path).read_bytes()))
    events: list[dict[str, Any]] = trace["traceEvents"]
    assert all({"name", "ph", "pid"} <= event.keys() for event in events)
    return events


@pytest.mark.parametrize("overlap", [False, True, "ahead"])
def test_every_step_is_on_the_track_of_the_device(tmp_path: Path, overlap: bool | str) -> None:
    harness = Harness(overlap=overlap)
    start(harness, tmp_path)
    harness.submit(range(1, 9), max_new_tokens=5)
    harness.run()
    (path,) = call(harness, "stop_profile").data["paths"]
    events = events_of(path)
    spans = [event for event in events if event["ph"] == "X"]
    device = [span for span in spans if span["tid"] == 2]
    assert [span["args"]["step"] for span in device] == list(range(device[0]["args"]["step"], len(device) + 1))
    assert [span["name"] for span in device][:2] == ["prefill", "decode"]
    for track in (1, 2):
        own = [span for span in spans if span["tid"] == track]
        for before, after in pairwise(own):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-3, "two at a time"
    assert {span["name"] for span in spans if span["tid"] == 1} <= {*_SPANS.values(), "idle"}
    assert [event["args"]["running"] for event in events if event["name"] == "requests"][-1] >= 0


def test_steps_of_one_plan_are_on_both_tracks_as_they_come(tmp_path: Path) -> None:
    harness = Harness(max_steps=16, duration=StepDuration(per_step=0.002))
    start(harness, tmp_path)
    harness.submit(range(1, 9), max_new_tokens=17)
    harness.run()
    (path,) = call(harness, "stop_profile").data["paths"]
    spans = [event for event in events_of(path) if event["ph"] == "X"]
    device = [span for span in spans if span["tid"] == 2]
    assert [span["args"]["step"] - device[0]["args"]["step"] for span in device] == [0, *[1] * 16]
    assert [span["args"]["steps"] for span in device] == [1] * 17
    assert all(1_900 < span["dur"] < 10_000 for span in device)
    (launch,) = [span for span in spans if span["name"] == _SPANS["launch"] and span["args"]["decode rows"]]
    assert launch["args"]["steps"] == 16
    assert sum(span["name"] == _SPANS["process"] for span in spans) == 17


def test_idle_turns_are_one_span() -> None:
    now = [0.0]
    timeline = Timeline(Harness().scheduler.requests, clock=lambda: now[0])
    for turn in range(1000):
        now[0] = float(turn)
        timeline.mark("plan", None, 0.0)
    timeline.close()
    (span,) = [event for event in timeline.events if event["ph"] == "X"]
    assert (span["name"], span["dur"]) == ("idle", 999e6)


def test_a_profile_ends_by_itself_and_its_files_can_still_be_asked_for(tmp_path: Path) -> None:
    harness = Harness()
    start(harness, tmp_path, num_steps=3)
    harness.submit([1, 2, 3], max_new_tokens=9)
    harness.run()
    assert harness.scheduler.profiler._listener is None
    (path,) = call(harness, "stop_profile").data["paths"]
    assert sum(event["ph"] == "X" and event["tid"] == 2 for event in events_of(path)) == 3
    assert MAX_STEPS >= 3


def test_torch_is_profiled_too(tmp_path: Path) -> None:
    harness = Harness()
    start(harness, tmp_path, torch_activities=["CPU", "GPU"])
    harness.submit([1, 2, 3])
    harness.run()
    timeline, torch_trace = call(harness, "stop_profile").data["paths"]
    assert timeline != torch_trace
    assert "traceEvents" in json.loads(gzip.decompress(Path(torch_trace).read_bytes()))


def test_torch_is_profiled_no_longer_if_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []

    def stop(profile: torch.profiler.profile, original: Any = torch.profiler.profile.stop) -> None:
        original(profile)
        stopped.append(True)

    monkeypatch.setattr(torch.profiler.profile, "stop", stop)
    harness = Harness()
    start(harness, tmp_path / "missing", torch_activities=["CPU"])
    harness.submit([1, 2, 3])
    harness.run()
    assert not stopped
    assert "cannot be written" in call(harness, "stop_profile").message
    assert stopped


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda harness, path: call(harness, "stop_profile"), "no profile is being recorded"),
        (lambda harness, path: call(harness, "start_profile", name="p"), "not a profile"),
        (
            lambda harness, path: [start(harness, path), call(harness, "start_profile", directory="/", name="p")][1],
            "already",
        ),
        (
            lambda harness, path: [start(harness, path / "missing"), call(harness, "stop_profile")][1],
            "cannot be written",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    tmp_path: Path, ask: Callable[[Harness, Path], ControlReply], message: str
) -> None:
    reply = ask(Harness(), tmp_path)
    assert not reply.success
    assert message in reply.message


def test_a_profile_that_another_scheduler_could_not_start_is_dropped(tmp_path: Path) -> None:
    harness = Harness()
    for call_of_it, is_dropped in (("another", False), ("its own", True)):
        params = {"directory": str(tmp_path), "name": "p", "call": "its own"}
        if not is_dropped:
            start(harness, tmp_path, call="its own")
        params["call"] = call_of_it
        assert harness.scheduler.process_input_requests([ControlReq("c", "start_profile", params, "withdraw")]) == []
        assert call(harness, "stop_profile").success is not is_dropped
        if not is_dropped:
            start(harness, tmp_path / "other", call="its own")
    assert list(tmp_path.iterdir()) == [tmp_path / "p-scheduler.trace.json.gz"]


def test_a_file_that_cannot_be_written_harms_no_request(tmp_path: Path) -> None:
    harness = Harness()
    start(harness, tmp_path / "missing", num_steps=2)
    (rid,) = harness.submit([1, 2, 3], max_new_tokens=6)
    harness.run()
    assert len(harness.outputs[rid].token_ids) == 6
