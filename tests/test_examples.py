"""The programs in examples/ run, and print what they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.minilm import minilm_path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def run(name: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *args], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_openai_client_gets_the_same_text_whole_and_streamed():
    lines = dict(line.split(": ", 1) for line in run("chat_with_openai_client.py").splitlines() if ": " in line)
    assert lines["answer"].strip()
    assert lines["stream"].strip() == lines["answer"].strip()


def test_a_stream_ends_with_its_reason():
    lines = run("streaming.py").splitlines()
    assert lines[0].startswith("The oak is")
    assert "'type':" in lines[-1]


def test_a_batch_answers_every_question():
    out = run("offline_batch.py")
    assert out.count("?") >= 4
    assert out.count("prompt tokens") == 4


@pytest.mark.parametrize("args", [(), (str(minilm_path()),)], ids=["bundled", "minilm"])
def test_a_search_ranks_all_sentences_and_the_answer_first(args):
    question, *ranked = run("semantic_search.py", *args).splitlines()
    assert question == "How do I plant a tree?"
    assert len(ranked) == 3
    assert "Dig a hole" in ranked[0]


def test_steps_advance_all_requests_and_an_aborted_one_ends():
    out = run("step_by_step.py")
    assert "first ->" in out
    assert "second ->" in out
    assert int(out.splitlines()[-1].removesuffix(" steps")) < 100


def test_every_example_is_listed_and_every_listed_one_exists():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"({path.name})" in listed
