"""A server whose model is computed by two ranks; what becomes of it when one dies or hangs is in the fault matrix."""

from __future__ import annotations

import concurrent.futures
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bough.config.engine_args import bundled_model_path
from bough.entrypoints.engine import Engine
from bough.errors import ConfigError
from tests.e2e.server import MAX_TOTAL_TOKENS, Server, running_server
from tests.in_process import output_of

FLAGS = ("--tp-size=2", "--dtype=float32", "--cpu-threads=1", "--watchdog-timeout=3")
PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"
GREEDY: dict[str, Any] = {"temperature": 0, "max_new_tokens": 24}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server"), *FLAGS) as running:
        yield running
        running.assert_idle_and_whole()


def follower_of(server: Server) -> psutil.Process:
    """The process of the second rank, which is started after the first."""
    schedulers = [each for each in server.processes() if "bough.scheduler.process" in each.cmdline()]
    assert len(schedulers) == 2
    return max(schedulers, key=lambda each: each.create_time())


def test_answers_are_those_of_one_process(server: Server) -> None:
    wanted = output_of(PROMPT, GREEDY, dtype="float32")
    answer = server.generate(text=PROMPT, sampling_params=GREEDY, return_logprob=True)
    assert answer["text"] == wanted.text
    assert wanted.logprobs is not None
    logprobs = [entry[0] for entry in answer["meta_info"]["output_token_logprobs"]]
    assert logprobs == pytest.approx([entry.logprob for entry in wanted.logprobs], abs=1e-3)


def test_requests_of_all_kinds_run_beside_each_other(server: Server) -> None:
    kinds: list[dict[str, Any]] = [
        {"sampling_params": {"temperature": 0.8, "max_new_tokens": 20, "n": 3}},
        {"sampling_params": {"regex": "[a-z]{5} [0-9]{3}", "max_new_tokens": 20}},
        {"sampling_params": {**GREEDY, "frequency_penalty": 1.0}, "return_logprob": True, "logprob_start_len": 0},
        {"sampling_params": {**GREEDY, "stop": ["oak"]}},
    ] * 4
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as clients:
        answers = list(clients.map(lambda kind: server.generate(text=PROMPT, **kind), kinds))
    assert answers[2]["text"] == answers[6]["text"]
    assert all(len(each["text"]) == 9 for each in answers[1::4])
    assert server.post("/flush_cache").status_code == 200
    after = server.generate(text=PROMPT, sampling_params=GREEDY)
    assert after["text"] == output_of(PROMPT, GREEDY, dtype="float32").text


def test_an_idle_follower_sleeps(server: Server) -> None:
    server.assert_idle_and_whole()
    tasks, window = Path(f"/proc/{follower_of(server).pid}/task"), 4.0

    def waits_and_seconds() -> tuple[int, float]:
        """Of all threads so far: how often they have waited, and their processor time (proc(5))."""
        switches = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.M)
        found = [switches.search(each.read_text()) for each in tasks.glob("*/status")]
        times = [int(each.read_text().split()[0]) for each in tasks.glob("*/schedstat")]
        return sum(int(each[1]) for each in found if each), sum(times) / 1e9

    waits, seconds = waits_and_seconds()
    time.sleep(window)
    later_waits, later_seconds = waits_and_seconds()
    # Heartbeats are some a second; torch's collectives would be a hundred.
    assert 0 < later_waits - waits < 10 * window
    assert later_seconds - seconds < 0.05 * window, "it does not spin"


@pytest.mark.slow
def test_vectors_are_those_of_one_process() -> None:
    texts, options = ["The oak is a large tree.", "ok"], {"is_embedding": True, "dtype": "float32", "device": "cpu"}
    vectors = []
    for size in (1, 2):
        with Engine(tp_size=size, max_total_tokens=MAX_TOTAL_TOKENS, **options) as engine:
            vectors.append([each["embedding"] for each in engine.encode(texts)])
    assert np.abs(np.array(vectors[0]) - np.array(vectors[1])).max() < 1e-4


@pytest.mark.slow
def test_replicas_may_have_ranks(tmp_path: Path) -> None:
    with running_server(tmp_path, *FLAGS, "--dp-size=2", "--load-balance-method=round_robin") as server:
        wanted = output_of(PROMPT, GREEDY, dtype="float32").text
        answers = [server.generate(text=PROMPT, sampling_params=GREEDY) for _ in range(4)]
        assert [answer["text"] for answer in answers] == [wanted] * 4
        assert {answer["meta_info"]["dp_rank"] for answer in answers} == {0, 1}
        done = server.post("/update_weights_from_disk", model_path=str(bundled_model_path())).json()
        assert done["success"], done
        assert server.generate(text=PROMPT, sampling_params=GREEDY)["text"] == wanted


def test_what_ranks_cannot_share_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--tp-size 9 cannot divide .*; it can be 1, 2, 3, 4, 5, 6, 7, 8$"):
        Engine(tp_size=9, device="cpu")
