"""What can be known of the kernels without importing Triton."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from subprocess import CalledProcessError
from types import ModuleType

import torch

SPLIT_KEYS = 256
"""Keys of a piece of a decode row. Fixed, or the order of summation would depend on the batch."""


@cache
def _why_not_started() -> str | None:
    """Why Triton cannot give a CUDA device anything; ``None`` if it can, which may take a second to find out."""
    try:
        from triton.runtime import driver  # comes with torch for CUDA

        driver.active.get_current_target()
    except (ImportError, OSError, RuntimeError, CalledProcessError) as error:
        return f"Triton, which takes a C compiler and the headers of Python, cannot be used ({error})"
    return None


@cache
def _module(name: str, device: torch.device) -> ModuleType | None:
    return import_module(f"bough.kernels.triton.{name}") if why_not_triton(device) is None else None


def kernels_for(x: torch.Tensor, name: str) -> ModuleType | None:
    """Module ``name`` of this package if ``x`` is on a CUDA device that runs it; ``None``: torch computes."""
    return _module(name, x.device) if x.is_cuda else None


_VERSION = (3, 6)
"""Of Triton. Kernels are not tried with older ones, and ask for what these may not have."""

_CAPABILITY = (8, 0)
"""Older devices have less memory for a program than the tiles of prompts take."""

_FLOAT8_CAPABILITY = (8, 9)


def why_not_float8(device: torch.device) -> str | None:
    """Why kernels cannot compute with 8-bit floating point on ``device``; ``None`` if they can."""
    return why_not_triton(device) or _why_too_old(device, _FLOAT8_CAPABILITY, "8-bit floating point")


def why_not_triton(device: torch.device) -> str | None:
    """Why kernels cannot run on ``device``; ``None`` if they can: on CUDA, or in the interpreter."""
    try:
        from triton import __version__, knobs
    except ImportError as error:
        return f"Triton cannot be used ({error})"
    if tuple(map(int, __version__.split(".")[:2])) < _VERSION:
        return f"Triton {'.'.join(map(str, _VERSION))} or newer is needed, and {__version__} is installed"
    if device.type != "cuda" and not knobs.runtime.interpret:
        return "Triton's kernels need a CUDA device"
    if device.type != "cuda":
        return None
    return _why_not_started() or _why_too_old(device, _CAPABILITY, "Triton's kernels")


def _why_too_old(device: torch.device, least: tuple[int, int], what: str) -> str | None:
    if device.type != "cuda" or (capability := torch.cuda.get_device_capability(device)) >= least:
        return None
    wanted, found = (".".join(map(str, each)) for each in (least, capability))
    return f"{what}: compute capability {wanted} is needed, {device} has {found}"
