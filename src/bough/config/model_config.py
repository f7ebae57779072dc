"""Facts about a checkpoint, read from its JSON files. No torch here."""

from __future__ import annotations

import dataclasses
import math
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from bough.config.checkpoint import GGUF_SUFFIX, check_is_no_adapter, read_json, resolve_model_path
from bough.config.declared_tokens import declared_tokens, token_text
from bough.config.pooling import PoolingConfig, PoolingMethod, max_sequence_tokens, read_pooling
from bough.config.stored_quantization import StoredQuantization, quantization_entry, read_stored_quantization
from bough.config.user_paths import path_kind
from bough.errors import ConfigError
from bough.kernels.library import Isa, LibraryMissing, best_isa
from bough.models.registry import (
    BACKBONES,
    ENCODER_MODULES,
    FAKE_ARCHITECTURE,
    supported_architectures,
)

DTypeName = Literal["float32", "bfloat16", "float16"]
DeviceType = Literal["cpu", "cuda"]
RopeType = Literal["default", "linear", "dynamic", "llama3", "yarn", "frequency_factors"]

STORED_AS = "gguf_type"
"""Entry of a GGUF file's configuration: how most of its weights are stored, such as ``Q4_K_M``."""

FREQUENCY_FACTORS = "frequency_factors"
"""A rope type that has no name elsewhere: each pair has a factor of its own, as in GGUF files."""

_ROPE_TYPES = ("default", "linear", "dynamic", "llama3", "yarn", FREQUENCY_FACTORS)
_DTYPE_ALIASES: dict[str, DTypeName] = {
    "float32": "float32",
    "float": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
}
# What a family's own configuration class supplies where config.json is silent, as far as families differ.
_FAMILY_DEFAULTS: dict[str, dict[str, Any]] = {
    "MistralForCausalLM": {"max_position_embeddings": 131_072, "sliding_window": 4096, "num_key_value_heads": 8},
    "Qwen2ForCausalLM": {
        "max_position_embeddings": 32_768,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "num_key_value_heads": 32,
    },
    "Qwen3ForCausalLM": {
        "max_position_embeddings": 32_768,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "num_key_value_heads": 32,
        "head_dim": 128,
    },
}
_LARGEST_INTEGER = 2**31 - 1
"""No size of a model is larger, nor a number of positions: they are 32 bits wide in kernels."""
_MOST_LAYERS = 10_000
"""Some things are made for each layer before a file says that it has none."""
_DEFAULT_ROPE_THETA = 10_000.0
_LARGEST_MATRIX = 2**48
"""Numbers: far more than any machine has room for, and few enough for their bytes to be counted in 64 bits."""
_WIDEST_HEAD = 2**24
"""The frequencies of its pairs are computed before it is known whether the model has room."""
_LEAST_YARN_THETA = 1.001
"""Its logarithm divides."""
_LEAST_OF_ROPE, _MOST_OF_ROPE = 1e-6, 1e6
"""What multiplies, divides or bounds frequencies is between these; beyond them they may come out infinite."""
_DEFAULT_LAYER_NORM_EPS = 1e-12
_DEFAULT_TYPE_VOCAB_SIZE = 2
_ENCODER_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish")


@dataclass(frozen=True, slots=True)
class RopeParameters:
    """Rotary position embedding of a model, with the names that Hugging Face configurations use."""

    rope_type: RopeType
    rope_theta: float
    max_position_embeddings: int
    factor: float = 1.0
    original_max_position_embeddings: int = 0
    """Positions of the pre-training; meaningful for ``llama3`` and ``yarn``."""
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True
    frequency_factors: tuple[float, ...] = ()
    """What each pair's frequency is divided by, for ``frequency_factors``."""


