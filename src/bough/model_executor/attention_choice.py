"""Choose what computes attention where native CPU kernels do not, or refuse it."""

from __future__ import annotations

import logging
from importlib import import_module

import torch

from bough.config.engine_args import AttentionBackendName, EngineArgs
from bough.config.model_config import ModelConfig
from bough.errors import ConfigError
from bough.kernels.triton.available import why_not_float8, why_not_triton
from bough.layers.attention.base import AttentionBackend
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.mem_cache.kv_pool import FLOAT8_DTYPES, KVPool
from bough.model_executor.capacity import decode_pieces_room
from bough.models.base import torch_dtype

logger = logging.getLogger(__name__)

_WIDEST_HEAD = 256
_FLASHINFER_HEADS = (64, 128, 256)


def chosen_attention(
    name: AttentionBackendName | None, device: torch.device, config: ModelConfig
) -> AttentionBackendName:
    """What computes attention: what the user wants, else Triton on CUDA if it can run the model, else torch."""
    if is_torch_attention(name, device):
        return "torch_native"
    problem = why_not_triton_attention(device, config)
    if problem is not None:
        logger.warning("torch computes attention, many times slower than Triton: %s.", problem)
        return "torch_native"
    return name or "triton"


def is_torch_attention(name: AttentionBackendName | None, device: torch.device) -> bool:
    """True if torch is to compute attention, whatever Triton could do."""
    return name == "torch_native" or (name is None and device.type != "cuda")


def check_attention(
    name: AttentionBackendName | None, device: torch.device, config: ModelConfig, kv_dtype: torch.dtype
) -> None:
    """Refuse, before anything is loaded, what no backend here can do.

    Raises:
        ConfigError: if the backend cannot run here, or none reads such a pool.
    """
    if kv_dtype in FLOAT8_DTYPES:
        problem = (
            "only Triton's attention reads it, on CUDA"
            if name == "flashinfer" or is_torch_attention(name, device)
            else why_not_float8(device) or why_not_triton_attention(device, config)
        )
        if problem is not None:
            raise ConfigError(
                f"--kv-cache-dtype of 8-bit floating point cannot be used: {problem}; leave the option out",
                param="kv_cache_dtype",
            )
    if name in ("triton", "flashinfer"):
        why_not = why_not_triton_attention if name == "triton" else why_not_flashinfer
        if (problem := why_not(device, config)) is not None:
            raise ConfigError(f"--attention-backend {name}: {problem}; leave the option out", param="attention_backend")


def cannot_be_deterministic(reason: str) -> ConfigError:
    """The error about an option that cannot be kept."""
    return ConfigError(f"--enable-deterministic-inference: {reason}", param="enable_deterministic_inference")


def check_deterministic(
    config: ModelConfig, device: torch.device, attention: AttentionBackendName | None, *, native: bool
) -> None:
    """Refuse, before anything is loaded, what would let a row's results depend on the rows beside it.

    Raises:
        ConfigError: with the reason.
    """
    if not config.is_generation:
        raise cannot_be_deterministic(f"{config.architecture} makes vectors, and it is for models that generate text")
    if native:
        logger.info("deterministic inference costs nothing here: native kernels compute each row by itself")
    elif is_torch_attention(attention, device):
        raise cannot_be_deterministic(
            "torch would compute, whose products depend on how many rows there are; use the native CPU kernels with "
            "--dtype bfloat16 or float32, or Triton's attention on CUDA"
        )
    elif attention == "flashinfer":
        raise cannot_be_deterministic("it needs Triton's attention; leave --attention-backend out")
    elif (problem := why_not_triton_attention(device, config)) is not None:
        raise cannot_be_deterministic(f"it needs Triton's attention, and {problem}")


