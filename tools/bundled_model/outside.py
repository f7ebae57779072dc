"""Measure a model on questions from outside, which were written without sight of its training text.

``python tools/bundled_model/outside.py --server http://127.0.0.1:30000`` asks the questions of ``outside.jsonl``, which
are never changed and never trained on, and prints a table in Markdown. Beside the choice of a tool stands what a rule
without any model makes of it: the tool that shares the most words with the request.

A line of ``outside.jsonl`` has ``skill``, ``by`` (in the manner of which of twelve writers), ``messages``, and where
they are wanted ``tools`` and ``thinking``, all as clients of the OpenAI API send them, and ``expect``:

- ``number``: the last number of the answer.
- ``json``, or ``json_any`` of several: the answer is nothing but JSON of this value.
- ``call``: ``name`` and ``arguments`` of the only call. ``no_call``: there is none.
- ``contains_all``, ``contains_any``, ``contains_none``: parts of the answer.

Whether letters are capitals makes no difference, and neither does whether a number is written as a text.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from documents import holds
from measure import MOST_AT_ONCE, TEMPERATURES, Score, ServedAnswers, table, write_failures

QUESTIONS = Path(__file__).with_name("outside.jsonl")
# Of the same calls, those of the right tool, whatever its arguments.
NAMED = "tools, arguments aside"
# Words that tell nothing of what a request is about.
COMMON = {
    *("a", "an", "the", "and", "or", "at", "by", "for", "from", "in", "of", "on", "to", "with"),
    *("i", "it", "me", "my", "you", "am", "are", "be", "is", "can", "do", "have", "please", "what"),
}


@dataclass(frozen=True)
class Question:
    """What somebody asked, and what a right answer is."""

    skill: str
    messages: Sequence[Mapping[str, Any]]
    expect: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: bool = False
    by: str = ""


@dataclass(frozen=True)
class Answer:
    """What a model said: its text without thoughts, and name and arguments of its calls."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()


def questions() -> list[Question]:
    """All of them."""
    return [Question(**json.loads(line)) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]


def is_right(answer: Answer, expect: Mapping[str, Any]) -> bool:
    """Whether an answer is what was expected.

    Raises:
        ValueError: nothing known is expected.
    """
    if "call" in expect:
        return [plain(call) for call in answer.calls] == [plain(expect["call"])]
    if answer.calls:
        return False
    if "no_call" in expect:
        return True
    if "number" in expect:
        numbers = re.findall(r"-?\d+", answer.text)
        return bool(numbers) and int(numbers[-1]) == expect["number"]
    if "json" in expect or "json_any" in expect:
        try:
            found = plain(json.loads(answer.text))
        except ValueError:
            return False
        return any(found == plain(value) for value in expect.get("json_any", [expect.get("json")]))
    rules: dict[str, Callable[[Iterable[bool]], bool]]
    rules = {"contains_all": all, "contains_any": any, "contains_none": lambda found: not any(found)}
    if not expect or expect.keys() - rules.keys():
        raise ValueError(f"nothing known is expected: {expect}")
    text = answer.text.lower()
    return all(rules[rule](holds(text, part.lower()) for part in parts) for rule, parts in expect.items())


def plain(value: Any) -> str:
    """JSON of a value without what makes no difference."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value.casefold()
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def ask(model: ServedAnswers, question: Question, temperature: float) -> Answer:
    """The answer of a server."""
    message = model.complete(question.messages, question.tools, question.thinking, temperature)
    return Answer(message.content or "", [_called(call.to_dict()) for call in message.tool_calls or []])


def _called(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name and arguments of a call, the latter as the model wrote them where they are no JSON."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    try:
        return {"name": name, "arguments": json.loads(arguments)}
    except ValueError:
        return {"name": name, "arguments": arguments}


def measure(
    model: ServedAnswers, temperature: float, failures: list[dict[str, object]] | None = None
) -> dict[str, Score]:
    """Ask everything and count; wrong answers go to ``failures``."""
    asked = questions()
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        answers = list(pool.map(lambda question: ask(model, question, temperature), asked))
    right = [is_right(answer, question.expect) for answer, question in zip(answers, asked, strict=True)]
    if failures is not None:
        failures += [
            {"temperature": temperature, "question": vars(question), "answer": vars(answer)}
            for question, answer, good in zip(asked, answers, right, strict=True)
            if not good
        ]
    named = [
        bool(answer.calls) and answer.calls[0]["name"] == question.expect["call"]["name"]
        for answer, question in zip(answers, asked, strict=True)
        if "call" in question.expect
    ]
    return counted(asked, right) | {NAMED: Score(len(named), sum(named))}


def by_words() -> Score:
    """How often the tool that shares the most words with a request is the one that fits."""
    asked = [question for question in questions() if "call" in question.expect]
    return Score(len(asked), sum(chosen_by_words(question) == question.expect["call"]["name"] for question in asked))


def chosen_by_words(question: Question) -> str:
    """The tool whose name and description share the most words with the last message."""
    wanted = _words(question.messages[-1]["content"])

    def shared(function: Mapping[str, Any]) -> int:
        return len(wanted & _words(f"{function['name'].replace('_', ' ')} {function.get('description', '')}"))

    return str(max((tool["function"] for tool in question.tools), key=shared)["name"])


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower())} - COMMON


def counted(asked: Iterable[Question], right: Iterable[bool]) -> dict[str, Score]:
    """The scores of each skill."""
    scores: dict[str, Score] = defaultdict(Score)
    for question, good in zip(asked, right, strict=True):
        scores[question.skill].cases += 1
        scores[question.skill].right += good
    return dict(sorted(scores.items()))


def main() -> None:
    """Measure a server and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="http://127.0.0.1:30000", help="its address")
    parser.add_argument("--failures", type=Path, help="write the wrong answers to this file, one JSON object per line")
    arguments = parser.parse_args()
    failures: list[dict[str, object]] = []
    model = ServedAnswers(arguments.server)
    columns = {f"temperature {t:g}": measure(model, t, failures) for t in TEMPERATURES}
    print(table(columns, [NAMED]))
    words = by_words()
    print(f"\nThe tool that shares the most words with the request is the right one in {words.right} of {words.cases}.")
    if arguments.failures:
        write_failures(arguments.failures, failures)


if __name__ == "__main__":
    main()
