from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from bough.config.model_config import STORED_AS, ModelConfig
from bough.config.pooling import PoolingConfig, PoolingMethod
from bough.config.server_args import ServerArgs, resolve
from bough.errors import ConfigError
from tests.config.test_model_config import rope_of
from tests.models.gguf_files import CONTROL, NORMAL, UNUSED, USER, add_entry

LLAMA: dict[str, Any] = {
    "llama.context_length": 512,
    "llama.embedding_length": 32,
    "llama.block_count": 2,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def write(
    path: Path,
    architecture: str = "llama",
    tensors: tuple[str, ...] = ("token_embd",),
    extra: dict[str, np.ndarray] | None = None,
    **changes: Any,
) -> Path:
    entries = {**LLAMA, **{key.replace("__", "."): value for key, value in changes.items()}}
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in entries.items():
        if value is not None:
            add_entry(writer, key.replace("llama", architecture, 1), value)
    for name in tensors:
        writer.add_tensor(f"{name}.weight", np.zeros((100, 32), dtype=np.float16))
    for layer in range(2):
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", np.zeros((64, 32), dtype=np.float16))
    for name, array in (extra or {}).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read(path: Path, **options: Any) -> ModelConfig:
    return ModelConfig.from_path(str(path), device="cpu", **options)


def test_configuration_comes_from_the_file(tmp_path: Path) -> None:
    config = read(write(tmp_path / "m.gguf", llama__rope__freq_base=5e5))
    assert config.architecture == "LlamaForCausalLM"
    assert (config.vocab_size, config.hidden_size, config.num_layers) == (100, 32, 2)
    (layer,) = set(config.layers)
    attention = layer.mixer
    assert (attention.num_heads, attention.num_kv_heads, attention.head_dim, layer.feed_forward.width) == (4, 2, 8, 64)
    assert config.context_len == 512
    assert rope_of(config).rope_theta == 5e5
    assert config.tie_word_embeddings
    assert config.checkpoint_dtype == "float16"
    assert config.generation_config == {}


@pytest.mark.parametrize(("number", "name"), [(None, "F16"), (15, "Q4_K_M"), (1024, "F16")])
def test_how_weights_are_stored_is_what_the_file_says_or_what_most_of_them_are(
    tmp_path: Path, number: int | None, name: str
) -> None:
    assert read(write(tmp_path / "m.gguf", general__file_type=number)).hf_config[STORED_AS] == name


def test_a_head_of_its_own_is_told_by_its_tensor(tmp_path: Path) -> None:
    assert not read(write(tmp_path / "m.gguf", tensors=("token_embd", "output"))).tie_word_embeddings


def test_a_sliding_window_makes_it_the_first_mistral(tmp_path: Path) -> None:
    config = read(write(tmp_path / "m.gguf", llama__attention__sliding_window=128))
    assert config.architecture == "MistralForCausalLM"
    assert config.windows() == (128,)


@pytest.mark.parametrize(
    ("kind", "factor", "expected"),
    [
        ("none", 4.0, ("default", 1.0)),
        ("none", None, ("default", 1.0)),
        ("linear", 4.0, ("linear", 4.0)),
        (None, 4.0, ("linear", 4.0)),
        (None, 1.0, ("default", 1.0)),
        (None, None, ("default", 1.0)),
        ("linear", 0.0, ("default", 1.0)),
        ("yarn", 0.0, ("default", 1.0)),
        (None, 0.0, ("default", 1.0)),
    ],
)
def test_positions_are_scaled_unless_the_file_says_that_they_are_not(
    tmp_path: Path, kind: str | None, factor: float | None, expected: tuple[str, float]
) -> None:
    scaling = {"llama__rope__scaling__type": kind, "llama__rope__scaling__factor": factor}
    rope = rope_of(read(write(tmp_path / "m.gguf", **scaling)))
    assert (rope.rope_type, rope.factor) == expected


USUAL = 0.1 * math.log(4.0) + 1.0
"""What YaRN multiplies with for a factor of 4."""


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ({}, (512, None, 32.0, 1.0)),
        ({"original_context_length": 0}, (512, None, 32.0, 1.0)),
        ({"original_context_length": 128}, (128, None, 32.0, 1.0)),
        ({"yarn_beta_fast": 128.0, "yarn_beta_slow": 4.0}, (512, None, 128.0, 4.0)),
        ({"yarn_attn_factor": 1.5}, (512, 1.5, 32.0, 1.0)),
        ({"yarn_attn_factor": 1.0}, (512, 1.0, 32.0, 1.0)),
        ({"attn_factor": 2.0}, (512, 2.0 * USUAL, 32.0, 1.0)),
        ({"attn_factor": 2.0, "yarn_attn_factor": 1.5}, (512, 3.0, 32.0, 1.0)),
    ],
)
def test_yarn_is_that_of_the_file(
    tmp_path: Path, entries: dict[str, float], expected: tuple[int, float | None, float, float]
) -> None:
    keys = {"type": "yarn", "factor": 4.0, **entries}
    rope = (
        read(write(tmp_path / "m.gguf", **{f"llama.rope.scaling.{key}": keys[key] for key in keys}))
        .layers[0]
        .mixer.rope
    )
    assert (rope.rope_type, rope.factor) == ("yarn", 4.0)
    assert (rope.original_max_position_embeddings, rope.attention_factor, rope.beta_fast, rope.beta_slow) == expected


