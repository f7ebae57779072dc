"""What a checkpoint's files say about pooling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.config.model_config import ModelConfig
from bough.config.model_facts import EncoderParameters
from bough.config.pooling import PoolingConfig
from bough.errors import ConfigError
from tests.minilm import minilm_path

BERT = {
    "architectures": ["BertModel"],
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "hidden_act": "gelu",
}
QWEN3 = {**BERT, "architectures": ["Qwen3ForCausalLM"], "num_key_value_heads": 1, "hidden_act": "silu"}


def read(directory: Path, config: dict[str, Any], **options: Any) -> ModelConfig:
    (directory / "config.json").write_text(json.dumps(config))
    return ModelConfig.from_path(str(directory), load_format="dummy", device="cpu", **options)


def pooling_of(directory: Path, config: dict[str, Any], **options: Any) -> PoolingConfig:
    pooling = read(directory, config, **options).pooling
    assert pooling is not None
    return pooling


def pipeline(directory: Path, *stages: str, **modes: Any) -> None:
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": kind} for kind in stages]
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / "Pooling").mkdir(exist_ok=True)
    (directory / "Pooling" / "config.json").write_text(json.dumps(modes))


def test_a_real_pipeline() -> None:
    config = ModelConfig.from_path(str(minilm_path()), device="cpu")
    assert config.pooling == PoolingConfig("mean", True, 384)
    assert (config.is_encoder, config.is_generation) == (True, False)
    assert (config.context_len, config.derived_context_len) == (256, 512)
    assert ModelConfig.from_path(str(minilm_path()), device="cpu", context_length=512).context_len == 512
    with pytest.raises(ConfigError, match="--context-length 513 exceeds the 512 positions"):
        ModelConfig.from_path(str(minilm_path()), context_length=513)


def test_defaults_where_the_files_are_silent(tmp_path: Path) -> None:
    assert pooling_of(tmp_path, BERT) == PoolingConfig("cls", True, 16)
    assert pooling_of(tmp_path, QWEN3, is_embedding=True) == PoolingConfig("last", True, 16)
    assert pooling_of(tmp_path, {**QWEN3, "architectures": ["Qwen3Model"]}).method == "last"
    assert read(tmp_path, QWEN3).pooling is None


def test_the_users_choice_wins(tmp_path: Path) -> None:
    pipeline(tmp_path, "Transformer", "Pooling", pooling_mode_cls_token=True)
    assert pooling_of(tmp_path, BERT) == PoolingConfig("cls", False, 16)
    assert pooling_of(tmp_path, BERT, pooling_method="max") == PoolingConfig("max", False, 16)


@pytest.mark.parametrize(
    ("modes", "method"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "include_prompt": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode": "max", "embedding_dimension": 16}, "max"),
        ({"pooling_mode": "lasttoken"}, "last"),
        ({"pooling_mode": ["cls"]}, "cls"),
        ({"pooling_mode_mean_tokens": False, "word_embedding_dimension": 16}, "mean"),
        ({}, "mean"),
    ],
)
def test_all_spellings_of_a_pooling(tmp_path: Path, modes: dict[str, Any], method: str) -> None:
    """A language model that brings a pipeline is an embedding model without being told."""
    pipeline(tmp_path, "Transformer", "Pooling", "Normalize", **modes)
    assert pooling_of(tmp_path, QWEN3) == PoolingConfig(method, True, 16)


def test_classes(tmp_path: Path) -> None:
    config = {**BERT, "architectures": ["BertForSequenceClassification"]}
    assert pooling_of(tmp_path, config).labels == ("LABEL_0", "LABEL_1")
    named = pooling_of(tmp_path, {**config, "id2label": {"1": "b", "0": "a", "2": "c"}})
    assert (named.labels, named.dim, named.activation) == (("a", "b", "c"), 3, "softmax")
    one = {**config, "num_labels": 1}
    assert pooling_of(tmp_path, one).activation == "sigmoid"
    assert pooling_of(tmp_path, {**config, "problem_type": "multi_label_classification"}).activation == "sigmoid"
    identity = "torch.nn.modules.linear.Identity"
    assert pooling_of(tmp_path, {**one, "sentence_transformers": {"activation_fn": identity}}).activation == "identity"
    assert pooling_of(tmp_path, {**one, "sbert_ce_default_activation_function": identity}).activation == "identity"


CLASSIFIER = {**BERT, "architectures": ["BertForSequenceClassification"]}
IDENTITY, SIGMOID = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"


@pytest.mark.parametrize(
    ("config", "library", "activation"),
    [
        ({}, {"activation_fn": IDENTITY}, "identity"),
        ({}, {"activation_fn": None}, "sigmoid"),
        ({"sentence_transformers": {"version": "4.0.0"}}, {"activation_fn": IDENTITY}, "identity"),
        ({"sentence_transformers": {"activation_fn": SIGMOID}}, {"activation_fn": IDENTITY}, "sigmoid"),
        ({"sbert_ce_default_activation_function": SIGMOID}, {"activation_fn": IDENTITY}, "sigmoid"),
        ({"problem_type": "regression"}, {"activation_fn": SIGMOID}, "sigmoid"),
        ({"problem_type": "regression"}, {}, "identity"),
        ({"problem_type": "regression", "num_labels": 3}, {}, "identity"),
        ({"problem_type": ["regression"], "num_labels": 3}, {}, "softmax"),
        # What the library writes for all that have several classes.
        ({"num_labels": 3}, {"activation_fn": IDENTITY}, "softmax"),
        ({"num_labels": 3, "problem_type": "multi_label_classification"}, {"activation_fn": IDENTITY}, "sigmoid"),
        ({"num_labels": 3}, {"activation_fn": SIGMOID}, "sigmoid"),
    ],
)
def test_the_activation_stands_in_one_place_or_another(
    tmp_path: Path, config: dict[str, Any], library: dict[str, Any], activation: str
) -> None:
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(library))
    assert pooling_of(tmp_path, {**CLASSIFIER, "num_labels": 1, **config}).activation == activation


def test_an_activation_that_is_not_supported_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    (tmp_path / "config_sentence_transformers.json").write_text('{"activation_fn": "torch.nn.ReLU"}')
    with pytest.raises(ConfigError, match=r"activation torch\.nn\.ReLU is not supported; supported are Identity, "):
        read(tmp_path, {**CLASSIFIER, "num_labels": 1})


@pytest.mark.parametrize(("pad", "expected"), [(None, None), (-1, None), (0, 0), (7, 7)])
def test_classes_of_language_models_are_not_read_from_padding(
    tmp_path: Path, pad: int | None, expected: int | None
) -> None:
    config = {**QWEN3, "pad_token_id": pad}
    assert pooling_of(tmp_path, {**config, "architectures": ["Qwen3ForSequenceClassification"]}).padding_id == expected
    assert pooling_of(tmp_path, {**config, "architectures": ["Qwen3ForRewardModel"]}).padding_id is None
    assert pooling_of(tmp_path, config, is_embedding=True).padding_id is None


def test_matryoshka(tmp_path: Path) -> None:
    assert pooling_of(tmp_path, BERT).matryoshka is False
    assert pooling_of(tmp_path, {**BERT, "matryoshka_dimensions": [16, 4]}).matryoshka == (4, 16)
    assert pooling_of(tmp_path, BERT, json_model_override_args={"is_matryoshka": True}).matryoshka is True


def test_positions_of_roberta_begin_after_padding(tmp_path: Path) -> None:
    config = {**BERT, "architectures": ["XLMRobertaModel"], "pad_token_id": 1}
    assert read(tmp_path, config).context_len == 62
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 1000}')
    assert read(tmp_path, config).context_len == 62


@pytest.mark.parametrize("kind", ["roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])
def test_the_longest_sequence_may_stand_in_a_file_of_an_older_name(tmp_path: Path, kind: str) -> None:
    (tmp_path / f"sentence_{kind}_config.json").write_text('{"max_seq_length": 20}')
    assert read(tmp_path, BERT).context_len == 20
    (tmp_path / "sentence_bert_config.json").write_text('{"do_lower_case": false}')
    assert read(tmp_path, BERT).context_len == 64, "the first file that says something counts"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(20, 20), (100, 64), (10**30, 64), (1e30, 64), (32.5, 64), (True, 64), (0, 64), ("20", 64), (None, 64)],
)
def test_the_longest_sequence_of_a_pipeline_may_be_its_tokenizers(tmp_path: Path, limit: Any, expected: int) -> None:
    """As sentence-transformers writes it from version 6 on."""
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": limit}))
    assert read(tmp_path, BERT).context_len == 64, "no pipeline"
    pipeline(tmp_path, "Transformer", "Pooling", pooling_mode="mean")
    (tmp_path / "sentence_bert_config.json").write_text('{"transformer_task": "feature-extraction"}')
    assert read(tmp_path, BERT).context_len == expected
    (tmp_path / "sentence_bert_config.json").write_text('{"max_seq_length": 30}')
    assert read(tmp_path, BERT).context_len == 30


def test_heads_of_encoders_share_the_states_out_whatever_the_file_says(tmp_path: Path) -> None:
    assert read(tmp_path, {**BERT, "head_dim": 7}).kv_layout().head_dim == 8
    with pytest.raises(ConfigError, match="hidden_size must be a multiple of num_attention_heads 3"):
        read(tmp_path, {**BERT, "head_dim": 8, "num_attention_heads": 3})


@pytest.mark.parametrize(
    ("config", "options", "complaint"),
    [
        (QWEN3, {"pooling_method": "mean"}, "--pooling-method mean: Qwen3ForCausalLM generates text"),
        ({**QWEN3, "is_causal": False}, {"is_embedding": True}, "attends to later tokens"),
        ({**QWEN3, "is_causal": False}, {}, "Qwen3ForCausalLM with is_causal false attends to later tokens"),
        ({**QWEN3, "is_causal": 0}, {}, "is_causal must be true or false"),
        ({**BERT, "is_decoder": True}, {}, "BertModel with is_decoder true attends to earlier tokens only"),
        (
            {**QWEN3, "architectures": ["Qwen3ForSequenceClassification"], "pad_token_id": "x"},
            {},
            "pad_token_id must be a token id",
        ),
        ({**BERT, "hidden_act": "swiglu"}, {}, "hidden_act must be one of gelu, "),
        ({**BERT, "position_embedding_type": "relative_key"}, {}, "position_embedding_type must be absolute"),
        ({**BERT, "matryoshka_dimensions": [17]}, {}, "matryoshka_dimensions must list numbers from 1 to 16"),
        (
            {**BERT, "architectures": ["BertForSequenceClassification"]},
            {"pooling_method": "mean"},
            "reads its classes from the cls token",
        ),
        (
            {**BERT, "architectures": ["BertForSequenceClassification"], "id2label": {"1": "a"}},
            {},
            "id2label must name",
        ),
        ({**BERT, "architectures": ["BertForSequenceClassification"], "num_labels": 0}, {}, "num_labels must be"),
        (
            {**BERT, "architectures": ["BertForSequenceClassification"], "num_labels": 10**9},
            {},
            "num_labels must be at most",
        ),
        (
            {
                **BERT,
                "architectures": ["BertForSequenceClassification"],
                "sentence_transformers": {"activation_fn": "os.x"},
            },
            {},
            "activation os.x is not supported",
        ),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, config: dict[str, Any], options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read(tmp_path, config, **options)


def test_stages_and_poolings_that_are_not_supported(tmp_path: Path) -> None:
    pipeline(tmp_path, "Transformer", "Pooling", "Dense", pooling_mode_cls_token=True)
    with pytest.raises(ConfigError, match="stage Dense is not supported"):
        read(tmp_path, BERT)
    pipeline(tmp_path, "Transformer", "Pooling", pooling_mode_cls_token=True, pooling_mode_mean_tokens=True)
    with pytest.raises(ConfigError, match="one of the poolings cls, mean, max and lasttoken"):
        read(tmp_path, BERT)
    (tmp_path / "modules.json").write_text('{"a": 1}')
    with pytest.raises(ConfigError, match="must hold a list of objects"):
        read(tmp_path, BERT)


@pytest.mark.parametrize("folder", ["/etc", "../other", "a/../../other"])
def test_stages_elsewhere_are_not_read(tmp_path: Path, folder: str) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "Pooling", "path": folder}]))
    with pytest.raises(ConfigError, match="is not one inside the checkpoint"):
        read(tmp_path, BERT)


def test_a_pipeline_that_reads_what_a_language_model_would_say_is_a_language_model(tmp_path: Path) -> None:
    """As Qwen3-Reranker has it."""
    pipeline(tmp_path, "Transformer", "LogitScore")
    assert read(tmp_path, QWEN3).pooling is None
    with pytest.raises(ConfigError, match="stage LogitScore is not supported"):
        read(tmp_path, QWEN3, is_embedding=True)


@pytest.mark.parametrize(("architecture", "first_position"), [("BertModel", 0), ("RobertaModel", 2)])
def test_null_in_what_only_encoders_have_is_the_default(architecture: str, first_position: int, tmp_path: Path) -> None:
    nulls = {"pad_token_id": None, "layer_norm_eps": None, "type_vocab_size": None}
    encoder = read(tmp_path, {**BERT, "architectures": [architecture], **nulls}).encoder
    defaults = {"layer_norm_eps": 1e-12, "type_vocab_size": 2}
    assert encoder == EncoderParameters(num_positions=64, first_position=first_position, **defaults)


@pytest.mark.parametrize("key", ["layer_norm_eps", "type_vocab_size"])
def test_nonsense_in_what_only_encoders_have_names_the_key(key: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=key):
        read(tmp_path, {**BERT, key: "much"})
