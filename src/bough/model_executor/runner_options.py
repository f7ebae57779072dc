"""How a model is to be run."""

from __future__ import annotations

from dataclasses import dataclass

from bough.config.engine_args import AttentionBackendName, KVCacheDType, Quantization

DEFAULT_PAGE_SIZE = 16
"""Gathering whole pages is several times faster than gathering tokens; larger pages share less of a prefix."""


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What a user may say about how a model is run; ``None`` lets the runner choose."""

    load_format: str = "auto"
    seed: int = 0
    page_size: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    mem_fraction_static: float | None = None
    max_step_tokens: int = 16384
    """Most new tokens of a step; memory for them is set aside."""
    quantization: Quantization = "none"
    """What weights become while they are loaded."""
    kv_cache_dtype: KVCacheDType = "auto"
    """How the KV pool holds keys and values."""
    attention_backend: AttentionBackendName | None = None
    """``None``: native kernels where they run the model, else Triton's on CUDA, else torch; never FlashInfer."""
    disable_cuda_graph: bool = False
    cuda_graph_max_bs: int | None = None
    """Most rows of a recorded decode step; ``None``: 256."""
    disable_prefill_cuda_graph: bool = False
    cuda_graph_max_bs_prefill: int | None = None
    """Most tokens of a recorded forward pass of prompts; ``None``: 1024."""
    deterministic: bool = False
    """A row's results must not depend on the others, nor on how prompts are cut or cached, in any bit."""
    bind_threads: bool = False
    """Threads of the native kernels get cores of their own, and the calling thread is kept to two others."""
    native: bool = True
    """Use the native kernels where they can run the model; false: torch computes everything."""
