"""Arguments of engines by vLLM's names, and the one table of what they are in Bough."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bough.config.options import did_you_mean
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError

Translation = Callable[[Any], dict[str, Any]]
"""From a value to options of Bough."""

DEFAULT_PARAMS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "max_new_tokens": "max_tokens",
}
"""Entries of a generation_config.json, to the sampling parameters of which they are the defaults."""

_CONVERSIONS = ("int8", "int4", "fp8")
"""Formats that Bough makes of weights while it loads them."""

_STORED_FORMATS = (
    "awq",
    "awq_marlin",
    "gptq",
    "gptq_marlin",
    "fbgemm_fp8",
    "mxfp4",
    "modelopt",
    "compressed-tensors",
    "gguf",
)
"""Formats that a checkpoint says of itself that it has; their names ask for nothing."""


def _argument(default: Any, translation: Translation) -> Any:
    return dataclasses.field(default=default, metadata={"translation": translation})


def _same(name: str, default: Any = None) -> Any:
    """Declare an argument that Bough has under the name ``name``; ``None`` is Bough's default."""
    return _argument(default, lambda value: {} if value is None else {name: value})


def _reversed(name: str) -> Any:
    """Declare a switch that Bough has the other way round."""
    return _argument(None, lambda value: {} if value is None else {name: not value})


def _only(argument: str, *values: Any) -> Any:
    """Declare an argument of which Bough does one thing: ``values`` ask for it, the first by default."""

    def check(value: Any) -> dict[str, Any]:
        _check_value(argument, value, values)
        return {}

    return _argument(values[0], check)


def _ignored(default: Any = None) -> Any:
    """Declare an argument that asks for nothing here, whatever its value."""
    return _argument(default, lambda value: {})


def _memory(value: float | None) -> dict[str, Any]:
    """Share of a GPU's memory; on a CPU Bough chooses itself, since most of a machine's memory is not the engine's."""
    import torch

    return {} if value is None or not torch.cuda.is_available() else {"mem_fraction_static": value}


def _runner(value: str) -> dict[str, Any]:
    """Use of a language model: to generate, or for embeddings. :class:`~vllm._core.Core` refuses other models."""
    _check_value("runner", value, ("auto", "generate", "pooling"))
    return {"is_embedding": True} if value == "pooling" else {}


def _quantization(value: str | None) -> dict[str, Any]:
    """How weights are quantised while they are loaded; formats of checkpoints are recognised."""
    if value is None or value in _STORED_FORMATS:
        return {}
    _check_value("quantization", value, (*_CONVERSIONS, *_STORED_FORMATS))
    return {"quantization": value}


def _scheduling_policy(value: str | None) -> dict[str, Any]:
    """Order of requests that wait."""
    if value is None:
        return {}
    _check_value("scheduling_policy", value, ("fcfs", "priority"))
    return {"schedule_policy": value}


def _generation_config(value: str) -> dict[str, Any]:
    """Where default sampling parameters come from: the checkpoint, or vLLM's constants."""
    _check_value("generation_config", value, ("auto", "vllm"))
    return {"sampling_defaults": "openai"} if value == "vllm" else {}


def _override_generation_config(value: dict[str, Any] | None) -> dict[str, Any]:
    """Default sampling parameters beside those."""
    for name in value or ():
        _check_value("override_generation_config", name, tuple(DEFAULT_PARAMS))
    return {"preferred_sampling_params": value} if value else {}


def _max_logprobs(value: int) -> dict[str, Any]:
    """Most logprobs that a request may ask for; -1 is as many as Bough gives."""
    return {} if value == -1 else {"max_logprobs": value}


def _check_value(argument: str, value: Any, values: Sequence[Any]) -> None:
    if value not in values:
        shown = " or ".join(map(repr, values))
        raise ConfigError(f"{argument} must be {shown} with Bough, got {value!r}", param=argument)


