"""An engine sleeps between two phases of a program: memory goes back, requests are refused, answers stay the same."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import psutil
import pytest
from safetensors.torch import load_file

from bough import Engine, Runtime
from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest, Overloaded, RequestFailed
from tests.model_companions import write_other_checkpoint
from tests.native import needs_native

IDS = [300, 301, 302, 303, 304]
GREEDY = {"temperature": 0.0, "max_new_tokens": 24, "ignore_eos": True}
TOKENS = 40_000
"""Of the KV cache: most of the memory of so small a model."""


def answer(engine: Engine) -> Any:
    told = engine.generate(input_ids=IDS, sampling_params=GREEDY, return_logprob=True)
    return told["output_ids"], told["meta_info"]["output_token_logprobs"]


def memory_of(engine: Engine) -> int:
    """Bytes of the children, what they share counted once."""
    return sum(psutil.Process(pid).memory_full_info().pss for pid in engine.get_all_child_pids())


def given(engine: Engine, *names: str) -> int:
    """Bytes of the engine's weights, which replicas share, and KV caches."""
    info = engine.get_server_info()
    return sum(info[name] for name in names)


@needs_native
@pytest.mark.parametrize(("replicas", "ranks"), [(1, 1), (2, 1), (1, 2)])
def test_memory_goes_back_and_answers_stay_the_same(replicas: int, ranks: int) -> None:
    options = {"max_total_tokens": TOKENS, "skip_tokenizer_init": True, "cpu_threads": 1}
    with Engine(dp_size=replicas, tp_size=ranks, **options) as engine:
        expected = [answer(engine) for _ in range(replicas)]
        before = memory_of(engine)
        assert not engine.is_sleeping()
        for _ in range(2):
            engine.sleep(level=1)
            engine.sleep(level=1)
            assert engine.is_sleeping()
            assert before - memory_of(engine) >= 0.95 * given(engine, "kv_bytes", "weight_bytes")
            with pytest.raises(Overloaded, match="asleep"):
                engine.generate(input_ids=IDS, sampling_params=GREEDY)
            engine.wake_up(["weights"])
            assert engine.is_sleeping()
            engine.wake_up(["kv_cache"])
            assert not engine.is_sleeping()
            assert [answer(engine) for _ in range(replicas)] == expected
        engine.release_memory_occupation(["kv_cache"])
        assert before - memory_of(engine) >= 0.95 * given(engine, "kv_bytes")
        engine.resume_memory_occupation()
        assert [answer(engine) for _ in range(replicas)] == expected
        with pytest.raises(BadRequest, match="tags"):
            engine.release_memory_occupation(["everything"])
        with pytest.raises(BadRequest, match="level"):
            engine.sleep(level=3)


@needs_native
def test_fifty_cycles_leak_nothing() -> None:
    with Engine(max_total_tokens=20_000, skip_tokenizer_init=True) as engine:
        expected = answer(engine)
        sizes = []
        for _ in range(50):
            engine.sleep()
            engine.wake_up()
            sizes.append(memory_of(engine))
        assert answer(engine) == expected
        assert sizes[-1] - sizes[4] < 0.02 * sizes[4]


@needs_native
@pytest.mark.parametrize("division", [{}, {"dp_size": 2}, {"tp_size": 2}], ids=str)
def test_weights_that_come_between_two_tags_are_served(tmp_path: Path, division: dict[str, int]) -> None:
    other = write_other_checkpoint(tmp_path / "other")
    options = {"max_total_tokens": 4096, "skip_tokenizer_init": True, "cpu_threads": 1, **division}
    with Engine(model_path=str(other), **options) as engine:
        expected = answer(engine)
    with Engine(**options) as engine:
        assert answer(engine) != expected
        for give_back in (lambda: engine.sleep(level=2), engine.release_memory_occupation):
            give_back()
            with pytest.raises(BadRequest, match="asleep"):
                engine.get_weights_by_name("model.norm.weight")
            assert not engine.update_weights_from_disk(str(other)).success
            engine.wake_up(["weights"])
            tensors = list(load_file(other / "model.safetensors").items())
            half = len(tensors) // 2
            for part in (tensors[:half], tensors[half:]):
                updated = engine.update_weights_from_tensor(part)
                assert updated.success, updated.message
            engine.wake_up(["kv_cache"])
            engine.wake_up()
            assert answer(engine) == expected


