"""Repetition penalties of real engines, against transformers' processor on the same random model."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor

from bough import LLMEngine
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint

PROMPTS = [[(7 * i * i + 3 * i + start) % (VOCAB_SIZE - 10) for i in range(length)] for start, length in
           ((1, 40), (5, 3), (9, 90), (2, 17))]  # fmt: skip
SETTINGS: list[dict[str, float]] = [
    {},
    {"repetition_penalty": 1.7},
    {"repetition_penalty": 1.2, "frequency_penalty": 0.7},
    {"repetition_penalty": 1.3, "frequency_penalty": -0.4, "presence_penalty": 0.9},
    {"frequency_penalty": 1.1, "presence_penalty": 0.5},
    {"repetition_penalty": 0.6, "presence_penalty": 1.5},
]
LENGTH = 24


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("llama"), "Llama", num_hidden_layers=2)


def make_engine(path: Path, **options: Any) -> LLMEngine:
    options = {"max_running_requests": 8, "max_total_tokens": 2048, **options}
    return LLMEngine(model_path=str(path), dtype="float32", cpu_threads=1, skip_tokenizer_init=True, **options)


def vllm_greedy(checkpoint: Checkpoint, prompt: list[int], settings: dict[str, float]) -> list[int]:
    """Greedy output: repetition over prompt and output, then frequency and presence over the output."""
    process = RepetitionPenaltyLogitsProcessor(settings.get("repetition_penalty", 1.0))
    ids = list(prompt)
    for _ in range(LENGTH):
        with torch.no_grad():
            logits = checkpoint.reference(torch.tensor([ids])).logits[:, -1].float()
        logits = process(torch.tensor([ids]), logits)[0]
        counts = torch.bincount(torch.tensor(ids[len(prompt) :], dtype=torch.long), minlength=len(logits))
        logits -= settings.get("frequency_penalty", 0.0) * counts + settings.get("presence_penalty", 0.0) * (counts > 0)
        ids.append(int(logits.argmax()))
    return ids[len(prompt) :]


def answers(
    engine: LLMEngine, window: int | None, *, n: int = 1, **more: Any
) -> dict[tuple[int, int], list[list[int]]]:
    """Outputs of all prompts in all settings, together, by the indices of the two."""
    cases = list(itertools.product(range(len(PROMPTS)), range(len(SETTINGS))))
    for prompt, setting in cases:
        params = {"temperature": 0.0, "max_new_tokens": LENGTH, "ignore_eos": True, "n": n, **SETTINGS[setting], **more}
        params |= {} if window is None else {"repetition_window": window}
        engine.add_request(f"{prompt}-{setting}", input_ids=PROMPTS[prompt], sampling_params=params)
    found = {}
    while engine.has_unfinished_requests():
        for result in engine.step():
            if result.finished:
                found[result.request_id] = [output.token_ids for output in result.outputs]
    assert engine.scheduler.reports.internal_state()["kv_discrepancy"] is None
    return {case: found[f"{case[0]}-{case[1]}"] for case in cases}


@pytest.fixture(scope="module")
def expected(checkpoint: Checkpoint) -> dict[tuple[int, int], list[int]]:
    cases = itertools.product(range(len(PROMPTS)), range(len(SETTINGS)))
    return {(prompt, setting): vllm_greedy(checkpoint, PROMPTS[prompt], SETTINGS[setting]) for prompt, setting in cases}


@pytest.mark.parametrize(
    "options",
    [{}, {"chunked_prefill_size": 16}, {"max_total_tokens": 320}, {"num_continuous_decode_steps": 1}],
    ids=["as usual", "prompts in pieces", "retraction", "one step at a time"],
)
def test_prompt_and_output_count_as_in_transformers(
    checkpoint: Checkpoint, expected: dict[tuple[int, int], list[int]], options: dict[str, Any]
) -> None:
    engine = make_engine(checkpoint.path, **options)
    for _ in range(2):  # the second time prompts are in the prefix cache
        found = answers(engine, -1, n=1)
        assert {case: outputs[0] for case, outputs in found.items()} == expected
    if "max_total_tokens" in options:
        assert engine.scheduler.requests.stats.num_retracted_total > 0


def test_a_window_as_long_as_everything_counts_everything(
    checkpoint: Checkpoint, expected: dict[tuple[int, int], list[int]]
) -> None:
    engine = make_engine(checkpoint.path, max_total_tokens=400)
    assert {case: [output] * 2 for case, output in expected.items()} == answers(engine, 200, n=2)


def test_a_window_forgets_and_none_counts_the_output_alone(
    checkpoint: Checkpoint, expected: dict[tuple[int, int], list[int]]
) -> None:
    engine = make_engine(checkpoint.path)
    off, short, output_alone = (answers(engine, window) for window in (0, 3, None))
    repetition_alone = 1
    for prompt in range(len(PROMPTS)):
        plain = [expected[prompt, 0]]
        assert off[prompt, repetition_alone] == plain
        assert off[prompt, 0] == short[prompt, 0] == output_alone[prompt, 0] == plain
        assert output_alone[prompt, 4] == short[prompt, 4] == [expected[prompt, 4]]
    assert any(short[prompt, repetition_alone] != [expected[prompt, repetition_alone]] for prompt in range(4))
    assert any(output_alone[prompt, repetition_alone] != [expected[prompt, repetition_alone]] for prompt in range(4))
