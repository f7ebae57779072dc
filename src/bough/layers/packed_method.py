"""Weights packed for the native CPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import nn

from bough.kernels.packed_weights import PackedWeights
from bough.kernels.thread_pool import ThreadPool
from bough.layers.checkpoint_weight import CheckpointWeight
from bough.layers.linear_method import LinearMethod, MatrixShape, MethodChoice


class PackedMethod(LinearMethod):
    """The matrix in panels, as it is or in int8; the only copy in memory: products and look-ups read the same.

    Layers get ``packed``, a :class:`PackedWeights`, and its memory as the parameters ``weight`` and ``bias`` (float32).
    """

    def __init__(self, threads: ThreadPool, *, int8: bool = False) -> None:
        """Args:
        threads: run the kernels.
        int8: quantise what is loaded.
        """
        self._threads = threads
        self._int8 = int8

    def create_weights(self, layer: nn.Module, shape: MatrixShape) -> None:
        """See :class:`LinearMethod`."""
        packed = PackedWeights(
            self._threads,
            shape.out_features,
            shape.in_features,
            shape.dtype,
            bias=shape.bias,
            gated=shape.gated,
            int8=self._int8,
        )
        object.__setattr__(layer, "packed", packed)
        layer.weight = nn.Parameter(packed.panels, requires_grad=False)
        bias = None if packed.bias is None else nn.Parameter(packed.bias, requires_grad=False)
        layer.register_parameter("bias", bias)

    def weight_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        """See :class:`LinearMethod`."""
        return _WeightRows(_packed(layer), first_row, num_rows)

    def bias_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        """See :class:`LinearMethod`."""
        return _BiasRows(_packed(layer), first_row, num_rows)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """See :class:`LinearMethod`."""
        return _packed(layer).multiply(x, x.dtype)

    def apply_gated(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """See :class:`LinearMethod`."""
        return _packed(layer).multiply(x, x.dtype)

    def compute_logits(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """See :class:`LinearMethod`."""
        return _packed(layer).multiply(x, torch.float32)

    def embed(self, layer: nn.Module, input_ids: torch.Tensor) -> torch.Tensor:
        """See :class:`LinearMethod`."""
        return _packed(layer).embed(input_ids)


class StoredFormats(MethodChoice):
    """Every matrix in the format that holds its weights as the checkpoint has them.

    A matrix of several projections gets the one that can hold all of them. What is not quantised is held in 8 bits: all
    products of a program have inputs of one type, and those of quantised weights are quantised.
    """

    def __init__(
        self, methods: Mapping[str, LinearMethod], form: Callable[[str], str | None], *, prefix: str = ""
    ) -> None:
        """Args:
        methods: by the form of weights; each can hold those before it, too, and the last one everything.
        form: of the weight of that name, ``None`` if it is not quantised.
        prefix: of the names of what this is for.
        """
        self._methods, self._form, self._prefix = methods, form, prefix

    def below(self, path: str) -> StoredFormats:
        """See :class:`MethodChoice`."""
        return StoredFormats(self._methods, self._form, prefix=f"{self._prefix}{path}.")

    def for_matrix(self, names: Collection[str]) -> LinearMethod:
        """See :class:`MethodChoice`."""
        forms = list(self._methods)
        last = len(forms) - 1
        found = (self._form(f"{self._prefix}{name}.weight") for name in names)
        return self._methods[forms[max(forms.index(form) if form in forms else last for form in found)]]


def _packed(layer: nn.Module) -> PackedWeights:
    packed: PackedWeights = layer.packed  # type: ignore[assignment]
    return packed


class _WeightRows(CheckpointWeight):
    def __init__(self, packed: PackedWeights, first_row: int, num_rows: int) -> None:
        self._packed, self._first_row = packed, first_row
        self.dtype = packed.dtype
        self.shape = torch.Size((num_rows, packed.matrix.num_inputs))
        self.key = (packed.panels.data_ptr(), first_row, *self.shape)

    def write(self, tensor: torch.Tensor) -> None:
        self._packed.write(self._first_row, tensor)

    def read(self) -> torch.Tensor:
        return self._packed.read(self._first_row, self.shape[0])


class _BiasRows(CheckpointWeight):
    def __init__(self, packed: PackedWeights, first_row: int, num_rows: int) -> None:
        assert packed.bias is not None
        self._packed, self._first_row = packed, first_row
        self.dtype = packed.dtype
        self.shape = torch.Size((num_rows,))
        self.key = (packed.bias.data_ptr(), first_row, num_rows)

    def write(self, tensor: torch.Tensor) -> None:
        self._packed.write_bias(self._first_row, tensor)

    def read(self) -> torch.Tensor:
        return self._packed.read_bias(self._first_row, self.shape[0])
