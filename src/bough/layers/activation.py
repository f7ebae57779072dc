"""Activations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from bough.kernels.triton.available import kernels_for


def silu_and_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` of ``[num_tokens, 2 * width]`` with the gate first; returns ``[num_tokens, width]``."""
    kernels = kernels_for(gate_up, "elementwise")
    if kernels is not None:
        fused: torch.Tensor = kernels.gate_and_mul(gate_up, "silu")
        return fused
    width = gate_up.shape[-1] // 2
    return functional.silu(gate_up[:, :width]).mul_(gate_up[:, width:])


def activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function that configurations call ``name``. Raises :class:`KeyError` if there is none of that name here."""
    return _ACTIVATIONS[name]


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "silu": functional.silu,
    "swish": functional.silu,
}
