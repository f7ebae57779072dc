"""Normalisation."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from bough.kernels.triton.available import kernels_for


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, offset: float) -> torch.Tensor:
    """Normalise ``x`` ``[..., size]`` and multiply by ``offset + weight``, in float32; to the dtype of ``x``."""
    if offset == 0.0:
        return functional.rms_norm(x, weight.shape, weight, eps)
    return functional.rms_norm(x.float(), weight.shape, weight.float() + offset, eps).to(x.dtype)


class RMSNorm(nn.Module):
    """Root mean square normalisation over the last dimension (Zhang and Sennrich 2019), computed in float32.

    Attributes:
        offset: added to the weights: 1 where a family stores what is beyond that.
    """

    def __init__(self, size: int, eps: float, dtype: torch.dtype, *, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, dtype=dtype), requires_grad=False)
        self.eps = eps
        self.offset = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[..., size]`` to the same shape and dtype."""
        return rms_norm(x, self.weight, self.eps, self.offset)

    def after_adding(self, x: torch.Tensor, delta: torch.Tensor | None) -> torch.Tensor:
        """Add ``delta``, if there is one, to ``x`` in place and normalise the sum; all ``[num_tokens, size]``."""
        kernels = kernels_for(x, "elementwise")
        if kernels is not None:
            fused: torch.Tensor = kernels.rms_norm(x, self.weight, self.eps, delta, offset=self.offset)
            return fused
        return self(x if delta is None else x.add_(delta))  # type: ignore[no-any-return]


class LayerNorm(nn.Module):
    """Layer normalisation over the last dimension (Ba et al. 2016), with scale and shift."""

    def __init__(self, size: int, eps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, dtype=dtype), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(size, dtype=dtype), requires_grad=False)
        self.shape = (size,)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[..., size]`` to the same shape and dtype."""
        return functional.layer_norm(x, self.shape, self.weight, self.bias, self.eps)
