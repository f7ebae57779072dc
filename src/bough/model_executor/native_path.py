"""Which models the native CPU kernels run, and which torch does."""

from __future__ import annotations

import logging

import torch

from bough.config.model_config import ModelConfig
from bough.kernels.library import LibraryMissing, current_isa, load_library
from bough.kernels.program import KERNEL_DTYPES
from bough.kernels.thread_pool import ThreadPool
from bough.models.base import torch_dtype

logger = logging.getLogger(__name__)


def native_threads(config: ModelConfig, device: torch.device, num_threads: int) -> ThreadPool | None:
    """Threads for the native kernels, or ``None`` if torch is to compute, the reason in the log.

    Args:
        config: of the model.
        device: that is to run it.
        num_threads: of the pool.
    """
    if device.type != "cpu" or config.pooling is not None:
        return None
    if torch_dtype(config) not in KERNEL_DTYPES:
        logger.warning(
            "The native CPU kernels have no %s: torch computes, several times slower. Use --dtype bfloat16 or float32.",
            config.dtype,
        )
        return None
    try:
        load_library()
    except LibraryMissing as missing:
        logger.warning("torch computes, several times slower than native kernels: %s.", missing)
        return None
    logger.info("native CPU kernels: %s, %d threads", current_isa().name, num_threads)
    return ThreadPool(num_threads)
