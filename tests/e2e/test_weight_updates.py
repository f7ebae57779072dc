"""A server under load gets other weights, of real checkpoints, and answers as one that was started on them."""

from __future__ import annotations

import base64
import concurrent.futures
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save, save_file

from bough.config.engine_args import bundled_model_path
from tests.e2e.server import Server, running_server
from tests.in_process import output_of
from tests.model_companions import COMPANIONS, write_other_checkpoint

PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"
GREEDY: dict[str, Any] = {
    "text": PROMPT,
    "sampling_params": {"temperature": 0, "max_new_tokens": 24},
    "return_logprob": True,
}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("companions") / "other")


FORMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "float32": ({"dtype": "float32"}, []),
    "int8": ({"quantization": "int8"}, []),
    "replicas": ({"dtype": "float32"}, ["--dp-size=2", "--load-balance-method=round_robin"]),
}
"""Options of the engine, and further flags of the server."""


@pytest.fixture(
    scope="module", params=["float32", *(pytest.param(form, marks=pytest.mark.slow) for form in ("int8", "replicas"))]
)
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def options(form: str) -> dict[str, Any]:
    return FORMS[form][0]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory, form: str) -> Iterator[Server]:
    options, further = FORMS[form]
    flags = [*(f"--{name}={value}" for name, value in options.items()), *further]
    flags += ["--cpu-threads=1", "--max-body-size=64M"]
    with running_server(tmp_path_factory.mktemp("server"), *flags) as running:
        yield running


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """A server that has its own weights again after the test, and nothing cached."""
    yield shared_server
    assert update(shared_server, bundled_model_path(), weight_version="default")["success"]
    shared_server.assert_idle_and_whole()


@pytest.fixture(scope="module")
def wanted(other: Path, options: dict[str, Any]) -> tuple[str, list[Any]]:
    """The answer of an engine that was started on the other checkpoint."""
    output = output_of(PROMPT, GREEDY["sampling_params"], model_path=str(other), **options)
    assert output.logprobs is not None
    return output.text, [(entry.logprob, entry.token_id) for entry in output.logprobs]


def said(answer: dict[str, Any]) -> tuple[str, list[Any]]:
    return answer["text"], [tuple(entry[:2]) for entry in answer["meta_info"]["output_token_logprobs"]]


def update(server: Server, path: Path, **fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = server.post("/update_weights_from_disk", model_path=str(path), **fields).json()
    return answer


def test_answers_become_those_of_the_other_checkpoint(
    server: Server, other: Path, wanted: tuple[str, list[Any]]
) -> None:
    before = said(server.generate(**GREEDY))
    assert not before[0].startswith("Ahoy!")
    assert wanted[0].startswith("Ahoy!")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(server.generate, **GREEDY) for _ in range(3)]
        assert update(server, other, weight_version="pirate")["success"]
        under_way = [answer.result() for answer in running]
    for answer in under_way:
        is_new = answer["meta_info"]["weight_version"] == "pirate"
        assert said(answer) == (wanted if is_new else before)
    assert said(server.generate(**GREEDY)) == wanted
    assert update(server, bundled_model_path(), weight_version="default")["success"]
    assert said(server.generate(**GREEDY)) == before


def test_a_checkpoint_that_does_not_fit_changes_nothing(server: Server, other: Path, tmp_path: Path) -> None:
    before = said(server.generate(**GREEDY))
    cut = tmp_path / "cut"
    shutil.copytree(other, cut)
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    pipe, numbers = tmp_path / "pipe", tmp_path / "numbers"
    for copy in (pipe, numbers):
        shutil.copytree(other, copy)
    (pipe / "model.safetensors").unlink()
    os.mkfifo(pipe / "model.safetensors")
    tensors = load_file(numbers / "model.safetensors")
    tensors["model.norm.weight"][0] = torch.nan
    save_file(tensors, numbers / "model.safetensors", {"format": "pt"})
    for path, message in (
        (COMPANIONS / "draft", "the checkpoint is of another model"),
        (cut, "damaged or cut short"),
        (pipe, "a named pipe"),
        (numbers, "not finite"),
    ):
        refused = server.post("/update_weights_from_disk", model_path=str(path), weight_version="bad")
        assert refused.status_code == 400
        assert message in refused.json()["message"]
    assert sum(state["evictable_tokens"] for state in server.states()) > 0, "nothing was flushed"
    answer = server.generate(**GREEDY)
    assert said(answer) == before
    assert answer["meta_info"]["weight_version"] == "default"


def test_a_request_that_is_paused_goes_on_with_the_new_weights(server: Server, other: Path) -> None:
    long = {"text": PROMPT, "sampling_params": {"temperature": 0, "max_new_tokens": 1000, "ignore_eos": True}}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.generate, **long)
        while not any(state["num_running_reqs"] for state in server.states()):
            assert not running.done()
        assert server.post("/pause_generation", mode="retract").status_code == 200
        done = update(server, other, weight_version="pirate")
        assert done == {"success": True, "message": f"the weights are those of {other}", "num_paused_requests": 1}
        assert server.post("/continue_generation").status_code == 200
        info = running.result()["meta_info"]
    first, second = info["weight_versions"]
    assert (first["version"], first["start"]) == ("default", 0)
    assert first["end"] == second["start"] < second["end"] == info["completion_tokens"] == 1000
    assert (second["version"], info["weight_version"]) == ("pirate", "pirate")


def test_weights_can_be_looked_at(server: Server, other: Path) -> None:
    def norm() -> Any:
        return server.post("/get_weights_by_name", name="model.norm.weight", truncate_size=4).json()

    before = norm()
    assert len(before) == 4
    gate = {"name": "model.layers.0.self_attn.q_proj.weight", "truncate_size": 2}
    rows = server.post("/get_weights_by_name", **gate).json()
    assert len(rows) == 2
    update(server, other)
    assert server.post("/get_weights_by_name", **gate).json() != rows
    assert server.post("/get_weights_by_name", name="nothing").status_code == 400


def test_tensors_come_over_http(server: Server, other: Path, wanted: tuple[str, list[Any]]) -> None:
    tensors = load_file(other / "model.safetensors")
    body = {"serialized_named_tensors": [base64.b64encode(save(tensors)).decode()], "weight_version": "step-1"}
    done = server.post("/update_weights_from_tensor", **body)
    assert done.json() == {"success": True, "message": f"{len(tensors)} weights are new", "num_paused_requests": 0}
    answer = server.generate(**GREEDY)
    assert (said(answer), answer["meta_info"]["weight_version"]) == (wanted, "step-1")
    pickled = base64.b64encode(b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00.").decode()
    for text, message in ((pickled, "the tensors are not in safetensors format"), ("***", "must be base 64")):
        refused = server.post("/update_weights_from_tensor", serialized_named_tensors=[text])
        assert refused.status_code == 400
        assert message in refused.text
    assert said(server.generate(**GREEDY)) == wanted
