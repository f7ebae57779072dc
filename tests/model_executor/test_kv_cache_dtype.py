"""KV caches of another type than the model computes in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bough.errors import ConfigError
from bough.model_executor import native_path
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.models.checkpoints import VOCAB_SIZE, save_checkpoint
from tests.native import needs_native


def prompt(length: int) -> list[int]:
    return random.Random(3).choices(range(VOCAB_SIZE), k=length)


def logits_of(runner: RecordingRunner, tokens: list[int], chunks: list[int] | None = None) -> torch.Tensor:
    """Of the last of ``tokens`` and of two more, ``[3, vocab_size]``."""
    builder = PlanBuilder(runner)
    sequence = builder.add(tokens)
    builder.generate(sequence, 3, chunks=chunks or [])
    builder.drop(sequence)
    return torch.stack(sequence.logits)


@needs_native
@pytest.mark.parametrize(("kv", "most"), [("bf16", 2.0**-7), ("int8", 2.0**-6)])
@pytest.mark.parametrize("architecture", ["Llama", "Qwen3"])
def test_logits_are_those_of_the_exact_cache_but_for_its_rounding(
    tmp_path: Path, architecture: str, kv: str, most: float
) -> None:
    """An element of a key or value is off by 2**-9 of itself in bfloat16, by up to 2**-8 of its head's largest in int8;
    what the few layers add to that is a small factor."""
    checkpoint = save_checkpoint(tmp_path, architecture, head_dim=16, max_position_embeddings=1024)
    tokens = prompt(200)
    exact = logits_of(make_runner(checkpoint.path, dtype="float32"), tokens)[0]
    rounded = logits_of(make_runner(checkpoint.path, dtype="float32", kv_cache_dtype=kv), tokens)[0]
    error = (rounded - exact).norm() / exact.norm()
    assert 0.0 < error < most


@needs_native
@pytest.mark.parametrize("kv", ["bf16", "int8"])
def test_logits_depend_neither_on_chunks_nor_on_threads(tmp_path: Path, kv: str) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16, max_position_embeddings=1024)
    runs = []
    for threads in (1, 3):
        runner = make_runner(checkpoint.path, dtype="float32", kv_cache_dtype=kv, threads=threads)
        runs += [logits_of(runner, prompt(300), chunks) for chunks in ([], [1, 250, 17])]
    for run in runs[1:]:
        assert torch.equal(run, runs[0])


@needs_native
def test_int8_holds_more_tokens_in_the_same_memory(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama", head_dim=64)
    pools = [make_runner(checkpoint.path, dtype="bfloat16", kv_cache_dtype=kv).kv_pool for kv in ("auto", "int8")]
    sizes = [pool.num_bytes / pool.num_slots for pool in pools]
    assert sizes[1] == sizes[0] * (64 + 4) / 128


@needs_native
def test_what_is_held_in_memory_and_how_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16)
    with caplog.at_level("INFO"):
        runner = make_runner(checkpoint.path, dtype="float32", quantization="int8", kv_cache_dtype="int8")
        make_runner(checkpoint.path, dtype="bfloat16")
    quantised, plain = (line for line in caplog.messages if "parameters take" in line)
    assert runner.num_parameters == sum(
        value.numel() for value in load_file(checkpoint.path / "model.safetensors").values()
    )
    assert quantised.startswith(f"{runner.num_parameters / 1e6:.1f} million parameters take ")
    assert " as int8; the KV cache has room for " in quantised
    assert quantised.endswith(
        f" {runner.kv_pool.max_total_tokens} tokens in {runner.kv_pool.num_bytes / 1e9:.3g} GB of int8"
    )
    assert " as bfloat16; " in plain
    assert plain.endswith(" GB of bfloat16")


def test_without_native_kernels_another_type_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = save_checkpoint(tmp_path, "Llama")

    def missing_library() -> None:
        raise native_path.LibraryMissing("they were not built")

    monkeypatch.setattr(native_path, "load_library", missing_library)
    with pytest.raises(ConfigError, match="--kv-cache-dtype int8 needs the native CPU kernels"):
        make_runner(checkpoint.path, kv_cache_dtype="int8")
    assert make_runner(checkpoint.path, dtype="bfloat16", kv_cache_dtype="bfloat16").kv_pool.dtype == torch.bfloat16
