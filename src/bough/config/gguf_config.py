"""From the metadata of a GGUF file to what a config.json would say. No torch here."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from bough.config.gguf_file import GGUFFile, TensorType
from bough.config.model_config import LLAMA_CPP_WINDOW, STORED_AS
from bough.config.pooling import STORED_POOLING, PoolingMethod
from bough.config.rope import FREQUENCY_FACTORS, LONGROPE
from bough.errors import CheckpointError, ConfigError

ARCHITECTURES = {
    "gemma3": "Gemma3ForCausalLM",
    "gpt-oss": "GptOssForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral3": "Ministral3ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3moe": "Qwen3MoeForCausalLM",
}
"""``general.architecture`` to the model's class; Mistral's first models call themselves llama as well."""

NEIGHBOURS_ROTATE = frozenset({"llama", "mistral3", "smollm3"})
"""Architectures that have the two halves of each head of queries and keys interleaved in files."""

GATES_ARE_STACKED = frozenset({"phi3"})
"""Architectures with gates and values in ``ffn_up``, one below the other."""

_WITH_WINDOWS = frozenset({"gpt-oss", "llama", "mistral3", "phi3"})

_GEMMA3_LARGEST = 62
"""Blocks of Gemma 3 27B, the one with another factor on scores than that of a head's width."""

TOKEN_TABLE = "token_embd.weight"
FEED_FORWARD = "blk.0.ffn_up.weight"
EXPERTS = "blk.0.ffn_up_exps.weight"
_WITH_EXPERTS = frozenset({"gpt-oss", "llama", "qwen3moe"})
QUERIES = "blk.0.attn_q.weight"
KEYS = "blk.0.attn_k.weight"
ROPE_FACTORS = "rope_freqs.weight"
LONG_FACTORS = "rope_factors_long.weight"
SHORT_FACTORS = "rope_factors_short.weight"

