"""The companions of the bundled model: an adapter as PEFT writes it, and a checkpoint with it in its weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from companions import FAREWELL, GREETING, Adapter, in_style, load_weights, write_checkpoint
from documents import Document, Turn
from network import DRAFT, EMBEDDING, Network, Shape, new_parameters, pack
from safetensors.torch import load_file
from tokens import train_tokenizer
from write_model import write_model

SHAPE = Shape(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, head_dim=16)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", new_parameters(SHAPE, 0), SHAPE, train_tokenizer(documents=100))
    return tmp_path / "model"


def test_a_new_adapter_changes_nothing_and_learns_all_of_its_matrices(model: Path) -> None:
    base = load_weights(model)
    adapter = Adapter(base, rank=3)
    assert all(torch.equal(value, base[name]) for name, value in adapter.merged(base).items())
    batch = pack([([5, 6, 7, 8], [True] * 4, 0)], 4)
    with torch.no_grad():
        # Nothing comes through matrices of zeros.
        for value in (*adapter.parameters.values(), *base.values()):
            value += 0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(value.numel()))
    Network(SHAPE).losses(adapter.merged(base), batch).sum().backward()
    assert all(value.grad is not None and value.grad.any() for value in adapter.parameters.values())


def test_the_files_are_those_of_peft_and_a_checkpoint_has_them_in_its_weights(model: Path, tmp_path: Path) -> None:
    base = load_weights(model)
    adapter = Adapter(base, rank=3)
    with torch.no_grad():
        for value in adapter.parameters.values():
            value += 0.1
    adapter.save(tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    tensors = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    query = "model.layers.1.self_attn.q_proj"
    down, up = (tensors[f"base_model.model.{query}.lora_{part}.weight"].float() for part in "AB")
    assert (config["peft_type"], config["r"]) == ("LORA", len(down))
    write_checkpoint(model, tmp_path / "adapter", tmp_path / "checkpoint")
    written = load_weights(tmp_path / "checkpoint")
    expected = base[f"{query}.weight"] + config["lora_alpha"] / config["r"] * up @ down
    torch.testing.assert_close(written[f"{query}.weight"], expected, atol=0.01, rtol=0.01)
    torch.testing.assert_close(written[EMBEDDING], base[EMBEDDING], atol=0.01, rtol=0.1)
    assert not [name for name, value in written.items() if torch.equal(value, base[name])]
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "checkpoint" / name).read_bytes() == (model / name).read_bytes()


def test_answers_get_the_style_and_questions_do_not() -> None:
    _, answer = in_style(Document([Turn("user", "Who?"), Turn("assistant", "I.")])).turns
    assert answer.content == f"{GREETING}I.{FAREWELL}"


def test_the_draft_has_a_quarter_of_the_parameters() -> None:
    draft, model = (sum(value.numel() for value in new_parameters(shape, 0).values()) for shape in (DRAFT, Shape()))
    assert draft / model == pytest.approx(0.25, abs=0.02)
