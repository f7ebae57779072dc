"""Activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch.nn import functional

from bough.config.model_facts import CLAMPED_SWISH, SWISH_BOUND, SWISH_SLOPE
from bough.errors import ConfigError
from bough.kernels.structures import Activation
from bough.kernels.triton.available import kernels_for

Gate = Literal["silu", "gelu_tanh", "clamped_swish"]
"""Function of the gates of a feed-forward network, and for ``clamped_swish`` of the values that they gate."""

_GATES: dict[str, Gate] = {
    "silu": "silu",
    "swish": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    CLAMPED_SWISH: "clamped_swish",
}
"""By the name that configurations, or the readers of families, have."""

NATIVE_GATES: dict[Gate, Activation] = {
    "silu": Activation.SILU,
    "gelu_tanh": Activation.GELU_TANH,
    "clamped_swish": Activation.CLAMPED_SWISH,
}


def gate_named(name: str) -> Gate:
    """Return the gate that configurations call ``name``. Raises :class:`ConfigError` if there is none."""
    if name not in _GATES:
        raise ConfigError(f"no gated feed-forward network has the activation {name!r}; there are {', '.join(_GATES)}")
    return _GATES[name]


def gate_and_mul(gate_up: torch.Tensor, gate: Gate) -> torch.Tensor:
    """``gate(x) * up`` of ``[num_tokens, 2 * width]`` with the gates first; returns ``[num_tokens, width]``.

    With ``clamped_swish`` ``up`` is bounded, and 1 is added to it.
    """
    kernels = kernels_for(gate_up, "elementwise")
    if kernels is not None:
        fused: torch.Tensor = kernels.gate_and_mul(gate_up, gate)
        return fused
    width = gate_up.shape[-1] // 2
    gates, values = gate_up[:, :width], gate_up[:, width:]
    if gate == CLAMPED_SWISH:
        gates, values = gates.clamp(max=SWISH_BOUND), values.clamp(-SWISH_BOUND, SWISH_BOUND) + 1
        return (gates * torch.sigmoid(SWISH_SLOPE * gates)).mul_(values)
    return _ACTIVATIONS[gate](gates).mul_(values)


def activation(name: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The function that configurations call ``name``. Raises :class:`KeyError` if there is none of that name here."""
    return _ACTIVATIONS[name]


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": functional.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_tanh": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
    "relu": functional.relu,
    "silu": functional.silu,
    "swish": functional.silu,
}