FACTORS = {"rope_freqs.weight": np.full(4, 2.0, dtype=np.float32)}


@pytest.mark.parametrize("scaling", [{}, {"type": "none", "factor": 4.0}, {"type": "linear", "factor": 0.0}])
def test_factors_of_frequencies_stand_alone(tmp_path: Path, scaling: dict[str, Any]) -> None:
    entries = {f"llama.rope.scaling.{key}": value for key, value in scaling.items()}
    assert rope_of(read(write(tmp_path / "m.gguf", extra=FACTORS, **entries))).frequency_factors == (2.0,) * 4


@pytest.mark.parametrize("scaling", [{"type": "yarn"}, {"type": "linear", "factor": 4.0}, {"factor": 4.0}])
def test_factors_of_frequencies_beside_another_scaling_are_refused(tmp_path: Path, scaling: dict[str, Any]) -> None:
    path = write(tmp_path / "m.gguf", extra=FACTORS, **{f"llama.rope.scaling.{key}": scaling[key] for key in scaling})
    with pytest.raises(ConfigError, match=r"rope\.scaling\.type must be none in a file that has rope_freqs\.weight"):
        read(path)


def test_factors_of_frequencies_must_fit_a_head(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", extra={"rope_freqs.weight": np.ones(3, dtype=np.float32)})
    with pytest.raises(ConfigError, match="factors must have 4 entries, got 3"):
        read(path)


def test_tokens_that_end_a_turn_are_found_by_id_and_by_name(tmp_path: Path) -> None:
    entries = {
        "tokenizer.ggml.tokens": ["a", "</s>", "<|eot_id|>", "<|im_end|>", "<|end|>", "<EOT>", "EOT", "<end>"],
        "tokenizer.ggml.token_type": [NORMAL, CONTROL, CONTROL, USER, NORMAL, UNUSED, NORMAL, CONTROL],
        "tokenizer.ggml.eos_token_id": 1,
    }
    assert read(write(tmp_path / "m.gguf", **entries)).eos_token_ids == (1, 2, 3, 4, 5)


def test_a_token_that_ends_a_message_within_a_turn_ends_nothing_else(tmp_path: Path) -> None:
    tokens = {"tokenizer.ggml.tokens": ["a", "<|end|>", "<|call|>", "<|return|>"], "tokenizer.ggml.eot_token_id": 1}
    assert read(write(tmp_path / "m.gguf", **tokens)).eos_token_ids == (2, 3)
    tokens["tokenizer.ggml.tokens"] = ["a", "<|end|>", "<|call|>", "b"]
    assert read(write(tmp_path / "n.gguf", **tokens)).eos_token_ids == (1,)
    twice = {"tokenizer.ggml.tokens": ["<|end|>", "<|call|>", "<|return|>", "<|call|>", "<|end|>"]}
    assert read(write(tmp_path / "t.gguf", **twice)).eos_token_ids == (1, 2, 3)


@pytest.mark.parametrize("name", ["_<EOT>", "<end_of_utterance>", "<end_of_turn>", "<｜end▁of▁sentence｜>"])
def test_names_of_ends_need_no_types(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path / "m.gguf", **{"tokenizer.ggml.tokens": ["a", name]})).eos_token_ids == (1,)


