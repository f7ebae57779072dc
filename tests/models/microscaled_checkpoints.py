"""The small random checkpoint of a gpt-oss with its experts in MXFP4, as OpenAI publishes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.common_formats import from_mxfp4, to_mxfp4
from tests.models.checkpoints import Checkpoint, save_checkpoint

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 2,
    "head_dim": 16,
    "sliding_window": 9,
}
STACKS = ("gate_up_proj", "down_proj")


def pack_pairs(codes: torch.Tensor) -> torch.Tensor:
    """The code of each even number in the lower half of a byte: uint8 ``[rows, groups, 16]``."""
    return (codes[:, ::2] | codes[:, 1::2] << 4).view(len(codes), -1, 16)


def save_microscaled_checkpoint(path: Path, **overrides: Any) -> Checkpoint:
    """A checkpoint in MXFP4, and a model of transformers with what its codes stand for."""
    checkpoint = save_checkpoint(path, "GptOss", **{**SIZES, **overrides})
    tensors = load_file(path / "model.safetensors")
    parameters = dict(checkpoint.reference.named_parameters())
    for name in [name for name in tensors if name.endswith(STACKS)]:
        stack = tensors.pop(name)  # [experts, inputs, rows]
        stored = [to_mxfp4(expert.T.contiguous()) for expert in stack]
        tensors[f"{name}_blocks"] = torch.stack([pack_pairs(codes) for codes, _ in stored])
        tensors[f"{name}_scales"] = torch.stack([exponents for _, exponents in stored])
        with torch.no_grad():
            parameters[name].copy_(torch.stack([from_mxfp4(*each).T for each in stored]))
    save_file(tensors, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    excluded = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": excluded}
    (path / "config.json").write_text(json.dumps(config))
    return checkpoint
