"""One request's tokens and logprobs in many surroundings, so that they can be compared bit by bit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class Case:
    """A request."""

    prompt: list[int]
    params: dict[str, Any]
    length: int
    """most tokens of its output"""
    logprobs: bool = True

    def without_logprobs(self) -> Case:
        return replace(self, logprobs=False)

    def add(self, engine: LLMEngine, name: str, *, prompt_logprobs: bool = True, **options: Any) -> None:
        params = {"ignore_eos": True, **self.params, "max_new_tokens": self.length}
        if self.logprobs:
            start = 0 if prompt_logprobs else -1
            options |= {"return_logprob": True, "logprob_start_len": start, "top_logprobs_num": 3}
            options["token_ids_logprob"] = [1, 7]
        engine.add_request(name, None, params, input_ids=self.prompt, **options)


@dataclass(frozen=True)
class Answer:
    """Of every sample; what is equal is equal in every bit."""

    tokens: list[list[int]]
    logprobs: list[Any]
    prompt_logprobs: Any

    @classmethod
    def of(cls, output: RequestOutput) -> Answer:
        assert all(each.finish_reason in ("length", "stop") for each in output.outputs)
        tokens, logprobs = (
            [each.token_ids for each in output.outputs],
            [_bits(each.logprobs) for each in output.outputs],
        )
        return cls(tokens, logprobs, _bits(output.prompt_logprobs))

    def of_output(self) -> Answer:
        """Without what is said of the prompt."""
        return replace(self, prompt_logprobs=None)


def _bits(entries: Sequence[PositionLogprobs] | None) -> Any:
    if entries is None:
        return None
    # Python's floats are equal if their bits are, but for NaN, which is nothing that may come, and zeros.
    return [(entry.logprob, entry.token_id, entry.top, entry.chosen) for entry in entries]


def run(engine: LLMEngine) -> dict[str, Answer]:
    """Work until nothing is left to do."""
    finished = {}
    while engine.has_unfinished_requests():
        finished |= {each.request_id: Answer.of(each) for each in engine.step() if each.finished}
    return finished


class Surroundings:
    """What else happens on an engine while a case is answered.

    Args:
        engine: an idle engine, with room for 40 requests.
        longest: tokens of the longest prompt of a neighbour.
        seed: of everything random here.
    """

    def __init__(self, engine: LLMEngine, *, longest: int = 700, seed: int = 0) -> None:
        self.engine = engine
        self.longest = longest
        self.rng = random.Random(seed)

    def alone(self, case: Case) -> Answer:
        """Nobody else, nothing cached."""
        case.add(self.engine, "case", cache_salt=self.salt())
        return run(self.engine)["case"]

    def among(self, case: Case, others: int) -> Answer:
        """A third of the others are there before; the rest keep coming."""
        for index in range(others // 3):
            self._neighbour().add(self.engine, f"before-{index}")
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
                self._neighbour().add(self.engine, f"later-{left}")
        assert answer is not None
        return answer

    def cached(self, case: Case, length: int) -> Answer:
        """The first ``length`` tokens of its prompt are known to the tree; says nothing of the prompt."""
        salt = self.salt()
        Case(case.prompt[:length], GREEDY, 1, logprobs=False).add(self.engine, "before", cache_salt=salt)
        run(self.engine)
        # Where logprobs of a prompt are wanted, all of it is computed.
        case.add(self.engine, "case", cache_salt=salt, prompt_logprobs=False)
        return run(self.engine)["case"]

    def crowd(self, case: Case, size: int) -> list[Answer]:
        """As many times at once."""
        for index in range(size):
            case.add(self.engine, f"{index}", cache_salt=self.salt())
        return list(run(self.engine).values())

    def ids(self, length: int) -> list[int]:
        """A random prompt."""
        vocab_size = self.engine.model_config.vocab_size
        return [self.rng.randrange(3, vocab_size) for _ in range(length)]

    def salt(self) -> str:
        """Whatever has it finds nothing in the tree."""
        return f"{self.rng.getrandbits(60)}"

    def _neighbour(self) -> Case:
        params = self.rng.choice((GREEDY, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}, PENALISED))
        length = self.rng.randint(1, self.rng.choice((40, self.longest)))
        return Case(self.ids(length), params, self.rng.randint(1, 30), logprobs=self.rng.random() < 0.3)


@contextmanager
def random_chunks(monkeypatch: pytest.MonkeyPatch, seed: int = 0) -> Iterator[None]:
    """Prompts are cut at random places."""
    rng = random.Random(seed)

    def budget_of_step(limits: Any, cost_model: Any, *args: Any, **options: Any) -> StepBudget:
        tokens = rng.randint(1, rng.choice((8, 64, 600)))
        return StepBudget(cost_model, float("inf"), tokens, tokens)

    with monkeypatch.context() as patch:
        patch.setattr(planner, "budget_of_step", budget_of_step)
        yield
