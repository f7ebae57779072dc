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


def e2m1(code: int) -> float:
    """4-bit floating point with two bits of exponent and one of mantissa: a sign, ``eem``, a bias of 1, and no number
    that is not finite (OCP Microscaling Formats v1.0, section 5.3.3)."""
    sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
    size = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return -size if sign else size


def e8m0(code: int) -> float:
    """A power of two; 255 is not a number (section 5.4.1)."""
    return float("nan") if code == 255 else 2.0 ** (code - 127)


def to_mxfp4(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and exponents, uint8 ``[rows, inputs]`` and ``[rows, inputs / 32]``, as section 6.3 converts numbers."""
    groups = x.double().view(len(x), -1, 32)
    largest = groups.abs().amax(-1)
    exponents = torch.where(largest > 0, torch.frexp(largest).exponent - 1 - 2, -127).clamp(-127, 127)
    values = torch.tensor([e2m1(code) for code in range(8)], dtype=torch.float64)
    scaled = torch.ldexp(groups, -exponents[..., None].expand_as(groups))
    codes = (scaled.abs()[..., None] - values).abs().argmin(-1) + 8 * (scaled < 0)
    return codes.flatten(1).to(torch.uint8), (exponents + 127).to(torch.uint8)


def from_mxfp4(codes: torch.Tensor, exponents: torch.Tensor) -> torch.Tensor:
    """Numbers, float64 ``[rows, inputs]``."""
    values = torch.tensor([e2m1(code) for code in range(16)], dtype=torch.float64)
    scales = torch.tensor([e8m0(code) for code in range(256)], dtype=torch.float64)
    return values[codes.int()] * scales[exponents.int()].repeat_interleave(32, -1)
