"""How a layer holds a weight matrix and multiplies by it. One object per way, attached to every layer that uses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import nn
from torch.nn import functional

from bough.config.sharding import WHOLE, ShardSpec
from bough.kernels.triton.available import kernels_for
from bough.layers.activation import Gate, gate_and_mul
from bough.layers.checkpoint_weight import CheckpointWeight, TensorWeight
from bough.layers.collectives import ALONE, Collectives
from bough.layers.stacked_matrices import PlainMatrices, StackedMatrices

if TYPE_CHECKING:
    from bough.kernels.packed_weights import PackedWeights
    from bough.kernels.structures import PackedMatrix


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """What a weight matrix is for."""

    out_features: int
    in_features: int
    dtype: torch.dtype
    bias: bool = False
    gated: bool = False
    """The first half of the outputs are gates of the second half: see :class:`bough.layers.linear.GatedLinear`."""
    table: bool = False
    """A row for each token of the vocabulary: embeddings, a language-model head."""
    is_precise: bool = False
    """Small, and its products decide between alternatives: never quantised, and products are float32."""


class MethodChoice(ABC):
    """Which method each matrix of a model gets, and how much of it is here.

    Attributes:
        shard: place of this rank among those that share the model.
        collectives: of these ranks.
    """

    shard: ShardSpec = WHOLE
    collectives: Collectives = ALONE

    @property
    def plain(self) -> MethodChoice:
        """The choice for matrices that are held as the checkpoint has them, whatever others become."""
        return TORCH

    @property
    def unsplit(self) -> MethodChoice:
        """The choice for matrices of which this rank has all, or nothing."""
        return self

    @abstractmethod
    def below(self, path: str) -> MethodChoice:
        """The choice for a part of the model; ``path`` leads to it from where this one is for."""

    def alike(self, paths: Collection[str]) -> MethodChoice:
        """The choice for each of several parts of the model; matrices of one name get the same method in all."""
        return self.below(next(iter(paths)))

    @abstractmethod
    def for_matrix(self, names: Collection[str]) -> LinearMethod:
        """The method of one matrix that holds the checkpoint's projections ``names`` together."""

    def for_precise(self, names: Collection[str]) -> LinearMethod:
        """Return the method of a matrix that is not to be quantised, whatever the checkpoint has."""
        return self.for_matrix(names)

    def holding(self, method: LinearMethod) -> MethodChoice:
        """The choice of one method, for the same share."""
        return method

    def matrices(self, names: Collection[str]) -> list[tuple[tuple[str, ...], LinearMethod]]:
        """How projections of one input are held that need not be one matrix.

        Returns:
            For each matrix the names in it, which are neighbours in ``names``, in order, and its method.
        """
        return [(tuple(names), self.for_matrix(names))]


class LinearMethod(MethodChoice):
    """Stores and applies weight matrices of one format. As a choice it is itself, whatever the matrix."""

    def below(self, path: str) -> LinearMethod:
        return self

    def for_matrix(self, names: Collection[str]) -> LinearMethod:
        return self

    @abstractmethod
    def create_weights(self, layer: nn.Module, shape: MatrixShape) -> None:
        """Register on ``layer`` whatever memory the matrix takes; not filled yet."""

    @abstractmethod
    def weight_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        """Rows of the matrix as a weight ``[num_rows, in_features]`` of a checkpoint."""

    @abstractmethod
    def bias_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        """The same of the bias."""

    @abstractmethod
    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """``x Wᵀ + b``: ``[n, in_features]`` to ``[n, out_features]`` in the model's dtype."""

    @abstractmethod
    def apply_gated(self, layer: nn.Module, x: torch.Tensor, gate: Gate) -> torch.Tensor:
        """Gate function times values, of a gated matrix: ``[n, in_features]`` to ``[n, out_features / 2]``."""

    @abstractmethod
    def compute_logits(self, layer: nn.Module, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """``x Wᵀ`` in float32: ``out``, or contiguous and fresh."""

    @abstractmethod
    def embed(self, layer: nn.Module, input_ids: torch.Tensor) -> torch.Tensor:
        """Rows ``input_ids`` ``[n]`` of the matrix: ``[n, in_features]`` in the model's dtype."""

    def stack(self, layers: Sequence[nn.Module]) -> StackedMatrices | None:
        """Put the matrices of layers of one shape, not loaded yet, together; ``None`` if no kernel multiplies them."""
        return None


class TorchMethod(LinearMethod):
    """The matrix as the checkpoint has it, multiplied by torch: the reference, on any device.

    Layers get ``weight`` ``[out_features, in_features]`` and ``bias`` ``[out_features]`` or ``None``.

    Attributes:
        batch_invariant: whether a row of a product does not depend on the others, nor on how many they are.
    """

    batch_invariant = False

    def create_weights(self, layer: nn.Module, shape: MatrixShape) -> None:
        dtype = torch.float32 if shape.is_precise else shape.dtype
        weight = torch.empty(shape.out_features, shape.in_features, dtype=dtype)
        layer.weight = nn.Parameter(weight, requires_grad=False)
        bias = nn.Parameter(torch.empty(shape.out_features, dtype=dtype), requires_grad=False)
        layer.register_parameter("bias", bias if shape.bias else None)

    def weight_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        return TensorWeight(layer.get_parameter("weight").data[first_row : first_row + num_rows])

    def bias_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        return TensorWeight(layer.get_parameter("bias").data[first_row : first_row + num_rows])

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, cast(torch.Tensor, layer.weight), cast("torch.Tensor | None", layer.bias))

    def apply_gated(self, layer: nn.Module, x: torch.Tensor, gate: Gate) -> torch.Tensor:
        return gate_and_mul(self.apply(layer, x), gate)

    def stack(self, layers: Sequence[nn.Module]) -> StackedMatrices | None:
        return PlainMatrices(layers)

    def compute_logits(self, layer: nn.Module, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        weight = cast(torch.Tensor, layer.weight)
        if x.is_cuda and x.dtype != torch.float32 and layer.bias is None:
            # Sums are float32 anyway: rounding them, and a pass to widen them again, are left out.
            return torch.mm(x, weight.t(), out_dtype=torch.float32, out=out)
        logits = self.apply(layer, x)
        return logits.float() if out is None else out.copy_(logits)

    def embed(self, layer: nn.Module, input_ids: torch.Tensor) -> torch.Tensor:
        table = cast(torch.Tensor, layer.weight)
        kernels = kernels_for(table, "elementwise")
        rows: torch.Tensor = (
            functional.embedding(input_ids, table) if kernels is None else kernels.gather_rows(table, input_ids)
        )
        return rows


TORCH = TorchMethod()


def packed_matrix(layer: nn.Module) -> PackedMatrix:
    """The matrix of ``layer`` as native kernels take it; its method must be the one that packs."""
    packed: PackedWeights = layer.packed  # type: ignore[assignment]
    return packed.matrix
