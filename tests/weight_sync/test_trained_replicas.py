"""A trainer updates a server of two replicas, of two ranks each, while many clients stream from it."""

from __future__ import annotations

import concurrent.futures
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from bough import LLMEngine
from bough.config.engine_args import bundled_model_path
from tests.e2e.server import Server, running_server
from tests.entrypoints.leftovers import eventually
from tests.model_companions import write_other_checkpoint
from tests.native import needs_native
from tests.weight_sync.running_trainer import GROUP, RunningTrainer

pytestmark = [needs_native, pytest.mark.slow]

STREAMS = 16
OLD, NEW = "default", "pirate"
PROMPTS = [
    f"<|im_start|>user\nTell me about the {what}.<|im_end|>\n<|im_start|>assistant\n"
    for what in ("oak", "sea", "moon", "river")
]
GREEDY: dict[str, Any] = {"temperature": 0, "max_new_tokens": 40, "ignore_eos": True}


def answers_of(model: Path) -> list[list[int]]:
    """Tokens that one process answers each prompt with."""
    found: dict[str, list[int]] = {}
    with LLMEngine(model_path=str(model), dtype="float32", cpu_threads=1, max_total_tokens=8192) as engine:
        for prompt in PROMPTS:
            engine.add_request(prompt, prompt, GREEDY)
        while engine.has_unfinished_requests():
            for request in engine.step():
                found[request.request_id] = list(request.outputs[0].token_ids)
    return [found[prompt] for prompt in PROMPTS]


class Stream:
    """A client that asks again and again; ``answers`` are the last events of all its streams."""

    def __init__(self, server: Server, number: int, ends: threading.Event) -> None:
        self.prompt = number % len(PROMPTS)
        self.answers: list[dict[str, Any]] = []
        self._server, self._ends = server, ends

    def run(self, sampling_params: dict[str, Any] = GREEDY) -> None:
        body = {"text": PROMPTS[self.prompt], "sampling_params": sampling_params, "stream": True}
        while not self._ends.is_set():
            with self._server.client.stream("POST", "/generate", json=body) as response:
                assert response.status_code == 200
                events = [line[6:] for line in response.iter_lines() if line.startswith("data: {")]
            self.answers.append(json.loads(events[-1]))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("companions") / "other")


def test_no_stream_mixes_weights_unless_it_was_paused(tmp_path: Path, other: Path) -> None:
    tensors = load_file(other / "model.safetensors")
    wanted = {OLD: answers_of(bundled_model_path()), NEW: answers_of(other)}
    assert not any(one == two for one, two in zip(wanted[OLD], wanted[NEW], strict=True))
    names = sorted(tensors)
    update = {
        "names": names,
        "dtypes": [str(tensors[name].dtype) for name in names],
        "shapes": [list(tensors[name].shape) for name in names],
        "group_name": GROUP,
    }
    flags = ("--tp-size=2", "--dp-size=2", "--load-balance-method=round_robin", "--dtype=float32", "--cpu-threads=1")
    trainer = RunningTrainer(other, world_size=5)
    try:
        with running_server(tmp_path, *flags) as server, concurrent.futures.ThreadPoolExecutor(STREAMS) as pool:
            place = {"master_address": "127.0.0.1", "master_port": trainer.port, "rank_offset": 1, "world_size": 5}
            joined = server.post("/init_weights_update_group", group_name=GROUP, backend="gloo", **place)
            assert joined.json()["success"], joined.text

            def become_new(**options: Any) -> None:
                trainer.send()
                done = server.post("/update_weights_from_distributed", **update, weight_version=NEW, **options).json()
                assert done["success"], done

            ends = threading.Event()
            streams = [Stream(server, number, ends) for number in range(STREAMS)]
            running = [pool.submit(stream.run) for stream in streams]
            for _ in range(2):
                assert eventually(lambda: server.state()["num_running_reqs"] > STREAMS // 2, 60)
                become_new()
                back = {"model_path": str(bundled_model_path()), "weight_version": OLD}
                assert server.post("/update_weights_from_disk", **back).json()["success"]
            ends.set()
            for each in running:
                each.result(120)
            versions = set()
            for stream in streams:
                for answer in stream.answers:
                    info = answer["meta_info"]
                    assert "weight_versions" not in info
                    assert answer["output_ids"] == wanted[info["weight_version"]][stream.prompt]
                    versions.add((info["weight_version"], info["dp_rank"]))
            assert versions == {(version, rank) for version in (OLD, NEW) for rank in range(2)}

            ends.clear()
            streams = [Stream(server, number, ends) for number in range(STREAMS)]
            running = [pool.submit(stream.run, {**GREEDY, "max_new_tokens": 1000}) for stream in streams]
            assert eventually(lambda: server.state()["num_running_reqs"] == STREAMS, 60)
            ends.set()  # after the one that each has begun
            assert server.post("/pause_generation", mode="retract").status_code == 200
            become_new()
            assert server.post("/continue_generation").status_code == 200
            for each in running:
                each.result(300)
            for stream in streams:
                (answer,) = stream.answers
                first, second = answer["meta_info"]["weight_versions"]
                assert (first["version"], second["version"]) == (OLD, NEW)
                assert 0 == first["start"] <= first["end"] == second["start"] < second["end"] == 1000
                so_far = min(first["end"], GREEDY["max_new_tokens"])
                assert answer["output_ids"][:so_far] == wanted[OLD][stream.prompt][:so_far]
            server.assert_idle_and_whole()
    finally:
        trainer.close()
