"""Quantised weights for Triton's kernels: whole numbers, or 8-bit floating point beside inputs of the same kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import nn

from bough.kernels.triton.quantized_gemm import OfExperts, float8_linear, integer_linear
from bough.kernels.triton.sorted_rows import SortedRows
from bough.layers.checkpoint_weight import CheckpointWeight, Weight
from bough.layers.linear_method import TORCH, MatrixShape, TorchMethod
from bough.layers.quantize import QUANTIZED_AT_A_TIME, quantize_float8, quantize_rows
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.stacked_matrices import StackedMatrices, put_together
from bough.layers.stored_formats import no_room


class CodedMethod(TorchMethod):
    """The matrix as codes; embeddings and heads, whose errors go straight into logits, stay what they are.

    Layers get ``weight``, the codes, and ``scales``, float32 ``[groups, out_features]``.
    """

    def __init__(self, plain: TorchMethod) -> None:
        """``plain`` holds what stays what it is. If its rows do not depend on each other, those here do not either."""
        self._plain = plain
        self.batch_invariant = plain.batch_invariant

    @abstractmethod
    def create_codes(self, layer: nn.Module, shape: MatrixShape) -> None:
        """Register the memory of a matrix that is no table, but for its bias."""

    def check(self, rows: Weight) -> None:
        """Raise :class:`ModelError` at rows that may not be quantised anew, and for which there is no room."""

    @abstractmethod
    def store(self, layer: nn.Module, first_row: int, rows: Weight) -> None:
        """Replace some rows, which are on the layer's device, by codes or numbers in float32."""

    @abstractmethod
    def load(self, layer: nn.Module, first_row: int, num_rows: int) -> torch.Tensor:
        """Rows as they are held, float32."""

    def create_weights(self, layer: nn.Module, shape: MatrixShape) -> None:
        if shape.table or shape.is_precise:
            self._plain.create_weights(layer, shape)
            return
        self.create_codes(layer, shape)
        bias = nn.Parameter(torch.empty(shape.out_features, dtype=shape.dtype), requires_grad=False)
        layer.register_parameter("bias", bias if shape.bias else None)
        layer.coded_shape = shape  # type: ignore[assignment]

    def weight_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        if not hasattr(layer, "coded_shape"):
            return self._plain.weight_rows(layer, first_row, num_rows)
        return _CodedRows(self, layer, first_row, num_rows)

    def compute_logits(self, layer: nn.Module, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        return self._plain.compute_logits(layer, x, out)


class IntegerMethod(CodedMethod):
    """Whole numbers times scales, multiplied by inputs as they are."""

    def __init__(
        self,
        bits: Literal[4, 8],
        group: int,
        *,
        minimums: bool = False,
        exact: bool = False,
        plain: TorchMethod = TORCH,
    ) -> None:
        """Args:
        group: inputs that share a scale: a power of two, 32 to 128.
        minimums: whether groups have a minimum, too, so that unsigned codes fit.
        exact: refuse what would have to be quantised anew.
        """
        super().__init__(plain)
        self._bits: Literal[4, 8] = bits
        self._group = group
        self._minimums = minimums
        self._exact = exact

    def create_codes(self, layer: nn.Module, shape: MatrixShape) -> None:
        groups = -(-shape.in_features // self._group)
        packed = self._bits == 4
        width = groups * self._group // 2 if packed else shape.in_features
        kind = torch.uint8 if packed else torch.int8
        layer.weight = _parameter(torch.empty(shape.out_features, width, dtype=kind))
        layer.scales = _parameter(torch.empty(groups, shape.out_features))
        layer.register_parameter(
            "offsets", _parameter(torch.zeros(groups, shape.out_features)) if self._minimums else None
        )

    def check(self, rows: Weight) -> None:
        if self._exact and (isinstance(rows, torch.Tensor) or not self._holds(rows)):
            raise no_room(f"{'u' * self._minimums}int{self._bits} in groups of {self._group}")

    def store(self, layer: nn.Module, first_row: int, rows: Weight) -> None:
        if isinstance(rows, torch.Tensor) or not self._holds(rows):
            numbers = rows if isinstance(rows, torch.Tensor) else rows.dequantize()
            rows = quantize_rows(numbers, self._bits, self._group)
        here = slice(first_row, first_row + rows.shape[0])
        weight, scales = _tensors(layer)
        groups = torch.arange(len(scales), device=scales.device) * self._group // rows.group
        scales[:, here] = rows.scales[:, groups].T
        # Codes of 4 bits are stored with 8 added, as those from 0 to 15 are anyway.
        is_unsigned = rows.minimums is not None
        if self._minimums:
            offsets = cast(torch.Tensor, layer.offsets)
            offsets[:, here] = 0.0
            if rows.minimums is not None:
                offsets[:, here] = (rows.minimums + 8 * rows.scales)[:, groups].T
        if self._bits == 8:
            weight[here] = rows.codes
            return
        codes = (rows.codes if is_unsigned else rows.codes + 8).to(torch.uint8)
        codes = torch.nn.functional.pad(codes, (0, 2 * weight.shape[1] - codes.shape[1]))
        low, high = codes.view(len(codes), -1, 2, self._group // 2).unbind(2)
        weight[here] = (low | high << 4).flatten(1)

    def _holds(self, rows: QuantizedRows) -> bool:
        if rows.is_float8 or (rows.group % self._group and rows.group < rows.shape[1]):
            return False
        if rows.minimums is not None:
            return self._minimums and rows.bits == 4
        return rows.bits <= self._bits

    def load(self, layer: nn.Module, first_row: int, num_rows: int) -> torch.Tensor:
        here = slice(first_row, first_row + num_rows)
        weight, scales = _tensors(layer)
        codes = weight[here]
        if self._bits == 4:
            pairs = codes.view(num_rows, -1, 1, self._group // 2)
            codes = torch.cat((pairs & 15, pairs >> 4), 2).flatten(1).to(torch.int8) - 8
            codes = codes[:, : _shape(layer).in_features]
        offsets = cast(torch.Tensor, layer.offsets)[:, here].T if self._minimums else None
        return QuantizedRows(self._bits, self._group, codes, scales[:, here].T, offsets).dequantize()

    def stack(self, layers: Sequence[nn.Module]) -> StackedMatrices:
        return _CodedMatrices(layers, self._group, has_offsets=True)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        weight, scales = _tensors(layer)
        offsets, bias = (cast("torch.Tensor | None", each) for each in (layer.offsets, layer.bias))
        return integer_linear(
            x, weight, scales, span=self._group, offsets=offsets, bias=bias, one_tile=self.batch_invariant
        )


class Float8Method(CodedMethod):
    """8-bit floating point (e4m3); inputs are quantised alike, each by what it is, in groups as large."""

    def __init__(self, group: int | None = None, *, plain: TorchMethod = TORCH) -> None:
        """Args:
        group: inputs that share a scale, a power of two, 64 or 128; ``None``: all.
        """
        super().__init__(plain)
        self._group = group

    def create_codes(self, layer: nn.Module, shape: MatrixShape) -> None:
        groups = 1 if self._group is None else -(-shape.in_features // self._group)
        codes = torch.empty(shape.out_features, shape.in_features, dtype=torch.float8_e4m3fn)
        layer.weight = _parameter(codes)
        layer.scales = _parameter(torch.empty(groups, shape.out_features))

    def store(self, layer: nn.Module, first_row: int, rows: Weight) -> None:
        weight, scales = _tensors(layer)
        group = self._group or weight.shape[1]
        if isinstance(rows, QuantizedRows):
            held = rows.is_float8 and (rows.group % group == 0 or rows.group >= weight.shape[1])
            rows = rows if held else rows.dequantize()
        if isinstance(rows, torch.Tensor):
            rows = quantize_float8(rows, self._group)
        here = slice(first_row, first_row + rows.shape[0])
        weight[here] = rows.codes
        groups = torch.arange(len(scales), device=scales.device) * group // rows.group
        scales[:, here] = rows.scales[:, groups].T

    def load(self, layer: nn.Module, first_row: int, num_rows: int) -> torch.Tensor:
        here = slice(first_row, first_row + num_rows)
        weight, scales = _tensors(layer)
        return QuantizedRows(8, self._group or weight.shape[1], weight[here], scales[:, here].T).dequantize()

    def stack(self, layers: Sequence[nn.Module]) -> StackedMatrices:
        return _CodedMatrices(layers, self._group, has_offsets=False)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        weight, scales = _tensors(layer)
        bias = cast("torch.Tensor | None", layer.bias)
        return float8_linear(x, weight, scales, span=self._group, bias=bias, one_tile=self.batch_invariant)


class _CodedMatrices(StackedMatrices):
    def __init__(self, layers: Sequence[nn.Module], group: int | None, *, has_offsets: bool) -> None:
        self._group = group
        self._codes, self._scales, self._bias = (put_together(layers, name) for name in ("weight", "scales", "bias"))
        self._offsets = put_together(layers, "offsets") if has_offsets else None

    def multiply(self, x: torch.Tensor, rows: SortedRows, *, from_tokens: bool, out: torch.Tensor) -> torch.Tensor:
        assert self._codes is not None
        assert self._scales is not None
        of_experts = OfExperts(rows, from_tokens, out)
        if self._codes.dtype == torch.float8_e4m3fn:
            span = self._group
            return float8_linear(x, self._codes, self._scales, span=span, bias=self._bias, of_experts=of_experts)
        assert self._group is not None
        return integer_linear(
            x,
            self._codes,
            self._scales,
            span=self._group,
            offsets=self._offsets,
            bias=self._bias,
            of_experts=of_experts,
        )


class _CodedRows(CheckpointWeight):
    def __init__(self, method: CodedMethod, layer: nn.Module, first_row: int, num_rows: int) -> None:
        self._method, self._layer, self._first_row = method, layer, first_row
        shape = _shape(layer)
        self.dtype = shape.dtype
        self.shape = torch.Size((num_rows, shape.in_features))
        self.key = (layer.get_parameter("weight").data_ptr(), first_row, *self.shape)
        self._most_rows = max(QUANTIZED_AT_A_TIME // max(shape.in_features, 1), 1)

    def check(self, numbers: Weight) -> None:
        super().check(numbers)
        self._method.check(numbers)

    def write(self, numbers: Weight) -> None:
        device = self._layer.get_parameter("weight").device
        if isinstance(numbers, QuantizedRows):
            for start, rows in numbers.parts(self._most_rows):
                self._method.store(self._layer, self._first_row + start, rows.to(device))
            return
        for start in range(0, len(numbers), self._most_rows):
            # As the model would have them, in its type.
            part = numbers[start : start + self._most_rows].to(device, self.dtype)
            self._method.store(self._layer, self._first_row + start, part.float())

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        rows = self.shape[0] if num_rows is None else num_rows
        return self._method.load(self._layer, self._first_row, rows).to(self.dtype)


def _parameter(tensor: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)


def _tensors(layer: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    return layer.get_parameter("weight").data, layer.get_parameter("scales").data


def _shape(layer: nn.Module) -> MatrixShape:
    return cast(MatrixShape, layer.coded_shape)