def check_recording(
    args: EngineArgs, attention: AttentionBackendName | None, device: torch.device, config: ModelConfig
) -> None:
    """Refuse an option for recorded decode steps where there are none, and say where a user would not expect that.

    Arguments as in :func:`why_not_recorded`.

    Raises:
        ConfigError: naming the option.
    """
    problem = why_not_recorded(args, attention, device, config)
    for name in ("cuda_graph_max_bs", "cuda_graph_max_bs_prefill"):
        if problem is not None and getattr(args, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} has no effect: {problem}; leave it out", param=name)
    if args.disable_prefill_cuda_graph and args.cuda_graph_max_bs_prefill is not None:
        raise ConfigError(
            "--cuda-graph-max-bs-prefill has no effect beside --disable-prefill-cuda-graph; leave one out",
            param="cuda_graph_max_bs_prefill",
        )
    if problem is not None and device.type == "cuda" and attention != "triton" and config.is_generation:
        logger.warning("decode steps are launched kernel by kernel, which is slower: %s", problem)


def why_not_recorded(
    args: EngineArgs, attention: AttentionBackendName | None, device: torch.device, config: ModelConfig
) -> str | None:
    """Why decode steps are not recorded as CUDA graphs; ``None`` if they are. Native kernels: no ``attention``."""
    if device.type != "cuda":
        return "decode steps are recorded on CUDA devices only"
    if args.disable_cuda_graph:
        return "--disable-cuda-graph is set"
    if not config.is_generation:
        return "the model generates nothing"
    if attention != "triton":
        return "decode steps are recorded with Triton's attention only"
    return None


def attention_backend(
    name: AttentionBackendName,
    kv_pool: KVPool,
    config: ModelConfig,
    *,
    max_running_requests: int,
    deterministic: bool = False,
) -> AttentionBackend:
    """The backend of a name that :func:`check_attention` has accepted, for so many decode rows at most.

    ``deterministic``: a query's result has the same bits in a prompt and in a decode step, which only Triton's has.
    """
    if name == "torch_native":
        return TorchNativeBackend(kv_pool, config.windows())
    dtype, windows, num_heads = torch_dtype(config), config.windows(), config.num_query_heads()
    if name == "flashinfer":
        from bough.layers.attention.flashinfer import FlashInferBackend

        return FlashInferBackend(kv_pool, windows, num_heads, dtype=dtype)
    from bough.layers.attention.triton import TritonBackend

    max_pieces = decode_pieces_room(config, kv_pool.max_total_tokens, max_running_requests)
    return TritonBackend(
        kv_pool,
        config.windows(),
        config.num_query_heads(),
        max_pieces=max_pieces,
        dtype=dtype,
        one_kernel=deterministic,
    )


def why_not_flashinfer(device: torch.device, config: ModelConfig) -> str | None:
    """Why FlashInfer cannot compute the model's attention on ``device``; ``None`` if it can."""
    problem = why_not_triton(device)  # whose kernels store keys and values
    if problem is not None:
        return problem
    try:
        import_module("flashinfer")
    except ImportError as error:
        return f"the package flashinfer-python cannot be imported ({error})"
    if any(shape.scaling not in (None, shape.head_dim**-0.5) for shape in config.attention_shapes()):
        return "it has one factor on scores, that of a head's width"
    if any(shape.sinks for shape in config.attention_shapes()):
        return "it has no attention sinks"
    if config.dtype == "float32":
        return "it computes in float16 and bfloat16 only"
    if (head_dim := config.kv_layout().head_dim) not in _FLASHINFER_HEADS:
        return f"heads of {head_dim} numbers are none of its {', '.join(map(str, _FLASHINFER_HEADS))}"
    return None


def why_not_triton_attention(device: torch.device, config: ModelConfig) -> str | None:
    """Why Triton cannot compute the model's attention on ``device``; ``None`` if it can."""
    problem = why_not_triton(device)
    if problem is None and (head_dim := config.kv_layout().head_dim) > _WIDEST_HEAD:
        return f"heads of {head_dim} numbers are wider than its kernels' {_WIDEST_HEAD}"
    return problem
