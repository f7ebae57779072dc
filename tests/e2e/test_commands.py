"""The commands of the first ten minutes, as they are typed, on the bundled model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = "<|im_start|>user\nWhat is 12 + 5?<|im_end|>\n<|im_start|>assistant\n"


def bough(*arguments: str, typed: str = "") -> str:
    """What a command prints that gets this as its input."""
    command = [sys.executable, "-m", "bough", *arguments, "--log-level", "error"]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_chat_starts_a_server_of_its_own() -> None:
    typed = "What is 12 + 5?\nWhy do leaves fall in autumn?\n"
    answers = bough("chat", "--thinking", "on", "--temperature", "0", typed=typed)
    assert answers.count("17") == 1, "the answer, without the thoughts before it"
    assert "leaves" in answers


def test_a_text_is_generated_from_the_input() -> None:
    assert "17" in bough("generate", "--stream", "--temperature", "0", "--max-new-tokens", "20", typed=ASKED + "\n")


@pytest.mark.slow
def test_the_engine_is_measured_alone(tmp_path: Path) -> None:
    lengths = (
        "--random-input-len",
        "30",
        "--random-output-len",
        "7",
        "--random-range-ratio",
        "1",
        "--num-prompts",
        "5",
    )
    table = bough("bench", "offline", *lengths, "--model", "sapling", "--output-file", str(tmp_path / "offline.json"))
    figures = json.loads((tmp_path / "offline.json").read_text(encoding="utf-8"))
    assert (figures["completed"], figures["total_input_tokens"], figures["total_output_tokens"]) == (5, 150, 35)
    assert figures["model"] == "sapling"
    assert figures["output_throughput"] * figures["duration"] == pytest.approx(figures["total_output_tokens"])
    assert f"{figures['output_throughput']:,.0f}" in table or f"{figures['output_throughput']:,.1f}" in table
