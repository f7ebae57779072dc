"""Linear layers. Projections that share their input are stored, and multiplied, as one matrix where they can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypedDict

import torch
from torch import nn

from bough.config.sharding import Span
from bough.layers.activation import Gate
from bough.layers.checkpoint_weight import CheckpointWeight
from bough.layers.linear_method import TORCH, MatrixShape, MethodChoice
from bough.layers.sharding import AbsentWeight, whole_weight

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Kind(TypedDict):
    bias: bool
    dtype: torch.dtype


class _Options(_Kind, total=False):
    """Keywords of all linear layers; see :class:`MergedLinear`."""

    method: MethodChoice
    adds_up: bool


def _span(size: int | Span) -> Span:
    return size if isinstance(size, Span) else Span.whole(size)


class MergedLinear(nn.Module):
    """``y = x Wᵀ + b``, the outputs of several checkpoint projections side by side.

    Attributes:
        inputs: those that are here; the product is added up over ranks unless it is all of them.
        spans: outputs of each projection that are here, in the order of the output's columns.
        parts: number of these.
        has_bias: whether there is a ``b``.
        method: how the weights are held and applied.
        weight: the matrix as the method holds it.
    """

    weight: nn.Parameter
    gated = False
    is_precise = False

    def __init__(
        self,
        in_features: int | Span,
        parts: Mapping[str, int | Span],
        *,
        bias: bool,
        dtype: torch.dtype,
        method: MethodChoice = TORCH,
        adds_up: bool = True,
    ) -> None:
        """Take memory for all inputs and outputs, or for the share of them that is a :class:`Span`.

        Products of a share of the inputs are added up over ranks, unless that is done elsewhere.
        """
        super().__init__()
        self.inputs = _span(in_features)
        self.spans = {name: _span(rows) for name, rows in parts.items()}
        self.parts = {name: span.size for name, span in self.spans.items()}
        self.has_bias = bias
        self._adds_bias = bias and self.inputs.start == 0  # once, where products are added up
        self._collectives = method.collectives
        self._adds_up = adds_up and not self.inputs.is_whole
        self.method = method.for_precise(self.parts) if self.is_precise else method.for_matrix(self.parts)
        shape = MatrixShape(
            sum(self.parts.values()),
            self.inputs.size,
            dtype,
            bias=self._adds_bias,
            gated=self.gated,
            is_precise=self.is_precise,
        )
        self.method.create_weights(self, shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, in_features]`` to ``[num_tokens, sum of the parts' widths]``."""
        product = self.method.apply(self, x)
        return self._collectives.add_up(product) if self._adds_up else product

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Name within the parent module (``q_proj.weight``), and what it fills."""
        start = 0
        for part, span in self.spans.items():
            weight = self.method.weight_rows(self, start, span.size)
            yield f"{part}.weight", whole_weight(weight, span, self.inputs, self._collectives)
            if self._adds_bias:
                bias = self.method.bias_rows(self, start, span.size)
                yield f"{part}.bias", whole_weight(bias, span, None, self._collectives)
            elif self.has_bias:
                yield f"{part}.bias", AbsentWeight(torch.Size((span.total,)), weight.dtype, (*weight.key, -1))
            start += span.size


class Linear(MergedLinear):
    """``y = x Wᵀ + b`` with the checkpoint's projection ``name``."""

    def __init__(
        self, name: str, in_features: int | Span, out_features: int | Span, **options: Unpack[_Options]
    ) -> None:
        super().__init__(in_features, {name: out_features}, **options)


class QKVLinear(nn.Module):
    """Queries, keys and values of one input, side by side: one matrix, or several where the method sets some apart.

    Attributes:
        matrices: in the order of the output's columns.
    """

    def __init__(
        self, in_features: int, parts: Mapping[str, int | Span], *, bias: bool, dtype: torch.dtype, method: MethodChoice
    ) -> None:
        """``parts`` has the output width of each projection, in the order of the output's columns."""
        super().__init__()
        self.matrices = nn.ModuleList(
            MergedLinear(
                in_features,
                {name: parts[name] for name in names},
                bias=bias,
                dtype=dtype,
                method=method.holding(held),
            )
            for names, held in method.matrices(parts)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, in_features]`` to ``[num_tokens, sum of the parts' widths]``."""
        outputs: list[torch.Tensor] = [matrix(x) for matrix in self.matrices]
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, -1)

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """See :class:`MergedLinear`."""
        for matrix in self.matrices:
            yield from matrix.checkpoint_weights()  # type: ignore[operator]


class GatedLinear(MergedLinear):
    """``gate(x) * up`` of two projections of equal width, the gate first.

    Attributes:
        gate: function of the gates.
    """

    gated = True

    def __init__(
        self, in_features: int, parts: Mapping[str, int | Span], *, gate: Gate = "silu", **options: Unpack[_Options]
    ) -> None:
        super().__init__(in_features, parts, **options)
        self.gate: Gate = gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, in_features]`` to ``[num_tokens, width of a part]``."""
        return self.method.apply_gated(self, x, self.gate)
