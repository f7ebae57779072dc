"""Small host arrays to the device, without waiting for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

_ALIGNMENT = 16
"""Bytes; kernels are compiled for tensors that begin at multiples of it."""


def to_device(array: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """The array as a tensor on ``device``.

    On the CPU the tensor shares the array's memory. Elsewhere the copy goes through page-locked memory, because a copy
    from pageable memory may wait for everything that the device has still to do.
    """
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def all_to_device(arrays: Sequence[npt.NDArray[Any]], device: torch.device) -> list[torch.Tensor]:
    """Several arrays like :func:`to_device`, by one copy: each costs the host more than its bytes cost the device."""
    if device.type == "cpu":
        return [torch.from_numpy(array) for array in arrays]
    packed, begins = packed_arrays(arrays)
    return unpacked_tensors(to_device(packed, device), arrays, begins)


def packed_arrays(arrays: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """All arrays in one piece of memory, and at which byte each begins."""
    ends = np.cumsum([-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays]).tolist()
    begins = [0, *ends[:-1]]
    packed = np.empty(ends[-1], dtype=np.uint8)
    for array, begin in zip(arrays, begins, strict=True):
        packed[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return packed, begins


def unpacked_tensors(
    packed: torch.Tensor, arrays: Sequence[npt.NDArray[Any]], begins: Sequence[int]
) -> list[torch.Tensor]:
    """The tensors that :func:`packed_arrays` has laid into ``packed`` (uint8), as views."""
    return [
        packed[begin : begin + array.nbytes].view(torch.from_numpy(array[:0]).dtype).view(array.shape)
        for array, begin in zip(arrays, begins, strict=True)
    ]
