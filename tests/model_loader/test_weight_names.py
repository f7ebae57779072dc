"""Checkpoints that stack projections, and such that wrap a text model, compute what plain ones do."""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bough.config.model_config import ModelConfig
from bough.errors import ConfigError, ModelError
from bough.models.base import CausalLM
from bough.models.weight_names import STACKED, stored_names, text_name
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.model_loader.test_quantized_source import CASES, WIDE, error_of, make
from tests.models.checkpoints import BASE, VOCAB_SIZE, save_checkpoint
from tests.models.quantized_checkpoints import quantize
from tests.models.test_against_transformers import SCALED
from tests.native import needs_native
from tests.tables import table

PROMPT = random.Random(0).choices(range(VOCAB_SIZE), k=24)
QKV = "model.layers.1.self_attn.qkv_proj.weight"


def logits_of(runner: RecordingRunner) -> torch.Tensor:
    builder = PlanBuilder(runner)
    sequence = builder.add(PROMPT)
    builder.generate(sequence, 3)
    return torch.stack(sequence.logits)


def stacked_tensor(part: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    """Tensors of one part of several quantised or plain projections, for the projection that stacks them."""
    if part == "g_idx":
        return tensors[0]
    if part == "weight_shape":
        return torch.stack([sum(shape[0] for shape in tensors), tensors[0][1]])
    return torch.cat(tensors, dim=int(part in ("qweight", "qzeros", "scales")))


def stack(source: Path, target: Path) -> Path:
    """Copy a checkpoint, with its projections stacked."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    stack_of = {part: stack for stack, parts in STACKED.items() for part in parts}
    tensors, stacks = dict[str, torch.Tensor](), defaultdict[str, dict[str, torch.Tensor]](dict)
    for name, tensor in load_file(source / "model.safetensors").items():
        module, _, part = name.rpartition(".")
        parent, _, projection = module.rpartition(".")
        if projection in stack_of:
            stacks[f"{parent}.{stack_of[projection]}.{part}"][projection] = tensor
        else:
            tensors[name] = tensor
    for name, parts in stacks.items():
        _, stacked, part = name.rsplit(".", 2)
        tensors[name] = stacked_tensor(part, [parts[projection] for projection in STACKED[stacked]])
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, target / "model.safetensors")
    return target


@table("case", [None, "gptq 4 bits", "gptq 4 bits, zero points", "awq", "packed 4 bits, zero points", "integers"])
def test_stacked_projections_compute_what_single_ones_do(tmp_path: Path, case: str | None) -> None:
    family = "Qwen2"  # with biases
    plain = save_checkpoint(tmp_path / "plain", family, **WIDE)
    if case is not None:
        config, store, bits, group, symmetric = CASES[case]
        quantize(plain, config, store, bits=bits, group=group, symmetric=symmetric)
    stacked = stack(plain.path, tmp_path / "stacked")
    for native in (True, False):
        runners = [make_runner(path, dtype="float32", native=native) for path in (stacked, plain.path)]
        assert torch.equal(*map(logits_of, runners)), native


@needs_native
@table("quantization", ["int8", "int4"])
def test_stacked_projections_are_quantised_as_single_ones_are(tmp_path: Path, quantization: str) -> None:
    plain = save_checkpoint(tmp_path / "plain", "Llama", **WIDE)
    stacked = stack(plain.path, tmp_path / "stacked")
    runners = [make_runner(path, quantization=quantization) for path in (stacked, plain.path)]
    assert torch.equal(*map(logits_of, runners))


def test_a_stack_is_replaced_and_read_as_one(tmp_path: Path) -> None:
    model = make_runner(save_checkpoint(tmp_path, "Llama").path).model
    rows = torch.randn(96, 48)
    parts = [QKV.replace("qkv_proj", part) for part in STACKED["qkv_proj"]]
    assert model.load_weights([(QKV, rows)]) == set(parts)
    assert torch.equal(torch.cat([model.checkpoint_weights[part].read() for part in parts]), rows)
    assert torch.equal(model.stacked_weights[QKV].read(50), rows[:50])
    assert model.first_name(QKV.removeprefix("model.")) == QKV
    for wrong in (rows[:95], rows.int()):
        with pytest.raises(ModelError) as caught:
            model.check_weights([(QKV, wrong)])
        assert caught.value.param == QKV


def wrap(source: Path, target: Path, prefix: str, **entries: Any) -> Path:
    """Copy a checkpoint as the text model of one that also reads images."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    text = json.loads((source / "config.json").read_text())
    outer = {"model_type": "mistral3", "vision_config": {"hidden_size": 7}, "eos_token_id": [1, 106], **entries}
    config = {"architectures": ["Mistral3ForConditionalGeneration"], "text_config": text, **outer}
    (target / "config.json").write_text(json.dumps(config))
    body = {"language_model.": "language_model.model.", "model.language_model.": "model.language_model."}[prefix]
    head = {"language_model.": "language_model.lm_head.", "model.language_model.": "lm_head."}[prefix]
    tensors = {
        name.replace("model.", body, 1) if name.startswith("model.") else name.replace("lm_head.", head, 1): tensor
        for name, tensor in load_file(source / "model.safetensors").items()
    }
    others = {
        "vision_tower.layers.0.self_attn.k_scale": torch.zeros(2),
        "multi_modal_projector.w": torch.zeros(3).int(),
    }
    if prefix.startswith("model."):
        others = {f"model.{name}": tensor for name, tensor in others.items()}
    save_file({**tensors, **others}, target / "model.safetensors")
    return target


@table("prefix", ["language_model.", "model.language_model."])
@table("tied", [False, True])
def test_a_wrapped_text_model_is_served_as_text(tmp_path: Path, prefix: str, tied: bool) -> None:
    plain = save_checkpoint(tmp_path / "plain", "Mistral", tie_word_embeddings=tied, eos_token_id=2)
    wrapped = wrap(plain.path, tmp_path / "wrapped", prefix, tie_word_embeddings=tied)
    runners = [make_runner(path) for path in (wrapped, plain.path)]
    assert torch.equal(*map(logits_of, runners))
    assert (runners[0].config.architecture, runners[0].config.eos_token_ids) == ("MistralForCausalLM", (1, 2, 106))
    assert isinstance(runners[0].model, CausalLM)
    name = f"{prefix}model.norm.weight" if prefix == "language_model." else f"{prefix}norm.weight"
    assert runners[0].model.load_weights([(name, torch.ones(48)), ("vision_tower.w", torch.ones(2))]) == {
        "model.norm.weight"
    }


def wrapped_ministral() -> Any:
    text = {"model_type": "ministral3", **BASE, "head_dim": 16, "rope_parameters": SCALED}
    vision = {"model_type": "pixtral", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    config = transformers.Mistral3Config(
        text_config=text, vision_config={**vision, "num_attention_heads": 2, "head_dim": 16}
    )
    return transformers.Mistral3ForConditionalGeneration(config)


def wrapped_gemma() -> Any:
    ropes = {
        "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    }
    text = {**BASE, "head_dim": 16, "sliding_window": 7, "num_hidden_layers": 6, "rope_parameters": ropes}
    vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(text_config=text, vision_config={**vision, "image_size": 28, "patch_size": 14})
    return transformers.Gemma3ForConditionalGeneration(config)


def save_as_published(model: Any, path: Path) -> None:
    """Save a wrapped Gemma 3 with the names of its weights and the entries that the files of 2025 have."""
    model.save_pretrained(path)
    config = json.loads((path / "config.json").read_text())
    text = config["text_config"]
    for key in (
        "rope_parameters",
        "layer_types",
        "sliding_window_pattern",
        "query_pre_attn_scalar",
        "hidden_activation",
    ):
        text.pop(key, None)
    text["rope_scaling"] = {"factor": 8.0, "rope_type": "linear"}
    (path / "config.json").write_text(json.dumps({**config, "eos_token_id": [1, 106]}))
    tensors = {}
    for name, tensor in load_file(path / "model.safetensors").items():
        of_text = name.removeprefix("model.").removeprefix("language_model.").removeprefix("model.")
        is_text = "language_model." in name
        tensors[f"language_model.model.{of_text}" if is_text else name.removeprefix("model.")] = tensor
    save_file(tensors, path / "model.safetensors")


@table(
    "made, save, architecture",
    [
        (wrapped_ministral, lambda model, path: model.save_pretrained(path), "Ministral3ForCausalLM"),
        (wrapped_gemma, lambda model, path: model.save_pretrained(path), "Gemma3ForCausalLM"),
        (wrapped_gemma, save_as_published, "Gemma3ForCausalLM"),
    ],
)
@table("native", [True, False])
def test_a_model_that_transformers_wraps_is_served_as_text(
    tmp_path_factory: pytest.TempPathFactory,
    made: Callable[[], Any],
    save: Callable[[Any, Path], None],
    architecture: str,
    native: bool,
) -> None:
    torch.manual_seed(0)
    model, path = made().eval(), tmp_path_factory.mktemp("wrapped")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 1.2 / parameter.shape[-1] ** 0.5)
    save(model, path)
    runner = make_runner(path, native=native)
    assert runner.config.architecture == architecture
    assert runner.config.tie_word_embeddings
    with torch.inference_mode():
        expected = model(torch.tensor([PROMPT])).logits[0, -1]
    torch.testing.assert_close(logits_of(runner)[0], expected, rtol=0, atol=1e-4)


@table(
    "case, family",
    [
        ("awq", "Phi3"),
        ("gptq 4 bits", "Gemma3"),
        ("packed 4 bits", "Ministral3"),
        ("packed 8 bits, channels", "SmolLM3"),
    ],
)
def test_newer_families_are_read_from_quantised_files(tmp_path: Path, case: str, family: str) -> None:
    """Those of Phi-3 have stacks of projections."""
    checkpoint = make(tmp_path, case, family)
    assert error_of(checkpoint, dtype="float32", native=False) < 1e-5
    assert error_of(checkpoint) < 0.06


@needs_native
def test_a_wrapped_text_model_keeps_the_codes_that_it_is_stored_with(tmp_path: Path) -> None:
    config, store, bits, group, symmetric = CASES["packed 4 bits"]
    plain = save_checkpoint(tmp_path / "plain", "Mistral", **WIDE)
    quantize(plain, config, store, bits=bits, group=group, symmetric=symmetric)
    wrapped = wrap(plain.path, tmp_path / "wrapped", "language_model.", quantization_config=config)
    runners = [make_runner(path) for path in (wrapped, plain.path)]
    assert runners[0].weight_bytes == runners[1].weight_bytes
    assert torch.equal(*map(logits_of, runners))


def test_entries_of_the_wrapper_and_of_the_text_are_told_apart(tmp_path: Path) -> None:
    plain = save_checkpoint(tmp_path / "plain", "Mistral", sliding_window=None)
    path = wrap(plain.path, tmp_path / "wrapped", "language_model.", tie_word_embeddings=True, sliding_window=9)
    config = ModelConfig.from_path(str(path), json_model_override_args={"rms_norm_eps": 0.5})
    assert config.tie_word_embeddings
    assert config.rms_norm_eps == 0.5
    with pytest.raises(ConfigError, match="text_config must be an object"):
        ModelConfig.from_path(str(path), json_model_override_args={"text_config": None})
    with pytest.raises(ConfigError, match=r"text_config\.model_type"):
        ModelConfig.from_path(str(path), json_model_override_args={"text_config": {"model_type": "other"}})


def test_names_lead_back() -> None:
    for name in ("model.layers.0.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"):
        found = list(stored_names(name))
        assert found[0] == name
        assert {text_name(each) for each in found} <= {name, name.removeprefix("model.")}
    assert "language_model.model.layers.1.self_attn.qkv_proj" in stored_names("model.layers.1.self_attn.v_proj")