_END_IDS = ("eos_token_id", "eot_token_id", "eom_token_id")
_DEFAULT_IDS = {"llama": {"unknown_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}}
"""Ids that files leave out, by ``tokenizer.ggml.model``, as in llama.cpp (``src/llama-vocab.cpp``). Its defaults for
gpt2 are omitted: they fit Falcon only."""
_MORE_END_IDS = "eos_token_ids"
"""An array, in files that Ollama has made."""
END_TOKENS = frozenset(
    (
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|eom_id|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<EOT>",
        "_<EOT>",
        "<｜end▁of▁sentence｜>",
    )
)
"""Tokens that end a turn or a text in every model that has them; files name one of a model's several.

They count whatever type the file gives them: older converters wrote user-defined or normal ones. None can be an
ordinary word of a vocabulary, since no rule for cutting text leaves letters whole with signs on both sides."""

_END_OF_PART = "<|end|>"
_ENDS_OF_TURNS = frozenset(("<|return|>", "<|call|>"))
"""Tokens that end a turn of gpt-oss, which has several messages in one: there ``<|end|>`` ends a message alone."""

CONTROL_TOKEN = 3
USER_TOKEN = 4

_ADAPTER = "adapter"
"""``general.type`` of a file that has changes to a model and no model."""

_POOLING_METHODS: dict[int, PoolingMethod] = {1: "mean", 2: "cls", 3: "last"}
_RANK = 4
_UNPOOLED = (0, -1, 2**32 - 1)
"""None, and what the format's own library writes for unspecified, with a sign or without."""

_FILE_TYPES = dict(enumerate(["Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M"], 10))
"""Mixtures of types by their number as ``general.file_type``; of other files the type of most weights says it."""

_SAMPLING = {
    "temperature": "temp",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
    "repetition_window": "penalty_last_n",
}
"""Entries of a generation_config.json, to what they are called below ``general.sampling``."""


def read_gguf_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries of a config.json, ``eos_token_id`` with all ids that end a text, and of a generation_config.json.

    Raises:
        ConfigError: if the file is damaged, or has a model that is not supported.
    """
    reader = _Reader(GGUFFile(path))
    return reader.config(), reader.generation_config()


class _Reader:
    def __init__(self, file: GGUFFile) -> None:
        self._file = file
        if file.text("general.type") == _ADAPTER:
            raise ConfigError(
                f"{file.path} is an adapter, no model of its own; merge it into the model that it was made for, and "
                "serve the result",
                param="model_path",
            )
        name = file.text("general.architecture")
        if name not in ARCHITECTURES:
            raise ConfigError(
                f"{file.path}: architecture {name} is not supported in GGUF files; supported are "
                f"{', '.join(ARCHITECTURES)}",
                param="model_path",
            )
        self._name = name

    def config(self) -> dict[str, Any]:
        file, tensors = self._file, self._file.tensors
        if TOKEN_TABLE not in tensors:
            raise ConfigError(
                f"{file.path} has no weights named {TOKEN_TABLE}; is it only a vocabulary?", param="model_path"
            )
        num_experts = self._integer("expert_count", 0)
        if num_experts and self._name not in _WITH_EXPERTS:
            raise ConfigError(
                f"{file.path}: mixtures of experts are not supported in GGUF files of {self._name}", param="model_path"
            )
        heads = self._heads("attention.head_count")
        hidden_size = self._integer("embedding_length")
        head_dim = self._integer("attention.key_length", hidden_size // max(heads, 1))
        if self._integer("attention.value_length", head_dim) != head_dim:
            raise file.wrong(self._key("attention.value_length"), f"must be that of keys, {head_dim}")
        rotated = self._integer("rope.dimension_count", head_dim)
        if rotated != head_dim and self._name != "phi3":
            raise file.wrong(self._key("rope.dimension_count"), f"must be the width of a head, {head_dim}")
        kv_heads = self._heads("attention.head_count_kv", heads)
        self._check_sizes()
        self._check_heads("attention.head_count", heads, head_dim, QUERIES)
        self._check_heads("attention.head_count_kv", kv_heads, head_dim, KEYS)
        window = self._integer("attention.sliding_window", 0) if self._name in _WITH_WINDOWS else 0
        is_mistral = window > 0 and self._name == "llama"
        more = self._gemma3(hidden_size, heads, head_dim) if self._name == "gemma3" else {}
        if num_experts:
            more = self._experts(num_experts)
        rotation = self._rope_scaling()
        if self._name == "gpt-oss":  # Without an entry its configuration means YaRN.
            rotation = {**(rotation or {"rope_type": "default"}), "truncate": False}
        return {
            "architectures": ["MistralForCausalLM" if is_mistral else ARCHITECTURES[self._name]],
            "model_type": "mistral" if is_mistral else self._name,
            "vocab_size": tensors[TOKEN_TABLE].shape[0],
            "hidden_size": hidden_size,
            "intermediate_size": self._integer("feed_forward_length"),
            "num_hidden_layers": self._integer("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
            "max_position_embeddings": self._integer("context_length"),
            "rms_norm_eps": self._number("attention.layer_norm_rms_epsilon", 1e-5),
            "tie_word_embeddings": "output.weight" not in tensors,
            "attention_bias": "blk.0.attn_output.bias" in tensors,
            "mlp_bias": "blk.0.ffn_gate.bias" in tensors,
            "sliding_window": window or None,
            "is_causal": file.boolean(self._key("attention.causal")),
            "rope_theta": self._number("rope.freq_base", 10_000.0),
            "rope_scaling": rotation,
            "rope_parameters": {},
            "original_max_position_embeddings": None,
            "partial_rotary_factor": rotated / max(head_dim, 1),
            "torch_dtype": self._dtype(),
            "eos_token_id": end_token_ids(file),
            STORED_AS: self._stored_as(),
            STORED_POOLING: self._pooling(),
            **more,
        }

    def _gemma3(self, hidden_size: int, heads: int, head_dim: int) -> dict[str, Any]:
        """Entries of Gemma 3; files leave out what llama.cpp takes for granted, and tell 27B by its blocks."""
        is_largest = self._integer("block_count") == _GEMMA3_LARGEST
        return {
            "model_type": "gemma3_text",
            "sliding_window": self._integer("attention.sliding_window"),
            "rope_theta": self._number("rope.freq_base", 1e6),
            "rope_local_base_freq": self._number("rope.freq_base_swa", 1e4),
            "query_pre_attn_scalar": hidden_size // heads if is_largest else head_dim,
            "rms_norm_eps": self._number("attention.layer_norm_rms_epsilon", 1e-6),
        }

    def _experts(self, num_experts: int) -> dict[str, Any]:
        """Entries of a mixture of experts. Their weights are always renormalised, as llama.cpp has it."""
        is_mixtral = self._name == "llama"
        width = self._integer("feed_forward_length" if is_mixtral else "expert_feed_forward_length")
        info = self._file.tensors.get(EXPERTS)
        if info is None or info.shape[:-1] != (num_experts, width):
            rule = f"must fit {EXPERTS}, {list(info.shape) if info is not None else 'which is not there'}"
            raise self._file.wrong(self._key("expert_count"), rule)
        entries = {
            "num_local_experts": num_experts,
            "num_experts_per_tok": self._integer("expert_used_count"),
            "moe_intermediate_size": width,
            "norm_topk_prob": True,
        }
        if is_mixtral:
            return {**entries, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral"}
        return {**entries, "model_type": "gpt_oss", "intermediate_size": width} if self._name == "gpt-oss" else entries

    def _check_sizes(self) -> None:
        """Refuse sizes that are not those of the tensors, before anything is made of such a size."""
        tensors = self._file.tensors
        blocks = {name.split(".")[1] for name in tensors if name.startswith("blk.")}
        if self._integer("block_count") != len(blocks):
            raise self._file.wrong(self._key("block_count"), f"must be the number of the file's blocks, {len(blocks)}")
        checked = [("embedding_length", TOKEN_TABLE, 1), ("feed_forward_length", FEED_FORWARD, 0)]
        for key, name, axis in checked[:1] if self._integer("expert_count", 0) else checked:
            shape = tensors[name].shape if name in tensors else ()
            parts = 2 if name == FEED_FORWARD and self._name in GATES_ARE_STACKED else 1
            if len(shape) != 2 or parts * self._integer(key) != shape[axis]:
                raise self._file.wrong(self._key(key), f"must fit {name}, {list(shape)}")

    def _check_heads(self, key: str, heads: int, head_dim: int, name: str) -> None:
        info = self._file.tensors.get(name)
        if info is not None and info.shape[0] != heads * head_dim:
            rule = f"times the width of a head, {head_dim}, must fit {name}, {list(info.shape)}"
            raise self._file.wrong(self._key(key), rule)

    def _pooling(self) -> PoolingMethod | None:
        """How the file's model makes a vector of a sequence; ``None`` if it does not say that it does."""
        key = self._key("pooling_type")
        kind = self._file.integer(key)
        if kind is None or kind in _UNPOOLED:
            return None
        if kind == _RANK:
            raise self._file.wrong(key, "must not be 4 (rank): rerankers are not supported in GGUF files")
        if kind not in _POOLING_METHODS:
            raise self._file.wrong(key, "must be 0 (none), 1 (mean), 2 (cls) or 3 (last)")
        return _POOLING_METHODS[kind]

    def generation_config(self) -> dict[str, Any]:
        read = {"top_k": self._file.integer, "repetition_window": self._file.integer}
        values = {
            name: read.get(name, self._file.number)(f"general.sampling.{stored}") for name, stored in _SAMPLING.items()
        }
        if values["repetition_penalty"] is not None and values["repetition_window"] is None:
            values["repetition_window"] = LLAMA_CPP_WINDOW
        return {name: value for name, value in values.items() if value is not None}

    def _rope_scaling(self) -> dict[str, Any] | None:
        factor = self._number("rope.scaling.factor", self._number("rope.scale_linear", 1.0))
        # An older spelling of linear scaling has the factor alone.
        kind = self._file.text(self._key("rope.scaling.type")) or ("none" if factor == 1.0 else "linear")
        if kind not in ("none", "linear", "yarn"):
            raise self._file.wrong(self._key("rope.scaling.type"), "must be none, linear or yarn")
        if factor == 0.0:  # how the format's own library writes that there is none
            kind = "none"
        short, long = self._rope_factors(SHORT_FACTORS), self._rope_factors(LONG_FACTORS)
        if short is not None and long is not None:
            return self._longrope(short, long)
        factors = self._rope_factors(ROPE_FACTORS)
        if factors is not None:
            if kind == "yarn" or (kind == "linear" and factor != 1.0):
                raise self._file.wrong(
                    self._key("rope.scaling.type"), f"must be none in a file that has {ROPE_FACTORS}"
                )
            return {"rope_type": FREQUENCY_FACTORS, "factors": factors}
        if kind == "none":
            return None
        if kind == "linear":
            return {"rope_type": "linear", "factor": factor}
        return self._yarn(factor)

    def _longrope(self, short: list[float], long: list[float]) -> dict[str, Any]:
        return {
            "rope_type": LONGROPE,
            "short_factor": short,
            "long_factor": long,
            "original_max_position_embeddings": self._integer("rope.scaling.original_context_length"),
            "attention_factor": self._file.number(self._key("rope.scaling.attn_factor")),
        }

    def _rope_factors(self, name: str) -> list[float] | None:
        info = self._file.tensors.get(name)
        if info is None:
            return None
        if info.type is not TensorType.F32 or len(info.shape) != 1:
            raise CheckpointError(f"{self._file.path}: {name} must be one row of F32", param="model_path")
        stored: list[float] = self._file.read_rows(info, 0, 1).reshape(-1).view(np.float32).tolist()
        return stored

    def _yarn(self, factor: float) -> dict[str, Any]:
        positions = self._integer("rope.scaling.original_context_length", 0) or self._integer("context_length")
        scaling = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": positions}
        for name in ("beta_fast", "beta_slow"):
            value = self._file.number(self._key(f"rope.scaling.yarn_{name}"))
            if value is not None:
                scaling[name] = value
        scaling["llama_4_scaling_beta"] = self._number("attention.temperature_scale", 0.0)
        if self._integer("attention.temperature_length", positions) != positions:
            raise self._file.wrong(self._key("attention.temperature_length"), f"must be {positions}")
        multiplier = self._number("rope.scaling.yarn_log_multiplier", 0.0)
        if multiplier:
            return {**scaling, "mscale": 1.0, "mscale_all_dim": multiplier}
        # One factor takes the place of what YaRN has anyway, converters say; the other one comes on top.
        whole = self._file.number(self._key("rope.scaling.yarn_attn_factor"))
        attention = self._number("rope.scaling.attn_factor", 1.0)
        if whole is not None or attention != 1.0:
            usual = 0.1 * math.log(max(factor, 1.0)) + 1.0
            scaling["attention_factor"] = attention * (usual if whole is None else whole)
        return scaling

    def _dtype(self) -> str:
        """What quantised numbers become is bfloat16, which has the range of their scales times their codes."""
        kinds = {info.type for info in self._file.tensors.values() if len(info.shape) > 1}
        if kinds == {TensorType.F32}:
            return "float32"
        return "float16" if kinds <= {TensorType.F32, TensorType.F16} else "bfloat16"

    def _stored_as(self) -> str:
        weights: Counter[str] = Counter()
        for info in self._file.tensors.values():
            weights[info.type.name] += math.prod(info.shape)
        (most, _), *_others = weights.most_common(1)
        return _FILE_TYPES.get(self._file.integer("general.file_type") or 0, most)

    def _heads(self, key: str, default: int | None = None) -> int:
        """A number of heads; some files have one for each layer."""
        value = self._file.metadata.get(self._key(key))
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and len(set(value.tolist())) == 1:
            return int(value[0])
        return self._integer(key, default)

    def _integer(self, key: str, default: int | None = None) -> int:
        value = self._file.integer(self._key(key))
        if value is None:
            value = default
        if value is None or not 0 <= value < 2**31:
            raise self._file.wrong(self._key(key), "must be a whole number of moderate size")
        return value

    def _number(self, key: str, default: float) -> float:
        value = self._file.number(self._key(key))
        return default if value is None else value

    def _key(self, key: str) -> str:
        return f"{self._name}.{key}"


def end_token_ids(file: GGUFFile) -> list[int]:
    """Ids of the tokens that end a text or a turn, by what the metadata says and by their names.

    Raises:
        ConfigError: if an entry is of another kind.
    """
    known = END_TOKENS | _ENDS_OF_TURNS
    tokens = file.strings("tokenizer.ggml.tokens") or ()
    named = [(index, token) for index, token in enumerate(tokens) if token in known]  # some are there twice
    ends = declared_end_ids(file) | {index for index, token in named if token in END_TOKENS}
    if {token for _, token in named} >= _ENDS_OF_TURNS:
        ends.update(index for index, _ in named)
        ends.difference_update(index for index, token in named if token == _END_OF_PART)
    return sorted(ends)


def special_token_id(file: GGUFFile, key: str) -> int | None:
    """Id of a special token from the file's metadata (``bos_token_id``), or the default for the kind of tokenizer.

    Raises:
        ConfigError: if the entry has another type.
    """
    token_id = file.integer(f"tokenizer.ggml.{key}")
    default = _DEFAULT_IDS.get(file.text("tokenizer.ggml.model") or "", {}).get(key)
    known = range(len(file.strings("tokenizer.ggml.tokens") or ()))
    return default if default in known and token_id not in known else token_id


def declared_end_ids(file: GGUFFile) -> set[int]:
    """Ids that the metadata calls the end of a text or a turn; see :func:`end_token_ids`."""
    named = (special_token_id(file, key) for key in _END_IDS)
    found = {token_id for token_id in named if token_id is not None}
    key = f"tokenizer.ggml.{_MORE_END_IDS}"
    more = file.numbers(key)
    if more is None:
        return found
    if more.dtype.kind not in "iu":
        raise file.wrong(key, "must be an array of whole numbers")
    return found | set(more.tolist())
