"""Experts of each token are kept by its KV slot, natively and by torch, however it came to be computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bough.errors import ConfigError
from tests.model_executor.plan_builder import PlanBuilder, int32, make_runner
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.native import needs_native

pytestmark = needs_native

EXPERTS = {"num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 40, "head_dim": 24}


def expected(checkpoint: Checkpoint, tokens: list[int]) -> np.ndarray:
    """``[len(tokens), num_layers, experts of a token]`` of the reference's routers, ascending."""
    chosen: list[torch.Tensor] = []

    def keep(module: Any, inputs: Any, outputs: Any) -> None:
        chosen.append(next(each for each in outputs if each.dtype == torch.int64))

    layers = checkpoint.reference.model.layers
    hooks = [layer.mlp.gate.register_forward_hook(keep) for layer in layers]
    try:
        checkpoint.logits(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack([each.sort(-1).values for each in chosen], 1).numpy()


@pytest.mark.parametrize("native", [True, False])
def test_they_are_those_of_the_reference(tmp_path: Path, native: bool) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3Moe", seed=4, **EXPERTS)
    runner = make_runner(checkpoint.path, native=native, enable_return_routed_experts=True)
    builder = PlanBuilder(runner)
    rng = np.random.default_rng(0)
    whole = builder.add(rng.integers(0, 160, 50).tolist())
    builder.generate(whole, 5, chunks=[20, 7])
    cached = builder.add([*whole.tokens[:32], *rng.integers(0, 160, 9).tolist()], prefix_of=whole, prefix_len=32)
    builder.step([(cached, 9), (whole, 1)])
    if native:
        runner.recording = False
    builder.step([(cached, 1), (whole, 1)], further=4 if native else 0)
    for sequence in (whole, cached):
        kept = runner.kv_pool.read_experts(int32(*sequence.kv_slots))
        assert np.array_equal(kept, expected(checkpoint, sequence.tokens[: len(sequence.kv_slots)]))


@pytest.mark.parametrize("native", [True, False])
def test_dense_layers_have_none(tmp_path: Path, native: bool) -> None:
    sizes = {"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 12}
    checkpoint = save_checkpoint(tmp_path, "Glm4Moe", first_k_dense_replace=1, **sizes)
    runner = make_runner(checkpoint.path, native=native, enable_return_routed_experts=True)
    builder = PlanBuilder(runner)
    sequence = builder.add(list(range(20)))
    builder.step([(sequence, 20)])
    kept = runner.kv_pool.read_experts(int32(*sequence.kv_slots))
    assert kept.shape == (20, 3, 2)
    assert not kept[:, 0].any()
    assert (kept[:, 1:, 0] < kept[:, 1:, 1]).all()


def test_they_take_memory_only_where_they_are_wanted(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path / "mixture", "Qwen3Moe", **EXPERTS)
    without = make_runner(checkpoint.path)
    assert without.kv_pool.experts is None
    with_experts = make_runner(checkpoint.path, enable_return_routed_experts=True)
    more = with_experts.kv_pool.num_bytes - without.kv_pool.num_bytes
    assert more == 2 * 3 * 3 * with_experts.kv_pool.num_slots
    with pytest.raises(ConfigError) as caught:
        make_runner(save_checkpoint(tmp_path / "dense", "Llama").path, enable_return_routed_experts=True)
    assert caught.value.param == "enable_return_routed_experts"
