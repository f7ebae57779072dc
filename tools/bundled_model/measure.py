"""Measure the skills of a model on cases that training never used.

``python tools/bundled_model/measure.py --model DIRECTORY`` asks each case at temperature 0 and 0.7, with the model's
own top-p, and prints a table in Markdown; with ``--server URL`` it asks a running server instead, as any client would.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from documents import CALL, END_CALL, SPECIAL_TOKENS, Case, Turn
from network import Shape
from skills import SKILLS
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel
from write_model import write_model

LONGEST_ANSWER = 200
BATCH_SIZE = 64
SEED = 99
MOST_AT_ONCE = 16
TEMPERATURES = (0.0, 0.7)


@dataclass
class Score:
    """What the cases of a skill came to."""

    cases: int = 0
    right: int = 0

    @property
    def share(self) -> float:
        """The part that was right."""
        return round(self.right / self.cases, 3)


class Answering(Protocol):
    """Whatever answers."""

    def answer(self, cases: Sequence[Case], temperature: float, top_p: float | None = None) -> list[str]:
        """What the model says to each case, with its thoughts and calls; its own top-p unless another is given."""


class Answers:
    """Answers of a model in this process."""

    def __init__(self, model: PreTrainedModel, tokenizer: Tokenizer) -> None:
        self._model = model.eval()  # type: ignore[no-untyped-call]
        self._tokenizer = tokenizer
        self._pad = tokenizer.token_to_id(SPECIAL_TOKENS[0])
        self._ends = {self._pad, tokenizer.token_to_id(SPECIAL_TOKENS[2])}

    @classmethod
    def load(cls, directory: Path) -> Answers:
        """Those of a model directory."""
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        return cls(model, Tokenizer.from_file(str(directory / "tokenizer.json")))

    @classmethod
    @contextmanager
    def of(cls, parameters: dict[str, Tensor], shape: Shape, tokenizer: Tokenizer) -> Iterator[Answers]:
        """Those of parameters in training."""
        with tempfile.TemporaryDirectory() as directory:
            write_model(Path(directory), parameters, shape, tokenizer)
            yield cls.load(Path(directory))

    def answer(self, cases: Sequence[Case], temperature: float, top_p: float | None = None) -> list[str]:
        """One answer to each case, in batches of prompts of similar length."""
        prompts = [self._tokenizer.encode(case.prompt(), add_special_tokens=False).ids for case in cases]
        order = sorted(range(len(cases)), key=lambda place: len(prompts[place]))
        answers = [""] * len(cases)
        for begin in range(0, len(order), BATCH_SIZE):
            places = order[begin : begin + BATCH_SIZE]
            longest = len(prompts[places[-1]])
            ids = torch.tensor([[self._pad] * (longest - len(prompts[place])) + prompts[place] for place in places])
            mask = torch.tensor([[0] * (longest - len(prompts[place])) + [1] * len(prompts[place]) for place in places])
            sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None}
            if temperature:
                sampling = {"do_sample": True, "temperature": temperature, "top_k": 0}
                sampling |= {} if top_p is None else {"top_p": top_p}
                torch.manual_seed(SEED + begin)
            with torch.inference_mode():
                rows = self._model.generate(
                    input_ids=ids, attention_mask=mask, max_new_tokens=LONGEST_ANSWER, **sampling
                )
            for place, row in zip(places, rows[:, longest:].tolist(), strict=True):
                end = next((at for at, token in enumerate(row) if token in self._ends), len(row))
                answers[place] = self._tokenizer.decode(row[:end], skip_special_tokens=False)
        return answers


class ServedAnswers:
    """Answers of a server, over the chat API."""

    def __init__(self, url: str) -> None:
        from openai import OpenAI

        self._client = OpenAI(base_url=f"{url.rstrip('/')}/v1", api_key="none")
        self._model = self._client.models.list().data[0].id

    def answer(self, cases: Sequence[Case], temperature: float, top_p: float | None = None) -> list[str]:
        """One answer to each case, several at a time."""
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            return list(pool.map(lambda case: self._ask(case, temperature, top_p), cases))

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        thinking: bool,
        temperature: float,
        top_p: float | None = None,
    ) -> Any:
        """The message that the server answers to these, as its client gives it."""
        fields: dict[str, Any] = {"messages": messages}
        if tools:
            fields["tools"] = tools
        if top_p is not None:
            fields["top_p"] = top_p
        if thinking:
            fields["extra_body"] = {"chat_template_kwargs": {"enable_thinking": True}}
        answer = self._client.chat.completions.create(
            model=self._model, temperature=temperature, seed=SEED, max_tokens=LONGEST_ANSWER, **fields
        )
        return answer.choices[0].message

    def _ask(self, case: Case, temperature: float, top_p: float | None) -> str:
        tools = [tool.to_api() for tool in case.tools]
        message = self.complete(list(map(_message, case.turns)), tools, case.thinking, temperature, top_p)
        # As the model wrote it, so that one judge does for both: arguments may be no JSON.
        calls = [
            f'{CALL}\n{{"name": {json.dumps(call.function.name)}, "arguments": {call.function.arguments}}}\n{END_CALL}'
            for call in message.tool_calls or []
        ]
        thought = getattr(message, "reasoning_content", None)
        return (f"{thought}\n</think>\n\n" if thought else "") + (message.content or "") + "\n".join(calls)


def _message(turn: Turn) -> dict[str, Any]:
    message = turn.to_message()
    for number, call in enumerate(message.get("tool_calls", ())):
        call["id"] = f"call_{number}"
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    if turn.role == "tool":
        message["tool_call_id"] = "call_0"
    return message


def all_cases(count: int) -> list[Case]:
    """About ``count`` cases of each module of skills, the same ones every time."""
    cases: list[Case] = []
    for name, skill in SKILLS.items():
        # There are many kinds of conversations.
        wanted = count * 3 if name in ("conversation", "tools") else count
        cases += skill.cases(random.Random(f"{SEED} {name}"), wanted)
    return cases


def measure(
    model: Answering,
    count: int,
    temperature: float,
    failures: list[dict[str, object]] | None = None,
    top_p: float | None = None,
) -> dict[str, Score]:
    """Ask every case and count; wrong answers go to ``failures``. Without ``top_p`` the model's own is used."""
    cases = all_cases(count)
    scores: dict[str, Score] = defaultdict(Score)
    for case, answer in zip(cases, model.answer(cases, temperature, top_p), strict=True):
        right = case.is_right(answer)
        scores[case.skill].cases += 1
        scores[case.skill].right += right
        if failures is not None and not right:
            failures.append(
                {
                    "skill": case.skill,
                    "temperature": temperature,
                    "top_p": top_p,
                    "prompt": case.prompt(),
                    "answer": answer,
                }
            )
    return dict(sorted(scores.items()))


