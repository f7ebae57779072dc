"""Models whose weights are quantised to int8 while they are loaded."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bough.errors import ConfigError
from bough.model_executor import native_path
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.native import needs_native

BLOCK = 32

OUTLIERS = (3, 20, 41)
"""Channels of the residual stream that are far larger than the others."""


def make_int8_runner(path: Path, **options: Any) -> RecordingRunner:
    return make_runner(path, quantization="int8", **options)


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(VOCAB_SIZE), k=length)


def logits_of(runner: RecordingRunner, tokens: list[int]) -> torch.Tensor:
    """Of the last of ``tokens``, ``[vocab_size]``."""
    builder = PlanBuilder(runner)
    sequence = builder.add(tokens)
    builder.generate(sequence, 1)
    builder.drop(sequence)
    return sequence.logits[0]


def rounded(x: torch.Tensor) -> torch.Tensor:
    """Q8_0 of llama.cpp: blocks of 32, each with a scale in half precision."""
    blocks = nn.functional.pad(x.float(), (0, -x.shape[-1] % BLOCK)).unflatten(-1, (-1, BLOCK))
    most = blocks.abs().amax(-1, keepdim=True)
    steps = torch.round(blocks * (127 / most.clamp_min(1e-30)))
    return (steps * (most / 127).half().float()).flatten(-2)[..., : x.shape[-1]]


def round_everything(model: nn.Module) -> None:
    """Make a reference model compute as Q8_0 does: weights and the inputs of products are rounded."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight.copy_(rounded(module.weight))
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(lambda _, inputs: (rounded(inputs[0]),))


@needs_native
@pytest.mark.parametrize("factor", [1.0, 20.0, 100.0])
def test_error_is_no_larger_than_that_of_the_common_format(tmp_path: Path, factor: float) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen2", seed=4, tie_word_embeddings=True)
    with torch.no_grad():
        for layer in checkpoint.reference.model.layers:
            for norm in (layer.input_layernorm, layer.post_attention_layernorm):
                norm.weight[list(OUTLIERS)] *= factor
    checkpoint.reference.save_pretrained(tmp_path)
    prompts = [prompt(length, seed=length) for length in (5, 17, 40, 61, 80)]
    exact = torch.stack([checkpoint.logits(tokens)[-1] for tokens in prompts])
    runner = make_int8_runner(tmp_path)
    ours = torch.stack([logits_of(runner, tokens) for tokens in prompts])
    round_everything(checkpoint.reference)
    common = torch.stack([checkpoint.logits(tokens)[-1] for tokens in prompts])
    assert float((ours - exact).norm()) <= 1.1 * float((common - exact).norm())


@needs_native
def test_weights_replaced_one_by_one_equal_those_of_a_fresh_model(tmp_path: Path) -> None:
    first = save_checkpoint(tmp_path / "first", "Llama", seed=1)
    second = save_checkpoint(tmp_path / "second", "Llama", seed=2)
    runner, fresh = make_int8_runner(first.path), make_int8_runner(second.path)
    addresses = [parameter.data_ptr() for parameter in runner.model.parameters()]
    assert not torch.equal(logits_of(runner, prompt(20)), logits_of(fresh, prompt(20)))
    for name, tensor in second.reference.state_dict().items():
        assert runner.update_weights([(name, tensor)]) == {name}
    assert [parameter.data_ptr() for parameter in runner.model.parameters()] == addresses
    for ours, theirs in zip(runner.model.parameters(), fresh.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(logits_of(runner, prompt(20)), logits_of(fresh, prompt(20)))


@needs_native
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_logits_depend_neither_on_chunks_nor_on_threads(tmp_path: Path, dtype: str) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16, max_position_embeddings=1024)
    runs = []
    for threads in (1, 3):
        runner = make_int8_runner(checkpoint.path, dtype=dtype, threads=threads)
        for chunks in ([], [1, 250, 17]):
            builder = PlanBuilder(runner)
            sequence = builder.add(prompt(300))
            builder.generate(sequence, 3, chunks=chunks)
            runs.append(torch.stack(sequence.logits))
    for run in runs[1:]:
        assert torch.equal(run, runs[0])


@needs_native
def test_weights_take_half_the_memory_of_bfloat16(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", hidden_size=64, intermediate_size=256, num_attention_heads=4)
    whole, int8 = (
        make_runner(checkpoint.path, dtype="bfloat16", quantization=kind).model.model.layers[0].mlp.down_proj.weight
        for kind in ("none", "int8")
    )
    assert int8.nbytes == whole.nbytes * 36 / 64


def test_without_native_kernels_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint: Checkpoint = save_checkpoint(tmp_path, "Llama")

    def missing_library() -> None:
        raise native_path.LibraryMissing("they were not built")

    with pytest.raises(ConfigError, match="--quantization int8 needs the native CPU kernels"):
        make_int8_runner(checkpoint.path, dtype="float16")
    monkeypatch.setattr(native_path, "load_library", missing_library)
    with pytest.raises(ConfigError, match="--quantization int8 needs the native CPU kernels"):
        make_int8_runner(checkpoint.path)
