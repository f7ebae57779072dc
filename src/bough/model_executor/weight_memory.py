"""True if a model's weights have room: asked before any memory is taken for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import torch

from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.errors import StartupError
from bough.layers.linear_method import TORCH, MethodChoice
from bough.model_executor.machine import Machine, gib
from bough.models.base import torch_dtype
from bough.models.registry import make_model
from bough.process_usage import private_bytes

logger = logging.getLogger(__name__)


def available_memory(
    device: torch.device, share: MachineShare = WHOLE_MACHINE, shared_bytes: int = 0
) -> tuple[int, str]:
    """Bytes of a device that can be taken now, and what bounds them.

    On a CPU they are those of a ``share`` of the machine, less what this process has taken of it: its own memory, and
    its part of ``shared_bytes``, which all schedulers of the machine have in common.
    """
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0]), f"on {device}"
    available, bound = Machine().available()
    if share.memory is None:
        return available, bound
    return share.memory_left(available, private_bytes() + share.of(shared_bytes)), bound


def weight_bytes(config: ModelConfig, method: MethodChoice = TORCH) -> int:
    """Memory of a model's weights once it is loaded; a ``method`` that packs must do so in an ``OutlineArena``."""
    with torch.device("meta"):
        model = make_model(config, method)
    return sum(parameter.nbytes for parameter in model.parameters())


def largest_weight_bytes(config: ModelConfig) -> int:
    """What the largest tensor of a model's checkpoint takes, in the model's type."""
    return config.largest_matrix() * torch_dtype(config).itemsize


def check_weights_fit(
    device: torch.device,
    needed: int,
    smaller: Mapping[str, Callable[[], int]] | None = None,
    *,
    share: MachineShare = WHOLE_MACHINE,
    only_warn: bool = False,
) -> None:
    """Refuse weights that have no room, on a CPU in a ``share`` of the machine.

    Args:
        smaller: options that make them smaller, and the bytes that they take then; only asked for if they do not fit.
        only_warn: log it instead. What a system calls available leaves out what it could give back: the cache of ZFS,
            or what a graphics processor that shares its memory holds.

    Raises:
        StartupError: with the numbers, and those options that would help.
    """
    available, bound = available_memory(device, share)
    if needed <= available:
        return
    sizes = {option: measure() for option, measure in (smaller or {}).items()}
    helpful = [f"use {option} (then {gib(size)})" for option, size in sizes.items() if size <= available]
    remedies = ", or ".join([*helpful, "free memory", "take a smaller model"])
    message = f"the weights need {gib(needed)}, and {gib(available)} are available {bound}; {remedies}"
    if not only_warn:
        raise StartupError(message)
    logger.warning("%s; --max-total-tokens is set, so it is tried all the same", message)
