"""What llama.cpp's formats make of a model: weights and the inputs of products as Q8_0 or Q4_0 round them."""

from __future__ import annotations

import torch
from torch import nn

BLOCK = 32


def q8_0(x: torch.Tensor) -> torch.Tensor:
    """Blocks of 32 with a scale in half precision, the largest magnitude 127."""
    blocks = _blocks(x)
    most = blocks.abs().amax(-1, keepdim=True)
    steps = torch.round(blocks * (127 / most.clamp_min(1e-30)))
    return _flat(steps * (most / 127).half().float(), x)


def q4_0(x: torch.Tensor) -> torch.Tensor:
    """Blocks of 32 with a scale in half precision, the number of largest magnitude -8."""
    blocks = _blocks(x)
    extreme = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))
    scale = extreme / -8
    steps = torch.floor(blocks * torch.where(scale == 0, 0.0, 1 / scale) + 8.5).clamp(max=15) - 8
    return _flat(steps * scale.half().float(), x)


def _blocks(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.pad(x.float(), (0, -x.shape[-1] % BLOCK)).unflatten(-1, (-1, BLOCK))


def _flat(blocks: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return blocks.flatten(-2)[..., : like.shape[-1]]


def compute_as(model: nn.Module, name: str) -> None:
    """Make a reference model compute as llama.cpp does with a file in ``Q8_0`` or ``Q4_0``.

    Of the latter embeddings and head are Q8_0, as they are where a row is no multiple of 256 long (Q6_K otherwise).
    Inputs of products are Q8_0 in both.
    """
    with torch.no_grad():
        head = model.get_output_embeddings()  # type: ignore[operator]
        for module in model.modules():
            if isinstance(module, nn.Embedding) or module is head:
                module.weight.copy_(q8_0(module.weight))  # type: ignore[operator]
            elif isinstance(module, nn.Linear):
                module.weight.copy_({"Q8_0": q8_0, "Q4_0": q4_0}[name](module.weight))
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(lambda _, inputs: (q8_0(inputs[0]),))
