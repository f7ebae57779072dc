from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.errors import ModelError
from bough.layers.linear_method import TORCH
from bough.layers.packed_method import PackedMethod
from bough.model_executor.native_path import native_threads
from bough.model_loader.loader import load_model, open_source
from bough.models.base import CausalLM
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.tables import table


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return save_checkpoint(tmp_path, "Qwen2", tie_word_embeddings=True)


@pytest.fixture(params=["packed", "torch"])
def model(request: pytest.FixtureRequest, checkpoint: Checkpoint) -> CausalLM:
    config = ModelConfig.from_path(str(checkpoint.path), device="cpu")
    cpu = torch.device("cpu")
    threads = native_threads(config, cpu, 2) if request.param == "packed" else None
    method = PackedMethod(threads) if threads is not None else TORCH
    return load_model(config, source=open_source(config, "auto"), device=cpu, seed=0, method=method)


Q_WEIGHT = "model.layers.1.self_attn.q_proj.weight"


def test_every_weight_reads_back_as_the_checkpoint_has_it(model: CausalLM, checkpoint: Checkpoint) -> None:
    for name, parameter in checkpoint.reference.state_dict().items():
        torch.testing.assert_close(model.checkpoint_weights[name].read(), parameter, rtol=0, atol=0)


def test_a_single_weight_of_a_merged_matrix_is_replaced_in_place(model: CausalLM, checkpoint: Checkpoint) -> None:
    addresses = [parameter.data_ptr() for parameter in model.parameters()]
    wanted = torch.randn(model.checkpoint_weights[Q_WEIGHT].shape)
    assert model.load_weights([(Q_WEIGHT, wanted)]) == {Q_WEIGHT}
    assert [parameter.data_ptr() for parameter in model.parameters()] == addresses
    for name, parameter in checkpoint.reference.state_dict().items():
        expected = wanted if name == Q_WEIGHT else parameter
        torch.testing.assert_close(model.checkpoint_weights[name].read(), expected, rtol=0, atol=0)


def test_tied_head_is_not_required_and_shares_the_embedding(model: CausalLM) -> None:
    assert "lm_head.weight" not in model.required_names
    assert model.checkpoint_weights["lm_head.weight"].key == (model.checkpoint_weights["model.embed_tokens.weight"].key)


@table("head_last", [False, True])
def test_embedding_counts_where_a_tied_checkpoint_has_a_head_as_well(model: CausalLM, head_last: bool) -> None:
    embedding, head = torch.randn(160, 48), torch.randn(160, 48)
    weights = [("model.embed_tokens.weight", embedding), ("lm_head.weight", head)]
    assert model.load_weights(weights if head_last else weights[::-1]) == {"model.embed_tokens.weight"}
    torch.testing.assert_close(model.checkpoint_weights["lm_head.weight"].read(), embedding, rtol=0, atol=0)


def test_derived_tensors_of_old_checkpoints_are_skipped(model: CausalLM) -> None:
    assert model.load_weights([("model.layers.0.self_attn.rotary_emb.inv_freq", torch.zeros(8))]) == set()


def test_other_precision_is_cast(model: CausalLM) -> None:
    wanted = torch.randn(model.checkpoint_weights[Q_WEIGHT].shape).bfloat16()
    model.load_weights([(Q_WEIGHT, wanted)])
    torch.testing.assert_close(model.checkpoint_weights[Q_WEIGHT].read(), wanted.float(), rtol=0, atol=0)


@table(
    "name, tensor, complaint",
    [
        ("model.layers.9.self_attn.q_proj.weight", torch.zeros(48, 48), "no weight named"),
        ("model.layers.1.self_attn.qkv_proj.weight", torch.zeros(95, 48), "must have shape"),
        (Q_WEIGHT, torch.zeros(48, 47), r"must have shape \[48, 48\], got \[48, 47\]"),
        (Q_WEIGHT, torch.zeros(48 * 48), "must have shape"),
        (Q_WEIGHT, torch.zeros(48, 48, dtype=torch.int8), "must be floating point"),
        (Q_WEIGHT, torch.ones(48, 48).to(torch.float8_e4m3fn), "has no scales, which torch.float8_e4m3fn needs"),
        (Q_WEIGHT, torch.ones(48, 48).to(torch.float8_e5m2), "has no scales"),
    ],
)
def test_misfit_is_refused_and_changes_nothing(
    model: CausalLM, name: str, tensor: torch.Tensor, complaint: str
) -> None:
    before = {key: weight.read().clone() for key, weight in model.checkpoint_weights.items()}
    with pytest.raises(ModelError, match=complaint) as caught:
        model.load_weights([(name, tensor)])
    assert caught.value.param == name
    assert caught.value.status_code == 400
    for key, weight in model.checkpoint_weights.items():
        torch.testing.assert_close(weight.read(), before[key], rtol=0, atol=0)


