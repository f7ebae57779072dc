"""Choose how a model is computed on a device, or refuse it by the name of an option, before anything is loaded."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch

from bough.config.architectures import BACKBONES
from bough.config.engine_args import AttentionBackendName, EngineArgs
from bough.config.model_config import ModelConfig
from bough.config.sharding import WHOLE, ShardSpec
from bough.errors import ConfigError
from bough.kernels.thread_pool import ThreadPool
from bough.mem_cache.kv_pool import FLOAT8_DTYPES
from bough.model_executor.attention_choice import (
    check_attention,
    check_deterministic,
    check_recording,
    chosen_attention,
)
from bough.model_executor.core_binding import CoreBinding, bind_threads
from bough.model_executor.machine import Machine
from bough.model_executor.native_path import native_threads
from bough.model_executor.weight_choice import WeightChoice
from bough.models.base import torch_dtype
from bough.models.registry import load_model_class

logger = logging.getLogger(__name__)

_KV_DTYPES = {
    "bf16": torch.bfloat16,
    "bfloat16": torch.bfloat16,
    "int8": torch.int8,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


@dataclass(frozen=True, slots=True)
class ExecutionChoice:
    """Ways in which the model of a runner is computed: natively if there are ``threads``, else by torch and Triton."""

    threads: ThreadPool | None
    binding: CoreBinding | None
    dtype: torch.dtype
    kv_dtype: torch.dtype
    attention: AttentionBackendName | None
    weights: WeightChoice


def choose_execution(
    config: ModelConfig,
    device: torch.device,
    args: EngineArgs,
    *,
    native: bool = True,
    shard: ShardSpec = WHOLE,
) -> ExecutionChoice:
    """Choose how to compute a model, configured for its device, or the ``shard`` of it that one of several ranks has;
    with native kernels only if ``native``.

    Raises:
        ConfigError: if an option cannot have its way, or would change nothing.
    """
    if shard.world > 1:
        check_shared(config, args, shard)
        native = native and shard.style == "gather"
    deterministic = args.enable_deterministic_inference
    attention_backend = args.attention_backend
    if config.implementation == "transformers":
        attention_backend = _torch_attention(args)
    threads = native_threads(config, device, torch.get_num_threads()) if native else None
    if deterministic:
        check_deterministic(config, device, attention_backend, native=threads is not None)
    weights = WeightChoice(
        threads,
        device,
        interpreted=args.attention_backend == "triton",
        batch_invariant=deterministic,
        own_layers=config.implementation == "bough",
    )
    weights.check(args.quantization)
    if args.attention_backend is not None and threads is not None:
        raise ConfigError(
            "--attention-backend is for CUDA devices: here native CPU kernels compute attention; leave it out",
            param="attention_backend",
        )
    dtype = torch_dtype(config)
    kv_dtype = _kv_dtype(args.kv_cache_dtype, dtype, native=threads is not None)
    attention: AttentionBackendName | None = None
    if threads is None:
        check_attention(attention_backend, device, config, kv_dtype)
        attention = chosen_attention(attention_backend, device, config)
    check_recording(args, attention, device, config)
    binding: CoreBinding | None = None
    if args.bind_threads:
        if threads is None:
            raise ConfigError(
                "--bind-threads is for the native CPU kernels, which do not run this; leave it out",
                param="bind_threads",
            )
        binding = bind_threads(threads, Machine())
    return ExecutionChoice(threads, binding, dtype, kv_dtype, attention, weights)


def check_shared(config: ModelConfig, args: EngineArgs, shard: ShardSpec) -> None:
    """Refuse what several ranks cannot compute together.

    Raises:
        ConfigError: naming the option, or how many ranks can share the model.
    """
    flag = f"--tp-size {shard.world}"
    if config.implementation == "transformers":
        raise ConfigError(f"{flag} is for Bough's own families, and transformers computes this model", param="tp_size")
    if not load_model_class(BACKBONES.get(config.architecture, config.architecture)).can_be_shared:
        raise ConfigError(f"{flag}: the class of {config.architecture} is not made for ranks", param="tp_size")
    if args.enable_deterministic_inference and shard.style == "reduce":
        raise ConfigError(
            f"--enable-deterministic-inference cannot be kept with {flag}: libraries add up the results of ranks in an "
            "order of their own",
            param="enable_deterministic_inference",
        )
    config.shard_layers(shard)
    if shard.style == "reduce" and config.is_generation:
        logger.info("%d ranks compute the model together, with torch", shard.world)


def _torch_attention(args: EngineArgs) -> AttentionBackendName:
    """The attention backend of models of transformers, which may need soft-caps and sinks."""
    logger.warning("transformers computes the model, with torch, which is slower than Bough's own families")
    if args.attention_backend not in (None, "torch_native"):
        raise ConfigError(
            f"--attention-backend {args.attention_backend} is for Bough's own families, and transformers computes this "
            "model with torch_native; leave the option out",
            param="attention_backend",
        )
    return "torch_native"


def _kv_dtype(name: str, dtype: torch.dtype, *, native: bool) -> torch.dtype:
    """The type of the KV pool for an option's value and a model's type."""
    chosen = _KV_DTYPES.get(name, dtype)
    if chosen in FLOAT8_DTYPES:
        if native:
            raise ConfigError(f"--kv-cache-dtype {name} is for CUDA devices; use int8 here", param="kv_cache_dtype")
    elif chosen != dtype and not native:
        raise ConfigError(
            f"--kv-cache-dtype {name} needs the native CPU kernels, or a model in that type", param="kv_cache_dtype"
        )
    return chosen
