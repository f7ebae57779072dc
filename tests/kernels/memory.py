"""What tests of native kernels share: numbers as the kernels see them, and addresses."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough.kernels.structures import DType

STORAGE = {DType.F32: np.float32, DType.BF16: np.uint16, DType.I8: np.int8}

HALF_ULP = {DType.F32: 2.0**-24, DType.BF16: 2.0**-8}
"""Largest relative error of rounding to a type."""


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Bits of the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def encode(values: np.ndarray, dtype: DType) -> np.ndarray:
    return to_bf16(values) if dtype == DType.BF16 else np.ascontiguousarray(values, dtype=np.float32)


def decode(stored: np.ndarray, dtype: DType) -> np.ndarray:
    return from_bf16(stored) if dtype == DType.BF16 else stored


def address(array: np.ndarray | None) -> Any:
    return None if array is None else array.ctypes.data
