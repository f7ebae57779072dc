"""What launching a kernel needs, in one place."""

from __future__ import annotations

import torch


def next_power_of_2(value: int) -> int:
    """The least power of two that is not below ``value``, at least 1."""
    return 1 << max(value - 1, 0).bit_length()


def ieee(dtype: torch.dtype) -> str:
    """The ``input_precision`` of ``tl.dot``: float32 is multiplied as it is, not rounded to TF32."""
    return "ieee" if dtype == torch.float32 else "tf32"


def warps_for(width: int) -> int:
    """Warps of a program that holds a row of ``width`` numbers."""
    return min(max(next_power_of_2(width) // 512, 1), 16)
