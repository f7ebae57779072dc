from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bough.config import model_config
from bough.config.architectures import BACKBONES, ENCODER_MODULES, MODEL_MODULES, READERS, load_reader
from bough.config.checked_values import CheckedValues
from bough.config.checkpoint import resolve_model_path
from bough.config.model_config import ModelConfig
from bough.config.model_facts import CLAMPED_SWISH, AttentionFacts, ExpertFacts
from bough.config.rope import RopeParameters
from bough.errors import ConfigError
from bough.kernels.library import Isa, LibraryMissing
from bough.layers.rotary import inverse_frequencies
from bough.models.llama_config import LlamaReader
from tests.tables import table

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
    "eos_token_id": 2,
}


def write(directory: Path, file: str, content: Any) -> None:
    (directory / file).write_text(content if isinstance(content, str) else json.dumps(content))


def config_of(directory: Path, values: dict[str, Any] | None = None, **options: Any) -> ModelConfig:
    write(directory, "config.json", {**LLAMA, **(values or {})})
    return ModelConfig.from_path(str(directory), **{"device": "cuda", **options})


NO_ROPE = {"no_rope_layers": [0, 1, 0, 0, 1]}


def rope_of(config: ModelConfig) -> RopeParameters:
    """Rotation of all layers."""
    (rope,) = {layer.mixer.rope for layer in config.layers}
    assert rope is not None
    return rope


