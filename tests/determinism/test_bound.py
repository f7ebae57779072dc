"""Torch on a CPU: by how much the surroundings of a request may change its logprobs, and when its tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from bough import LLMEngine
from bough.model_executor import execution_choice
from tests.determinism.surroundings import GREEDY, Answer, Case, Surroundings, random_chunks
from tests.determinism.test_bit_identical import SHAPES, SIZES, engine_with
from tests.models.checkpoints import save_checkpoint

FACTORS = {"float32": 8, "bfloat16": 1, "float16": 1}
"""Of the bound, by type. Where sums are more precise than results, rounding hides most of their differences. The
largest that were seen are 2.7, 0.3 and 0.5."""

DEEP = {"hidden_size": 128, "num_hidden_layers": 24, "vocab_size": 700}


@pytest.fixture
def torch_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines that the native kernels are not built for."""
    monkeypatch.setattr(execution_choice, "native_threads", lambda *_: None)


def pairs_of(first: Any, second: Any) -> Iterator[tuple[float, float]]:
    """What both say of one token in one place."""
    (logprob, token, top, chosen), (other, other_token, other_top, other_chosen) = first, second
    if token == other_token and logprob is not None:
        yield logprob, other
    others = {token: value for value, token in other_top or ()}
    yield from ((value, others[token]) for value, token in top or () if token in others)
    yield from ((ours[0], theirs[0]) for ours, theirs in zip(chosen or (), other_chosen or (), strict=True))


def differences(expected: Answer, found: Answer) -> tuple[list[tuple[float, float]], list[float]]:
    """Pairs of logprobs of the same token after the same text; and by how much the best token was better than the
    second where tokens begin to differ."""
    pairs = [
        pair
        for entries in zip(expected.prompt_logprobs or (), found.prompt_logprobs or (), strict=True)
        for pair in pairs_of(*entries)
    ]
    margins = []
    for ours, theirs in zip(expected.logprobs, found.logprobs, strict=True):
        for first, second in zip(ours, theirs, strict=True):
            pairs += pairs_of(first, second)
            if first[1] != second[1]:
                margins.append(first[2][0][0] - first[2][1][0])
                break
    return pairs, margins


def check(engine: LLMEngine, case: Case, others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assert the bound of docs/reliability.md in all surroundings."""
    around = Surroundings(engine, longest=len(case.prompt), seed=1)
    expected = around.alone(case)
    answers = [(expected, around.among(case, others))]
    with random_chunks(monkeypatch):
        answers.append((expected, around.among(case, others // 2)))
    answers += [(expected.of_output(), around.cached(case, length)) for length in (1, len(case.prompt) // 2)]
    pairs, margins = [], []
    for each in answers:
        more_pairs, more_margins = differences(*each)
        pairs += more_pairs
        margins += more_margins
    config = engine.model_config
    size = max(abs(value) for pair in pairs for value in pair)
    unit = torch.finfo(getattr(torch, config.dtype)).eps * math.sqrt(config.num_layers) * size
    worst = max(abs(first - second) for first, second in pairs)
    print(f"{len(pairs)} pairs up to {size:.1f}, at most {worst:.2g} apart: {worst / unit:.2f} units; {margins}")
    assert worst <= FACTORS[config.dtype] * unit
    assert max(margins, default=0.0) <= 2 * FACTORS[config.dtype] * unit


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.usefixtures("torch_computes")
def test_surroundings_change_logprobs_by_no_more_than_rounding(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_with(dtype=dtype, device="cpu") as engine:
        assert engine.tokenizer is not None
        prompt = engine.tokenizer.encode(
            "Once upon a time there was a small tree at the edge of a wood. It asked the wind"
        )
        check(engine, Case(list(prompt), GREEDY, 8), 3, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", ["grouped", "windowed", "deep"])
@pytest.mark.usefixtures("torch_computes")
def test_surroundings_change_logprobs_of_any_model_by_no_more_than_rounding(
    shape: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, sizes = SHAPES.get(shape, ("Qwen3", DEEP))
    save_checkpoint(tmp_path, family, **{**SIZES, **sizes})
    with engine_with(model_path=str(tmp_path), skip_tokenizer_init=True, dtype=dtype, device="cpu") as engine:
        check(engine, Case(Surroundings(engine, seed=3).ids(200), GREEDY, 40), 4, monkeypatch)
