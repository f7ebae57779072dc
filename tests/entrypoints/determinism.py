"""One prompt's tokens and logprobs in many surroundings, for tests that compare them bit by bit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bough import LLMEngine
from bough.entrypoints.llm_engine import RequestOutput
from bough.ipc.messages import PositionLogprobs
from bough.scheduler import planner
from bough.scheduler.step_budget import StepBudget

GREEDY = {"temperature": 0.0}
SAMPLED = {"temperature": 1.3, "top_p": 0.97, "sampling_seed": 11}
PENALISED = {"temperature": 0.8, "frequency_penalty": 0.3, "repetition_penalty": 1.1, "sampling_seed": -5}


def bits(entries: Sequence[PositionLogprobs] | None) -> list[Any] | None:
    """Logprobs so that equal means equal in every bit."""

    def exact(value: float | None) -> str | None:
        return None if value is None else value.hex()

    def pairs(values: list[tuple[float, int]] | None) -> list[Any]:
        return [(exact(logprob), token) for logprob, token in values or ()]

    if entries is None:
        return None
    return [(exact(e.logprob), e.token_id, pairs(e.top), pairs(e.chosen)) for e in entries]


@dataclass(frozen=True)
class Case:
    """A request."""

    prompt: list[int]
    params: dict[str, Any]
    length: int
    logprobs: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def add(self, engine: LLMEngine, name: str, **options: Any) -> None:
        params = {"ignore_eos": True, **self.params, "max_new_tokens": self.length}
        if self.logprobs:
            options = {"return_logprob": True, "top_logprobs_num": 3, "token_ids_logprob": [1, 7], **options}
            options.setdefault("logprob_start_len", 0)
        engine.add_request(name, None, params, input_ids=self.prompt, **self.options, **options)


@dataclass(frozen=True)
class Answer:
    tokens: list[list[int]]
    logprobs: list[Any]
    prompt_logprobs: list[Any] | None

    @classmethod
    def of(cls, output: RequestOutput) -> Answer:
        assert all(each.error is None and each.finish_reason in ("length", "stop") for each in output.outputs)
        return cls(
            [each.token_ids for each in output.outputs],
            [bits(each.logprobs) for each in output.outputs],
            bits(output.prompt_logprobs),
        )


def run(engine: LLMEngine, wanted: str | None = None) -> dict[str, RequestOutput]:
    finished = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                finished[output.request_id] = output
    return finished


class Surroundings:
    """What else happens on an engine while a case is answered."""

    def __init__(self, engine: LLMEngine, vocab_size: int, longest: int, seed: int) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.vocab_size = vocab_size
        self.longest = longest

    def ids(self, length: int) -> list[int]:
        return [self.rng.randrange(3, self.vocab_size) for _ in range(length)]

    def neighbour(self) -> Case:
        params = self.rng.choice((GREEDY, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}, PENALISED))
        length = self.rng.choice((self.rng.randint(1, 40), self.rng.randint(1, self.longest)))
        return Case(self.ids(length), params, self.rng.randint(1, 30), logprobs=self.rng.random() < 0.3)

    def alone(self, case: Case) -> Answer:
        case.add(self.engine, "case", cache_salt=self.salt())
        return Answer.of(run(self.engine)["case"])

    def salt(self) -> str:
        return f"salt-{self.rng.getrandbits(60)}"

    def among(self, case: Case, others: int) -> Answer:
        """Others are there before, come with it, and go on coming."""
        for index in range(others // 3):
            self.neighbour().add(self.engine, f"before-{index}")
        for _ in range(self.rng.randrange(6)):
            self.engine.step()
        case.add(self.engine, "case", cache_salt=self.salt())
        left = others - others // 3
        answer = None
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                if output.finished and output.request_id == "case":
                    answer = Answer.of(output)
            if left and self.rng.random() < 0.7:
                left -= 1
                self.neighbour().add(self.engine, f"later-{left}")
        assert answer is not None
        return answer

    def cached(self, case: Case, length: int, output: Sequence[int] = ()) -> Answer:
        """With ``length`` tokens of prompt (and output of an earlier turn) known to the tree."""
        salt = self.salt()
        before = Case([*case.prompt, *output][:length], GREEDY, 1, logprobs=False)
        before.add(self.engine, "before", cache_salt=salt)
        run(self.engine)
        # Where logprobs of the prompt are wanted it is computed again.
        case.add(self.engine, "case", cache_salt=salt, **({"logprob_start_len": -1} if case.logprobs else {}))
        answer = run(self.engine)["case"]
        self.last_cached = answer.num_cached_tokens
        return Answer.of(answer)


@contextmanager
def random_chunks(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[None]:
    """Prompts are cut at random places."""
    rng = random.Random(seed)
    original = planner.budget_of_step

    def budget_of_step(*args: Any, **options: Any) -> StepBudget:
        budget = original(*args, **options)
        tokens = rng.choice((rng.randint(1, 8), rng.randint(1, 64), rng.randint(1, 600)))
        return StepBudget(budget._cost_model, float("inf"), tokens, max(tokens, 1))

    with monkeypatch.context() as patch:
        patch.setattr(planner, "budget_of_step", budget_of_step)
        yield


def outputs_only(answer: Answer) -> Answer:
    return Answer(answer.tokens, answer.logprobs, None)
