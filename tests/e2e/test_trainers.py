"""Everything that trainers ask of a server over HTTP, with the bodies that they send, in the order of a round."""

from __future__ import annotations

import base64
import concurrent.futures
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.torch import load_file, save

from bough.config.engine_args import bundled_model_path
from tests.e2e.server import Server, running_server
from tests.model_companions import write_other_checkpoint
from tests.native import needs_native
from tests.weight_sync.running_trainer import GROUP, RunningTrainer

ROLLOUT = {
    "input_ids": [300, 301, 302, 303, 304],
    "sampling_params": {"temperature": 0.0, "max_new_tokens": 16, "ignore_eos": True},
    "return_logprob": True,
}
LONG = {**ROLLOUT, "sampling_params": {"temperature": 0.0, "max_new_tokens": 2000, "ignore_eos": True}}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("companions") / "other")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("server")
    flags = ["--dtype=float32", "--cpu-threads=1", "--max-body-size=64M", f"--profile-dir={directory}"]
    with running_server(directory, *flags) as running:
        yield running


def rollout(server: Server) -> list[list[Any]]:
    """Log-probability and id of each token."""
    answer = server.generate(**ROLLOUT)
    assert answer["meta_info"]["finish_reason"]["type"] == "length"
    return [entry[:2] for entry in answer["meta_info"]["output_token_logprobs"]]


