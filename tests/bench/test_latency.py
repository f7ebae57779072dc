"""How long a batch takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bough.bench import latency
from bough.bench.latency import BenchLatencyArgs, latency_table, measure_batch, run_latency
from bough.cli import main


class ScriptedEngine:
    """Says at which second which output has how many tokens."""

    def __init__(self, events: list[tuple[float, int, int]]) -> None:
        self.events = events
        self.now = 0.0
        self.batches: list[int] = []

    def perf_counter(self) -> float:
        return self.now

    def flush_cache(self) -> None:
        self.now = 0.0

    def generate(self, *, input_ids: list[list[int]], **_options: Any) -> Iterator[dict[str, Any]]:
        self.batches.append(len(input_ids))
        for self.now, index, tokens in self.events:
            if index < len(input_ids):
                yield {"index": index, "meta_info": {"completion_tokens": tokens}}


def scripted(monkeypatch: pytest.MonkeyPatch, events: list[tuple[float, int, int]]) -> Any:
    engine = ScriptedEngine(events)
    monkeypatch.setattr(latency, "time", SimpleNamespace(perf_counter=engine.perf_counter))
    return engine


def test_throughput_counts_what_comes_after_the_last_first_token(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first output has three of its tokens when the second begins.
    engine = scripted(monkeypatch, [(1.0, 0, 1), (2.0, 0, 3), (4.0, 1, 1), (5.0, 0, 4), (6.0, 1, 4)])
    assert measure_batch(engine, [[1], [2]], 4) == {
        "ttft_ms": 4e3,
        "tpot_ms": pytest.approx(2e3 / 3),
        "latency_ms": 6e3,
        "decode_throughput": 2.0,
        "output_throughput": pytest.approx(8 / 6),
    }


def test_tokens_that_come_together_make_no_token_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = scripted(monkeypatch, [(1.0, 0, 3), (2.0, 0, 4)])
    assert measure_batch(engine, [[1]], 4)["tpot_ms"] == pytest.approx(1e3)
    engine = scripted(monkeypatch, [(1.0, 0, 4)])
    figures = measure_batch(engine, [[1]], 4)
    assert (figures["tpot_ms"], figures["decode_throughput"], figures["output_throughput"]) == (None, None, 4.0)
    row = run_latency(engine, BenchLatencyArgs(batch_sizes="1", input_len=3, output_len=4), 100)
    assert row[0]["tpot_ms"] is None
    assert latency_table(row).splitlines()[1].split() == ["1", "1000.0", "-", "1000.0", "-", "4.0"]


def test_one_batch_before_the_measured_ones_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = scripted(monkeypatch, [(time, index, time) for time in (1, 2) for index in range(4)])
    args = BenchLatencyArgs(batch_sizes="2,4", input_len=3, output_len=2, repeats=3)
    assert [each["batch_size"] for each in run_latency(engine, args, 100)] == [2, 4]
    assert engine.batches == [2, 2, 2, 2, 4, 4, 4, 4]


def test_outputs_that_the_context_cuts_short_are_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--batch-sizes", "2", "--input-len", "50", "--output-len", "30", "--context-length", "64"]
    assert main(["bench", "latency", *flags, "--log-level", "error"]) == 2
    message = capsys.readouterr().err
    assert all(part in message for part in ("--input-len 50", "--output-len 30", "context of 64 tokens"))


def test_prompts_that_are_too_long_are_told_with_their_flag(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--batch-sizes", "1", "--input-len", "70", "--context-length", "64"]
    assert main(["bench", "latency", *flags, "--log-level", "error"]) == 2
    assert "--input-len 70: This model's maximum context length is 64 tokens" in capsys.readouterr().err


def test_every_batch_size_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "latency.json"
    flags = ["--batch-sizes", "1,3", "--input-len", "20", "--output-len", "5", "--repeats", "2", "--output-file"]
    assert main(["bench", "latency", *flags, str(output), "--log-level", "error"]) == 0
    result = json.loads(output.read_text())
    assert result["model"] == "sapling"
    batches = result["batches"]
    assert [batch["batch_size"] for batch in batches] == [1, 3]
    for batch in batches:
        assert 0 < batch["ttft_ms"] < batch["latency_ms"]
        assert batch["output_throughput"] > 0
        assert batch["decode_throughput"] > 0
        # The median of two is their mean, so that the parts add up.
        assert batch["ttft_ms"] + 4 * batch["tpot_ms"] == pytest.approx(batch["latency_ms"])
    captured = capsys.readouterr()
    head, *rows = captured.out.split("\n\n")[0].splitlines()
    assert "decode, tokens/s  output, tokens/s" in head
    assert len(rows) == 2
    assert captured.err == ""


@pytest.mark.parametrize(
    ("sizes", "message"), [("1,0", "must be numbers like 1,8,32"), ("8,1,08", "must be different")]
)
def test_a_wrong_batch_size_is_named(capsys: pytest.CaptureFixture[str], sizes: str, message: str) -> None:
    assert main(["bench", "latency", "--batch-sizes", sizes]) == 2
    assert f"--batch-sizes {message}" in capsys.readouterr().err
