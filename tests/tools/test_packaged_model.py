"""The model that the package has: whether it is the one that these programs make, and can what its card says."""

from __future__ import annotations

import json
import re

from documents import CHAT_TEMPLATE
from install import FILES, MOST_BYTES, PACKAGED, card
from measure import ServedAnswers, measure
from outside import measure as measure_outside
from tokenizers import Tokenizer
from tokens import tokenizer_config, with_twins

from bough import Runtime

# Parts of the answers that are right, a tenth below those of the card: on few cases chance is large.
LEAST = {
    "arithmetic: sums and differences": 0.88,
    "arithmetic: products": 0.9,
    "JSON extraction": 0.89,
    "tool choice": 0.89,
    "no fitting tool": 0.81,
    "tool result": 0.9,
    "persona": 0.9,
    "facts": 0.85,
    "looking up": 0.8,
    "refusing": 0.87,
}


def test_it_is_small_and_of_the_tokens_and_the_template_of_its_programs() -> None:
    assert sum((PACKAGED / name).stat().st_size for name in FILES) <= MOST_BYTES
    tokenizer = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    assert with_twins(tokenizer).to_str() == tokenizer.to_str()
    config = json.loads((PACKAGED / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config == tokenizer_config()
    assert config["chat_template"] == CHAT_TEMPLATE


def test_its_card_is_that_of_its_programs() -> None:
    text = (PACKAGED / "README.md").read_text(encoding="utf-8")
    results, outside, modes = (table.rstrip("\n") for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE))
    assert card(PACKAGED, results, outside, modes) == text


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
    card_text = (PACKAGED / "README.md").read_text(encoding="utf-8")
    _, outside, _ = re.findall(r"(?:^\|.*\n)+", card_text, re.MULTILINE)
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
