"""Embeddings and class scores equal what transformers computes, in batches of any lengths."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bough.errors import ConfigError
from tests.models.vector_checkpoints import (
    VOCAB_SIZE,
    VectorCheckpoint,
    VectorScheduler,
    save_pipeline,
    save_reward_checkpoint,
    save_vector_checkpoint,
)

TOLERANCE = 1e-4

POOLED = {
    "cls_token": lambda states: states[0],
    "mean_tokens": lambda states: states.mean(0),
    "max_tokens": lambda states: states.max(0).values,
    "lasttoken": lambda states: states[-1],
}

LENGTHS = (1, 2, 3, 17, 17, 40, 5, 98, 64, 33, 16, 1, 7)


def prompts(seed: int = 0, lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    rng = random.Random(seed)
    return [rng.choices(range(VOCAB_SIZE), k=length) for length in lengths]


def assert_close(ours: np.ndarray, reference: torch.Tensor) -> None:
    assert ours.shape == tuple(reference.shape)
    assert float(np.abs(ours - reference.numpy()).max()) <= TOLERANCE


def embedding(checkpoint: VectorCheckpoint, prompt: list[int], mode: str, *, normalize: bool = True) -> torch.Tensor:
    pooled = POOLED[mode](checkpoint.states(prompt))
    return torch.nn.functional.normalize(pooled, dim=-1) if normalize else pooled


ENCODERS: dict[str, dict[str, Any]] = {
    "BertModel": {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5},
    "BertForMaskedLM": {},
    "RobertaModel": {"type_vocab_size": 1},
    "XLMRobertaModel": {"type_vocab_size": 1, "pad_token_id": 3},
}


@pytest.mark.parametrize("architecture", ENCODERS)
@pytest.mark.parametrize("mode", ["cls_token", "mean_tokens", "max_tokens"])
def test_encoder_embeddings(architecture: str, mode: str, tmp_path: Path) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, architecture, **ENCODERS[architecture])
    if architecture.endswith("MaskedLM"):
        checkpoint = VectorCheckpoint(tmp_path, checkpoint.reference.bert)
    save_pipeline(tmp_path, mode, normalize=mode != "max_tokens")
    scheduler = VectorScheduler(tmp_path)
    longest = scheduler.scheduler.info.max_req_input_len
    batch = [prompt[:longest] for prompt in prompts()]
    for prompt, vector in zip(batch, scheduler.vectors(batch), strict=True):
        assert_close(vector, embedding(checkpoint, prompt, mode, normalize=mode != "max_tokens"))


def test_padding_tokens_of_roberta_have_no_position_of_their_own(tmp_path: Path) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, "RobertaModel", type_vocab_size=1)
    batch = [[7, 1, 8, 1, 1, 9], [1, 7, 8], [1], [7, 8, 1, 9, 10], [7, 1, 1, 1, 8]]
    for prompt, vector in zip(batch, VectorScheduler(tmp_path).vectors(batch), strict=True):
        assert_close(vector, embedding(checkpoint, prompt, "cls_token"))


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("architecture", ["BertForSequenceClassification", "XLMRobertaForSequenceClassification"])
def test_encoder_class_scores_of_pairs(architecture: str, labels: int, tmp_path: Path) -> None:
    types = 2 if architecture.startswith("Bert") else 1
    checkpoint = save_vector_checkpoint(tmp_path, architecture, num_labels=labels, type_vocab_size=types)
    scheduler = VectorScheduler(tmp_path)
    batch = prompts(1, (9, 30, 31, 77))
    second = [[int(i >= len(prompt) // 2) for i in range(len(prompt))] for prompt in batch]
    for index, (prompt, each) in enumerate(zip(batch, second, strict=True)):
        scheduler.submit(str(index), prompt, each)
        scheduler.submit(f"plain {index}", prompt)
    scheduler.run()
    for index, (prompt, each) in enumerate(zip(batch, second, strict=True)):
        assert_close(scheduler.vector(str(index)), checkpoint.scores(prompt, each if types == 2 else None))
        assert_close(scheduler.vector(f"plain {index}"), checkpoint.scores(prompt))


FAMILIES = ("Gemma3", "Llama", "Ministral3", "Mistral", "Phi3", "Qwen2", "Qwen3", "SmolLM3")


@pytest.mark.parametrize("family", FAMILIES)
def test_language_model_embeddings_by_last_token(family: str, tmp_path: Path) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, f"{family}ForCausalLM")
    body = VectorCheckpoint(tmp_path, checkpoint.reference.model)
    scheduler = VectorScheduler(tmp_path, is_embedding=True, chunked_prefill_size=16, max_total_tokens=2048)
    batch = prompts()
    for _ in range(2):  # the second time, prefixes come from the cache
        for prompt, vector in zip(batch, scheduler.vectors(batch), strict=True):
            assert_close(vector, embedding(body, prompt, "lasttoken"))
    assert scheduler.deltas["7"].cached_tokens > 0


@pytest.mark.parametrize(
    ("architecture", "mode"),
    [
        *(("Qwen3Model", mode) for mode in ("mean_tokens", "max_tokens", "cls_token", "lasttoken")),
        ("Gemma3TextModel", "mean_tokens"),
    ],
)
def test_language_model_embeddings_in_chunks(architecture: str, mode: str, tmp_path: Path) -> None:
    """A checkpoint of the body alone, whose weights have no prefix in their names."""
    checkpoint = save_vector_checkpoint(tmp_path, architecture)
    save_pipeline(tmp_path, mode, normalize=False)
    scheduler = VectorScheduler(tmp_path, chunked_prefill_size=7, max_total_tokens=2048)
    batch = prompts(2)
    for _ in range(2):
        for prompt, vector in zip(batch, scheduler.vectors(batch), strict=True):
            assert_close(vector, embedding(checkpoint, prompt, mode, normalize=False))
    assert scheduler.num_steps > len(batch)


@pytest.mark.parametrize("family", ["Gemma3Text", *FAMILIES[1:]])
@pytest.mark.parametrize("labels", [1, 4])
def test_language_model_class_scores(family: str, labels: int, tmp_path: Path) -> None:
    architecture = f"{family}ForSequenceClassification"
    checkpoint = save_vector_checkpoint(tmp_path, architecture, num_labels=labels, pad_token_id=0)
    scheduler = VectorScheduler(tmp_path, chunked_prefill_size=20, max_total_tokens=2048)
    batch = prompts(3)
    for prompt, vector in zip(batch, scheduler.vectors(batch), strict=True):
        assert_close(vector, checkpoint.scores(prompt))


def test_classes_of_language_models_are_read_from_the_last_token_that_is_no_padding(tmp_path: Path) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, "Qwen3ForSequenceClassification", num_labels=2, pad_token_id=0)
    scheduler = VectorScheduler(tmp_path, chunked_prefill_size=5, max_total_tokens=2048)
    batch = [[7, 8, 0], [7, 0, 8, 9, 0, 0, 0], [0, 7, 0], [7] * 6 + [0] * 11, [0, 0, 0], [0]]
    for index, (prompt, vector) in enumerate(zip(batch, scheduler.vectors(batch), strict=True)):
        assert_close(vector, checkpoint.scores(prompt))
        assert scheduler.deltas[str(index)].prompt_tokens == len(prompt), "what was sent is counted"


def test_rewards(tmp_path: Path) -> None:
    body, head = save_reward_checkpoint(tmp_path)
    scheduler = VectorScheduler(tmp_path, max_total_tokens=2048)
    batch = [*prompts(4), [5, 1, 1]]
    with torch.inference_mode():
        for prompt, vector in zip(batch, scheduler.vectors(batch), strict=True):
            assert_close(vector, head(body.states(prompt)[-1]))


@pytest.mark.parametrize(
    ("option", "value"), [("max_total_tokens", 2048), ("mem_fraction_static", 0.5), ("page_size", 16)]
)
def test_encoders_refuse_settings_of_a_cache_that_they_do_not_have(tmp_path: Path, option: str, value: float) -> None:
    save_vector_checkpoint(tmp_path, "BertModel")
    flag = f"--{option.replace('_', '-')}"
    with pytest.raises(ConfigError, match=f"^{flag} is for language models, not BertModel") as caught:
        VectorScheduler(tmp_path, **{option: value})
    assert caught.value.param == option


def test_shortened_embeddings_have_length_one(tmp_path: Path) -> None:
    checkpoint = save_vector_checkpoint(tmp_path, "BertModel")
    scheduler = VectorScheduler(tmp_path)
    batch = prompts(5)
    for index, prompt in enumerate(batch):
        scheduler.submit(str(index), prompt, dimensions=10 + index)
    scheduler.run()
    for index, prompt in enumerate(batch):
        first = checkpoint.states(prompt)[0][: 10 + index]
        assert_close(scheduler.vector(str(index)), torch.nn.functional.normalize(first, dim=-1))
