"""What can be known of the kernels without importing Triton."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

import torch

SPLIT_KEYS = 256
"""Keys of a piece of a decode row. Fixed, or the order of summation would depend on the batch."""


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


_CAPABILITY = (8, 0)
"""Older devices have less memory for a program than the tiles of prompts take."""

_FLOAT8_CAPABILITY = (8, 9)


def why_not_float8(device: torch.device) -> str | None:
    """Why kernels cannot compute with 8-bit floating point on ``device``; ``None`` if they can."""
    return why_not_triton(device) or _why_too_old(device, _FLOAT8_CAPABILITY, "8-bit floating point")


def why_not_triton(device: torch.device) -> str | None:
    """Why kernels cannot run on ``device``; ``None`` if they can: on CUDA, or in the interpreter."""
    try:
        from triton import knobs
    except ImportError as error:
        return f"Triton cannot be used ({error})"
    if device.type != "cuda" and not knobs.runtime.interpret:
        return "Triton's kernels need a CUDA device"
    return _why_too_old(device, _CAPABILITY, "Triton's kernels")


def _why_too_old(device: torch.device, least: tuple[int, int], what: str) -> str | None:
    if device.type != "cuda" or (capability := torch.cuda.get_device_capability(device)) >= least:
        return None
    wanted, found = (".".join(map(str, each)) for each in (least, capability))
    return f"{what}: compute capability {wanted} is needed, {device} has {found}"
