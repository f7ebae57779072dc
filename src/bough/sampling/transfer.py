"""Small host arrays to the device, without waiting for it."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch


def to_device(array: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """The array as a tensor on ``device``.

    On the CPU the tensor shares the array's memory. Elsewhere the copy goes through page-locked memory, because a copy
    from pageable memory may wait for everything that the device has still to do.
    """
    tensor = torch.from_numpy(array)
    if device.type == "cpu":
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)
