"""Linear layers. Projections that share their input are stored, and multiplied, as one matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn
from torch.nn import functional


class MergedLinear(nn.Module):
    """``y = x Wᵀ + b``, the outputs of several checkpoint projections side by side.

    Attributes:
        weight: ``[sum of the parts' widths, in_features]``.
        bias: ``[sum of the parts' widths]`` or ``None``.
        parts: output width of each projection, in the order of the output's columns.
    """

    def __init__(self, in_features: int, parts: Mapping[str, int], *, bias: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.parts = dict(parts)
        out_features = sum(self.parts.values())
        self.weight = nn.Parameter(torch.empty(out_features, in_features, dtype=dtype), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(out_features, dtype=dtype), requires_grad=False) if bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, in_features]`` to ``[num_tokens, sum of the parts' widths]``."""
        return functional.linear(x, self.weight, self.bias)

    def checkpoint_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Name within the parent module (``q_proj.weight``), and the view of the parameter that it fills."""
        start = 0
        for part, width in self.parts.items():
            yield f"{part}.weight", self.weight[start : start + width]
            if self.bias is not None:
                yield f"{part}.bias", self.bias[start : start + width]
            start += width


class Linear(MergedLinear):
    """``y = x Wᵀ + b`` with the checkpoint's projection ``name``."""

    def __init__(self, name: str, in_features: int, out_features: int, *, bias: bool, dtype: torch.dtype) -> None:
        super().__init__(in_features, {name: out_features}, bias=bias, dtype=dtype)
