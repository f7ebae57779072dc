"""The small random checkpoints in the layouts of GPTQ, AWQ and compressed-tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.models.checkpoints import Checkpoint

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)

Tensors = dict[str, torch.Tensor]
Stored = tuple[Tensors, torch.Tensor]
"""The tensors of a matrix by the last part of their names, and the numbers ``[rows, inputs]`` that they stand for."""


def pack(codes: torch.Tensor, bits: int, order: tuple[int, ...] | None = None) -> torch.Tensor:
    """Non-negative codes ``[n, m]`` into int32 words along the last dimension; ``order`` is AWQ's."""
    per_word = 32 // bits
    missing = -codes.shape[1] % per_word
    codes = torch.nn.functional.pad(codes.long(), (0, missing))
    words = torch.zeros(codes.shape[0], codes.shape[1] // per_word, dtype=torch.int64)
    for place, column in enumerate(order or range(per_word)):
        words |= codes[:, column::per_word] << (bits * place)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


class Draw:
    """Random codes, scales and zero points of one matrix; the scales are those of 16-bit checkpoints."""

    def __init__(self, weight: torch.Tensor, bits: int, group: int, *, symmetric: bool, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        rows, inputs = weight.shape
        self.bits, self.group = bits, group if group > 0 else inputs
        groups = -(-inputs // self.group)
        self.codes = torch.randint(0, 2**bits, (rows, inputs), generator=generator)
        size = 2.0 / (inputs**0.5 * 2**bits)
        self.scales = ((torch.rand(rows, groups, generator=generator) + 0.5) * size).half()
        self.zeros = torch.randint(0, 2**bits, (rows, groups), generator=generator)
        if symmetric:
            self.zeros.fill_(2 ** (bits - 1))

    def numbers(self, order: torch.Tensor | None = None) -> torch.Tensor:
        if order is None:
            order = torch.arange(self.codes.shape[1]) // self.group
        return (self.codes - self.zeros[:, order]) * self.scales.float()[:, order]


def gptq(draw: Draw, *, version: int = 1, order: torch.Tensor | None = None) -> Stored:
    zeros = (draw.zeros - int(version == 1)) % 2**draw.bits
    usual = torch.arange(draw.codes.shape[1]) // draw.group
    tensors = {
        "qweight": pack(draw.codes, draw.bits).T,
        "qzeros": pack(zeros.T, draw.bits),
        "scales": draw.scales.T,
        "g_idx": (usual if order is None else order).to(torch.int32),
    }
    return tensors, draw.numbers(order)


def awq(draw: Draw) -> Stored:
    tensors = {
        "qweight": pack(draw.codes.T, 4, AWQ_ORDER),
        "qzeros": pack(draw.zeros.T, 4, AWQ_ORDER),
        "scales": draw.scales.T,
    }
    return tensors, draw.numbers()


def packed(draw: Draw, *, symmetric: bool, order: torch.Tensor | None = None) -> Stored:
    tensors = {
        "weight_packed": pack(draw.codes, draw.bits),
        "weight_scale": draw.scales,
        "weight_shape": torch.tensor(draw.codes.shape),
    }
    if not symmetric:
        tensors["weight_zero_point"] = pack(draw.zeros.T, draw.bits).T
    if order is not None:
        tensors["weight_g_idx"] = order.to(torch.int32)
    return tensors, draw.numbers(order)


def integers(draw: Draw, *, symmetric: bool, per_tensor: bool = False) -> Stored:
    if per_tensor:
        draw.scales[:] = draw.scales[0, 0]
        draw.zeros[:] = draw.zeros[0, 0]
    tensors = {
        "weight": (draw.codes - 128).to(torch.int8),
        "weight_scale": draw.scales[0] if per_tensor else draw.scales,
    }
    if not symmetric:
        tensors["weight_zero_point"] = ((draw.zeros[0] if per_tensor else draw.zeros) - 128).to(torch.int8)
    return tensors, draw.numbers()


def float8(draw: Draw, block: tuple[int, int] | None, *, scales_name: str = "weight_scale") -> Stored:
    """8-bit floating point with a scale for each block of so many rows and inputs; ``None``: one for all."""
    numbers = draw.numbers()
    rows, inputs = numbers.shape
    height, width = block or (rows, inputs)
    high, wide = -(-rows // height), -(-inputs // width)
    padded = torch.zeros(high * height, wide * width)
    padded[:rows, :inputs] = numbers
    scales = padded.view(high, height, wide, width).abs().amax((1, 3)) / 448
    spread = scales.repeat_interleave(height, 0)[:rows].repeat_interleave(width, 1)[:, :inputs]
    codes = (numbers / spread).to(torch.float8_e4m3fn)
    stored = {"weight": codes, scales_name: scales.reshape(()) if block is None else scales}
    return stored, codes.float() * spread


def quantize(
    checkpoint: Checkpoint,
    config: dict[str, Any],
    store: Callable[[Draw], Stored],
    *,
    bits: int,
    group: int,
    symmetric: bool,
    left_out: tuple[str, ...] = ("lm_head", "embed_tokens"),
    extra: Tensors | None = None,
    seed: int = 0,
) -> Checkpoint:
    """Replace the linear layers of a checkpoint, on disk and in its reference, by random ones in a layout.

    Args:
        checkpoint: of :func:`tests.models.checkpoints.save_checkpoint`.
        config: the ``quantization_config``.
        store: makes tensors of codes.
        bits: of a code.
        group: inputs that share a scale; -1 for all.
        symmetric: whether zero points are in the middle.
        left_out: parts of names of what is not quantised.
        extra: further tensors.
        seed: of the random matrices.
    """
    file = checkpoint.path / "model.safetensors"
    tensors: Tensors = {}
    for index, (name, tensor) in enumerate(load_file(file).items()):
        if tensor.ndim != 2 or any(part in name for part in left_out):
            tensors[name] = tensor
            continue
        draw = Draw(tensor, bits, group, symmetric=symmetric, seed=1000 * seed + index)
        stored, numbers = store(draw)
        module = name.removesuffix(".weight")
        tensors.update((f"{module}.{part}", each.contiguous()) for part, each in stored.items())
        with torch.no_grad():
            place_of(checkpoint.reference, name).copy_(numbers)
    save_file({**tensors, **(extra or {})}, file)
    set_config(checkpoint.path, quantization_config=config)
    return checkpoint


def place_of(model: Any, name: str) -> torch.Tensor:
    """A parameter of a model of transformers by a checkpoint's name, or the part of it that this names."""
    layer, experts, rest = name.partition(".experts.")
    if not experts:
        return model.get_parameter(name).data
    number, part, _ = rest.split(".")
    if part == "down_proj":
        return model.get_parameter(f"{layer}.experts.down_proj").data[int(number)]
    gate, up = model.get_parameter(f"{layer}.experts.gate_up_proj").data[int(number)].chunk(2)
    return gate if part == "gate_proj" else up


def set_config(directory: Path, **entries: Any) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))
