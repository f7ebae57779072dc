"""Activations."""

from __future__ import annotations

import torch
from torch.nn import functional


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` of ``[num_tokens, 2 * width]`` with the gate first; returns ``[num_tokens, width]``."""
    width = gate_up.shape[-1] // 2
    return functional.silu(gate_up[:, :width]).mul_(gate_up[:, width:])
