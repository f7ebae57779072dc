"""Which backend computes attention, where native CPU kernels do not."""

from __future__ import annotations

import logging

from bough.config.model_config import ModelConfig
from bough.config.server_args import AttentionBackendName
from bough.errors import ConfigError
from bough.kernels.triton.available import why_not_float8, why_not_triton
from bough.layers.attention.base import AttentionBackend
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.mem_cache.kv_pool import FLOAT8_DTYPES, KVPool
from bough.model_executor.determinism import cannot_be_deterministic
from bough.models.base import torch_dtype

logger = logging.getLogger(__name__)

_WIDEST_HEAD = 256


def attention_backend(
    name: AttentionBackendName | None, kv_pool: KVPool, config: ModelConfig, *, deterministic: bool = False
) -> AttentionBackend:
    """The backend that the user wants, or the best one for the pool's device.

    Args:
        name: ``None``: Triton's on CUDA, if it is installed and can run the model, else torch's.
        kv_pool: where keys and values are.
        config: of the model.
        deterministic: whether a query's result must have the same bits in a prompt and in a decode step: Triton's only.

    Raises:
        ConfigError: if the one that was asked for, or none that is deterministic, can run here.
    """
    if kv_pool.dtype in FLOAT8_DTYPES:
        _check_float8(name, kv_pool)
    if name == "torch_native" or (name is None and kv_pool.device.type != "cuda"):
        return TorchNativeBackend(kv_pool, config.layer_windows)
    problem = _why_not_triton(kv_pool)
    if problem is None:
        from bough.layers.attention.triton import TritonBackend

        dtype = torch_dtype(config)
        return TritonBackend(kv_pool, config.layer_windows, config.num_heads, dtype=dtype, one_kernel=deterministic)
    if deterministic:
        raise cannot_be_deterministic(f"it needs Triton's attention, and {problem}")
    if name is not None:
        raise ConfigError(f"--attention-backend triton: {problem}; leave the option out", param="attention_backend")
    logger.warning("torch computes attention, many times slower than Triton: %s.", problem)
    return TorchNativeBackend(kv_pool, config.layer_windows)


def _check_float8(name: AttentionBackendName | None, kv_pool: KVPool) -> None:
    problem = None
    if name == "torch_native" or (name is None and kv_pool.device.type != "cuda"):
        problem = "only Triton's attention reads it, on CUDA"
    problem = problem or why_not_float8(kv_pool.device) or _why_not_triton(kv_pool)
    if problem is not None:
        raise ConfigError(
            f"--kv-cache-dtype of 8-bit floating point cannot be used: {problem}; leave the option out",
            param="kv_cache_dtype",
        )


def _why_not_triton(kv_pool: KVPool) -> str | None:
    problem = why_not_triton(kv_pool.device)
    if problem is None and kv_pool.head_dim > _WIDEST_HEAD:
        return f"heads of {kv_pool.head_dim} numbers are wider than its kernels' {_WIDEST_HEAD}"
    return problem
