"""Rotary position embedding (Su et al. 2021, RoFormer) and the ways to stretch it to longer contexts."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn

from bough.config.rope import FREQUENCY_FACTORS, LONGROPE, RopeParameters, RopeType

Rotation = tuple[torch.Tensor, torch.Tensor]
"""Cosines and signed sines, each ``[num_tokens, 1, rotated_dim]``, for :func:`apply_rotary`."""


class RotaryEmbedding(nn.Module):
    """Angles of all positions of a step, computed once and used by every layer."""

    inv_freq: torch.Tensor

    def __init__(self, head_dim: int, rope: RopeParameters, context_len: int, dtype: torch.dtype) -> None:
        super().__init__()
        # On the CPU wherever the model goes: `arange` on the meta device would import torch's compiler, for a second.
        with torch.device("cpu"):
            inv_freq, self.attention_scaling = inverse_frequencies(head_dim, rope, context_len)
        self.register_buffer("inv_freq", inv_freq.to(torch.get_default_device()), persistent=False)
        self.dtype = dtype

    def forward(self, positions: torch.Tensor) -> Rotation:
        """Positions ``[num_tokens]`` to the rotation of each token, in the model's dtype."""
        angles = positions[:, None].float() * self.inv_freq  # [T, rotated_dim / 2]
        cos, sin = angles.cos(), angles.sin()
        if self.attention_scaling != 1.0:
            cos, sin = cos * self.attention_scaling, sin * self.attention_scaling
        cos = torch.cat((cos, cos), dim=-1).to(self.dtype)
        signed_sin = torch.cat((-sin, sin), dim=-1).to(self.dtype)
        return cos[:, None], signed_sin[:, None]


def apply_rotary(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Rotate pairs (i, i + width / 2) of ``x`` ``[num_tokens, num_heads, head_dim]``; returns a new tensor.

    ``width`` is the rotation's, at most ``head_dim``; numbers beyond it stay.
    """
    cos, signed_sin = rotation
    width = cos.shape[-1]
    if width < x.shape[-1]:
        return torch.cat((apply_rotary(x[..., :width], rotation), x[..., width:]), dim=-1)
    # Swapping the halves and folding the minus sign into the sine leaves three operations.
    return torch.roll(x, x.shape[-1] // 2, -1).mul_(signed_sin).addcmul_(x, cos)


def inverse_frequencies(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    """Radians per position of each pair, float32 ``[rotated_dim / 2]``, and the factor on cosines and sines."""
    return _KINDS[rope.rope_type](rope.rotated_dim(head_dim), rope, context_len)


def _powers(head_dim: int, base: float) -> torch.Tensor:
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    return 1.0 / (base**exponents)


def _default(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    return _powers(head_dim, rope.rope_theta), 1.0


def _linear(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    return _powers(head_dim, rope.rope_theta) / rope.factor, 1.0


def _dynamic(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    """The NTK-aware formula for the served context length, not for the current sequence's: the rotation of a cached key
    must not depend on how long its sequence grows later. Up to ``max_position_embeddings`` it is no scaling at all.
    """
    length = max(context_len, rope.max_position_embeddings)
    stretch = rope.factor * length / rope.max_position_embeddings - (rope.factor - 1)
    return _powers(head_dim, rope.rope_theta * stretch ** (head_dim / (head_dim - 2))), 1.0


def _llama3(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    """Llama 3.1: long wavelengths are stretched, short ones kept, those between blended."""
    inv_freq = _powers(head_dim, rope.rope_theta)
    wavelength = 2 * math.pi / inv_freq
    original = rope.original_max_position_embeddings
    blend = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = blend.clamp(0.0, 1.0)
    return (1 - blend) * inv_freq / rope.factor + blend * inv_freq, 1.0


def _yarn(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    """YaRN (Peng et al. 2023, section 3.2): interpolate slow pairs, keep fast ones, ramp between."""

    def pair_with_rotations(rotations: float) -> float:
        turns = rope.original_max_position_embeddings / (rotations * 2 * math.pi)
        return head_dim * math.log(turns) / (2 * math.log(rope.rope_theta))

    low, high = pair_with_rotations(rope.beta_fast), pair_with_rotations(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001  # a ramp needs a width
    ramp = ((torch.arange(head_dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0.0, 1.0)
    inv_freq = _powers(head_dim, rope.rope_theta)
    return inv_freq / rope.factor * ramp + inv_freq * (1 - ramp), _yarn_attention_factor(rope)


def _yarn_attention_factor(rope: RopeParameters) -> float:
    if rope.attention_factor is not None:
        return rope.attention_factor

    def mscale(weight: float) -> float:
        return 1.0 if rope.factor <= 1.0 else 0.1 * weight * math.log(rope.factor) + 1.0

    if rope.mscale and rope.mscale_all_dim:
        return mscale(rope.mscale) / mscale(rope.mscale_all_dim)
    return mscale(1.0)


def _frequency_factors(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    inv_freq = _powers(head_dim, rope.rope_theta)
    return inv_freq / torch.tensor(rope.frequency_factors) if rope.frequency_factors else inv_freq, 1.0


def _longrope(head_dim: int, rope: RopeParameters, context_len: int) -> tuple[torch.Tensor, float]:
    """LongRoPE (Ding et al. 2024): one divisor for each pair, of two sets that the served context length chooses from.

    As with ``dynamic``, the length of a single sequence must not decide: its keys may be cached.
    """
    original = rope.original_max_position_embeddings
    factors = rope.long_factors if context_len > original else rope.frequency_factors
    scaling = rope.attention_factor
    if scaling is None:
        scaling = math.sqrt(1 + math.log(max(rope.factor, 1.0)) / math.log(original))
    return _powers(head_dim, rope.rope_theta) / torch.tensor(factors), scaling


_KINDS: dict[RopeType, Callable[[int, RopeParameters, int], tuple[torch.Tensor, float]]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    LONGROPE: _longrope,
    FREQUENCY_FACTORS: _frequency_factors,
}
