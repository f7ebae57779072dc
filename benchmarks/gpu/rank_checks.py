"""Is a model right that two ranks compute? On one GPU they share it, and gloo joins them; on two, NCCL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

LENGTHS = (37, 9)


def ranks(
    family: str, dtype: str, device: torch.device, one_rank: Callable[..., Any], *, small: bool
) -> dict[str, Any]:
    """Prompts and decode steps of two ranks beside those of one, made by ``one_rank``, as long as tokens are the same.

    The error of logits is relative to the largest.
    """
    from tests.distributed.ranks import Followers
    from tests.models.checkpoints import save_checkpoint

    shape = {"head_dim": 64, "num_hidden_layers": 1 if small else 3}
    backend = {"attention_backend": "triton"} if device.type == "cpu" else {"disable_cuda_graph": True}
    limits = {"max_total_tokens": 8192, "max_prefill_tokens": 512, "dtype": dtype, "device": device.type}
    shares_device = device.type == "cuda" and torch.cuda.device_count() < 2
    steps = 1 if small else 8
    followers = Followers(2)
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            save_checkpoint(path, family, **shape)
            with followers.leader(path, shares_device=shares_device, **backend, **limits) as leader:
                ours = _sequences(leader, steps)
            wanted = _sequences(one_rank(path, device, dtype), steps)
    finally:
        followers.close()
    error, compared = 0.0, 0
    for one, other in zip(ours, wanted, strict=True):
        for place, (logits, expected) in enumerate(zip(one.logits, other.logits, strict=True)):
            if one.output[:place] != other.output[:place]:
                break
            error = max(error, float((logits - expected).abs().max() / expected.abs().max()))
            compared += 1
    bound = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}[dtype]
    return {"ok": error <= bound, "relative_error": error, "bound": bound, "compared": compared}


def _sequences(runner: Any, steps: int) -> list[Any]:
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import VOCAB_SIZE

    builder, rng = PlanBuilder(runner), np.random.default_rng(0)
    rows = [builder.add(rng.integers(0, VOCAB_SIZE, size=length).tolist()) for length in LENGTHS]
    builder.step([(row, len(row.tokens)) for row in rows])
    for _ in range(steps):
        builder.step([(row, 1) for row in rows])
    return rows
