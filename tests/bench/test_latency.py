"""How long a batch takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bough.cli import main


def test_every_batch_size_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "latency.json"
    flags = ["--batch-sizes", "1,3", "--input-len", "20", "--output-len", "5", "--repeats", "2", "--output-file"]
    assert main(["bench", "latency", *flags, str(output), "--log-level", "error"]) == 0
    batches = json.loads(output.read_text())["batches"]
    assert [batch["batch_size"] for batch in batches] == [1, 3]
    for batch in batches:
        assert 0 < batch["ttft_ms"] < batch["latency_ms"]
        # Medians of the parts are not exactly the parts of the median.
        assert batch["ttft_ms"] + 4 * batch["tpot_ms"] == pytest.approx(batch["latency_ms"], rel=0.5)
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_wrong_batch_size_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "latency", "--batch-sizes", "1,0"]) == 2
    assert "--batch-sizes must be numbers like 1,8,32" in capsys.readouterr().err