def test_ends_may_be_an_array_of_ids(tmp_path: Path) -> None:
    entries = {"tokenizer.ggml.eos_token_id": 7, "tokenizer.ggml.eos_token_ids": [7, 9, 1000, -1]}
    assert read(write(tmp_path / "m.gguf", **entries)).eos_token_ids == (7, 9)


@pytest.mark.parametrize(
    ("named", "ends"),
    [({}, (2,)), ({"eos_token_id": 3}, (3,)), ({"eos_token_id": 99}, (2,)), ({"eot_token_id": 1}, (1, 2))],
)
def test_sentencepiece_has_default_ends(tmp_path: Path, named: dict[str, int], ends: tuple[int, ...]) -> None:
    entries = {f"tokenizer.ggml.{key}": value for key, value in named.items()}
    tokens = {"tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "a"]}
    assert (
        read(write(tmp_path / "m.gguf", **entries, **tokens, **{"tokenizer.ggml.model": "llama"})).eos_token_ids == ends
    )
    byte_level = read(write(tmp_path / "b.gguf", **tokens, **{"tokenizer.ggml.model": "gpt2"}))
    assert byte_level.eos_token_ids == ()


def test_a_tokenizer_in_another_file_brings_its_ends_along(tmp_path: Path) -> None:
    tokens = {"tokenizer.ggml.tokens": ["a", "<|im_end|>"], "tokenizer.ggml.eos_token_id": 5}
    tokenizer = write(tmp_path / "tokenizer.gguf", **tokens)
    model = write(tmp_path / "m.gguf", **{"tokenizer.ggml.eos_token_id": 3})
    assert read(model, tokenizer_path=str(tokenizer)).eos_token_ids == (1, 3, 5)
    assert read(model, tokenizer_path=str(model)).eos_token_ids == (3,)


@pytest.mark.parametrize(("kind", "method"), [(1, "mean"), (2, "cls"), (3, "last")])
def test_a_file_that_pools_makes_embeddings(tmp_path: Path, kind: int, method: PoolingMethod) -> None:
    path = write(tmp_path / "m.gguf", "qwen3", llama__pooling_type=kind)
    assert read(path).pooling == PoolingConfig(method, True, 32)
    assert read(path, pooling_method="max").pooling == PoolingConfig("max", True, 32)


@pytest.mark.parametrize("kind", [0, 2**32 - 1])
def test_a_file_that_does_not_pool_generates(tmp_path: Path, kind: int) -> None:
    path = write(tmp_path / "m.gguf", llama__pooling_type=kind, llama__attention__causal=True)
    assert read(path).pooling is None
    assert read(path, is_embedding=True).pooling == PoolingConfig("last", True, 32)


@pytest.mark.parametrize("fits", [True, False])
def test_heads_must_fit_the_projections_that_make_them(tmp_path: Path, fits: bool) -> None:
    extra = {
        "blk.0.attn_q.weight": np.zeros((32, 32), dtype=np.float16),
        "blk.0.attn_k.weight": np.zeros((16, 32), dtype=np.float16),
    }
    changes: dict[str, Any] = {} if fits else {"llama__attention__key_length": 2**20}
    path = write(tmp_path / "m.gguf", extra=extra, **changes)
    if fits:
        assert read(path).kv_layout().head_dim == 8
        path = write(tmp_path / "m.gguf", extra=extra, llama__attention__head_count_kv=4)
    with pytest.raises(ConfigError, match=r"times the width of a head, \d+, must fit blk\.0\.attn_(q|k)\.weight, \["):
        read(path)


def test_recommended_sampling_is_that_of_the_file(tmp_path: Path) -> None:
    entries = {"general.sampling.temp": 0.7, "general.sampling.top_k": 20}
    assert read(write(tmp_path / "m.gguf", **entries)).generation_config == {"temperature": 0.7, "top_k": 20}
    entries = {"general.sampling.penalty_repeat": 1.1}
    for more, window in (({}, 64), ({"general.sampling.penalty_last_n": 7}, 7)):
        found = read(write(tmp_path / "p.gguf", **entries, **more)).generation_config
        assert found == {"repetition_penalty": 1.1, "repetition_window": window}


def test_the_served_name_is_that_of_the_file() -> None:
    assert resolve(ServerArgs(model_path="/models/small-q8_0.gguf")).served_model_name == "small-q8_0"


@pytest.mark.parametrize(
    ("architecture", "changes", "message"),
    [
        ("gemma2", {}, "architecture gemma2 is not supported in GGUF files"),
        ("llama", {"tensors": ()}, r"no weights named token_embd\.weight; is it only a vocabulary"),
        ("llama", {"llama__block_count": None}, r"llama\.block_count must be a whole number .*, got None"),
        ("llama", {"llama__block_count": "two"}, r"llama\.block_count must be a whole number, got 'two'"),
        ("llama", {"llama__block_count": 2**31 - 1}, r"must be the number of the file's blocks, 2, got 2147483647"),
        ("llama", {"llama__embedding_length": 64}, r"must fit token_embd\.weight, \[100, 32\], got 64"),
        ("llama", {"llama__feed_forward_length": 2**30}, r"must fit blk\.0\.ffn_up\.weight, \[64, 32\], got"),
        ("llama", {"llama__attention__head_count": 0}, "num_attention_heads must be"),
        ("llama", {"llama__attention__head_count": [4, 2]}, "must be a whole number, got an array of 2"),
        ("qwen3", {"llama__expert_count": 8}, "mixtures of experts are not supported"),
        ("llama", {"llama__expert_count": 8}, r"must fit blk\.0\.ffn_up_exps\.weight, which is not there"),
        ("llama", {"llama__rope__dimension_count": 4}, r"llama\.rope\.dimension_count must be the width of a head, 8"),
        ("llama", {"llama__attention__value_length": 4}, "must be that of keys, 8"),
        ("llama", {"llama__rope__scaling__type": "longrope"}, "must be none, linear or yarn, got 'longrope'"),
        ("llama", {"general__type": "adapter"}, "is an adapter, no model of its own; merge it"),
        ("llama", {"llama__attention__causal": False}, "with is_causal false attends to later tokens"),
        (
            "qwen3",
            {"llama__pooling_type": 4},
            r"qwen3\.pooling_type must not be 4 \(rank\): rerankers are not supported",
        ),
        ("qwen3", {"llama__pooling_type": 5}, r"qwen3\.pooling_type must be 0 \(none\), 1 \(mean\), .*, got 5"),
        ("llama", {"tokenizer__ggml__eos_token_ids": [1.5]}, "eos_token_ids must be an array of whole numbers"),
        (
            "llama",
            {"llama__attention__head_count": 2**30, "llama__attention__key_length": 2**20},
            "num_attention_heads times head_dim and hidden_size must be at most",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_by_name(
    tmp_path: Path, architecture: str, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "m.gguf", architecture, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
