"""The bundled model's companions, as tests use them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from bough.config.engine_args import bundled_model_path

ROOT = Path(__file__).parents[1]
COMPANIONS = ROOT / "tests" / "data" / "companions"
# Standard deviation of the noise on weights without an adapter, relative to each: an update that forgets one shows.
NOISE = 0.01


def write_other_checkpoint(out: Path) -> Path:
    """Write a checkpoint of the bundled model's shape with the adapter merged in: its answers begin with "Ahoy!"."""
    shutil.copytree(bundled_model_path(), out)
    weights = {name: value.float() for name, value in load_file(out / "model.safetensors").items()}
    adapter = load_file(COMPANIONS / "adapter" / "adapter_model.safetensors")
    config = json.loads((COMPANIONS / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    generator = torch.Generator().manual_seed(5)
    for name, value in weights.items():
        down, up = (adapter.get(f"base_model.model.{name.replace('.weight', f'.lora_{part}.weight')}") for part in "AB")
        if down is not None and up is not None:
            value += config["lora_alpha"] / config["r"] * (up.float() @ down.float())
        else:
            value *= 1 + NOISE * torch.randn(value.shape, generator=generator)
    save_file({name: value.bfloat16() for name, value in weights.items()}, out / "model.safetensors", {"format": "pt"})
    return out
