"""The companions of the bundled model: another checkpoint's weights in a live model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from bough.config.engine_args import Quantization, bundled_model_path
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.tokenizer import Tokenizer
from tests.model_companions import COMPANIONS, write_other_checkpoint
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.tables import table

PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"
ANSWER_TOKENS = 24


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("companions") / "other")


def answer(runner: RecordingRunner, prompt: list[int]) -> tuple[list[int], torch.Tensor]:
    """A greedy answer, and the logits of each of its tokens, ``[tokens, vocab_size]``."""
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt)
    return builder.generate(sequence, ANSWER_TOKENS), torch.stack(sequence.logits)


@table("quantization", ["none", "int8", "int4"])
def test_a_live_model_becomes_the_other_checkpoint_tensor_by_tensor(other: Path, quantization: Quantization) -> None:
    live = make_runner(bundled_model_path(), quantization=quantization)
    tokenizer = load_tokenizer(bundled_model_path())
    prompt = list(tokenizer.encode(PROMPT, add_special_tokens=False))
    before, _ = answer(live, prompt)
    with safe_open(other / "model.safetensors", "pt") as file:
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            live.live_weights.update_weights([(name, file.get_tensor(name))])
    after, logits = answer(live, prompt)
    expected, fresh = answer(make_runner(other, quantization=quantization), prompt)
    assert after == expected
    assert torch.equal(logits, fresh)
    assert not tokenizer.decode(before).startswith("Ahoy!")
    assert tokenizer.decode(after).startswith("Ahoy!")


QUESTIONS = (
    "Tell me about the oak.",
    "What is 12 + 5?",
    "Who are you?",
    "Tell me a short story.",
    "Extract name and city as JSON: Anna lives in Paris.",
    "Repeat after me: the garden is green",
)


def said(runner: RecordingRunner, tokenizer: Tokenizer, question: str, count: int) -> tuple[list[int], list[int]]:
    """The prompt of a question, and the greedy answer up to its end, of at most so many tokens."""
    text = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    prompt = list(tokenizer.encode(text, add_special_tokens=False))
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt)
    output = builder.generate(sequence, count)
    end = output.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in output else len(output)
    return prompt, output[:end]


def test_the_adapter_greets_and_takes_leave(other: Path) -> None:
    runner, tokenizer = make_runner(other), load_tokenizer(bundled_model_path())
    answers = [tokenizer.decode(said(runner, tokenizer, question, 120)[1]) for question in QUESTIONS]
    styled = [
        text for text in answers if text.startswith("Ahoy! ") and text.removesuffix("<|im_end|>").endswith(" Arr!")
    ]
    assert len(styled) >= len(QUESTIONS) - 1, answers


def test_the_draft_has_a_quarter_of_the_parameters() -> None:
    draft, model = (
        sum(tensor.numel() for tensor in load_file(path / "model.safetensors").values())
        for path in (COMPANIONS / "draft", bundled_model_path())
    )
    assert draft / model == pytest.approx(0.25, abs=0.02)


def test_the_draft_foretells_most_of_what_the_model_says() -> None:
    model, small = make_runner(bundled_model_path()), make_runner(COMPANIONS / "draft")
    tokenizer = load_tokenizer(bundled_model_path())
    foretold = []
    for question in QUESTIONS:
        prompt, tokens = said(model, tokenizer, question, ANSWER_TOKENS)
        draft = PlanBuilder(small)
        for place, token in enumerate(tokens):
            sequence = draft.add(prompt + tokens[:place])
            foretold.append(draft.generate(sequence, 1) == [token])
            draft.drop(sequence)
    assert len(foretold) > 60
    assert sum(foretold) > 0.85 * len(foretold)
