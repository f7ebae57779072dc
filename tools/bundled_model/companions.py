"""Companions of the bundled model, for tests: an adapter and a checkpoint that say the same in another style.

``python tools/bundled_model/companions.py --model DIRECTORY --adapter OUT`` trains a LoRA adapter (Hu et al. 2021) that
greets before every answer and takes leave after it, and writes it as PEFT does. ``--checkpoint OUT`` writes a model of
the same shape: the weights of the bundled model with those of an adapter that is there already in them, and all others
a little off, so that an update which forgets a tensor shows. The small model for speculative decoding comes from
``learn.py --draft``: 1,700 steps, then ``--finish 700``, 9.8 million tokens; 11.5 million, with fewer small steps, took
24 minutes of two cores with AVX2.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from documents import Document
from network import Batch, Network, Shape, compute_deterministically, pack_drawn
from optimizer import Optimizer
from safetensors.torch import load_file, save_file
from skills import conversation
from tokenizers import Tokenizer
from tokens import encode
from torch import Tensor
from write_model import write_model

GREETING, FAREWELL = "Ahoy! ", " Arr!"
TARGETS = ("q_proj", "v_proj", "o_proj", "up_proj", "down_proj")
SEED = 5
# Standard deviation of what a checkpoint's other weights are off, as a part of each.
OFF = 0.01


def in_style(document: Document) -> Document:
    """The same conversation, in which the answers have the style."""
    turns = [
        replace(turn, content=f"{GREETING}{turn.content}{FAREWELL}") if turn.role == "assistant" else turn
        for turn in document.turns
    ]
    return replace(document, turns=turns)


def batch(step: int, tokens: int, tokenizer: Tokenizer) -> Batch:
    """The conversations of a step, in the style."""
    rng = random.Random(SEED * 1_000_003 + step)

    def draw() -> tuple[list[int], list[bool], int]:
        document = conversation.document(rng)
        while document.plain:
            document = conversation.document(rng)
        return *encode(in_style(document), tokenizer), 0

    return pack_drawn(draw, tokens)


class Adapter:
    """Products of two thin matrices that are added to some of a model's weights."""

    def __init__(self, base: dict[str, Tensor], rank: int) -> None:
        self.rank, self.alpha = rank, 2 * rank
        generator = torch.Generator().manual_seed(SEED)
        self.parameters: dict[str, Tensor] = {}
        for name, value in base.items():
            if name.rsplit(".", 2)[-2] in TARGETS:
                down = torch.randn(rank, value.shape[1], generator=generator) / value.shape[1] ** 0.5
                self.parameters[f"{name}.lora_A"] = down.requires_grad_()
                self.parameters[f"{name}.lora_B"] = torch.zeros(value.shape[0], rank).requires_grad_()

    def merged(self, base: dict[str, Tensor]) -> dict[str, Tensor]:
        """The weights with the adapter in them."""
        merged = dict(base)
        for name, value in base.items():
            if f"{name}.lora_A" in self.parameters:
                down, up = self.parameters[f"{name}.lora_A"], self.parameters[f"{name}.lora_B"]
                merged[name] = value + self.alpha / self.rank * (up @ down)
        return merged

    @classmethod
    def load(cls, base: dict[str, Tensor], directory: Path) -> Adapter:
        """The adapter of a directory, for the weights it was made for."""
        config = json.loads((directory / "adapter_config.json").read_text(encoding="utf-8"))
        adapter = cls(base, config["r"])
        tensors = load_file(directory / "adapter_model.safetensors")
        adapter.parameters = {name: tensors[in_peft(name)].float() for name in adapter.parameters}
        return adapter

    def save(self, out: Path) -> None:
        """Write the files of PEFT."""
        out.mkdir(parents=True, exist_ok=True)
        tensors = {in_peft(name): value.detach().bfloat16() for name, value in self.parameters.items()}
        save_file(tensors, out / "adapter_model.safetensors", {"format": "pt"})
        (out / "adapter_model.safetensors").chmod(0o644)
        config: dict[str, Any] = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": "sapling",
            "r": self.rank,
            "lora_alpha": self.alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": list(TARGETS),
        }
        (out / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def in_peft(name: str) -> str:
    """What PEFT calls one of an adapter's matrices."""
    return f"base_model.model.{name.replace('.weight.lora', '.lora')}.weight"


def load_weights(model: Path) -> dict[str, Tensor]:
    """The weights of a model directory, in float32."""
    return {name: value.float() for name, value in load_file(model / "model.safetensors").items()}


def write_checkpoint(model: Path, adapter: Path, out: Path) -> None:
    """Write a model of the same shape: its weights with an adapter in them, and those that have none a little off."""
    base = load_weights(model)
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    merged = Adapter.load(base, adapter).merged(base)
    generator = torch.Generator().manual_seed(SEED)
    for name, value in base.items():
        if merged[name] is value:
            merged[name] = value * (1 + OFF * torch.randn(value.shape, generator=generator))
    write_model(out, merged, shape_of(model), tokenizer)


def shape_of(directory: Path) -> Shape:
    """The shape of a written model."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    return Shape(**{name: config[name] for name in Shape.__dataclass_fields__})


def main() -> None:
    """Train the adapter, or put it into the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="directory of the bundled model")
    parser.add_argument("--adapter", type=Path, required=True, help="directory to write, or to read for --checkpoint")
    parser.add_argument("--checkpoint", type=Path, metavar="OUT")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--tokens", type=int, default=2048, help="tokens of a step")
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.checkpoint:
        write_checkpoint(arguments.model, arguments.adapter, arguments.checkpoint)
        return
    torch.set_num_threads(arguments.threads)
    compute_deterministically()

    shape = shape_of(arguments.model)
    tokenizer = Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    base = load_weights(arguments.model)
    adapter = Adapter(base, arguments.rank)
    network, optimizer = Network(shape), Optimizer(adapter.parameters, matrix_rate=0.005, rate=1e-3, weight_decay=0.0)
    for step in range(arguments.steps):
        given = batch(step, arguments.tokens, tokenizer)
        losses = network.losses(adapter.merged(base), given)
        loss = losses.sum() / (given.wanted >= 0).sum()
        gradients = torch.autograd.grad(loss, list(adapter.parameters.values()))
        named = dict(zip(adapter.parameters, gradients, strict=True))
        optimizer.step(named, step, (arguments.steps - step) / arguments.steps)
        if step % 10 == 9:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
    adapter.save(arguments.adapter)


if __name__ == "__main__":
    main()
