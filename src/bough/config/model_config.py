"""Facts about a checkpoint, read from its JSON files. No torch here."""

from __future__ import annotations

import dataclasses
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from bough.config.architectures import (
    TRANSFORMERS_EXTRA,
    Implementation,
    chosen_implementation,
    has_transformers,
    load_reader,
    supported_architectures,
)
from bough.config.checked_values import CheckedValues
from bough.config.checkpoint import check_is_no_adapter, read_json, resolve_model_path
from bough.config.engine_args import EngineArgs
from bough.config.eos_tokens import read_eos_token_ids
from bough.config.file_kinds import but_is
from bough.config.model_facts import AttentionArguments, ModelFacts
from bough.config.pooling import PoolingConfig, max_sequence_tokens, read_pooling
from bough.config.stored_quantization import StoredQuantization, quantization_entry, read_stored_quantization
from bough.config.text_config import text_entries
from bough.config.user_paths import path_kind
from bough.errors import CheckpointError, ConfigError
from bough.kernels.library import Isa, LibraryMissing, best_isa
from bough.other_engines import SAME_VALUES

DTypeName = Literal["float32", "bfloat16", "float16"]
DeviceType = Literal["cpu", "cuda"]

STORED_AS = "gguf_type"
"""Entry of a GGUF file's configuration: how most of its weights are stored, such as ``Q4_K_M``."""

LLAMA_CPP_WINDOW = 64
"""Default number of recent tokens to which llama.cpp and Ollama apply a repetition penalty (``repeat_last_n``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(ModelFacts):
    """What the rest of the system must know about a checkpoint. Made by :meth:`from_path`."""

    model_path: str
    """Local directory with the files, or a GGUF file."""
    hf_config: dict[str, Any]
    """config.json as it is, or what it would be of a GGUF file, for facts that concern one family only."""
    generation_config: dict[str, Any]
    """generation_config.json in the same way, or an empty dictionary."""
    architecture: str
    context_len: int
    """Longest sequence that will be served, in tokens."""
    checkpoint_dtype: DTypeName
    dtype: DTypeName
    """Type of weights, activations and KV."""
    dtype_is_auto: bool
    eos_token_ids: tuple[int, ...]
    """Ascending, without duplicates; may be empty."""
    pooling: PoolingConfig | None = None
    """How the model makes a vector of a sequence; ``None`` if it generates text."""
    stored_quantization: StoredQuantization | None = None
    """How the checkpoint's safetensors are quantised; ``None`` if they are not. GGUF files say it of each tensor."""
    implementation: Implementation = "bough"
    attention_arguments: tuple[AttentionArguments, ...] = ()
    """Attention of a model of transformers, by layer, once a worker has found it out; else empty."""

    @property
    def is_generation(self) -> bool:
        """Whether the model generates text; otherwise it makes embeddings or class scores."""
        return self.pooling is None

    @property
    def is_gguf(self) -> bool:
        """True if the checkpoint is a GGUF file."""
        return STORED_AS in self.hf_config

    def for_device(self, device: DeviceType) -> ModelConfig:
        """This configuration with the dtype that ``auto`` means on ``device``."""
        if not self.dtype_is_auto:
            return self
        native = self.implementation == "bough"
        dtype = _auto_dtype(self.checkpoint_dtype, device, is_encoder=self.is_encoder, native=native)
        return dataclasses.replace(self, dtype=dtype)

    @classmethod
    def from_path(cls, model_path: str, **options: Any) -> ModelConfig:
        """Read a checkpoint's configuration as :meth:`from_args` does, with other options of an engine as keywords."""
        return cls.from_args(EngineArgs(model_path=model_path, **options))

    @classmethod
    def from_args(cls, args: EngineArgs) -> ModelConfig:
        """Read a checkpoint's configuration, downloading the checkpoint first if it is only on the hub.

        Args:
            args: of an engine. The end-of-sequence tokens of ``tokenizer_path`` count if that is a local path; what
                ``dtype`` ``auto`` means depends on ``device``.

        Raises:
            ConfigError: one line that says what is wrong with the checkpoint or the options.
        """
        directory = resolve_model_path(args.model_path, revision=args.revision, load_format=args.load_format)
        if directory.is_file():
            from bough.config.gguf_config import read_gguf_config  # late: numpy, which the main process does without

            config_file, (hf_config, generation_config) = directory, read_gguf_config(directory)
        else:
            config_file, hf_config, generation_config = _read_json_files(directory)
        overrides = args.json_model_override_args or {}
        hf_config = {**text_entries(config_file, {**hf_config, **overrides}), **overrides}
        values = CheckedValues(config_file, hf_config)
        architecture = _architecture(values)
        implementation = _implementation(values, architecture, args)
        reader = load_reader(architecture, implementation)(values, architecture)
        facts: ModelFacts = reader.read()
        pooling = read_pooling(
            directory,
            architecture,
            hf_config,
            facts.hidden_size,
            usual=reader.usual_pooling,
            is_embedding=args.is_embedding,
            method=None if args.pooling_method == "auto" else args.pooling_method,
        )
        context_length = args.context_length
        if pooling is not None and context_length is None:
            context_length = max_sequence_tokens(directory, facts.derived_context_len)
        checkpoint_dtype = _checkpoint_dtype(values)
        tokenizer = (
            Path(args.tokenizer_path) if args.tokenizer_path and Path(args.tokenizer_path).exists() else directory
        )
        config = cls(
            **{field.name: getattr(facts, field.name) for field in dataclasses.fields(ModelFacts)},
            model_path=str(directory),
            hf_config=hf_config,
            generation_config=generation_config,
            architecture=architecture,
            context_len=_context_len(context_length, facts, config_file),
            checkpoint_dtype=checkpoint_dtype,
            dtype=checkpoint_dtype if args.dtype == "auto" else args.dtype,
            dtype_is_auto=args.dtype == "auto",
            eos_token_ids=read_eos_token_ids(hf_config, generation_config, directory, tokenizer, facts.vocab_size),
            pooling=pooling,
            stored_quantization=_read_quantization(values, directory, is_encoder=facts.is_encoder),
            implementation=implementation,
        )
        return config.for_device(_device_type(args.device))