@needs_native
def test_weights_that_were_discarded_are_waited_for() -> None:
    with Engine(max_total_tokens=4096, skip_tokenizer_init=True) as engine:
        expected = answer(engine)
        engine.sleep(level=2)
        engine.wake_up()
        with pytest.raises(Overloaded):
            answer(engine)
        assert engine.update_weights_from_disk(str(bundled_model_path())).success
        assert answer(engine) == expected


@needs_native
def test_what_a_trainer_has_sent_is_kept(tmp_path: Path) -> None:
    other = write_other_checkpoint(tmp_path / "other")
    tensors = list(load_file(other / "model.safetensors").items())
    for directory in (None, str(tmp_path / "asleep")):
        with Engine(max_total_tokens=4096, skip_tokenizer_init=True, sleep_directory=directory) as engine:
            assert engine.update_weights_from_tensor(tensors).success
            expected = answer(engine)
            for give_back in (engine.sleep, engine.sleep if directory is None else engine.release_memory_occupation):
                give_back()
                engine.wake_up()
                assert answer(engine) == expected


@needs_native
def test_an_engine_with_requests_sleeps_only_in_a_pause() -> None:
    with Engine(max_total_tokens=4096, skip_tokenizer_init=True) as engine:
        expected = answer(engine)
        slow = {**GREEDY, "max_new_tokens": 2000}
        stream = engine.generate(input_ids=IDS, sampling_params=slow, stream=True)
        first = next(stream)
        with pytest.raises(BadRequest, match="requests are running"):
            engine.sleep()
        engine.pause_generation("in_place")
        engine.sleep()
        engine.continue_generation()
        with pytest.raises(Overloaded):
            answer(engine)
        engine.wake_up()
        for told in stream:
            ids = told["output_ids"]
            assert ids[: len(first["output_ids"])] == first["output_ids"]
            if len(ids) >= len(expected[0]):
                assert ids[: len(expected[0])] == expected[0]
                break
        stream.close()
        assert answer(engine) == expected


@needs_native
@pytest.mark.parametrize("division", ["dp_size", "tp_size"])
def test_a_wake_that_fails_leaves_the_engine_asleep(tmp_path: Path, division: str) -> None:
    other = write_other_checkpoint(tmp_path / "other")
    options = {"max_total_tokens": 4096, "skip_tokenizer_init": True, "cpu_threads": 1, division: 2}
    with Engine(model_path=str(other), **options) as engine:
        expected = answer(engine)
        engine.sleep()
        (other / "model.safetensors").rename(tmp_path / "away")
        for _ in range(2):
            with pytest.raises((RequestFailed, BadRequest), match="cannot be had again"):
                engine.wake_up()
            assert engine.is_sleeping()
        (tmp_path / "away").rename(other / "model.safetensors")
        engine.wake_up()
        assert answer(engine) == expected


@needs_native
def test_a_server_that_sleeps_is_alive_and_not_ready() -> None:
    with Runtime(max_total_tokens=4096, skip_tokenizer_init=True) as runtime:
        endpoint = runtime.endpoint

        def ask() -> tuple[int, str | None, Any]:
            with endpoint.request("POST", "/generate", {"input_ids": IDS, "sampling_params": GREEDY}) as told:
                return told.status, told.getheader("Retry-After"), json.loads(told.read())

        def status(path: str) -> int:
            with endpoint.request("GET", path) as told:
                return told.status

        expected = ask()[2]["output_ids"]
        runtime.sleep(level=1)
        assert runtime.is_sleeping()
        assert (status("/health"), status("/ready"), status("/server_info")) == (200, 503, 200)
        code, retry_after, body = ask()
        assert (code, body["error"]["code"]) == (http.client.SERVICE_UNAVAILABLE, "asleep")
        assert int(retry_after or 0) >= 1
        assert endpoint.control("/wake_up?tags=weights&tags=cuda_graph", {})["asleep"] == ["kv_cache"]
        assert endpoint.control("/wake_up", {}) == {"success": True, "asleep": []}
        assert (status("/ready"), ask()[2]["output_ids"]) == (200, expected)
        runtime.release_memory_occupation(["weights"])
        assert endpoint.get("/is_sleeping") == {"is_sleeping": True}
        runtime.resume_memory_occupation(["weights"])
        assert ask()[2]["output_ids"] == expected
        assert endpoint.post("/release_memory_occupation", {"tags": ["all"]})[0] == http.client.BAD_REQUEST
        assert endpoint.post("/sleep?level=0", {})[0] == http.client.BAD_REQUEST
