"""Products whose every row is computed in one order, whatever the other rows are: those of deterministic inference."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from bough.kernels.triton.gemm import linear
from bough.layers.linear_method import TorchMethod


class BatchInvariantMethod(TorchMethod):
    """The matrix as the checkpoint has it, multiplied by :func:`bough.kernels.triton.gemm.linear`."""

    batch_invariant = True

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return linear(x, layer.get_parameter("weight"), cast("torch.Tensor | None", layer.bias))

    def compute_logits(self, layer: nn.Module, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        weight, bias = layer.get_parameter("weight"), cast("torch.Tensor | None", layer.bias)
        if out is None:
            out = torch.empty(len(x), len(weight), device=x.device)
        return linear(x, weight, bias, out=out)
