from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from bough.config.model_config import STORED_AS, ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.errors import ConfigError
from tests.models.gguf_files import CONTROL, NORMAL, add_entry

LLAMA: dict[str, Any] = {
    "llama.context_length": 512,
    "llama.embedding_length": 32,
    "llama.block_count": 2,
    "llama.feed_forward_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


def write(path: Path, architecture: str = "llama", tensors: tuple[str, ...] = ("token_embd",), **changes: Any) -> Path:
    entries = {**LLAMA, **{key.replace("__", "."): value for key, value in changes.items()}}
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in entries.items():
        if value is not None:
            add_entry(writer, key.replace("llama", architecture, 1), value)
    for name in tensors:
        writer.add_tensor(f"{name}.weight", np.zeros((100, 32), dtype=np.float16))
    add_blocks(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_blocks(writer: gguf.GGUFWriter) -> None:
    for layer in range(2):
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", np.zeros((64, 32), dtype=np.float16))


def read(path: Path) -> ModelConfig:
    return ModelConfig.from_path(str(path), device="cpu")


def test_configuration_comes_from_the_file(tmp_path: Path) -> None:
    config = read(write(tmp_path / "m.gguf", llama__rope__freq_base=5e5))
    assert config.architecture == "LlamaForCausalLM"
    assert (config.vocab_size, config.hidden_size, config.intermediate_size, config.num_layers) == (100, 32, 64, 2)
    assert (config.num_heads, config.num_kv_heads, config.head_dim) == (4, 2, 8)
    assert config.context_len == 512
    assert config.rope.rope_theta == 5e5
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
    assert config.layer_windows == (128, 128)


@pytest.mark.parametrize(
    ("kind", "factor", "expected"),
    [
        ("none", 4.0, ("default", 1.0)),
        ("none", None, ("default", 1.0)),
        ("linear", 4.0, ("linear", 4.0)),
        (None, 4.0, ("linear", 4.0)),
        (None, 1.0, ("default", 1.0)),
        (None, None, ("default", 1.0)),
    ],
)
def test_positions_are_scaled_unless_the_file_says_that_they_are_not(
    tmp_path: Path, kind: str | None, factor: float | None, expected: tuple[str, float]
) -> None:
    scaling = {"llama__rope__scaling__type": kind, "llama__rope__scaling__factor": factor}
    rope = read(write(tmp_path / "m.gguf", **scaling)).rope
    assert (rope.rope_type, rope.factor) == expected


def test_tokens_that_end_a_turn_are_found_by_id_and_by_name(tmp_path: Path) -> None:
    tokens = ["a", "</s>", "<|eot_id|>", "<|im_end|>", "<|end|>"]
    entries = {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [NORMAL, CONTROL, CONTROL, CONTROL, NORMAL],
        "tokenizer.ggml.eos_token_id": 1,
    }
    assert read(write(tmp_path / "m.gguf", **entries)).eos_token_ids == (1, 2, 3)


def test_recommended_sampling_is_that_of_the_file(tmp_path: Path) -> None:
    entries = {"general.sampling.temp": 0.7, "general.sampling.top_k": 20}
    assert read(write(tmp_path / "m.gguf", **entries)).generation_config == {"temperature": 0.7, "top_k": 20}


def test_the_served_name_is_that_of_the_file() -> None:
    assert resolve(ServerArgs(model_path="/models/small-q8_0.gguf")).served_model_name == "small-q8_0"


@pytest.mark.parametrize(
    ("architecture", "changes", "message"),
    [
        ("gemma3", {}, "architecture gemma3 is not supported in GGUF files; supported are llama, qwen2, qwen3"),
        ("llama", {"tensors": ()}, r"no weights named token_embd\.weight; is it only a vocabulary"),
        ("llama", {"llama__block_count": None}, r"llama\.block_count must be a whole number .*, got None"),
        ("llama", {"llama__block_count": "two"}, r"llama\.block_count must be a whole number, got 'two'"),
        ("llama", {"llama__block_count": 2**31 - 1}, r"must be the number of the file's blocks, 2, got 2147483647"),
        ("llama", {"llama__embedding_length": 64}, r"must fit token_embd\.weight, \[100, 32\], got 64"),
        ("llama", {"llama__feed_forward_length": 2**30}, r"must fit blk\.0\.ffn_up\.weight, \[64, 32\], got"),
        ("llama", {"llama__attention__head_count": 0}, "num_attention_heads must be"),
        ("llama", {"llama__attention__head_count": [4, 2]}, "must be a whole number, got an array of 2"),
        ("llama", {"llama__expert_count": 8}, "mixtures of experts are not supported"),
        ("llama", {"llama__rope__dimension_count": 4}, r"llama\.rope\.dimension_count must be the width of a head, 8"),
        ("llama", {"llama__attention__value_length": 4}, "must be that of keys, 8"),
        ("llama", {"llama__rope__scaling__type": "longrope"}, "must be none, linear or yarn, got 'longrope'"),
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


def test_factors_of_frequencies_must_fit_a_head(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    for key, value in LLAMA.items():
        add_entry(writer, key, value)
    writer.add_tensor("token_embd.weight", np.zeros((100, 32), dtype=np.float16))
    add_blocks(writer)
    writer.add_tensor("rope_freqs.weight", np.ones(3, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ConfigError, match="factors must have 4 entries, got 3"):
        read(tmp_path / "m.gguf")