def write_failures(path: Path, failures: list[dict[str, object]]) -> None:
    """Write wrong answers, one JSON object per line."""
    lines = (json.dumps(failure, ensure_ascii=False) + "\n" for failure in failures)
    path.write_text("".join(lines), encoding="utf-8")


def table(columns: dict[str, dict[str, Score]], again: Collection[str] = ()) -> str:
    """Scores as a Markdown table, with a column for each way of asking; rows ``again`` count cases of other rows."""
    lines = [f"| skill | cases | {' | '.join(columns)} |", "|---|---:|" + "---:|" * len(columns)]
    first = next(iter(columns.values()))
    for skill in first:
        shares = (f"{100 * scores[skill].right / scores[skill].cases:.1f} %" for scores in columns.values())
        lines.append(f"| {skill} | {first[skill].cases} | {' | '.join(shares)} |")
    skills = first.keys() - set(again)
    cases = sum(first[skill].cases for skill in skills)
    totals = (100 * sum(scores[skill].right for skill in skills) / cases for scores in columns.values())
    lines.append(f"| **all** | {cases} | {' | '.join(f'{total:.1f} %' for total in totals)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure a model directory or a server and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="directory of the model")
    parser.add_argument("--server", help="address of a server instead, such as http://127.0.0.1:30000")
    parser.add_argument("--cases", type=int, default=200, help="about this many of each module of skills")
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument("--top-p", type=float, help="default: the model's own")
    parser.add_argument("--failures", type=Path, help="write the wrong answers to this file, one JSON object per line")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model: Answering = ServedAnswers(arguments.server) if arguments.server else Answers.load(arguments.model)
    failures: list[dict[str, object]] = []
    columns = {
        f"temperature {temperature:g}": measure(model, arguments.cases, temperature, failures, arguments.top_p)
        for temperature in arguments.temperatures
    }
    print(table(columns))
    if arguments.failures:
        write_failures(arguments.failures, failures)


if __name__ == "__main__":
    main()
