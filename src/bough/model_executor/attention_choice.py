"""Which backend computes attention, where native CPU kernels do not."""

from __future__ import annotations

import logging

from bough.config.model_config import ModelConfig
from bough.config.server_args import AttentionBackendName
from bough.errors import ConfigError
from bough.kernels.triton.available import why_not_triton
from bough.layers.attention.base import AttentionBackend
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.mem_cache.kv_pool import KVPool

logger = logging.getLogger(__name__)

_WIDEST_HEAD = 256


def attention_backend(name: AttentionBackendName | None, kv_pool: KVPool, config: ModelConfig) -> AttentionBackend:
    """The backend that the user wants, or the best one for the pool's device.

    Args:
        name: ``None``: Triton's on CUDA, if it is installed and can run the model, else torch's.
        kv_pool: where keys and values are.
        config: of the model.

    Raises:
        ConfigError: if the one that was asked for cannot run here.
    """
    if name == "torch_native" or (name is None and kv_pool.device.type != "cuda"):
        return TorchNativeBackend(kv_pool, config.layer_windows)
    problem = _why_not_triton(kv_pool)
    if problem is None:
        from bough.layers.attention.triton import TritonBackend

        return TritonBackend(kv_pool, config.layer_windows, config.num_heads)
    if name is not None:
        raise ConfigError(f"--attention-backend triton: {problem}; leave the option out", param="attention_backend")
    logger.warning("torch computes attention, many times slower than Triton: %s.", problem)
    return TorchNativeBackend(kv_pool, config.layer_windows)


def _why_not_triton(kv_pool: KVPool) -> str | None:
    problem = why_not_triton(kv_pool.device)
    if problem is None and kv_pool.head_dim > _WIDEST_HEAD:
        return f"heads of {kv_pool.head_dim} numbers are wider than its kernels' {_WIDEST_HEAD}"
    return problem