@dataclass(frozen=True, slots=True)
class EncoderParameters:
    """What only encoders have."""

    layer_norm_eps: float
    type_vocab_size: int
    """Kinds of texts that tokens tell apart: two where a model reads pairs."""
    first_position: int
    """Row of the table of positions that a sequence's first token has."""

    @property
    def padding_id(self) -> int | None:
        """Token without a position of its own, which has the row of its id; ``None`` if all tokens count."""
        return self.first_position - 1 if self.first_position else None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the rest of the system must know about a checkpoint. Made by :meth:`from_path`."""

    model_path: str
    """Local directory with the files, or a GGUF file."""
    hf_config: dict[str, Any]
    """config.json as it is, or what it would be of a GGUF file, for facts that concern one family only."""
    generation_config: dict[str, Any]
    """generation_config.json in the same way, or an empty dictionary."""
    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    tie_word_embeddings: bool
    rope: RopeParameters
    layer_windows: tuple[int | None, ...]
    """Per layer, how many positions a token sees, itself included; ``None``: all."""
    context_len: int
    """Longest sequence that will be served, in tokens."""
    derived_context_len: int
    """Longest sequence that the model was made for."""
    checkpoint_dtype: DTypeName
    dtype: DTypeName
    """Type of weights, activations and KV."""
    dtype_is_auto: bool
    eos_token_ids: tuple[int, ...]
    """Ascending, without duplicates; may be empty."""
    pooling: PoolingConfig | None = None
    """How the model makes a vector of a sequence; ``None`` if it generates text."""
    encoder: EncoderParameters | None = None
    """``None`` if the model is no encoder."""
    stored_quantization: StoredQuantization | None = None
    """How the checkpoint's safetensors are quantised; ``None`` if they are not. GGUF files say it of each tensor."""

    @property
    def is_generation(self) -> bool:
        """Whether the model generates text; otherwise it makes embeddings or class scores."""
        return self.pooling is None

    @property
    def is_encoder(self) -> bool:
        """Whether every token sees every other: nothing is kept from one step for the next."""
        return self.architecture in ENCODER_MODULES

    @property
    def sliding_window(self) -> int | None:
        """The sliding window of the layers that have one, in tokens; ``None`` if no layer has."""
        windows = [window for window in self.layer_windows if window is not None]
        return max(windows) if windows else None

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers that the KV of one token takes, all layers together."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim

    def for_device(self, device: DeviceType) -> ModelConfig:
        """This configuration with the dtype that ``auto`` means on ``device``."""
        if not self.dtype_is_auto:
            return self
        return dataclasses.replace(self, dtype=_auto_dtype(self.checkpoint_dtype, device, is_encoder=self.is_encoder))

    @classmethod
    def from_path(
        cls,
        model_path: str,
        *,
        revision: str | None = None,
        context_length: int | None = None,
        dtype: str = "auto",
        device: str = "auto",
        load_format: str = "auto",
        tokenizer_path: str | None = None,
        is_embedding: bool = False,
        pooling_method: PoolingMethod | None = None,
        overrides: dict[str, Any] | None = None,
    ) -> ModelConfig:
        """Read a checkpoint's configuration, downloading the checkpoint first if it is only on the hub.

        Args:
            model_path: local directory or hub id.
            revision: branch, tag or commit on the hub.
            context_length: overrides the longest sequence, in tokens; at most what the model was made for.
            dtype: ``auto``, ``float32``, ``bfloat16`` or ``float16``.
            device: ``auto``, ``cpu`` or ``cuda``; decides what dtype ``auto`` means.
            load_format: with ``dummy`` no weights are downloaded.
            tokenizer_path: local directory or file of the tokenizer, if its end-of-sequence tokens count and it is
                elsewhere.
            is_embedding: whether a language model is to make embeddings.
            pooling_method: how an embedding model pools, in place of what the checkpoint says.
            overrides: entries that replace those of config.json.

        Raises:
            ConfigError: one line that says what is wrong with the checkpoint or the options.
        """
        directory = resolve_model_path(model_path, revision=revision, load_format=load_format)
        if directory.is_file():
            from bough.config.gguf_config import read_gguf_config  # late: numpy, which the main process does without

            config_file, (hf_config, generation_config) = directory, read_gguf_config(directory)
        else:
            config_file, hf_config, generation_config = _read_json_files(directory)
        hf_config = {**hf_config, **(overrides or {})}
        tokenizer = Path(tokenizer_path) if tokenizer_path and Path(tokenizer_path).exists() else directory
        return _Parser(config_file, hf_config).parse(
            directory,
            generation_config,
            tokenizer,
            context_length=context_length,
            dtype=dtype,
            device=device,
            is_embedding=is_embedding,
            pooling_method=pooling_method,
        )


