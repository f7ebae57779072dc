"""Throughput of the engine alone."""

from __future__ import annotations

import io
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from bough.bench.datasets import BenchRequest
from bough.bench.offline import counting, run_offline
from bough.cli import main
from bough.errors import ConfigError, RequestFailed
from bough.observability.progress import Progress

IDS = BenchRequest(2, input_ids=[1, 2, 3])
TEXT = BenchRequest(2, text="a")
MESSAGES = BenchRequest(2, messages=[{"role": "user", "content": "b"}])


class RecordingEngine:
    """Remembers the prompts that it was asked for."""

    def __init__(self) -> None:
        self.prompts: list[Any] = []
        self.finish_reason: dict[str, Any] = {"type": "length", "length": 2}

    def flush_cache(self) -> None:
        self.prompts.clear()

    def generate(self, prompt: Any = None, sampling_params: Any = None, *, input_ids: Any = None) -> list[Any]:
        self.prompts += prompt or input_ids
        meta = {"prompt_tokens": 3, "cached_tokens": 0, "completion_tokens": 2, "finish_reason": self.finish_reason}
        return [{"meta_info": meta} for _ in sampling_params]


def test_ids_are_asked_for_as_they_are_and_the_rest_as_text() -> None:
    for requests, prompts in [([IDS, IDS], [[1, 2, 3]] * 2), ([TEXT, MESSAGES], ["a", "b"])]:
        engine: Any = RecordingEngine()
        assert run_offline(engine, requests, warm_up=True)["total_output_tokens"] == 4
        assert engine.prompts == prompts


def test_nothing_is_told_of_answers_that_were_broken_off():
    engine: Any = RecordingEngine()
    engine.finish_reason = {"type": "abort", "message": "the request has timed out"}
    with pytest.raises(RequestFailed, match="the request has timed out"):
        run_offline(engine, [IDS, IDS], warm_up=False)


def test_prompts_that_are_too_long_are_told_with_their_flag(capsys):
    flags = ["--num-prompts", "1", "--random-input-len", "70", "--random-range-ratio", "1", "--context-length", "64"]
    assert main(["bench", "offline", *flags, "--log-level", "error"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "Measuring 1 request (--num-prompts says how many)\n"
    assert "--random-input-len 70: This model's maximum context length is 64 tokens" in captured.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_answers_are_counted_while_they_are_waited_for(monkeypatch):
    seen = threading.Event()

    class WatchedProgress(Progress):
        def advance(self, amount: int, *, failed: int = 0) -> None:
            super().advance(amount, failed=failed)
            if self.done == 2:
                seen.set()

    monkeypatch.setattr(sys, "stderr", Terminal())
    metrics = SimpleNamespace(requests=SimpleNamespace(num_requests=5))
    engine: Any = SimpleNamespace(tokenizer_manager=SimpleNamespace(metrics=metrics))
    with WatchedProgress("Measuring", 3, unit="requests", elsewhere="nothing") as progress:
        with counting(engine, progress):
            metrics.requests.num_requests = 7
            assert seen.wait(60)
            metrics.requests.num_requests = 8
        assert progress.done == 3


def test_nothing_looks_at_the_engine_where_there_is_no_bar():
    engine: Any = SimpleNamespace()  # there is nothing to look at
    progress = Progress("Measuring", 3, unit="requests", elsewhere="nothing")
    with progress, counting(engine, progress):
        assert "bough-progress" not in [thread.name for thread in threading.enumerate()]


def test_ids_beside_text_are_refused() -> None:
    for other in [TEXT, MESSAGES]:
        engine: Any = RecordingEngine()
        with pytest.raises(ConfigError, match="must have input_ids in all of its lines or in none") as caught:
            run_offline(engine, [IDS, other], warm_up=True)
        assert caught.value.param == "dataset_path"
        assert engine.prompts == []