def test_reads_the_facts(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    assert config.model_path == str(tmp_path)
    assert (config.vocab_size, config.hidden_size, config.num_layers) == (1000, 64, 4)
    (attention,) = config.attention_shapes()
    assert (attention.num_heads, attention.num_kv_heads, attention.head_dim) == (8, 2, 8)
    assert (config.context_len, config.windows(), config.eos_token_ids) == (4096, (None,), (2,))
    assert (config.dtype, config.rms_norm_eps, config.tie_word_embeddings) == ("bfloat16", 1e-5, False)
    assert config.generation_config == {}


def test_importing_it_and_reading_any_family_does_not_import_torch() -> None:
    code = """
import sys, bough.config.model_config
from bough.config.architectures import load_reader, supported_architectures
for architecture in supported_architectures():
    load_reader(architecture)
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_family_has_its_reader_beside_its_models() -> None:
    for architecture, module in {**MODEL_MODULES, **ENCODER_MODULES}.items():
        assert load_reader(architecture).__module__ == f"{module}_config"
    for architecture, language_model in BACKBONES.items():
        assert load_reader(architecture) is load_reader(language_model)
    assert set(READERS) == {*MODEL_MODULES.values(), *ENCODER_MODULES.values()}


@pytest.mark.parametrize("kind", ["linear", "dynamic", "yarn"])
def test_scaling_of_rope_adds_no_rows_to_the_table_of_an_encoder(tmp_path: Path, kind: str) -> None:
    values = {"architectures": ["BertModel"], "hidden_act": "gelu", "rope_scaling": {"type": kind, "factor": 2.0}}
    assert config_of(tmp_path, values).context_len == 4096
    with pytest.raises(ConfigError, match="--context-length 4097 exceeds the 4096 positions"):
        config_of(tmp_path, values, context_length=4097)


@table(
    "architecture, attention, mlp",
    [
        ("LlamaForCausalLM", (True, True), True),
        ("MistralForCausalLM", (False, False), False),
        ("Qwen2ForCausalLM", (True, False), False),
        ("Qwen3ForCausalLM", (True, True), False),
    ],
)
def test_biases_are_those_of_the_file_where_a_family_goes_by_it(
    tmp_path: Path, architecture: str, attention: tuple[bool, bool], mlp: bool
) -> None:
    config = config_of(tmp_path, {"architectures": [architecture], "attention_bias": True, "mlp_bias": True})
    (layer,) = set(config.layers)
    assert (layer.mixer.qkv_bias, layer.mixer.output_bias) == attention
    assert (layer.feed_forward.bias, layer.feed_forward.activation) == (mlp, "silu")


GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_hidden_layers": 4,
    "num_local_experts": 8,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    },
    "rope_theta": 150000,
    "max_position_embeddings": 131072,
    "swiglu_limit": 7.0,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
}


def test_a_gpt_oss_has_sinks_alternating_windows_and_experts_with_biases(tmp_path: Path) -> None:
    config = config_of(tmp_path, GPT_OSS)
    assert [layer.mixer.window for layer in config.layers] == [128, None, 128, None]
    assert {(layer.mixer.sinks, layer.mixer.qkv_bias, layer.mixer.output_bias) for layer in config.layers} == {
        (True, True, True)
    }
    experts = config.layers[0].feed_forward
    assert isinstance(experts, ExpertFacts)
    assert (experts.activation, experts.bias, experts.routing.bias) == (CLAMPED_SWISH, True, True)
    assert (experts.routing.num_experts, experts.routing.experts_per_token) == (8, 4)
    unstated = config_of(tmp_path, {**GPT_OSS, "rope_scaling": None})
    assert unstated.attention_shapes()[0].rope == config.attention_shapes()[0].rope
    assert config.stored_quantization is not None
    assert config.stored_quantization.is_microscaled
    with pytest.raises(ConfigError, match="swiglu_limit"):
        config_of(tmp_path, {**GPT_OSS, "swiglu_limit": 10.0})


def test_layers_that_need_memory_of_several_shapes_are_refused(tmp_path: Path) -> None:
    class Widening(LlamaReader):
        def mixers(self, attention: AttentionFacts, num_layers: int) -> Sequence[AttentionFacts]:
            first, *others = super().mixers(attention, num_layers)
            return [replace(first, **change), *others]

    for change in ({"num_kv_heads": 1}, {"head_dim": 16}):
        with pytest.raises(ConfigError, match="ThornForCausalLM has layers that differ"):
            Widening(CheckedValues(tmp_path, LLAMA), "ThornForCausalLM").read()
    change = {"window": 7}
    assert Widening(CheckedValues(tmp_path, LLAMA), "ThornForCausalLM").read().windows() == (7, None)


# --- end of sequence ---


def test_end_of_sequence_is_the_union_of_all_sources(tmp_path: Path) -> None:
    write(tmp_path, "generation_config.json", {"eos_token_id": [9, 7], "temperature": 0.6})
    write(tmp_path, "tokenizer_config.json", {"eos_token": {"content": "<end>"}})
    write(tmp_path, "tokenizer.json", {"added_tokens": [{"id": 11, "content": "<end>"}, {"id": 3, "content": "<x>"}]})
    config = config_of(tmp_path)
    assert config.eos_token_ids == (2, 7, 9, 11)
    assert config.generation_config["temperature"] == 0.6


def test_end_of_sequence_named_by_the_tokenizer_configuration_alone(tmp_path: Path) -> None:
    added = {"5": {"content": "<end>"}, "6": {"content": "<pad>"}}
    write(tmp_path, "tokenizer_config.json", {"eos_token": "<end>", "added_tokens_decoder": added})
    assert config_of(tmp_path, {"eos_token_id": None}).eos_token_ids == (5,)


@pytest.mark.parametrize("in_configuration", [True, False])
def test_ends_of_messages_with_calls_are_ends_of_the_turn(tmp_path: Path, in_configuration: bool) -> None:
    tokens = [(5, "<|eot_id|>"), (6, "<|eom_id|>"), (7, "<|python_tag|>"), (8, "<|call|>")]
    names: dict[str, Any] = {"eos_token": "<|eot_id|>"}
    if in_configuration:
        names["added_tokens_decoder"] = {str(token): {"content": text} for token, text in tokens}
    write(tmp_path, "tokenizer_config.json", names)
    write(tmp_path, "tokenizer.json", {"added_tokens": [{"id": token, "content": text} for token, text in tokens]})
    assert config_of(tmp_path, {"eos_token_id": 5}).eos_token_ids == (5, 6, 8)


def test_end_of_sequence_ids_outside_the_vocabulary_are_dropped(tmp_path: Path) -> None:
    assert config_of(tmp_path, {"eos_token_id": [2, 1000, -1]}).eos_token_ids == (2,)


def test_tokenizer_elsewhere_counts(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    write(tokenizer, "tokenizer_config.json", {"eos_token": "<e>", "added_tokens_decoder": {"8": {"content": "<e>"}}})
    write(tokenizer, "tokenizer.json", {})
    for path in (tokenizer, tokenizer / "tokenizer.json"):
        assert config_of(tmp_path, tokenizer_path=str(path)).eos_token_ids == (2, 8)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"eos_token": {"content": ["a"]}}, "eos_token must be a string, or an object with a content that is one"),
        ({"added_tokens_decoder": {"x": {"content": "<e>"}}}, r"added_tokens_decoder\['x'\] must be a token id"),
        ({"added_tokens_decoder": {"5": {"content": ["a"]}}}, r"added_tokens_decoder\['5'\] must be an object with"),
    ],
)
def test_bad_tokens_of_the_tokenizer_are_named(tmp_path: Path, content: dict[str, Any], complaint: str) -> None:
    write(tmp_path, "tokenizer_config.json", content)
    with pytest.raises(ConfigError, match=rf"tokenizer_config\.json: {complaint}"):
        config_of(tmp_path)


# --- context length ---


@pytest.mark.parametrize(
    ("values", "derived"),
    [
        ({}, 4096),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
        ({"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}, 4096),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e6}}, 16384),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}}, 8192),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}}, 4096),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 512}}, 4096),
    ],
)
def test_context_length_follows_the_rope_scaling(tmp_path: Path, values: dict[str, Any], derived: int) -> None:
    config = config_of(tmp_path, values)
    assert config.context_len == config.derived_context_len == derived
    assert config_of(tmp_path, values, context_length=100).context_len == 100


def test_context_length_beyond_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"--context-length 4097 exceeds the 4096 positions.*--json-model-override-args"
    ):
        config_of(tmp_path, context_length=4097)


def test_dynamic_scaling_may_be_stretched_by_its_factor(tmp_path: Path) -> None:
    values = {"rope_scaling": {"type": "dynamic", "factor": 2.0}}
    assert config_of(tmp_path, values, context_length=8192).context_len == 8192
    with pytest.raises(ConfigError, match="8192"):
        config_of(tmp_path, values, context_length=8193)


def test_both_spellings_of_rope_mean_the_same(tmp_path: Path) -> None:
    scaling = {"factor": 8.0, "low_freq_factor": 2.0, "high_freq_factor": 3.0, "original_max_position_embeddings": 512}
    old = rope_of(config_of(tmp_path, {"rope_theta": 5e5, "rope_scaling": {**scaling, "type": "llama3"}}))
    new = (
        config_of(tmp_path, {"rope_parameters": {**scaling, "rope_type": "llama3", "rope_theta": 5e5}})
        .layers[0]
        .mixer.rope
    )
    assert old == new
    assert (old.rope_theta, old.low_freq_factor) == (5e5, 2.0)


def test_overriding_the_scaling_keeps_the_base_in_the_other_spelling(tmp_path: Path) -> None:
    values = {"rope_parameters": {"rope_theta": 1_000_000, "rope_type": "default"}}
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
    rope = rope_of(config_of(tmp_path, values, json_model_override_args={"rope_scaling": scaling}))
    assert (rope.rope_type, rope.rope_theta, rope.factor) == ("yarn", 1e6, 4.0)
    rope = (
        config_of(tmp_path, values, json_model_override_args={"rope_scaling": scaling, "rope_theta": 5e5})
        .layers[0]
        .mixer.rope
    )
    assert rope.rope_theta == 5e5
    rope = (
        config_of(tmp_path, values, json_model_override_args={"rope_scaling": {**scaling, "rope_theta": 2e5}})
        .layers[0]
        .mixer.rope
    )
    assert rope.rope_theta == 2e5


@pytest.mark.parametrize(
    ("architecture", "positions"),
    [
        ("LlamaForCausalLM", 2048),
        ("MistralForCausalLM", 131_072),
        ("Qwen2ForCausalLM", 32_768),
        ("Qwen3ForCausalLM", 32_768),
        ("Qwen3Model", 32_768),
    ],
)
def test_positions_that_are_left_out_are_those_of_the_family(tmp_path: Path, architecture: str, positions: int) -> None:
    values = {key: value for key, value in LLAMA.items() if key != "max_position_embeddings"}
    write(tmp_path, "config.json", {**values, "architectures": [architecture]})
    assert ModelConfig.from_path(str(tmp_path)).context_len == positions


@pytest.mark.parametrize(
    ("truncate", "expected"), [({}, True), ({"truncate": None}, False), ({"truncate": False}, False)]
)
def test_yarn_truncates_unless_told_otherwise(tmp_path: Path, truncate: dict[str, Any], expected: bool) -> None:
    scaling = {"type": "yarn", "factor": 2.0, "beta_fast": 0, **truncate}
    rope = rope_of(config_of(tmp_path, {"rope_scaling": scaling}))
    assert (rope.truncate, rope.beta_fast) == (expected, 32.0)


@table(
    "name, context_length, factors",
    [("su", 4096, "long"), ("yarn", 100, "long"), ("longrope", 64, "short"), ("longrope", 65, "long")],
)
def test_longrope_has_factors_for_the_served_context_length(
    tmp_path: Path, name: str, context_length: int, factors: str
) -> None:
    scaling = longrope(type=name, attention_factor=1.25)
    values = {**PHI3, "rope_scaling": scaling, "original_max_position_embeddings": 64}
    config = config_of(tmp_path, values, context_length=context_length)
    rope = rope_of(config)
    frequencies, scale = inverse_frequencies(8, rope, config.context_len)
    plain = torch.tensor([1.0, 0.1, 0.01, 0.001])
    torch.testing.assert_close(frequencies, plain / torch.tensor(scaling[f"{factors}_factor"]))
    assert scale == 1.25


@table("values, rotating", [({}, [1, 1, 1, 0]), ({"no_rope_layer_interval": 2}, [1, 0, 1, 0]), (NO_ROPE, [0, 1, 0, 0])])
def test_layers_without_rotation(tmp_path: Path, values: dict[str, Any], rotating: list[int]) -> None:
    windows = {"use_sliding_window": True, "sliding_window": 8}
    config = config_of(tmp_path, {**SMOLLM3, **windows, **values})
    assert [layer.mixer.rope is not None for layer in config.layers] == [each == 1 for each in rotating]
    assert [layer.mixer.window for layer in config.layers] == [None if each else 8 for each in rotating]
    assert config.context_len == 4096


@table("entries, scale", [({}, (0.1, 16)), ({"llama_4_scaling_beta": None}, None), ({"llama_4_scaling_beta": 0}, None)])
def test_scale_of_queries_is_none_where_no_context_is_long_enough(
    tmp_path: Path, entries: dict[str, Any], scale: tuple[float, int] | None
) -> None:
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "llama_4_scaling_beta": 0.1}
    values = {"architectures": ["Ministral3ForCausalLM"], "rope_parameters": {**rope, **entries}}
    assert rope_of(config_of(tmp_path, values)).query_scale(4096) == scale
    assert rope_of(config_of(tmp_path, values)).query_scale(16) is None


def test_ministral3_is_stretched_where_its_file_says_nothing(tmp_path: Path) -> None:
    silent = config_of(tmp_path, {"architectures": ["Ministral3ForCausalLM"]})
    null = config_of(tmp_path, {"architectures": ["Ministral3ForCausalLM"], "rope_parameters": None})
    assert rope_of(silent) == rope_of(null)
    assert (rope_of(null).rope_type, rope_of(null).factor, rope_of(null).query_scale_beta) == ("yarn", 16.0, 0.1)


# --- windows ---

WINDOWED = {"use_sliding_window": True, "sliding_window": 8}


@pytest.mark.parametrize(
    ("architecture", "values", "windows"),
    [
        ("LlamaForCausalLM", {"sliding_window": 8}, (None,) * 4),
        ("MistralForCausalLM", {"sliding_window": 8}, (8,) * 4),
        ("MistralForCausalLM", {"sliding_window": None}, (None,) * 4),
        ("MistralForCausalLM", {}, (4096,) * 4),
        ("Qwen2ForCausalLM", {"sliding_window": 8}, (None,) * 4),
        (
            "Qwen2ForCausalLM",
            {**WINDOWED, "max_window_layers": 3},
            (None, None, None, 8),
        ),
        (
            "Qwen3ForCausalLM",
            {**WINDOWED, "layer_types": ["sliding_attention", "full_attention"] * 2},
            (8, None, 8, None),
        ),
    ],
)
def test_windows_of_layers(tmp_path: Path, architecture: str, values: dict[str, Any], windows: tuple[Any, ...]) -> None:
    config = config_of(tmp_path, {"architectures": [architecture], **values})
    assert tuple(layer.mixer.window for layer in config.layers) == windows
    assert config.windows() == tuple(dict.fromkeys(windows))


def test_gemma3_has_two_rotations_in_either_spelling(tmp_path: Path) -> None:
    """As published for 1B, for 4B inside of a model that reads images, and as transformers 5 saves both."""
    full, local = {"rope_theta": 1e6, "factor": 8.0, "rope_type": "linear"}, {"rope_theta": 1e4}
    spellings = [
        {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
        {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
        {"rope_parameters": {"full_attention": full, "sliding_attention": local}},
    ]
    sizes = {"sliding_window": 512, "num_hidden_layers": 7, "query_pre_attn_scalar": 144, "rope_theta": None}
    for spelling in spellings:
        config = config_of(tmp_path, {"architectures": ["Gemma3ForCausalLM"], **sizes, **spelling})
        ropes = [(layer.mixer.window, layer.mixer.rope) for layer in config.layers]
        assert [window for window, _ in ropes] == [512] * 5 + [None, 512]
        assert {(rope.rope_theta, rope.factor) for window, rope in ropes if window is not None} == {(1e4, 1.0)}
        assert {(rope.rope_theta, rope.factor) for window, rope in ropes if window is None} == {(1e6, 8.0)}
        assert {shape.scaling for shape in config.attention_shapes()} == {1 / 12}
        assert config.tie_word_embeddings
    for key in ("attn_logit_softcapping", "final_logit_softcapping", "use_bidirectional_attention"):
        with pytest.raises(ConfigError, match=key):
            config_of(tmp_path, {"architectures": ["Gemma3ForCausalLM"], **sizes, key: 30.0})
    for wrong in ({"rope_type": "yarn", "factor": 8.0}, "yarn"):
        with pytest.raises(ConfigError, match="rope_parameters"):
            config_of(tmp_path, {"architectures": ["Gemma3ForCausalLM"], **sizes, "rope_parameters": wrong})


def test_qwen3_heads_are_128_wide_unless_said_otherwise(tmp_path: Path) -> None:
    assert config_of(tmp_path, {"architectures": ["Qwen3ForCausalLM"]}).kv_layout().head_dim == 128
    assert config_of(tmp_path, {"architectures": ["Qwen3ForCausalLM"], "head_dim": 40}).kv_layout().head_dim == 40


# --- dtype ---


@pytest.mark.parametrize(
    ("checkpoint", "device", "fast_bfloat16", "expected"),
    [
        ("bfloat16", "cuda", False, "bfloat16"),
        ("float16", "cuda", False, "float16"),
        ("bfloat16", "cpu", True, "bfloat16"),
        ("bfloat16", "cpu", False, "float32"),
        ("float16", "cpu", True, "bfloat16"),
        ("float16", "cpu", False, "float32"),
        ("float32", "cpu", True, "float32"),
        ("torch.float16", "cuda", True, "float16"),
        (None, "cuda", True, "float32"),
    ],
)
def test_auto_dtype(
    tmp_path: Path,
    checkpoint: str | None,
    device: str,
    fast_bfloat16: bool,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_config, "_cpu_has_bfloat16", lambda: fast_bfloat16)
    monkeypatch.setattr(model_config, "_kernels_widen_bfloat16", lambda: False)
    assert config_of(tmp_path, {"torch_dtype": checkpoint}, device=device).dtype == expected


@pytest.mark.parametrize(
    ("isa", "expected"),
    [(Isa.PORTABLE, "float32"), (Isa.AVX2, "bfloat16"), (Isa.AVX512, "bfloat16"), (None, "float32")],
)
def test_native_kernels_keep_half_precision_where_they_are_vectorised(
    tmp_path: Path, isa: Isa | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def best_isa() -> Isa:
        if isa is None:
            raise LibraryMissing("not built")
        return isa

    monkeypatch.setattr(model_config, "_cpu_has_bfloat16", lambda: False)
    monkeypatch.setattr(model_config, "best_isa", best_isa)
    assert config_of(tmp_path, {"torch_dtype": "float16"}, device="cpu").dtype == expected


def test_encoders_are_float32_on_a_cpu() -> None:
    assert model_config._auto_dtype("float16", "cpu", is_encoder=True) == "float32"
    assert model_config._auto_dtype("float16", "cuda", is_encoder=True) == "float16"


def test_explicit_dtype_is_obeyed_on_every_device(tmp_path: Path) -> None:
    config = config_of(tmp_path, dtype="float16", device="cpu")
    assert config.dtype == config.for_device("cuda").dtype == config.for_device("cpu").dtype == "float16"


def test_auto_dtype_is_decided_again_for_the_device_that_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_config, "_cpu_has_bfloat16", lambda: False)
    monkeypatch.setattr(model_config, "_kernels_widen_bfloat16", lambda: False)
    config = config_of(tmp_path, device="cuda")
    assert (config.dtype, config.for_device("cpu").dtype) == ("bfloat16", "float32")


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor: 0\nflags\t\t: fpu avx512f avx512_bf16\n", True),
        ("processor: 0\nflags\t\t: fpu avx2 avx512f\n", False),
        ("processor: 0\nFeatures\t: fp asimd bf16 i8mm\n", True),
        ("processor: 0\nFeatures\t: fp asimd\n", False),
    ],
)
def test_bfloat16_arithmetic_is_recognised(tmp_path: Path, cpuinfo: str, expected: bool) -> None:
    write(tmp_path, "cpuinfo", cpuinfo)
    assert model_config._cpu_has_bfloat16(tmp_path / "cpuinfo") is expected


# --- what is refused ---

SCALING = {"type": "linear", "factor": 2.0}
YARN = {"rope_scaling": {"type": "yarn", "factor": 2.0}}


def yarn(**entries: Any) -> dict[str, Any]:
    return {"rope_scaling": {**YARN["rope_scaling"], **entries}}


PHI3 = {"architectures": ["Phi3ForCausalLM"]}
SMOLLM3 = {"architectures": ["SmolLM3ForCausalLM"]}


def longrope(**entries: Any) -> dict[str, Any]:
    return {"type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2, 3, 4.5, 9], **entries}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"architectures": ["GPT2Model"]}, "GPT2Model is not supported; supported are BertForMaskedLM, "),
        ({"architectures": None}, "architectures must name"),
        ({"architectures": []}, "architectures must name"),
        ({"vocab_size": None}, "vocab_size must be a whole number of at least 1, got None"),
        ({"hidden_size": "64"}, "hidden_size must be a whole number"),
        ({"hidden_size": 65}, "hidden_size must be a multiple of num_attention_heads"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 10000"),
        ({"num_hidden_layers": 10**20}, "num_hidden_layers must be at most 10000"),
        ({"vocab_size": 2**31}, "vocab_size must be at most 2147483647"),
        ({"max_position_embeddings": 10**20}, "max_position_embeddings must be at most 2147483647"),
        ({"rms_norm_eps": 10**400}, "rms_norm_eps must be at most 1.79"),
        ({"rope_theta": 0}, "rope_theta must be a number of at least 1"),
        ({"rope_theta": 1e-320}, "rope_theta must be a number of at least 1"),
        ({"architectures": ["BertModel"], "rope_theta": 0}, "rope_theta must be a number of at least 1"),
        ({**YARN, "rope_theta": 1}, "rope_theta must be a number of at least 1.001"),
        (yarn(beta_fast=1e308), "beta_fast must be at most 1000000"),
        (yarn(beta_fast=True), "beta_fast must be a number"),
        (yarn(beta_slow=5e-324), "beta_slow must be a number of at least 1e-06"),
        (yarn(attention_factor=1e300), "attention_factor must be at most"),
        (yarn(mscale=1e308, mscale_all_dim=1e308), "mscale must be at most"),
        (yarn(truncate="false"), "truncate must be true or false, got 'false'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}, "head_dim": 2}, "head_dim must be at least 4"),
        (
            {"rope_scaling": {"type": "llama3", "factor": 2.0, "low_freq_factor": 4.0}},
            "high_freq_factor must be greater than low_freq_factor, got 4",
        ),
        (
            {"rope_scaling": {"type": "llama3", "factor": 2.0, "high_freq_factor": 1e308}},
            "high_freq_factor must be at most",
        ),
        (
            {"rope_scaling": {"type": "frequency_factors", "factors": [1.0, 1e-320, 1.0, 1.0]}},
            "factors must be a list of numbers of at least 1e-06",
        ),
        ({"attention_bias": "false"}, "attention_bias must be true or false, got 'false'"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1, got 0.5"),
        ({**PHI3, "partial_rotary_factor": 0.4}, "partial_rotary_factor must leave an even part of a head of 8"),
        ({**PHI3, "partial_rotary_factor": 1.5}, "partial_rotary_factor must leave an even part of a head of 8"),
        ({**PHI3, "rope_scaling": longrope(short_factor=[1.0])}, "short_factor must have 4 entries, got 1"),
        ({**PHI3, "rope_scaling": longrope(long_factor=[1] * 5)}, "long_factor must have 4 entries, got 5"),
        ({**PHI3, "rope_scaling": longrope(long_factor=None)}, "long_factor must be a list of numbers"),
        ({**PHI3, "rope_scaling": longrope(long_factor=[True] * 4)}, "long_factor must be a list of numbers"),
        (
            {**PHI3, "rope_scaling": longrope(), "original_max_position_embeddings": 1},
            "original_max_position_embeddings must be at least 2",
        ),
        ({**SMOLLM3, "no_rope_layers": [1, 0, 1]}, "no_rope_layers must list 0 or 1 for each of 4 layers"),
        ({**SMOLLM3, "no_rope_layers": [1, 0, 1, 2]}, "no_rope_layers must list 0 or 1"),
        ({**SMOLLM3, "no_rope_layers": "1010"}, "no_rope_layers must list 0 or 1"),
        ({**SMOLLM3, "no_rope_layer_interval": 0}, "no_rope_layer_interval must be a whole number of at least 1"),
        ({"mlp_bias": 0}, "mlp_bias must be true or false"),
        ({"rope_scaling": {"type": "linear", "factor": 1e308}}, "factor must leave at most 2147483647 positions"),
        ({"rope_scaling": {"type": "dynamic", "factor": 1e308}}, "factor must leave at most 2147483647 positions"),
        ({"rope_scaling": {"type": "yarn", "factor": 1e30}}, "factor must leave at most 2147483647 positions"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 10**400}},
            "original_max_position_embeddings must be at most",
        ),
        ({"num_key_value_heads": 3}, "must be a multiple of num_key_value_heads 3"),
        ({"head_dim": 7}, "head_dim must be even"),
        ({"head_dim": 2**31 - 2}, "head_dim must be at most 16777216"),
        (
            {"num_attention_heads": 2**30, "head_dim": 2**20},
            "num_attention_heads times head_dim and hidden_size must be at most 281474976710656, got 1073741824",
        ),
        ({"vocab_size": 2**31 - 1, "hidden_size": 2**18}, "vocab_size times hidden_size must be at most"),
        ({"intermediate_size": 2**31 - 1, "hidden_size": 2**18}, "intermediate_size times hidden_size must be at most"),
        ({"hidden_size": 2**25}, "num_attention_heads times head_dim and hidden_size must be at most"),
        (
            {"architectures": ["BertModel"], "hidden_size": 2**18, "max_position_embeddings": 2**31 - 1},
            "max_position_embeddings times hidden_size must be at most",
        ),
        (
            {"architectures": ["BertModel"], "hidden_size": 2**18, "type_vocab_size": 2**31 - 1},
            "type_vocab_size times hidden_size must be at most",
        ),
        ({"hidden_act": "gelu"}, "hidden_act must be silu or swish, got 'gelu'"),
        ({"rope_scaling": {"type": "su", "factor": 2}}, "rope_type must be one of default, linear"),
        ({"rope_scaling": {"type": "linear"}}, "factor must be given"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "factor must be a number of at least 1"),
        ({"rope_scaling": [1]}, "rope_parameters must be an object"),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, "rope_parameters must be the same for all"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor must be 1"),
        (
            {"rope_scaling": SCALING, "rope_parameters": {"partial_rotary_factor": 0.5}},
            "partial_rotary_factor must be 1, got 0.5",
        ),
        (
            {"rope_scaling": SCALING, "rope_parameters": {"full_attention": {"rope_theta": 1e4}}},
            "rope_parameters must be the same for all",
        ),
        ({"torch_dtype": "int8"}, "dtype must be float32, bfloat16 or float16"),
        ({"eos_token_id": "</s>"}, "eos_token_id must be a token id"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false"),
        (
            {"quantization_config": {"quant_method": "bitsandbytes"}},
            "quantisation: .* is not supported; supported are GPTQ",
        ),
        (
            {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True, "layer_types": ["full_attention"]},
            "layer_types must list 4",
        ),
        (
            {
                "architectures": ["Qwen2ForCausalLM"],
                **WINDOWED,
                "layer_types": [["full_attention"], {}, "full_attention", "full_attention"],
            },
            "layer_types must list 4",
        ),
    ],
)
def test_bad_values_are_refused_naming_file_and_key(tmp_path: Path, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        config_of(tmp_path, values)
    assert "\n" not in str(caught.value)


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such directory: .*absent; give the directory"):
        ModelConfig.from_path(str(tmp_path / "absent"))


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, "model.bin", "")
    with pytest.raises(ConfigError, match="is a file; give a GGUF file, or the directory"):
        ModelConfig.from_path(str(tmp_path / "model.bin"))


@pytest.mark.parametrize(
    ("content", "base"),
    [
        ({"base_model_name_or_path": "owner/\nbase"}, "owner/ base"),
        ({}, "a model that it does not name"),
        ([], "a model that it does not name"),
    ],
)
def test_an_adapter_alone_is_refused_with_the_model_that_it_is_for(tmp_path: Path, content: Any, base: str) -> None:
    write(tmp_path, "adapter_config.json", content)
    write(tmp_path, "adapter_model.safetensors", "")
    with pytest.raises(ConfigError, match=f"is an adapter of {base}, no model of its own; merge it") as caught:
        ModelConfig.from_path(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_directory_without_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not a checkpoint in Hugging Face format: it has no config.json"):
        ModelConfig.from_path(str(tmp_path))


@pytest.mark.parametrize("content", ["{", "[1]", "\xff", "[" * 100_000])
def test_configuration_that_is_no_json_object(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"config.json (is not valid JSON|must hold a JSON object)"):
        ModelConfig.from_path(str(tmp_path))


def test_a_home_that_nobody_has_is_a_directory_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="no such directory: ~nosuchuser/model"):
        resolve_model_path("~nosuchuser/model")


def test_names_that_are_too_long_are_said_to_be() -> None:
    for path in ["/tmp/" + "x" * 300, "/tmp/" + "x" * 300 + ".gguf", "x" * 300, "/x" * 3000]:
        with pytest.raises(ConfigError, match=r"cannot read .*: File name too long") as caught:
            resolve_model_path(path, param="tokenizer_path")
        assert caught.value.param == "tokenizer_path"


def test_too_long_names_of_what_is_not_there_are_not_looked_for() -> None:
    with pytest.raises(ConfigError, match="no such directory: /absent/"):
        resolve_model_path("/absent/" + "x" * 300)


def test_files_that_cannot_be_looked_at_are_not_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").symlink_to("config.json")
    with pytest.raises(ConfigError, match=r"cannot read .*config.json: Too many levels of symbolic links"):
        ModelConfig.from_path(str(tmp_path))

    def closed(self: Path, **_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", closed)
    with pytest.raises(ConfigError, match="cannot read /root/model: Permission denied"):
        resolve_model_path("/root/model")


def test_model_that_is_not_in_the_cache_while_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match=r"cannot get model some/model: .*HF_HUB_OFFLINE") as caught:
        resolve_model_path("some/model")
    assert caught.value.param == "model_path"


def make_snapshot(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty snapshot of ``some/model`` in the hub's cache, where there is no network."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(cache))
    cached = cache / "models--some--model"
    snapshot = cached / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0" * 40)
    return snapshot


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["README.md", "a/q4-00001-of-00002.gguf"], r"name one of them, as in some/model/a/q4-00001-of-00002\.gguf"),
        (["config.json", "pytorch_model.bin"], "pickled ones"),
        (None, "pickled ones"),
    ],
)
def test_a_model_on_the_hub_without_safetensors_is_told_of_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str] | None, told: str
) -> None:
    snapshot = make_snapshot(tmp_path, monkeypatch)
    if names is not None:
        monkeypatch.setattr("huggingface_hub.HfApi.list_repo_files", lambda *_, **__: names)
    with pytest.raises(ConfigError, match=told):
        resolve_model_path("some/model")
    assert resolve_model_path("some/model", load_format="dummy") == snapshot
    (snapshot / "model.safetensors").touch()
    assert resolve_model_path("some/model") == snapshot


def test_an_adapter_on_the_hub_is_told_of_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = make_snapshot(tmp_path, monkeypatch)
    write(snapshot, "adapter_config.json", {"base_model_name_or_path": "owner/base"})
    with pytest.raises(ConfigError, match="is an adapter of owner/base"):
        resolve_model_path("some/model")
    assert resolve_model_path("some/model", load_format="dummy", param="tokenizer_path") == snapshot
    (snapshot / "adapter_model.safetensors").touch()
    with pytest.raises(ConfigError, match="is an adapter of owner/base"):
        ModelConfig.from_path("some/model")


def test_a_download_that_fails_is_told_of_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, told in [(RuntimeError("the peer has\nleft"), "the peer has left"), (EOFError(), "EOFError")]:

        def fail(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
        with pytest.raises(ConfigError, match=f"cannot get model some/model: the download failed: {told}$"):
            resolve_model_path("some/model")


def test_gguf_files_on_the_hub_are_named_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = make_snapshot(tmp_path, monkeypatch)
    (tmp_path / "blob").write_bytes(b"GGUF")
    for name in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"):
        (snapshot / name).symlink_to(tmp_path / "blob")
    file = resolve_model_path("some/model/m-00001-of-00002.gguf")
    assert file == snapshot / "m-00001-of-00002.gguf"
    assert resolve_model_path(str(file)) == file
    with pytest.raises(ConfigError, match=r"some/model has no file q8\.gguf"):
        resolve_model_path("some/model/q8.gguf")
    with pytest.raises(ConfigError, match=r"no such file: models/q8\.gguf"):
        resolve_model_path("models/q8.gguf")
    with pytest.raises(ConfigError, match=r"--revision v1 is for models on the hub, and .* is a local file"):
        resolve_model_path(str(file), revision="v1")
    with pytest.raises(ConfigError, match=r"name one of its GGUF files, some/model/NAME\.gguf"):
        resolve_model_path("some/model", load_format="gguf")


def test_model_in_the_hub_cache_is_found_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = make_snapshot(tmp_path, monkeypatch)
    write(snapshot, "config.json", LLAMA)
    config = ModelConfig.from_path("some/model", load_format="dummy")
    assert config.model_path == str(snapshot)
    assert config.vocab_size == 1000