def _read_json_files(directory: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Path and content of config.json, and the content of generation_config.json."""
    config_file, generation_file = directory / "config.json", directory / "generation_config.json"
    if path_kind(config_file, "model_path") != "file":
        check_is_no_adapter(directory)
        raise ConfigError(
            f"{directory} is not a checkpoint in Hugging Face format: it has no config.json", param="model_path"
        )
    has_generation_file = path_kind(generation_file, "model_path") == "file"
    contents = [read_json(config_file), read_json(generation_file) if has_generation_file else {}]
    for file, content in zip((config_file, generation_file), contents, strict=True):
        if not isinstance(content, dict):
            raise ConfigError(f"{file} must hold a JSON object", param="model_path")
    return config_file, contents[0], contents[1]


class _Parser:
    """Reads typed values out of a config.json; every complaint names the file and the key."""

    def __init__(self, source: Path, values: dict[str, Any]) -> None:
        self.source = source
        architectures = values.get("architectures")
        if not (isinstance(architectures, list) and architectures and isinstance(architectures[0], str)):
            raise self.error("architectures", "must name the model's class", architectures)
        self.architecture = architectures[0]
        supported = supported_architectures()
        if self.architecture not in supported and self.architecture != FAKE_ARCHITECTURE:
            raise ConfigError(
                f"{source}: architecture {self.architecture} is not supported; supported are {', '.join(supported)}",
                param="model_path",
            )
        self.is_encoder = self.architecture in ENCODER_MODULES
        self.family = BACKBONES.get(self.architecture, self.architecture)
        """The language model that this one is, but for its head."""
        self.raw = values
        self.values = {**_FAMILY_DEFAULTS.get(self.family, {}), **values}

    def error(self, key: str, rule: str, value: Any) -> ConfigError:
        return ConfigError(f"{self.source}: {key} {rule}, got {value!r}", param="model_path")

    def integer(
        self, key: str, default: int | None = None, *, minimum: int = 1, maximum: int = _LARGEST_INTEGER
    ) -> int:
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self.error(key, f"must be a whole number of at least {minimum}", value)
        if value > maximum:
            raise self.error(key, f"must be at most {maximum}", value)
        return value

    def number(
        self,
        key: str,
        default: float,
        *,
        values: dict[str, Any] | None = None,
        minimum: float = 0.0,
        maximum: float = sys.float_info.max,
    ) -> float:
        value = (self.values if values is None else values).get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value < math.inf:
            raise self.error(key, f"must be a number of at least {minimum}", value)
        if value > maximum:  # perhaps a whole number that has no end of digits
            raise self.error(key, f"must be at most {maximum}", value)
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false", value)
        return value

    def parse(
        self,
        directory: Path,
        generation_config: dict[str, Any],
        tokenizer: Path,
        *,
        context_length: int | None,
        dtype: str,
        device: str,
        is_embedding: bool = False,
        pooling_method: PoolingMethod | None = None,
    ) -> ModelConfig:
        quantization = quantization_entry(directory, self.values)
        if quantization is not None and self.is_encoder:
            raise ConfigError(
                f"{self.source}: quantised encoders are not supported; use an unquantised one", param="model_path"
            )
        activations = _ENCODER_ACTIVATIONS if self.is_encoder else ("silu", "swish")
        if (activation := self.values.get("hidden_act", activations[0])) not in activations:
            raise self.error("hidden_act", f"must be {' or '.join(activations)}", activation)
        self._check_direction()
        for key in () if self.is_encoder else ("attention_bias", "mlp_bias"):
            self.boolean(key, False)
        vocab_size = self.integer("vocab_size")
        num_layers = self.integer("num_hidden_layers", maximum=_MOST_LAYERS)
        num_heads = self.integer("num_attention_heads")
        num_kv_heads = self.integer("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise self.error(
                "num_attention_heads", f"must be a multiple of num_key_value_heads {num_kv_heads}", num_heads
            )
        hidden_size = self.integer("hidden_size")
        # The heads of encoders share the states out among them, whatever else the file says.
        if (self.is_encoder or self.values.get("head_dim") is None) and hidden_size % num_heads:
            raise self.error("hidden_size", f"must be a multiple of num_attention_heads {num_heads}", hidden_size)
        head_dim = hidden_size // num_heads
        if not self.is_encoder:
            head_dim = self.integer("head_dim", head_dim, maximum=_WIDEST_HEAD)
        if head_dim % 2 and not self.is_encoder:
            raise self.error("head_dim", "must be even", head_dim)
        intermediate_size = self.integer("intermediate_size")
        self._check_matrix("vocab_size", vocab_size, hidden_size)
        self._check_matrix("intermediate_size", intermediate_size, hidden_size)
        self._check_matrix("num_attention_heads", num_heads * head_dim, hidden_size, times="head_dim and hidden_size")
        rope, derived = self._rope()
        if rope.rope_type == "dynamic" and head_dim < 4:
            raise self.error("head_dim", "must be at least 4 for rope type dynamic", head_dim)
        if len(rope.frequency_factors) not in (0, head_dim // 2):
            raise self.error("factors", f"must have {head_dim // 2} entries", len(rope.frequency_factors))
        encoder = self._encoder() if self.is_encoder else None
        if encoder is not None:
            self._check_matrix("max_position_embeddings", derived, hidden_size)
            self._check_matrix("type_vocab_size", encoder.type_vocab_size, hidden_size)
            derived = self._encoder_positions(derived, encoder.first_position)
        pooling = read_pooling(
            directory, self.architecture, self.values, hidden_size, is_embedding=is_embedding, method=pooling_method
        )
        if pooling is not None and context_length is None:
            context_length = max_sequence_tokens(directory, derived)
        checkpoint_dtype = self._checkpoint_dtype()
        device_type = _device_type(device)
        return ModelConfig(
            model_path=str(directory),
            hf_config=self.raw,
            generation_config=generation_config,
            architecture=self.architecture,
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=intermediate_size,
            num_layers=num_layers,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            rms_norm_eps=self.number("rms_norm_eps", 1e-6),
            tie_word_embeddings=self.boolean("tie_word_embeddings", False),
            rope=rope,
            layer_windows=self._layer_windows(num_layers),
            context_len=self._context_len(context_length, derived, rope),
            derived_context_len=derived,
            checkpoint_dtype=checkpoint_dtype,
            dtype=(
                _auto_dtype(checkpoint_dtype, device_type, is_encoder=self.is_encoder)
                if dtype == "auto"
                else _dtype_name(dtype)
            ),
            dtype_is_auto=dtype == "auto",
            eos_token_ids=_eos_token_ids(self.values, generation_config, directory, tokenizer, vocab_size),
            pooling=pooling,
            encoder=encoder,
            stored_quantization=None if quantization is None else read_stored_quantization(self.source, quantization),
        )

    def _check_matrix(self, key: str, rows: int, hidden_size: int, *, times: str = "hidden_size") -> None:
        """Refuse a matrix of a size that nothing can have: what would be made of it says less of why."""
        if rows * hidden_size > _LARGEST_MATRIX:
            raise self.error(key, f"times {times} must be at most {_LARGEST_MATRIX}", self.values.get(key))

    def _check_direction(self) -> None:
        """Attention goes one way in language models and both in encoders, whatever else their classes could do."""
        if self.is_encoder and self.boolean("is_decoder", False):
            raise ConfigError(
                f"{self.source}: {self.architecture} with is_decoder true attends to earlier tokens only, which is not "
                "supported",
                param="model_path",
            )
        if not self.is_encoder and not self.boolean("is_causal", True):
            raise ConfigError(
                f"{self.source}: {self.architecture} with is_causal false attends to later tokens as well, which is "
                "not supported",
                param="model_path",
            )

    def _encoder(self) -> EncoderParameters:
        # RoBERTa's first rows of the table, up to that of the padding token's id, are for padding.
        padding_rows = self.integer("pad_token_id", 1, minimum=0) + 1 if "Roberta" in self.architecture else 0
        return EncoderParameters(
            layer_norm_eps=self.number("layer_norm_eps", _DEFAULT_LAYER_NORM_EPS),
            type_vocab_size=self.integer("type_vocab_size", _DEFAULT_TYPE_VOCAB_SIZE),
            first_position=padding_rows,
        )

    def _encoder_positions(self, rows: int, first: int) -> int:
        """Longest sequence that a table of so many rows serves, if the first token has the row ``first``."""
        kind = self.values.get("position_embedding_type", "absolute")
        if kind != "absolute":
            raise self.error("position_embedding_type", "must be absolute", kind)
        positions = rows - first
        if positions < 1:
            raise self.error("max_position_embeddings", "must leave a position for a token", rows)
        return positions

    def _rope(self) -> tuple[RopeParameters, int]:
        """Rope parameters from either spelling, and the context length that follows from them."""
        max_positions = self.integer("max_position_embeddings", 2048)
        raw = self.values.get("rope_scaling") or self.values.get("rope_parameters") or {}
        if not isinstance(raw, dict):
            raise self.error("rope_parameters", "must be an object", raw)
        # What scaling alone, such as an override, leaves unsaid may stand beside it or in the other spelling.
        stored = self.values.get("rope_parameters")
        places = [raw, self.values, stored if isinstance(stored, dict) else {}]
        if any(isinstance(value, dict) for place in (raw, places[-1]) for value in place.values()):
            raise self.error("rope_parameters", "must be the same for all layers", stored or raw)
        rope_type: Any = raw.get("rope_type") or raw.get("type") or "default"
        if rope_type not in _ROPE_TYPES:
            raise self.error("rope_type", f"must be one of {', '.join(_ROPE_TYPES)}", rope_type)
        for place in places:
            if (rotated := self.number("partial_rotary_factor", 1.0, values=place)) != 1.0:
                raise self.error("partial_rotary_factor", "must be 1", rotated)
        theta_source = next((place for place in places if place.get("rope_theta") is not None), {})
        original = self.values.get("original_max_position_embeddings") or raw.get("original_max_position_embeddings")
        if original is not None and (isinstance(original, bool) or not isinstance(original, int) or original < 1):
            raise self.error("original_max_position_embeddings", "must be a whole number of at least 1", original)
        if original is not None and original > _LARGEST_INTEGER:
            raise self.error("original_max_position_embeddings", f"must be at most {_LARGEST_INTEGER}", original)
        original_positions = original or max_positions
        if rope_type not in ("default", "yarn", FREQUENCY_FACTORS) and raw.get("factor") is None:
            raise self.error("factor", f"must be given for rope type {rope_type}", None)
        least_theta = _LEAST_YARN_THETA if rope_type == "yarn" else 1.0
        rope = RopeParameters(
            rope_type=rope_type,
            rope_theta=self.number("rope_theta", _DEFAULT_ROPE_THETA, values=theta_source, minimum=least_theta),
            max_position_embeddings=max_positions,
            factor=self.number("factor", max_positions / original_positions, values=raw, minimum=1.0)
            if rope_type != "default"
            else 1.0,
            original_max_position_embeddings=original_positions,
            low_freq_factor=self.number("low_freq_factor", 1.0, values=raw, maximum=_MOST_OF_ROPE),
            high_freq_factor=self.number("high_freq_factor", 4.0, values=raw, maximum=_MOST_OF_ROPE),
            attention_factor=self.number("attention_factor", 1.0, values=raw, maximum=_MOST_OF_ROPE)
            if raw.get("attention_factor") is not None
            else None,
            beta_fast=self._rotations("beta_fast", 32.0, raw),
            beta_slow=self._rotations("beta_slow", 1.0, raw),
            mscale=self.number("mscale", 0.0, values=raw, maximum=_MOST_OF_ROPE) or None,
            mscale_all_dim=self.number("mscale_all_dim", 0.0, values=raw, maximum=_MOST_OF_ROPE) or None,
            truncate=self._truncates(raw),
            frequency_factors=self._frequency_factors(raw) if rope_type == FREQUENCY_FACTORS else (),
        )
        if rope_type == "llama3" and rope.high_freq_factor <= rope.low_freq_factor:
            raise self.error("high_freq_factor", "must be greater than low_freq_factor", rope.high_freq_factor)
        if max(max_positions, original_positions) * rope.factor > _LARGEST_INTEGER:
            raise self.error("factor", f"must leave at most {_LARGEST_INTEGER} positions", rope.factor)
        derived = max_positions
        if rope_type == "linear":
            derived = int(max_positions * rope.factor)
        elif rope_type == "yarn":
            derived = max(max_positions, int(original_positions * rope.factor))
        return rope, derived

    def _rotations(self, key: str, default: float, raw: dict[str, Any]) -> float:
        if raw.get(key) == 0:  # as good as silence
            return default
        return self.number(key, default, values=raw, minimum=_LEAST_OF_ROPE, maximum=_MOST_OF_ROPE)

    def _truncates(self, raw: dict[str, Any]) -> bool:
        value = raw.get("truncate", True)
        if value not in (None, True, False):
            raise self.error("truncate", "must be true or false", value)
        return bool(value)  # null is no

    def _frequency_factors(self, raw: dict[str, Any]) -> tuple[float, ...]:
        factors = raw.get("factors")
        if not isinstance(factors, list) or not all(
            isinstance(each, float) and _LEAST_OF_ROPE <= each < math.inf for each in factors
        ):
            raise self.error("factors", f"must be a list of numbers of at least {_LEAST_OF_ROPE}", factors)
        return tuple(factors)

    def _context_len(self, wanted: int | None, derived: int, rope: RopeParameters) -> int:
        if wanted is None:
            return derived
        # Dynamic scaling is made to stretch; for all others positions beyond the derived length mean nothing.
        limit = int(derived * rope.factor) if rope.rope_type == "dynamic" else derived
        if wanted > limit:
            raise ConfigError(
                f"--context-length {wanted} exceeds the {limit} positions that the model was made for; lower it, or "
                f"set rope_scaling in {self.source} or with --json-model-override-args",
                param="context_length",
            )
        return wanted

    def _layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        none = (None,) * num_layers
        if self.is_encoder or self.family == "LlamaForCausalLM" or self.values.get("sliding_window") is None:
            return none
        if self.family != "MistralForCausalLM" and not self.boolean("use_sliding_window", False):
            return none
        window = self.integer("sliding_window")
        if self.family == "MistralForCausalLM":
            return (window,) * num_layers
        layer_types = self.values.get("layer_types")
        if layer_types is None:
            first = self.integer("max_window_layers", minimum=0)
            return tuple(window if layer >= first else None for layer in range(num_layers))
        known = {"sliding_attention": window, "full_attention": None}
        is_list = isinstance(layer_types, list) and len(layer_types) == num_layers
        if not is_list or not all(isinstance(each, str) and each in known for each in layer_types):
            raise self.error("layer_types", f"must list {num_layers} of {', '.join(known)}", layer_types)
        return tuple(known[layer_type] for layer_type in layer_types)

    def _checkpoint_dtype(self) -> DTypeName:
        name = self.values.get("dtype") or self.values.get("torch_dtype")
        if name is None:
            return "float32"
        if not isinstance(name, str) or name.removeprefix("torch.") not in _DTYPE_ALIASES:
            raise self.error("dtype", "must be float32, bfloat16 or float16", name)
        return _DTYPE_ALIASES[name.removeprefix("torch.")]


def _dtype_name(name: str) -> DTypeName:
    if name not in _DTYPE_ALIASES:
        raise ConfigError(f"dtype must be auto, float32, bfloat16 or float16, got {name!r}", param="dtype")
    return _DTYPE_ALIASES[name]


def _device_type(device: str) -> DeviceType:
    if device == "auto":
        return "cuda" if Path("/dev/nvidiactl").exists() else "cpu"
    return "cuda" if device.startswith("cuda") else "cpu"


def _auto_dtype(checkpoint_dtype: DTypeName, device: DeviceType, *, is_encoder: bool) -> DTypeName:
    """The checkpoint's own type, except for half precision on CPUs.

    Language models run in bfloat16 where the CPU has instructions for it, or the native kernels widen it as they read:
    half the memory of float32 and twice the speed of decoding, for a sixth of the speed of long prompts at worst. torch
    alone would emulate it, slower than float32. Encoders are small, and their vectors are compared: float32.
    """
    if device == "cuda" or checkpoint_dtype == "float32":
        return checkpoint_dtype
    if is_encoder:
        return "float32"
    return "bfloat16" if _cpu_has_bfloat16() or _kernels_widen_bfloat16() else "float32"


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


class _AddedToken(msgspec.Struct):
    id: int
    content: str


class _TokenizerFile(msgspec.Struct):
    added_tokens: list[_AddedToken] = []


_END_OF_MESSAGE = "<|eom_id|>"
"""Ends a message of Llama 3 that calls one of its own tools, and with it the turn, though some files do not say so."""


def _eos_token_ids(
    config: dict[str, Any], generation_config: dict[str, Any], model: Path, tokenizer: Path, vocab_size: int
) -> tuple[int, ...]:
    """Union of what config.json, generation_config.json and the tokenizer call the end of a sequence."""
    found: set[int] = set()
    for source, values in (("config.json", config), ("generation_config.json", generation_config)):
        ids = values.get("eos_token_id")
        if ids is None:
            continue
        for token_id in ids if isinstance(ids, list) else [ids]:
            if isinstance(token_id, bool) or not isinstance(token_id, int):
                raise ConfigError(
                    f"{source}: eos_token_id must be a token id or a list, got {ids!r}", param="model_path"
                )
            found.add(token_id)
    if tokenizer.suffix == GGUF_SUFFIX and tokenizer.is_file():
        if tokenizer != model:  # whose configuration has them already
            from bough.config.gguf_config import end_token_ids  # late: numpy
            from bough.config.gguf_file import GGUFFile

            found.update(end_token_ids(GGUFFile(tokenizer)))
    else:
        found |= _tokenizer_eos(tokenizer if tokenizer.is_dir() else tokenizer.parent)
    return tuple(sorted(token_id for token_id in found if 0 <= token_id < vocab_size))


def _tokenizer_eos(directory: Path) -> set[int]:
    """Ids of the tokens that end a sequence by the tokenizer's files, as far as they are known there: that which
    tokenizer_config.json names as ``eos_token``, and Llama's end of a message."""
    config_file = directory / "tokenizer_config.json"
    if not config_file.is_file():
        return set()
    config = read_json(config_file)
    if not isinstance(config, dict):
        return set()
    named = token_text(config_file, "eos_token", config.get("eos_token"))
    wanted = (named, _END_OF_MESSAGE)
    declared = declared_tokens(config_file, config)
    found = {entry["content"]: token_id for token_id, entry in declared.items() if entry["content"] in wanted}
    tokenizer_file = directory / "tokenizer.json"
    if named is not None and named not in found and tokenizer_file.is_file():
        try:
            tokens = msgspec.json.decode(tokenizer_file.read_bytes(), type=_TokenizerFile).added_tokens
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"cannot read {tokenizer_file}: {error}; download it again") from None
        found.update((entry.content, entry.id) for entry in tokens if entry.content in wanted)
    return set(found.values())
