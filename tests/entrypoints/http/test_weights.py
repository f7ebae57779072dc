"""New weights over HTTP: what is told of them, and who waits for whom."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.config.ranks import SCHEDULER
from bough.ipc.messages import ControlReply, ControlReq
from bough.managers.served_weights import WAITING_TIMEOUT
from tests.entrypoints.http.server import RunningServer, running_server

SHORT = {"text": "Hi", "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}
LONG = {"text": "Hi", "sampling_params": {"max_new_tokens": 60, "ignore_eos": True}, "rid": "long"}
GROUP = {"master_address": "10.0.0.1", "master_port": 29500, "rank_offset": 1, "world_size": 2, "backend": "gloo"}
ALONE = {"while_paused": False, "timeout": WAITING_TIMEOUT}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with running_server(tmp_path, weight_version="step-0") as running:
        yield running
        running.assert_idle()


@pytest.fixture
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20) as http:
        yield http


@pytest.fixture
def pool() -> Iterator[concurrent.futures.ThreadPoolExecutor]:
    with concurrent.futures.ThreadPoolExecutor(4) as made:
        yield made


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    path.mkdir()
    (path / "config.json").write_bytes((tmp_path / "config.json").read_bytes())
    return path


def update(client: httpx.Client, path: Path, **fields: Any) -> httpx.Response:
    return client.post("/update_weights_from_disk", json={"model_path": str(path), **fields})


def version_of(client: httpx.Client) -> str:
    return str(client.post("/generate", json=SHORT).json()["meta_info"]["weight_version"])


def calls(server: RunningServer) -> list[dict[str, Any]]:
    return [call.params for call in server.engine.control_calls if call.method == "update_weights_from_disk"]


def begin(server: RunningServer, pool: concurrent.futures.ThreadPoolExecutor, **fields: Any) -> Any:
    """A request that has its first tokens."""
    server.engine.token_delay = 0.005
    running = pool.submit(httpx.post, f"{server.url}/generate", json={**LONG, **fields})
    server.wait_until(lambda: server.engine.lengths.get("long", 0) > 2)
    return running


def settle(server: RunningServer) -> int:
    """How many tokens a paused request has."""
    time.sleep(0.05)  # the fake engine may be in the middle of one
    return server.engine.lengths["long"]


def test_answers_tell_which_weights_have_made_them(server: RunningServer, client: httpx.Client, other: Path) -> None:
    assert version_of(client) == "step-0"
    done = update(client, other, weight_version="step-1")
    assert done.status_code == 200
    assert done.json() == {"success": True, "message": f"the weights are those of {other}", "num_paused_requests": 0}
    assert calls(server) == [{"model_path": str(other), "load_format": "auto", "flush_cache": True, **ALONE}]
    assert version_of(client) == "step-1"
    for path, body in (("/v1/chat/completions", CHAT), ("/v1/completions", {"model": "m", "prompt": "Hi"})):
        assert client.post(path, json=body).json()["metadata"] == {"weight_version": "step-1"}
    info = client.get("/model_info").json()
    assert (info["weight_version"], info["model_path"]) == ("step-1", str(other))
    info = client.get("/server_info").json()
    assert (info["weight_version"], info["model_path"]) == ("step-1", str(other))
    update(client, other)
    assert version_of(client) == "step-1", "a name stays until there is another"


def test_fields_reach_the_scheduler(server: RunningServer, client: httpx.Client, other: Path) -> None:
    harmless = {"is_async": False, "token_step": 7, "keep_pause": True, "recapture_cuda_graph": True, "manifest": None}
    assert update(client, other, load_format="dummy", flush_cache=False, **harmless).status_code == 200
    assert calls(server) == [{"model_path": str(other), "load_format": "dummy", "flush_cache": False, **ALONE}]
    update(client, other)
    assert calls(server)[-1]["load_format"] == "auto", "random weights are not what an update is for"


def test_what_does_not_fit_is_told(server: RunningServer, client: httpx.Client, other: Path) -> None:
    server.engine.misfit = "it is another model"
    refused = update(client, other, weight_version="step-1")
    assert refused.status_code == 400
    told = refused.json()
    error = told.pop("error")
    assert told == {"success": False, "message": "it is another model", "num_paused_requests": 0}
    assert (error["message"], error["param"]) == ("it is another model", "names")
    assert version_of(client) == "step-0"
    missing = update(client, other / "missing")
    assert missing.status_code == 400
    assert missing.json()["message"].startswith(f"no such directory: {other}/missing")
    error = missing.json()["error"]
    assert (error["param"], error["type"]) == ("model_path", "invalid_request_error")
    assert len(calls(server)) == 1


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/update_weights_from_disk", {}, "model_path"),
        ("/update_weights_from_disk", {"model_path": ""}, "model_path"),
        ("/update_weights_from_disk", {"model_path": "a", "load_format": "pickle"}, "load_format"),
        ("/update_weights_from_disk", {"model_path": "a", "weight_version": "v" * 257}, "weight_version"),
        ("/update_weights_from_disk", {"model_path": "a", "is_async": True}, "is_async"),
        ("/update_weights_from_disk", {"model_path": "a", "manifest": {}}, "manifest"),
        ("/update_weights_from_disk", {"model_path": "a", "flush": True}, "flush"),
        ("/update_weights_from_tensor", {"serialized_named_tensors": []}, "serialized_named_tensors"),
        ("/update_weights_from_tensor", {"serialized_named_tensors": ["AA", "AA"]}, "serialized_named_tensors"),
        ("/update_weights_from_tensor", {"serialized_named_tensors": ["A*"]}, "serialized_named_tensors[0]"),
        ("/update_weights_from_tensor", {"serialized_named_tensors": [""], "load_format": "direct"}, "load_format"),
        ("/update_weights_from_tensor", {"serialized_named_tensors": [""], "selector": "draft"}, "selector"),
        ("/update_weights_from_distributed", {"names": [], "dtypes": [], "shapes": []}, "names"),
        ("/update_weights_from_distributed", {"names": ["a"], "dtypes": ["b"], "shapes": [[-1]]}, "shapes[0][0]"),
        ("/init_weights_update_group", {**GROUP, "master_port": 0}, "master_port"),
        ("/init_weights_update_group", {**GROUP, "rank_offset": 0}, "rank_offset"),
        ("/init_weights_update_group", {**GROUP, "world_size": 1}, "world_size"),
        ("/init_weights_update_group", {**GROUP, "backend": "mpi"}, "backend"),
        ("/destroy_weights_update_group", {"group_name": ""}, "group_name"),
        ("/update_weight_version", {}, "new_version"),
        ("/get_weights_by_name", {"name": "norm", "truncate_size": 0}, "truncate_size"),
        ("/get_weights_by_name", {"name": "other"}, "name"),
    ],
)
def test_bad_input_is_refused_by_name(client: httpx.Client, path: str, body: dict[str, Any], param: str) -> None:
    refused = client.post(path, json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param


def test_an_update_waits_for_what_runs_and_new_requests_wait_for_it(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    updating = pool.submit(update, client, other, weight_version="step-1")
    server.wait_until(lambda: server.manager.model_update_lock._num_waiting_writers)
    waiting = pool.submit(httpx.post, f"{server.url}/generate", json=SHORT)
    time.sleep(0.05)
    assert not updating.done()
    assert not waiting.done()
    assert calls(server) == []
    assert running.result().json()["meta_info"]["weight_version"] == "step-0"
    assert updating.result().status_code == 200
    assert waiting.result().json()["meta_info"]["weight_version"] == "step-1"


def test_what_runs_can_be_ended_instead(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    assert update(client, other, abort_all_requests=True).status_code == 200
    assert running.result().json()["meta_info"]["finish_reason"]["type"] == "abort"


def test_an_update_needs_nothing_of_the_first_checkpoint(
    server: RunningServer, client: httpx.Client, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = replace(server.manager.server_args, tokenizer_path=str(tmp_path / "gone"))
    monkeypatch.setattr(server.manager, "server_args", gone)
    assert update(client, other).json()["message"] == f"the weights are those of {other}"


def test_a_request_that_ends_in_the_pause_has_tokens_of_the_old_weights_alone(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    client.post("/pause_generation", json={"mode": "in_place"})
    settle(server)
    update(client, other, weight_version="step-1", flush_cache=False)
    client.post("/abort_request", json={"rid": "long"})
    client.post("/continue_generation")
    info = running.result().json()["meta_info"]
    assert (info["finish_reason"]["type"], info["weight_version"]) == ("abort", "step-0")
    assert "weight_versions" not in info


@pytest.mark.parametrize("stream", [False, True])
def test_a_paused_request_tells_whose_tokens_are_whose(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor, stream: bool
) -> None:
    running = begin(server, pool, stream=stream)
    client.post("/pause_generation", json={"mode": "in_place"})
    first = settle(server)
    late = pool.submit(httpx.post, f"{server.url}/generate", json=SHORT)
    server.wait_until(lambda: len(server.engine.running) == 2)
    done = update(client, other, weight_version="step-1", flush_cache=False).json()
    assert (done["success"], done["num_paused_requests"]) == (True, 2)
    update(client, other, weight_version="step-2", flush_cache=False)
    client.post("/continue_generation")
    answer = running.result()
    if stream:
        events = [json.loads(event.removeprefix("data: ")) for event in answer.text.strip().split("\n\n")[:-1]]
        versions = [event["meta_info"]["weight_version"] for event in events]
        assert list(dict.fromkeys(versions)) == ["step-0", "step-2"]
        assert not any("weight_versions" in event["meta_info"] for event in events[:-1])
        info = events[-1]["meta_info"]
    else:
        info = answer.json()["meta_info"]
    assert info["weight_version"] == "step-2"
    assert info["weight_versions"] == [
        {"version": "step-0", "start": 0, "end": first},
        {"version": "step-2", "start": first, "end": 60},
    ]
    info = late.result().json()["meta_info"]
    assert info["weight_version"] == "step-2"
    assert "weight_versions" not in info


def test_an_update_is_made_even_if_its_caller_leaves(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    body = {"model_path": str(other), "weight_version": "step-1"}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/update_weights_from_disk", json=body, timeout=0.1)
    assert running.result().status_code == 200
    server.wait_until(lambda: server.manager.weights.version == "step-1")
    assert version_of(client) == "step-1"


def test_weights_are_renamed_after_what_runs_was_ended(
    server: RunningServer, client: httpx.Client, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    renamed = client.post("/update_weight_version", json={"new_version": "step-9"})
    assert renamed.json() == {"success": True, "message": "the weights are called step-9", "new_version": "step-9"}
    info = running.result().json()["meta_info"]
    assert (info["finish_reason"]["type"], info["weight_version"]) == ("abort", "step-0")
    assert version_of(client) == "step-9"


def test_a_pause_ends_the_wait_for_what_runs(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    updating = pool.submit(update, client, other, weight_version="step-1", flush_cache=False)
    server.wait_until(lambda: server.manager.model_update_lock._num_waiting_writers)
    client.post("/pause_generation", json={"mode": "in_place"})
    first = settle(server)
    assert updating.result().json()["num_paused_requests"] == 1
    assert calls(server)[-1]["while_paused"]
    client.post("/continue_generation")
    assert running.result().json()["meta_info"]["weight_versions"][1] == {
        "version": "step-1",
        "start": first,
        "end": 60,
    }


def test_a_paused_choice_tells_whose_tokens_are_whose(
    server: RunningServer, client: httpx.Client, other: Path, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    server.engine.token_delay = 0.005
    body = {"model": "m", "prompt": "Hi", "max_tokens": 60, "ignore_eos": True, "rid": "long"}
    running = pool.submit(httpx.post, f"{server.url}/v1/completions", json=body)
    server.wait_until(lambda: server.engine.lengths.get("long", 0) > 2)
    client.post("/pause_generation", json={"mode": "in_place"})
    first = settle(server)
    update(client, other, weight_version="step-1", flush_cache=False)
    client.post("/continue_generation")
    spans = [
        {"version": "step-0", "start": 0, "end": first},
        {"version": "step-1", "start": first, "end": 60},
    ]
    assert running.result().json()["metadata"] == {"weight_version": "step-1", "weight_versions": spans}


def test_while_weights_are_loaded_other_calls_wait_and_the_server_is_well(
    server: RunningServer,
    client: httpx.Client,
    other: Path,
    pool: concurrent.futures.ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control, held = server.engine._control, []

    def holding(message: ControlReq) -> ControlReply:
        if message.method != "update_weights_from_disk":
            return control(message)
        held.append(message)
        return ControlReply("of nobody", SCHEDULER, True)

    server.engine._control = holding  # type: ignore[method-assign]
    updating = pool.submit(update, client, other)
    server.wait_until(lambda: held)
    assert client.get("/health_generate").status_code == 200
    assert client.get("/ready").text == "new weights are being loaded\n"
    pausing = pool.submit(httpx.post, f"{server.url}/pause_generation", json={})
    monkeypatch.setattr("bough.entrypoints.http.native.loads.TIMEOUT", 0.05)
    loads = client.get("/v1/loads")
    assert (loads.status_code, loads.json()["error"]["message"]) == (503, "new weights are being loaded")
    assert not pausing.done()
    assert not [call for call in server.engine.control_calls if call.method == "pause_generation"]
    server.run(lambda: server.manager.control.on_reply(control(held[0])))
    assert updating.result().status_code == 200
    assert pausing.result().status_code == 200
    client.post("/continue_generation")


def test_weights_are_renamed_while_requests_run(
    server: RunningServer, client: httpx.Client, pool: concurrent.futures.ThreadPoolExecutor
) -> None:
    running = begin(server, pool)
    client.post("/update_weight_version", json={"new_version": "step-9", "abort_all_requests": False})
    info = running.result().json()["meta_info"]
    first, second = info["weight_versions"]
    assert (first["version"], second["version"]) == ("step-0", "step-9")
    assert first["start"] == 0 < first["end"] == second["start"] < second["end"] == 60


def test_tensors_of_a_request_are_in_a_file_while_they_are_read(server: RunningServer, client: httpx.Client) -> None:
    read: list[bytes] = []
    control = server.engine._control

    def reading(message: ControlReq) -> ControlReply:
        if message.method == "update_weights_from_file":
            read.append(Path(message.params["path"]).read_bytes())
            assert Path(message.params["path"]).stat().st_mode & 0o077 == 0
        return control(message)

    server.engine._control = reading  # type: ignore[method-assign]
    text = base64.b64encode(b"any bytes").decode()
    done = client.post("/update_weights_from_tensor", json={"serialized_named_tensors": [text], "selector": "all"})
    assert done.json() == {"success": True, "message": "2 weights are new", "num_paused_requests": 0}
    assert read == [b"any bytes"]
    path = server.engine.control_calls[-1].params["path"]
    assert not Path(path).exists()


def test_a_trainer_sends_in_a_group(server: RunningServer, client: httpx.Client) -> None:
    joined = client.post("/init_weights_update_group", json=GROUP)
    assert joined.json()["message"] == "in the group 'weight_update_group' as rank 1"
    assert server.engine.control_calls[-1].params == {**GROUP, "group_name": "weight_update_group"}
    weights = {"names": ["a", "b"], "dtypes": ["float32", "bfloat16"], "shapes": [[2, 3], []]}
    done = client.post("/update_weights_from_distributed", json={**weights, "weight_version": "step-1"})
    assert done.json() == {"success": True, "message": "2 weights are new", "num_paused_requests": 0}
    sent = {**weights, "group_name": "weight_update_group", "flush_cache": True, **ALONE}
    assert server.engine.control_calls[-1].params == sent
    assert version_of(client) == "step-1"
    left = client.post("/destroy_weights_update_group", json={})
    assert left.json()["success"]
    server.engine.misfit = "there is no such group"
    for path, body in (("destroy_weights_update_group", {}), ("init_weights_update_group", GROUP)):
        refused = client.post(f"/{path}", json=body)
        assert (refused.status_code, refused.json()["message"]) == (400, "there is no such group")


def test_weights_can_be_looked_at(client: httpx.Client) -> None:
    body = {"name": "norm", "truncate_size": 3}
    assert client.post("/get_weights_by_name", json=body).json() == [0.5] * 3
    assert client.request("GET", "/get_weights_by_name", json=body).json() == [0.5] * 3


def test_a_server_that_drains_takes_no_weights(server: RunningServer, client: httpx.Client, other: Path) -> None:
    server.run(server.manager.start_draining)
    assert update(client, other).status_code == 503
    assert client.post("/update_weight_version", json={"new_version": "a"}).status_code == 503
    assert calls(server) == []
