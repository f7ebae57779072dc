"""Profiles are started and ended over HTTP, and no client chooses files outside the server's directory for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.entrypoints.http.server import RunningServer, running_server


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    top = tmp_path_factory.mktemp("profiles")
    os.symlink("/tmp", top / "link")
    with running_server(tmp_path_factory.mktemp("model"), profile_dir=str(top / "mine")) as running:
        yield running


@pytest.fixture
def http(profiled: RunningServer) -> Iterator[httpx.Client]:
    profiled.engine.control_calls.clear()
    with httpx.Client(base_url=profiled.url, timeout=20) as client:
        yield client


def started(server: RunningServer) -> dict[str, object]:
    (call,) = server.engine.control_calls
    assert call.method == "start_profile"
    return call.params


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_body_is_not_needed(profiled: RunningServer, http: httpx.Client, method: str) -> None:
    assert http.request(method, "/start_profile").text == "Start profiling.\n"
    params = started(profiled)
    assert params["directory"] == os.path.realpath(str(profiled.server_args.profile_dir))
    assert params["torch_activities"] == ["CPU", "GPU"]
    assert Path(str(params["directory"])).stat().st_mode & 0o777 == 0o700
    assert http.request(method, "/stop_profile").text == "/profiles/p-scheduler.trace.json.gz\n"


def test_what_sglangs_profiler_sends_is_taken(profiled: RunningServer, http: httpx.Client) -> None:
    directory = f"{profiled.server_args.profile_dir}/1795928076.6"
    body = {"output_dir": directory, "num_steps": "3", "activities": ["CPU", "GPU"], "profile_by_stage": False}
    body |= {"merge_profiles": False, "profile_prefix": None}
    assert http.post("/start_profile", json=body).status_code == 200
    assert started(profiled)["num_steps"] == 3
    for wrong in ("three", "0", "-1", "10001", "", "1e3", "9" * 5000, "³"):
        refused = http.post("/start_profile", json={**body, "num_steps": wrong})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "num_steps"), wrong


def test_names_and_numbers_are_passed_on(profiled: RunningServer, http: httpx.Client) -> None:
    body = {"num_steps": 5, "activities": ["CPU"], "profile_id": "id", "profile_prefix": "pre", "output_dir": "sub"}
    assert http.post("/start_profile", json=body).status_code == 200
    params = started(profiled)
    assert params["name"] == "pre-id"
    assert params["num_steps"] == 5
    assert str(params["directory"]).endswith("/mine/sub")


@pytest.mark.parametrize("wanted", ["/etc", "..", "../..", "a/../../b", "../link/x", "\0", "/tmp"])
def test_files_go_nowhere_else(profiled: RunningServer, http: httpx.Client, wanted: str) -> None:
    answer = http.post("/start_profile", json={"output_dir": wanted})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "output_dir"
    assert profiled.engine.control_calls == []


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "", "a" * 65, "x\n"])
def test_names_are_no_paths(http: httpx.Client, name: str) -> None:
    answer = http.post("/start_profile", json={"profile_id": name})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "profile_id"


def test_without_a_directory_of_its_own_a_server_takes_none(client: httpx.Client) -> None:
    answer = client.post("/start_profile", json={"output_dir": "/tmp"})
    assert answer.status_code == 400
    assert "--profile-dir" in answer.json()["error"]["message"]


def test_what_is_not_supported_is_refused(http: httpx.Client) -> None:
    assert http.post("/start_profile", json={"profile_by_stage": False, "merge_profiles": False}).status_code == 200
    for body in ({"activities": ["RPD"]}, {"start_step": 3}, {"profile_by_stage": True}):
        assert http.post("/start_profile", json=body).status_code == 400