def test_experts_are_written_one_by_one_and_all_at_once(tmp_path: Path) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3Moe", num_experts=3, num_experts_per_tok=2, moe_intermediate_size=40)
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    model = load_model(config, source=open_source(config, "auto"), device=torch.device("cpu"), seed=0)
    stacked = "model.layers.1.mlp.experts.gate_up_proj"  # as transformers names it while the model is in memory
    up = "model.layers.1.mlp.experts.2.up_proj.weight"
    reference = checkpoint.reference.state_dict()[stacked]
    assert isinstance(model, CausalLM)
    torch.testing.assert_close(model.stacked_weights[stacked].read(), reference, rtol=0, atol=0)
    torch.testing.assert_close(model.checkpoint_weights[up].read(), reference[2, 40:], rtol=0, atol=0)
    names = model.load_weights([(stacked, reference + 1.0)])
    assert len(names) == 6
    assert up in names
    torch.testing.assert_close(model.checkpoint_weights[up].read(), reference[2, 40:] + 1.0, rtol=0, atol=0)
    with pytest.raises(ModelError, match="must have shape"):
        model.load_weights([(stacked, reference[:2])])


def test_experts_of_gates_beside_values_are_written_one_by_one_and_all_at_once(tmp_path: Path) -> None:
    sizes = {"num_local_experts": 3, "num_experts_per_tok": 2, "intermediate_size": 40, "head_dim": 12}
    checkpoint = save_checkpoint(tmp_path, "GptOss", **sizes)
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    model = load_model(config, source=open_source(config, "auto"), device=torch.device("cpu"), seed=0)
    reference, experts = checkpoint.reference.state_dict(), "model.layers.1.mlp.experts"
    for stack in ("gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"):
        own = model.stacked_weights[f"{experts}.{stack}"]
        torch.testing.assert_close(own.read(), reference[f"{experts}.{stack}"], rtol=0, atol=0)
        assert own.read(2).shape == (2, *own.shape[1:])
    changed = reference[f"{experts}.gate_up_proj"] + 1.0
    assert len(model.load_weights([(f"{experts}.gate_up_proj", changed)])) == 6
    up = model.checkpoint_weights[f"{experts}.2.up_proj.weight"].read()
    torch.testing.assert_close(up, changed[2, :, 1::2].T, rtol=0, atol=0)
    pairs = torch.randn(80, 48)
    model.load_weights([(f"{experts}.0.gate_up_proj.weight", pairs)])
    gate = model.checkpoint_weights[f"{experts}.0.gate_proj.weight"].read()
    torch.testing.assert_close(gate, pairs[::2], rtol=0, atol=0)
    with pytest.raises(ModelError, match="must have shape"):
        model.load_weights([(f"{experts}.gate_up_proj", changed.mT)])


def test_layers_that_predict_several_tokens_at_once_are_left_out(tmp_path: Path) -> None:
    sizes = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 12}
    save_checkpoint(tmp_path, "Glm4Moe", num_hidden_layers=2, **sizes)
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    model = load_model(config, source=open_source(config, "auto"), device=torch.device("cpu"), seed=0)
    extra = [("model.layers.2.eh_proj.weight", torch.zeros(48, 96)), ("model.layers.2.enorm.weight", torch.zeros(48))]
    assert model.load_weights(extra) == set()
    with pytest.raises(ModelError, match="has no weight"):
        model.load_weights([("model.layers.1.eh_proj.weight", torch.zeros(48, 96))])
