"""Weights packed for the native CPU kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import nn

from bough.kernels.host_memory import Arena, HugePageArena
from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.program import QUANTIZED_GROUP
from bough.kernels.thread_pool import ThreadPool
from bough.layers.activation import NATIVE_GATES, Gate
from bough.layers.checkpoint_weight import CheckpointWeight, Weight, check_finite, largest_magnitude
from bough.layers.linear_method import LinearMethod, MatrixShape, MethodChoice
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.stored_formats import StoredForm, StoredFormats, no_room

_ROWS_AT_A_TIME = 4096

_VALUES = ".v_proj.weight"


class PackedMethod(LinearMethod):
    """The matrix in panels, as it is or quantised; the only copy in memory: products and look-ups read the same.

    Layers get ``packed``, a :class:`PackedWeights`, and its memory as the parameters ``weight`` and ``bias`` (float32).
    """

    def __init__(
        self,
        threads: ThreadPool,
        stored: WeightFormat = "native",
        *,
        tables: WeightFormat | None = None,
        exact: bool = False,
        arena: Arena | None = None,
    ) -> None:
        """Args:
        tables: the same of embeddings and heads; by default like other matrices.
        exact: refuse what would have to be quantised anew.
        arena: where the memory comes from; by default one of its own.
        """
        self._exact = exact
        self._threads = threads
        self._arena = arena or HugePageArena()
        self._stored: WeightFormat = stored
        self._tables: WeightFormat = tables or stored

    def create_weights(self, layer: nn.Module, shape: MatrixShape) -> None:
        # Beside quantised matrices inputs are float32.
        widened = shape.is_precise and self._stored != "native"
        packed = PackedWeights(
            self._threads,
            shape.out_features,
            shape.in_features,
            torch.float32 if widened else shape.dtype,
            bias=shape.bias,
            gated=shape.gated,
            stored="native" if widened else self._tables if shape.table else self._stored,
            arena=self._arena,
        )
        object.__setattr__(layer, "packed", packed)
        layer.weight = nn.Parameter(packed.panels, requires_grad=False)
        bias = None if packed.bias is None else nn.Parameter(packed.bias, requires_grad=False)
        layer.register_parameter("bias", bias)

    def weight_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        return _WeightRows(_packed(layer), first_row, num_rows, exact=self._exact)

    def bias_rows(self, layer: nn.Module, first_row: int, num_rows: int) -> CheckpointWeight:
        return _BiasRows(_packed(layer), first_row, num_rows)

    def apply(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return _packed(layer).multiply(x, x.dtype)

    def apply_gated(self, layer: nn.Module, x: torch.Tensor, gate: Gate) -> torch.Tensor:
        return _packed(layer).multiply(x, x.dtype, NATIVE_GATES[gate])

    def compute_logits(self, layer: nn.Module, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        logits = _packed(layer).multiply(x, torch.float32)
        return logits if out is None else out.copy_(logits)

    def embed(self, layer: nn.Module, input_ids: torch.Tensor) -> torch.Tensor:
        return _packed(layer).embed(input_ids)


def packed_formats(
    threads: ThreadPool, form: Callable[[str], StoredForm | None], arena: Arena | None = None
) -> StoredFormats[PackedMethod]:
    """Every matrix as the checkpoint has it, and what is not quantised in 8 bits: all products of a program have inputs
    of one type, and those of quantised weights are quantised.

    A matrix in 4 bits has them from its checkpoint and takes no other numbers than it can hold: those of another
    checkpoint, put in their place later, would lose what a model that starts with them does not.

    Args:
        form: of the weight of that name, ``None`` if it is not quantised.
        arena: where the memory comes from; by default one for each format.
    """
    # One of each for the whole model: the memory of its matrices lies together.
    int8 = PackedMethod(threads, "int8", arena=arena)
    narrow: dict[StoredForm | None, PackedMethod] = {
        each: PackedMethod(threads, each, exact=True, arena=arena) for each in ("mxfp4", "int4", "uint4")
    }
    return StoredFormats(form, {**narrow, "int8": int8, None: int8}, recodes=True, apart=True)


def packed_method(
    threads: ThreadPool, quantization: Literal["none", "int8", "int4"], arena: Arena | None = None
) -> MethodChoice:
    """How ``--quantization`` holds matrices.

    Errors in a head go straight into logits, so it keeps 8 bits at least. So do the projections to values, a small part
    of a model that has few heads for them: whatever attention does, their errors stay in what it returns, and of the
    squared error of the bundled model's logits in 4 bits they make up half.
    """
    if quantization != "int4":
        return PackedMethod(threads, "native" if quantization == "none" else quantization, arena=arena)
    methods: dict[StoredForm | None, PackedMethod] = {
        "int4": PackedMethod(threads, "int4", tables="int8", arena=arena),
        "int8": PackedMethod(threads, "int8", arena=arena),
    }
    return StoredFormats(lambda name: "int8" if name.endswith(_VALUES) else "int4", methods, apart=True)


def _packed(layer: nn.Module) -> PackedWeights:
    packed: PackedWeights = layer.packed  # type: ignore[assignment]
    return packed


def _holds(stored: WeightFormat, rows: QuantizedRows) -> bool:
    """True if such codes can stay what they are."""
    if stored == "mxfp4" and not rows.is_e2m1:
        return False
    if stored == "native" or rows.is_float8 or (rows.group % QUANTIZED_GROUP != 0 and rows.group < rows.shape[1]):
        return False
    if rows.minimums is not None:
        return stored == "uint4" and rows.bits == 4
    return stored in ("int8", "mxfp4") or rows.bits == 4


class _WeightRows(CheckpointWeight):
    def __init__(self, packed: PackedWeights, first_row: int, num_rows: int, *, exact: bool) -> None:
        self._packed, self._first_row, self._exact = packed, first_row, exact
        self.dtype = packed.dtype
        self.shape = torch.Size((num_rows, packed.matrix.num_inputs))
        self.key = (packed.panels.data_ptr(), first_row, *self.shape)
        self.form = None if packed.stored == "native" else packed.stored

    def check(self, numbers: Weight) -> None:
        packed = self._packed
        largest = None
        if isinstance(numbers, torch.Tensor):
            found = packed.largest_magnitude(numbers)
            largest = largest_magnitude(numbers) if found is None else found
        check_finite(numbers, self.dtype, largest)
        if isinstance(numbers, QuantizedRows) and _holds(packed.stored, numbers):
            packed.check_scales(numbers.scales, numbers.minimums)
            return
        if self._exact:
            raise no_room(packed.stored)
        if isinstance(numbers, QuantizedRows):
            parts = (part.dequantize() for _, part in numbers.parts(_ROWS_AT_A_TIME))
            packed.check_rows(numbers.largest_possible(), parts)
        elif largest is not None:
            packed.check_rows(float(largest), torch.split(numbers, _ROWS_AT_A_TIME))

    def write(self, numbers: Weight) -> None:
        packed = self._packed
        if isinstance(numbers, torch.Tensor):
            packed.write(self._first_row, numbers)
            return
        if not _holds(packed.stored, numbers):
            for start, part in numbers.parts(_ROWS_AT_A_TIME):
                packed.write(self._first_row + start, part.dequantize())
            return
        groups = torch.arange(0, numbers.shape[1], QUANTIZED_GROUP, device="cpu") // numbers.group
        for start, part in numbers.parts(_ROWS_AT_A_TIME):
            minimums = None if part.minimums is None else part.minimums[:, groups]
            packed.write_codes(self._first_row + start, part.codes, part.scales[:, groups], minimums)

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return self._packed.read(self._first_row, self.shape[0] if num_rows is None else num_rows)


class _BiasRows(CheckpointWeight):
    def __init__(self, packed: PackedWeights, first_row: int, num_rows: int) -> None:
        assert packed.bias is not None
        self._packed, self._first_row = packed, first_row
        self.dtype = packed.dtype
        self.shape = torch.Size((num_rows,))
        self.key = (packed.bias.data_ptr(), first_row, num_rows)

    def write(self, numbers: Weight) -> None:
        tensor = numbers if isinstance(numbers, torch.Tensor) else numbers.dequantize()
        self._packed.write_bias(self._first_row, tensor)

    def read(self, num_rows: int | None = None) -> torch.Tensor:
        return self._packed.read_bias(self._first_row, self.shape[0] if num_rows is None else num_rows)