def _read_json_files(directory: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Path and content of config.json, and the content of generation_config.json."""
    config_file, generation_file = directory / "config.json", directory / "generation_config.json"
    if path_kind(config_file, "model_path") != "file":
        check_is_no_adapter(directory)
        raise ConfigError(
            f"{directory} is not a checkpoint in Hugging Face format: it has no config.json{but_is(config_file)}",
            param="model_path",
        )
    has_generation_file = path_kind(generation_file, "model_path") == "file"
    contents = [read_json(config_file), read_json(generation_file) if has_generation_file else {}]
    for file, content in zip((config_file, generation_file), contents, strict=True):
        if not isinstance(content, dict):
            raise CheckpointError(f"{file} must hold a JSON object", param="model_path")
    return config_file, contents[0], contents[1]


def _architecture(values: CheckedValues) -> str:
    architectures = values.get("architectures")
    if not (isinstance(architectures, list) and architectures and isinstance(architectures[0], str)):
        raise values.error("architectures", "must name the model's class", architectures)
    return architectures[0]


def _implementation(values: CheckedValues, architecture: str, args: EngineArgs) -> Implementation:
    """The code that computes an architecture. Raises :class:`ConfigError` if nothing here does."""
    implementation = chosen_implementation(architecture, args.model_impl)
    if implementation is None:
        hint = "" if args.model_impl == "bough" or has_transformers() else f"; more are with {TRANSFORMERS_EXTRA}"
        supported = ", ".join(supported_architectures())
        raise values.refusal(f"architecture {architecture} is not supported; supported are {supported}{hint}")
    if implementation == "transformers":
        if STORED_AS in values.entries:
            raise values.refusal("GGUF files are read for Bough's own families alone")
        if args.is_embedding:
            raise values.refusal(f"{architecture} is computed by transformers, which makes no embeddings here")
    return implementation


def _read_quantization(values: CheckedValues, directory: Path, *, is_encoder: bool) -> StoredQuantization | None:
    entry = quantization_entry(directory, dict(values.entries))
    if entry is None:
        return None
    if is_encoder:
        raise values.refusal("quantised encoders are not supported; use an unquantised one")
    return read_stored_quantization(values.source, entry)


def _context_len(wanted: int | None, facts: ModelFacts, source: Path) -> int:
    if wanted is None:
        return facts.derived_context_len
    limit = facts.longest_context_len
    if wanted > limit:
        raise ConfigError(
            f"--context-length {wanted} exceeds the {limit} positions that the model was made for; lower it, or "
            f"set rope_scaling in {source} or with --json-model-override-args",
            param="context_length",
        )
    return wanted


def _checkpoint_dtype(values: CheckedValues) -> DTypeName:
    name = values.get("dtype") or values.get("torch_dtype") or "float32"
    bare = name.removeprefix("torch.") if isinstance(name, str) else ""
    for known in get_args(DTypeName):
        if known == SAME_VALUES["dtype"].get(bare, bare):
            return cast(DTypeName, known)
    raise values.error("dtype", "must be float32, bfloat16 or float16", name)


def _device_type(device: str) -> DeviceType:
    if device == "auto":
        return "cuda" if Path("/dev/nvidiactl").exists() else "cpu"
    return "cuda" if device.startswith("cuda") else "cpu"


def _auto_dtype(checkpoint_dtype: DTypeName, device: DeviceType, *, is_encoder: bool, native: bool = True) -> DTypeName:
    """The checkpoint's own type, except for half precision on CPUs.

    Language models run in bfloat16 where the CPU has instructions for it, or the native kernels widen it as they read:
    half the memory of float32 and twice the speed of decoding, for a sixth of the speed of long prompts at worst. torch
    alone would emulate it, slower than float32. Encoders are small, and their vectors are compared: float32.
    ``native`` says whether native kernels can run the model.
    """
    if device == "cuda" or checkpoint_dtype == "float32":
        return checkpoint_dtype
    if is_encoder:
        return "float32"
    return "bfloat16" if _cpu_has_bfloat16() or (native and _kernels_widen_bfloat16()) else "float32"


def _kernels_widen_bfloat16() -> bool:
    try:
        return best_isa() >= Isa.AVX2
    except LibraryMissing:
        return False


def _cpu_has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    try:
        flags = next(
            (line.split() for line in cpuinfo.read_text().splitlines() if line.startswith(("flags", "Features"))), []
        )
    except OSError:
        return platform.machine() == "arm64" and platform.system() == "Darwin"
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(flags))
