"""Whether Triton's kernels are for a tensor. This module alone of the package can be imported without Triton."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch


@cache
def _module(name: str) -> ModuleType | None:
    try:
        import triton  # noqa: F401 - comes with torch for CUDA
    except ImportError:
        return None
    return import_module(f"bough.kernels.triton.{name}")


def kernels_for(x: torch.Tensor, name: str) -> ModuleType | None:
    """Module ``name`` of this package if ``x`` is on a CUDA device and Triton is there; ``None``: torch computes."""
    return _module(name) if x.is_cuda else None
