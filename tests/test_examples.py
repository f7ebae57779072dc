"""The programs in examples/ run, and print what they promise."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import textwrap
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


@pytest.mark.slow
def test_a_stream_ends_with_its_reason():
    lines = run("streaming.py").splitlines()
    assert lines[0].startswith("The oak is")
    assert "'type':" in lines[-1]


@pytest.mark.slow
def test_a_batch_answers_every_question():
    out = run("offline_batch.py")
    assert out.count("?") >= 4
    assert out.count("prompt tokens") == 4


def test_a_search_finds_the_sentence_that_answers_the_question():
    question, *ranked = run("semantic_search.py", str(minilm_path())).splitlines()
    assert question == "How do I plant a tree?"
    closeness = [float(line.split()[0]) for line in ranked]
    assert len(closeness) == 3
    assert closeness == sorted(closeness, reverse=True)
    assert "Dig a hole" in ranked[0]


@pytest.mark.slow
def test_the_reward_of_reinforcement_learning_rises():
    lines = run("reinforce.py", "--rounds", "3", "--group-size", "6", "--kl", "0.01").splitlines()
    rewards = [float(re.match(r"round \d+: reward ([\d.]+),", line)[1]) for line in lines[:-1]]
    assert len(rewards) == 4
    assert rewards[-1] > rewards[0] + 0.05


@pytest.mark.slow
def test_steps_advance_all_requests_and_an_aborted_one_ends():
    out = run("step_by_step.py")
    assert "first ->" in out
    assert "second ->" in out
    assert int(out.splitlines()[-1].removesuffix(" steps")) < 100


@pytest.mark.slow
def test_structured_answers_are_of_the_schema():
    lines = run("structured_output.py").splitlines()
    answers = [ast.literal_eval(line.partition("? ")[2]) for line in lines]
    assert len(answers) == 3
    assert all(answer["tree"] in ("oak", "birch", "pine", "other") for answer in answers)
    assert all(1 <= answer["height_in_metres"] <= 130 for answer in answers)


def test_the_model_calls_the_functions_that_it_needs():
    oak, weather, who = (part.splitlines() for part in run("tools.py").split("question: ")[1:])
    assert oak[1] == """call: tree_height({"tree": "oak"}) = {'metres': 30}"""
    assert "30" in oak[2].removeprefix("answer: ")
    assert weather[1] == """call: get_weather({"city": "Lisbon"}) = {'sky': 'sunny', 'temperature': 6}"""
    assert "sunny" in weather[2].removeprefix("answer: ")
    assert who[1].startswith("answer: ")
    assert "Sapling" in who[1]


@pytest.mark.slow
def test_a_benchmark_prints_what_batches_and_shared_prefixes_gain():
    lines = run("benchmark.py").splitlines()
    rates = [
        float(re.fullmatch(r"batch of +(\d+): +([\d,]+) tokens/s", line)[2].replace(",", "")) for line in lines[:3]
    ]
    assert all(rate > 0 for rate in rates)
    assert re.fullmatch(
        r"prefix of 512 tokens: first token after [\d.]+ ms, again after [\d.]+ ms, 512 reused", lines[3]
    )


def test_the_cells_of_the_notebook_run():
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    # Notebooks run their cells in a loop, so that `await` may stand anywhere.
    program = "import asyncio\nasync def run():\n" + textwrap.indent("\n".join(code), "    ") + "\nasyncio.run(run())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    reused = [int(line.split(" of ")[0]) for line in done.stdout.splitlines() if line.endswith("tokens reused")]
    assert reused[0] == 0
    assert reused[1] >= 16


def test_every_example_is_listed_and_every_listed_one_exists():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for path in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")):
        assert f"({path.name})" in listed
