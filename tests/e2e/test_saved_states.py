"""Engines that start from saved states answer as the engine that has saved them; nobody is left with half of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bough import Engine
from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest, BoughError, ConfigError
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

IDS = [300, 301, 302, 303, 304]


def answer(engine: Engine) -> tuple[list[int], Any]:
    greedy = {"temperature": 0.0, "max_new_tokens": 24, "ignore_eos": True}
    told = engine.generate(input_ids=IDS, sampling_params=greedy, return_logprob=True)
    return told["output_ids"], told["meta_info"]["output_token_logprobs"]


@needs_native
def test_engines_start_from_what_an_engine_has_saved(tmp_path: Path) -> None:
    packed, sharded = tmp_path / "packed", tmp_path / "sharded"
    sharded.mkdir()  # an empty directory will do
    with Engine(max_total_tokens=2048) as engine:
        expected = answer(engine)
        engine.save_sharded_state(str(sharded), max_size=2**20)
        with pytest.raises(BadRequest, match="has files already"):
            engine.save_packed_state(str(sharded))
        with pytest.raises(BadRequest, match="pattern"):
            engine.save_sharded_state(str(tmp_path / "other"), pattern="weights")
        engine.save_packed_state(str(packed))
        assert answer(engine) == expected
    assert sorted(os.listdir(tmp_path)) == ["packed", "sharded"]
    assert len(list(sharded.glob("model-rank-0-part-*.safetensors"))) > 1
    with Engine(model_path=str(packed), max_total_tokens=2048, dp_size=2) as engine:
        assert engine.get_server_info()["load_format"] == "packed"
        assert answer(engine) == answer(engine) == expected
        updated = engine.update_weights_from_disk(str(bundled_model_path()))
        assert updated.success, updated.message
        assert answer(engine) == expected
    with Engine(model_path=str(sharded), load_format="sharded_state", max_total_tokens=2048) as engine:
        assert answer(engine) == expected


@needs_native
def test_ranks_start_from_what_as_many_ranks_have_saved(tmp_path: Path) -> None:
    packed, sharded = tmp_path / "packed", tmp_path / "sharded"
    options: dict[str, Any] = {"max_total_tokens": 2048, "cpu_threads": 1, "skip_tokenizer_init": True}
    with Engine(tp_size=2, **options) as engine:
        expected = answer(engine)
        engine.save_packed_state(str(packed))
        engine.save_sharded_state(str(sharded))
    assert {each.name for each in packed.glob("*.bin")} == {f"bough-packed-{rank}-of-2.bin" for rank in range(2)}
    with Engine(model_path=str(packed), tp_size=2, **options) as engine:
        assert engine.get_server_info()["load_format"] == "packed"
        assert answer(engine) == expected
        for path, load_format in ((bundled_model_path(), None), (sharded, "sharded_state"), (packed, "packed")):
            updated = engine.update_weights_from_disk(str(path), load_format)
            assert updated.success, updated.message
            assert answer(engine) == expected
    with Engine(model_path=str(sharded), load_format="sharded_state", tp_size=2, **options) as engine:
        assert answer(engine) == expected
    with pytest.raises(BoughError, match="for 2 ranks, and this is rank 0 of 1; pack") as refused:
        Engine(model_path=str(packed), **options)
    assert "\n" not in str(refused.value)
    with pytest.raises(BoughError, match="for 2 ranks") as refused:
        Engine(model_path=str(sharded), load_format="sharded_state", **options)
    assert "\n" not in str(refused.value)


@needs_native
@pytest.mark.slow
def test_ranks_with_experts_of_their_own_start_from_what_they_have_saved(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / "mixture", "Qwen3Moe", seed=3, num_hidden_layers=2, vocab_size=320).path
    packed, sharded, by_command = (tmp_path / name for name in ("packed", "sharded", "by-command"))
    ranks: dict[str, Any] = {"tp_size": 2, "ep_size": 2}
    options: dict[str, Any] = {"max_total_tokens": 2048, "cpu_threads": 1, "skip_tokenizer_init": True}
    with Engine(model_path=str(path), **options) as engine:
        expected = answer(engine)
    with Engine(model_path=str(path), **ranks, **options) as engine:
        assert answer(engine) == expected
        engine.save_packed_state(str(packed))
        engine.save_sharded_state(str(sharded))
    command = [sys.executable, "-m", "bough", "pack", str(path), str(by_command), "--skip-tokenizer-init"]
    command += ["--tp-size", "2", "--ep-size", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for state, load_format in ((packed, "packed"), (by_command, "packed"), (sharded, "sharded_state")):
        with Engine(model_path=str(state), load_format=load_format, **ranks, **options) as engine:
            assert answer(engine) == expected
    for load_format, state in (("packed", packed), ("sharded_state", sharded)):
        with pytest.raises(BoughError, match="divide") as refused:
            Engine(model_path=str(state), load_format=load_format, tp_size=2, **options)
        assert "\n" not in str(refused.value)
    with pytest.raises(BoughError, match="divide matrices by outputs"):
        Engine(model_path=str(sharded), load_format="sharded_state", dtype="float16", **ranks, **options)


@needs_native
def test_the_command_packs_what_servers_start_from(tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    command = [sys.executable, "-m", "bough", "pack", "sapling", str(packed), "--quantization", "int4"]
    done = subprocess.run([*command, "--log-level", "error"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "has files already" in again.stderr
    with Engine(model_path=str(packed), max_total_tokens=2048) as engine:
        assert engine.get_server_info()["quantization"] == "int4"
        quick = answer(engine)
    with Engine(quantization="int4", max_total_tokens=2048) as engine:
        assert answer(engine) == quick
    with pytest.raises(ConfigError, match="has int4"):
        Engine(model_path=str(packed), quantization="int8")


KILLED_WHILE_SAVING = """
import os, sys
from bough import Engine

