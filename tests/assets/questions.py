"""Questions for the bundled model, and the judging of its answers.

``like_training.jsonl`` is a sample of the cases that the programs of the model keep out of its training;
``outside.jsonl`` was written without sight of its training text. A line has ``skill``, ``messages``, and where they are
wanted ``tools`` and ``thinking``, as clients of the OpenAI API send them, and ``expect``:

- ``number``: the last number of the answer.
- ``json``, or ``json_any`` of several: the answer is nothing but JSON of this value.
- ``call``: ``name`` and ``arguments`` of the only call. ``no_call``: there is none.
- ``contains_all``, ``contains_any``, ``contains_none``: parts of the answer; ``begins``, ``ends``: its ends.
- ``exactly``: the answer.

Letter case makes no difference, nor does a number written as a text.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import OpenAI

QUESTIONS = Path(__file__).parents[1] / "data" / "sapling"


@dataclass(frozen=True)
class Question:
    skill: str
    messages: Sequence[Mapping[str, Any]]
    expect: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]] = ()
    thinking: bool = False
    by: str = ""


@dataclass(frozen=True)
class Answer:
    """Text without thoughts, name and arguments of the calls, and the thoughts."""

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    thought: str = ""


@dataclass
class Score:
    cases: int = 0
    right: int = 0
    named: int = 0
    """Answers whose first call is of the expected tool, whatever its arguments."""

    @property
    def share(self) -> float:
        return self.right / self.cases


def questions(name: str) -> list[Question]:
    lines = (QUESTIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


def measure(url: str, asked: Sequence[Question], *, must_think: bool = False) -> tuple[dict[str, Score], list[Any]]:
    """Scores of each skill at temperature 0, and the wrong answers with their questions."""
    client = OpenAI(base_url=f"{url.rstrip('/')}/v1", api_key="none")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda question: ask(client, question), asked))
    scores: dict[str, Score] = defaultdict(Score)
    failures = []
    for question, answer in zip(asked, answers, strict=True):
        right = is_right(answer, question.expect) and (not must_think or bool(answer.thought) or not question.thinking)
        score = scores[question.skill]
        score.cases += 1
        score.right += right
        score.named += bool(answer.calls) and answer.calls[0]["name"] == question.expect.get("call", {}).get("name")
        if not right:
            failures.append((question, answer))
    return dict(scores), failures


def ask(client: OpenAI, question: Question) -> Answer:
    fields: dict[str, Any] = {"tools": question.tools} if question.tools else {}
    if question.thinking:
        fields["extra_body"] = {"chat_template_kwargs": {"enable_thinking": True}}
    answer = client.chat.completions.create(
        model="sapling", messages=question.messages, temperature=0.0, seed=99, max_tokens=200, **fields
    )
    message = answer.choices[0].message
    calls = [called(call.function.name, call.function.arguments) for call in message.tool_calls or []]
    return Answer(message.content or "", calls, getattr(message, "reasoning_content", None) or "")


def called(name: str, arguments: str) -> Mapping[str, Any]:
    """Name and arguments of a call, the latter as the model wrote them where they are no JSON."""
    try:
        return {"name": name, "arguments": json.loads(arguments)}
    except ValueError:
        return {"name": name, "arguments": arguments}


def is_right(answer: Answer, expect: Mapping[str, Any]) -> bool:
    if "call" in expect:
        return [plain(call) for call in answer.calls] == [plain(expect["call"])]
    if answer.calls:
        return False
    if "no_call" in expect:
        return True
    if "number" in expect:
        numbers = re.findall(r"-?\d+", answer.text)
        return bool(numbers) and int(numbers[-1]) == expect["number"]
    if "exactly" in expect:
        return answer.text.strip() == expect["exactly"]
    if "json" in expect or "json_any" in expect:
        try:
            found = plain(json.loads(answer.text))
        except ValueError:
            return False
        return any(found == plain(value) for value in expect.get("json_any", [expect.get("json")]))
    text = answer.text.strip().lower()
    rules = {
        "contains_all": lambda parts: all(holds(text, part) for part in parts),
        "contains_any": lambda parts: any(holds(text, part) for part in parts),
        "contains_none": lambda parts: not any(holds(text, part) for part in parts),
        "begins": lambda part: text.startswith(part.lower()),
        "ends": lambda part: text.endswith(part.lower()),
    }
    if not expect or expect.keys() - rules.keys():
        raise ValueError(f"unknown expectation: {expect}")
    return all(rules[rule](value) for rule, value in expect.items())


def holds(text: str, part: str) -> bool:
    """Tell if a lowered text has a part, which must be a whole number where it is one."""
    part = part.lower()
    return bool(re.search(rf"(?<!\d){re.escape(part)}(?!\d)" if part.isdigit() else re.escape(part), text))


def plain(value: Any) -> str:
    """JSON of a value without the differences that do not count."""
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