def done(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


@needs_native
def test_a_round_of_slime_is_served_call_by_call(server: Server, other: Path) -> None:
    def get(path: str) -> httpx.Response:
        return server.client.get(path)

    def make_request(path: str, payload: dict[str, Any] | None = None) -> Any:
        return done(server.post(path, **(payload or {})))

    def version() -> str:
        return str(done(get("/get_weight_version"))["weight_version"])

    assert get("/health_generate").status_code == get("/flush_cache").status_code == 200
    info = done(get("/get_server_info"))
    assert (info["tp_size"], info["dp_size"], info["dtype"], info["port"]) == (1, 1, "float32", server.port)
    assert version() == "default"
    assert make_request("/weights_checker", {"action": "snapshot"})["success"]
    before = rollout(server)

    # The rollout is over: what is left of it ends, and the memory goes to the trainer.
    assert server.post("/abort_request", abort_all=True).status_code == 200
    assert get("/flush_cache").status_code == 200
    make_request("/release_memory_occupation")
    assert get("/health_generate").status_code == 503

    # New weights come, while there is no KV cache yet.
    make_request("/resume_memory_occupation", {"tags": ["weights"]})
    trainer = RunningTrainer(other)
    tensors = load_file(other / "model.safetensors")
    names = sorted(tensors)
    try:
        address = {"master_address": "127.0.0.1", "master_port": trainer.port, "rank_offset": 1, "world_size": 2}
        make_request("/init_weights_update_group", {**address, "group_name": GROUP, "backend": "gloo"})
        assert server.post("/pause_generation").status_code == get("/flush_cache").status_code == 200
        both = {"restore_weights_before_load": True, "post_process_quantization": False}
        assert make_request("/post_process_weights", both)["success"]
        trainer.send()
        about = {
            "names": names,
            "dtypes": [str(tensors[name].dtype).replace("torch.", "") for name in names],
            "shapes": [list(tensors[name].shape) for name in names],
            "group_name": GROUP,
            "flush_cache": False,
            "weight_version": "1",
        }
        assert make_request("/update_weights_from_distributed", about)["success"]
        assert make_request("/post_process_weights", dict(zip(both, (False, True), strict=True)))["success"]
        assert server.post("/continue_generation").status_code == 200
        make_request("/resume_memory_occupation", {"tags": ["kv_cache", "cuda_graph"]})
        assert version() == "1"
        assert rollout(server) != before
        make_request("/destroy_weights_update_group", {"group_name": GROUP})
    finally:
        trainer.close()

    # Weights come from disk, and the check knows them again.
    assert server.post("/weights_checker", action="compare").status_code == 400
    assert make_request("/weights_checker", {"action": "reset_tensors"})["success"]
    assert server.post("/weights_checker", action="compare").status_code == 400
    disk = {"model_path": str(bundled_model_path()), "weight_version": "2"}
    assert make_request("/update_weights_from_disk", disk)["success"]
    checked = {"action": "compare", "allow_quant_error": False, "selector": "all"}
    assert make_request("/weights_checker", checked)["success"]
    assert (version(), rollout(server)) == ("2", before)

    # In memory: safetensors, and never what its own trainer pickles.
    text = base64.b64encode(save(tensors)).decode()
    in_memory: dict[str, Any] = {"serialized_named_tensors": [text], "load_format": None, "flush_cache": False}
    assert make_request("/update_weights_from_tensor", {**in_memory, "weight_version": "3"})["success"]
    refused = server.post("/update_weights_from_tensor", **{**in_memory, "load_format": "flattened_bucket"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "load_format")
    assert get("/flush_cache").status_code == 200

    profile = {"output_dir": None, "start_step": None, "num_steps": None, "activities": None}
    profile |= {"profile_by_stage": False, "with_stack": None, "record_shapes": None}
    assert server.post("/start_profile", **profile).status_code == 200
    assert server.post("/stop_profile").status_code == 200
    pulled = server.post("/pull_weights", local_checkpoint_dir="/tmp/a", source_dir="/tmp/b", target_version=0)
    assert (pulled.status_code, pulled.json()["error"]["code"]) == (404, "not_supported")
    assert make_request("/update_weights_from_disk", disk)["success"]
    server.assert_idle_and_whole()


@needs_native
def test_a_round_of_trl_is_served_call_by_call(server: Server) -> None:
    client = server.client

    def is_paused() -> bool:
        return bool(done(client.get("/is_paused"))["is_paused"])

    def running(pool: concurrent.futures.Executor, rid: str) -> concurrent.futures.Future[Any]:
        asked = pool.submit(lambda: server.generate(**LONG, rid=rid)["meta_info"])
        while not server.state()["num_running_reqs"]:
            assert not asked.done()
        return asked

    assert done(client.get("/get_world_size"))["world_size"] == 1
    assert done(client.get("/get_world_size?include_dp=false"))["world_size"] == 1
    expected = rollout(server)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        kept = running(pool, "kept")
        assert done(client.post("/pause?mode=keep&clear_cache=false"))["status"] == "paused"
        assert is_paused()
        assert client.post("/reset_prefix_cache").status_code == 200
        assert done(client.post("/resume"))["status"] == "resumed"
        assert not is_paused()
        assert kept.result()["completion_tokens"] == LONG["sampling_params"]["max_new_tokens"]

        awaited = running(pool, "awaited")
        assert done(client.post("/pause?mode=wait"))["status"] == "paused"
        assert awaited.result(timeout=1)["finish_reason"]["type"] == "length"
        assert server.state()["evictable_tokens"] == 0
        done(client.post("/resume"))

        aborted = running(pool, "aborted")
        done(client.post("/pause"))
        assert aborted.result(timeout=1)["finish_reason"]["type"] == "abort"
        done(client.post("/resume"))

        first, second = running(pool, "same"), pool.submit(lambda: server.generate(**LONG, rid="same-2")["meta_info"])
        while server.state()["num_running_reqs"] < 2:
            assert not second.done()
        done(server.post("/abort_requests", request_ids=["same", "unknown"]))
        assert first.result()["finish_reason"]["type"] == "abort"
        assert not second.done()
        done(server.post("/abort_requests"))
        assert second.result()["finish_reason"]["type"] == "abort"
    for wrong in ("/pause?mode=later", "/pause?clear_cache=perhaps", "/pause?wait=true"):
        assert client.post(wrong).status_code == 400
    assert not is_paused()

    done(client.post("/sleep?level=1"))
    assert done(client.get("/is_sleeping"))["is_sleeping"]
    done(client.post("/wake_up?tags=weights"))
    done(client.post("/wake_up?tags=kv_cache"))
    assert not done(client.get("/is_sleeping"))["is_sleeping"]
    assert rollout(server) == expected
    server.assert_idle_and_whole()