with Engine(max_total_tokens=2048, tp_size=int(sys.argv[2])) as engine:
    print(os.getpid(), *engine.get_all_child_pids(), flush=True)
    engine.save_packed_state(sys.argv[1])
    print("saved", flush=True)
"""


@needs_native
@pytest.mark.parametrize(
    ("number", "ranks"),
    [(0, 1), (1, 1), pytest.param(2, 2, marks=pytest.mark.slow)],
    ids=["engine", "scheduler", "rank"],
)
def test_a_process_that_is_killed_while_it_saves_leaves_nothing_that_loads(
    tmp_path: Path, number: int, ranks: int
) -> None:
    path = tmp_path / "packed"
    command = [sys.executable, "-c", KILLED_WHILE_SAVING, str(path), str(ranks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as engine:
        assert engine.stdout is not None
        pids = [int(pid) for pid in engine.stdout.readline().split()]
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".packed.*.partial")):
            assert time.monotonic() < deadline
        os.kill(pids[number], signal.SIGKILL)
        assert "saved" not in engine.stdout.read()
    assert not path.exists()
    for partial in tmp_path.iterdir():
        assert not (partial / "config.json").exists()
        with pytest.raises(BoughError):
            Engine(model_path=str(partial), skip_tokenizer_init=True)


@needs_native
def test_a_manifest_describes_what_the_state_is_for(tmp_path: Path) -> None:
    with Engine(max_total_tokens=2048, quantization="int8", skip_tokenizer_init=True) as engine:
        engine.save_packed_state(str(tmp_path / "packed"))
    manifest = json.loads((tmp_path / "packed" / "bough-packed-0-of-1.json").read_text())
    told = {name: manifest[name] for name in ("quantization", "rank", "num_ranks", "instruction_set")}
    assert told == {"quantization": "int8", "rank": 0, "num_ranks": 1, "instruction_set": "any"}
    assert manifest["source"]["files"] == ["model.safetensors"]
