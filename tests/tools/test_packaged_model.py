"""The model that the package has: whether it is the one that these programs make, and can what its card says."""

from __future__ import annotations

import json
import re
from typing import get_args

from documents import CHAT_TEMPLATE
from install import FILES, MOST_BYTES, PACKAGED, card
from measure import ServedAnswers, measure
from modes import MODES
from outside import measure as measure_outside
from tokenizers import Tokenizer
from tokens import tokenizer_config, with_twins

from bough import Runtime
from bough.config.engine_args import DType, KVCacheDType, Quantization

# Parts of the answers that are right, a tenth below those of the card: on few cases chance is large.
LEAST = {
    "arithmetic: sums and differences": 0.86,
    "arithmetic: products": 0.9,
    "JSON extraction": 0.88,
    "tool choice": 0.87,
    "no fitting tool": 0.87,
    "tool result": 0.9,
    "persona": 0.9,
    "facts": 0.88,
    "looking up": 0.73,
    "refusing": 0.87,
}


def test_it_is_small_and_of_the_tokens_and_the_template_of_its_programs() -> None:
    assert sum((PACKAGED / name).stat().st_size for name in FILES) <= MOST_BYTES
    tokenizer = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    assert with_twins(tokenizer).to_str() == tokenizer.to_str()
    config = json.loads((PACKAGED / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config == tokenizer_config()
    assert config["chat_template"] == CHAT_TEMPLATE


def tables() -> list[str]:
    """Those of its card: its skills, questions from outside, modes."""
    text = (PACKAGED / "README.md").read_text(encoding="utf-8")
    return [table.rstrip("\n") for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]


def test_its_card_is_that_of_its_programs() -> None:
    text = (PACKAGED / "README.md").read_text(encoding="utf-8")
    results, outside, modes = tables()
    assert card(PACKAGED, results, outside, modes) == text


def cells(table: str) -> list[list[str]]:
    """What stands in the rows of a table, without its head."""
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]


def test_what_it_is_for_is_right_in_95_of_100_cases() -> None:
    """At each temperature, and in each mode."""
    results, _, modes = tables()
    rows = [
        (skill, int(count), [float(share.rstrip(" %")) for share in shares]) for skill, count, *shares in cells(results)
    ]
    for group in ("arithmetic", "JSON extraction", "tool choice"):
        own = [(count, shares) for skill, count, shares in rows if skill.startswith(group)]
        cases = sum(count for count, _ in own)
        assert cases >= 200
        for column in range(3):
            assert sum(round(count * shares[column] / 100) for count, shares in own) >= 0.95 * cases, (group, column)
    in_modes = {mode: [float(share.rstrip(" %")) for share in shares] for mode, *shares in cells(modes)}
    assert in_modes.keys() == MODES.keys()
    assert {mode: shares for mode, shares in in_modes.items() if min(shares[:6]) < 95} == {}


def test_modes_are_those_that_a_cpu_has() -> None:
    chosen = {
        name: {options.get(name) for options in MODES.values()} for name in ("dtype", "quantization", "kv_cache_dtype")
    }
    assert chosen["dtype"] >= {*get_args(DType)} - {"auto", "bfloat16"}
    assert chosen["quantization"] >= {*get_args(Quantization)} - {"none", "fp8"}
    assert chosen["kv_cache_dtype"] >= {*get_args(KVCacheDType)} - {"auto", "bf16", "fp8_e4m3", "fp8_e5m2"}


def test_it_has_its_skills() -> None:
    failures: list[dict[str, object]] = []
    with Runtime() as runtime:
        found = measure(ServedAnswers(runtime.url), 24, 0.0, failures)
    short = {skill: found[skill].share for skill, least in LEAST.items() if found[skill].share < least}
    assert short == {}, failures
    thinking = [score for skill, score in found.items() if skill.endswith(", thinking")]
    assert sum(score.cases for score in thinking) >= 8
    assert sum(score.right for score in thinking) >= 0.8 * sum(score.cases for score in thinking)


def test_it_answers_questions_from_outside_as_its_card_says() -> None:
    _, outside, _ = tables()
    said = {
        skill: float(share)
        for skill, share in re.findall(r"^\| ([a-z ,]+) \| \d+ \| ([\d.]+) %", outside, re.MULTILINE)
    }
    with Runtime() as runtime:
        found = measure_outside(ServedAnswers(runtime.url), 0.0)
    assert found.keys() == said.keys()
    # Another processor rounds differently, which turns few answers.
    off = {skill: score.right - said[skill] / 100 * score.cases for skill, score in found.items()}
    assert all(abs(questions) <= 3 for questions in off.values()), off