@dataclass
class EngineArgs:
    """Arguments of an engine. Each says how it is translated; there are no others.

    Raises:
        ConfigError: if Bough cannot do what one asks for.
    """

    model: str = _same("model_path", "sapling")
    runner: str = _argument("auto", _runner)
    tokenizer: str | None = _same("tokenizer_path")
    skip_tokenizer_init: bool = _same("skip_tokenizer_init", False)
    revision: str | None = _same("revision")
    load_format: str = _same("load_format", "auto")
    dtype: str = _same("dtype", "auto")
    quantization: str | None = _argument(None, _quantization)
    kv_cache_dtype: str = _same("kv_cache_dtype", "auto")
    seed: int | None = _same("random_seed", 0)
    max_model_len: int | None = _same("context_length")
    hf_overrides: dict[str, Any] | None = _argument(
        None, lambda value: {"json_model_override_args": value} if value else {}
    )
    served_model_name: str | None = _same("served_model_name")
    gpu_memory_utilization: float | None = _argument(None, _memory)
    max_num_seqs: int | None = _same("max_running_requests")
    max_num_batched_tokens: int | None = _same("max_prefill_tokens")
    block_size: int | None = _same("page_size")
    enable_prefix_caching: bool | None = _reversed("disable_radix_cache")
    enforce_eager: bool = _same("disable_cuda_graph", False)
    tensor_parallel_size: int = _same("tp_size", 1)
    data_parallel_size: int = _same("dp_size", 1)
    pipeline_parallel_size: int = _only("pipeline_parallel_size", 1)
    distributed_executor_backend: str | None = _same("distributed_executor_backend")
    worker_extension_cls: str = _argument("", lambda value: {"worker_extension_cls": value} if value else {})
    worker_cls: str = _argument("auto", lambda value: {} if value == "auto" else {"worker_cls": value})
    scheduling_policy: str | None = _argument(None, _scheduling_policy)
    generation_config: str = _argument("auto", _generation_config)
    override_generation_config: dict[str, Any] | None = _argument(None, _override_generation_config)
    logprobs_mode: str | None = _only("logprobs_mode", None, "raw_logprobs", "processed_logprobs")
    """Bough's logprobs are those after temperature and before truncation; where a mode is given, requests for which it
    asks for others are refused."""
    max_logprobs: int = _argument(20, _max_logprobs)
    tokenizer_mode: str = _only("tokenizer_mode", "auto")
    swap_space: float = _only("swap_space", 0, 4)
    cpu_offload_gb: float = _only("cpu_offload_gb", 0)
    enable_lora: bool = _only("enable_lora", False)
    enable_chunked_prefill: bool | None = _only("enable_chunked_prefill", None, True)
    trust_remote_code: bool = _ignored(False)
    """Code of a checkpoint is never run; what needs it is refused."""
    enable_sleep_mode: bool = _ignored(False)
    """Every engine can sleep."""
    limit_mm_per_prompt: dict[str, Any] | None = _ignored()
    """Prompts with images are refused."""
    disable_log_stats: bool = _ignored(False)
    disable_log_requests: bool = _ignored(True)
    enable_log_requests: bool = _argument(False, lambda value: {"log_requests": True} if value else {})
    disable_custom_all_reduce: bool = _ignored(False)

    def __new__(cls, *args: Any, **keywords: Any) -> EngineArgs:
        """Refuse unknown names, with a suggestion."""
        known = [each.name for each in dataclasses.fields(cls)]
        for name in keywords:
            if name not in known:
                raise TypeError(
                    f"{cls.__name__}() got an unexpected keyword argument {name!r}{did_you_mean(name, known)}"
                )
        return super().__new__(cls)

    def server_args(self) -> ServerArgs:
        """Return Bough's options; raises :class:`ConfigError`."""
        if self.data_parallel_size > 1 and (self.worker_extension_cls or self.worker_cls != "auto"):
            # Workers of all replicas would join the trainer's group under the same ranks.
            raise ConfigError(
                "data_parallel_size must be 1 with classes of workers: torch's ranks begin at 0 in each replica; start "
                "an engine for each instead",
                param="data_parallel_size",
            )
        options: dict[str, Any] = {"log_level": "error", "incremental_streaming_output": True}
        for each in dataclasses.fields(self):
            options.update(each.metadata["translation"](getattr(self, each.name)))
        return ServerArgs.of_keywords(options)


@dataclass
class AsyncEngineArgs(EngineArgs):
    """Arguments of an :class:`~vllm.engine.async_llm_engine.AsyncLLMEngine`."""
