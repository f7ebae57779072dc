"""Weights in the panels that the native matrix products read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Literal

import torch

from bough.errors import ModelError
from bough.kernels.buffers import KERNEL_DTYPES, padded_columns
from bough.kernels.host_memory import Arena, HugePageArena
from bough.kernels.library import load_library
from bough.kernels.program import QUANTIZED_GROUP
from bough.kernels.structures import Activation, DType, Epilogue, FloatRows, GemmCall, PackedMatrix, PanelLayout
from bough.kernels.thread_pool import ThreadPool

WeightFormat = Literal["native", "int8", "int4", "uint4", "mxfp4"]
"""How a matrix is held: as it is; or with a scale for each 32 inputs of a row, in whole numbers from -128 to 127, from
-8 to 7, or from 0 to 15 with a number to be added to all of them, or in floating point of 4 bits (E2M1)."""

_QUANTIZED: dict[WeightFormat, DType] = {"int8": DType.I8, "int4": DType.I4, "uint4": DType.U4, "mxfp4": DType.F4}

PANEL_COLUMNS = 32

_MOST = torch.finfo(torch.float16).max / 1024
"""Largest scale or minimum: they are stored times 1024 in half precision."""

_ALWAYS_HELD: dict[WeightFormat, float] = {"int8": _MOST * 122.5 / 1.5, "int4": _MOST * 7 / 1.5, "uint4": _MOST}
"""Weights up to this magnitude never need a larger scale or minimum. The scale of a group is a mean of weights divided
by their codes, and the largest weight has at least the code 122.5, or 7; rounding makes 1.5 codes one at worst."""

_NUMBERS_AT_A_TIME = 2**20
"""Numbers that are converted to the weights' dtype at a time, so that no second copy of a matrix exists, and what is
converted is in a cache when it is packed."""

_BITS = {2: torch.int16, 4: torch.int32}
"""Whole numbers with as many bytes as floating-point ones."""


class PackedWeights:
    """A matrix ``[num_outputs, num_inputs]`` with its bias, packed.

    Attributes:
        panels: the memory, of the weights' dtype or quantised.
        dtype: of what is read and multiplied.
        bias: float32 in the panels' order, or ``None``.
    """

    def __init__(
        self,
        threads: ThreadPool,
        num_outputs: int,
        num_inputs: int,
        dtype: torch.dtype,
        *,
        bias: bool,
        gated: bool,
        stored: WeightFormat = "native",
        arena: Arena | None = None,
    ) -> None:
        """Make room for a matrix of zeros; of gated ones the first half of the rows are gates of the second."""
        self._library = load_library()
        self._threads = threads
        self.dtype = dtype
        self.stored: WeightFormat = stored
        self.matrix = PackedMatrix(
            num_outputs=num_outputs,
            num_inputs=num_inputs,
            dtype=_QUANTIZED.get(stored, KERNEL_DTYPES[dtype]),
            layout=PanelLayout.GATED if gated else PanelLayout.PLAIN,
        )
        words = self._library.bough_packed_words(ctypes.byref(self.matrix))
        quantized = stored != "native"
        storage = torch.int8 if quantized else dtype
        # What kernels read and write: the numbers of a quantised matrix are float32 outside of it.
        self._rows_dtype = torch.float32 if quantized else dtype
        arena = arena or HugePageArena()
        self.panels = arena.zeros(words * 4).view(storage)
        self.matrix.panels = self.panels.data_ptr()
        if arena.is_writable:
            self.place()
        self.bias: torch.Tensor | None = None
        if bias:
            self._bias_columns = torch.empty(num_outputs, dtype=torch.int64, device="cpu")
            self._library.bough_packed_columns(ctypes.byref(self.matrix), self._bias_columns.data_ptr())
            panels = int(self._bias_columns.max()) // PANEL_COLUMNS + 1
            self.bias = arena.zeros(panels * PANEL_COLUMNS * 4).view(torch.float32)
            self.matrix.bias = self.bias.data_ptr()

    def place(self) -> None:
        """Have the system commit the panels, each part near the thread that reads it; what is there stays."""
        self._library.bough_place_panels(self._threads.handle, ctypes.byref(self.matrix))

    def write(self, first_row: int, rows: torch.Tensor) -> None:
        """Pack rows ``[n, num_inputs]`` of any floating-point dtype; see :meth:`check_rows`.

        Raises:
            ValueError: at rows of another width, or if the matrix takes codes alone: mxfp4 does.
            IndexError: at rows that the matrix does not have.
        """
        if self.stored == "mxfp4":
            raise ValueError("an mxfp4 matrix takes no other numbers than codes")
        self._check_width("rows", rows, self.matrix.num_inputs)
        self._check_rows(first_row, len(rows))
        # Kernels quantise bfloat16 as it is.
        keeps = self.stored != "native" and rows.dtype == torch.bfloat16
        dtype = torch.bfloat16 if keeps else self._rows_dtype
        is_ready = rows.dtype == dtype and rows.device.type == "cpu" and rows.is_contiguous()
        step = max(1, len(rows) if is_ready else _NUMBERS_AT_A_TIME // self.matrix.num_inputs)
        for start in range(0, len(rows), step):
            part = rows[start : start + step].to("cpu", dtype).contiguous()
            self._library.bough_pack_rows(
                self._threads.handle,
                ctypes.byref(self.matrix),
                first_row + start,
                len(part),
                part.data_ptr(),
                KERNEL_DTYPES[dtype],
            )

    def largest_magnitude(self, rows: torch.Tensor) -> torch.Tensor | None:
        """Return the largest magnitude of numbers ``[n, m]`` of any floating-point dtype; NaN if an element is NaN.

        Takes as long as reading them.

        ``None`` where the kernel cannot read them: on another device, of another size, or with gaps in both directions.
        """
        rows = rows.T if rows.stride(0) == 1 else rows
        if rows.device.type != "cpu" or rows.stride(1) != 1 or rows.itemsize not in _BITS:
            return None
        call = FloatRows(rows.data_ptr(), len(rows), rows.shape[1], rows.stride(0), rows.itemsize)
        bits = ctypes.c_uint32()
        self._library.bough_largest(self._threads.handle, ctypes.byref(call), ctypes.byref(bits))
        return torch.tensor(bits.value, dtype=_BITS[rows.itemsize], device="cpu").view(rows.dtype)

    def check_rows(self, largest: float, parts: Iterable[torch.Tensor]) -> None:
        """Refuse numbers that :meth:`write` cannot hold: it makes infinite or no numbers of them.

        Args:
            largest: no number has a larger magnitude.
            parts: the rows ``[n, num_inputs]``; asked for only if ``largest`` leaves it open.

        Raises:
            ModelError: at numbers that are not finite, or whose scales half precision has no room for; if the matrix
                takes codes alone.
        """
        if self.stored == "mxfp4":
            raise ModelError("an mxfp4 matrix takes no other numbers than codes")
        if self.stored == "native" or largest <= _ALWAYS_HELD[self.stored]:
            return
        for part in parts:
            rows, inputs = part.shape
            held = PackedWeights(self._threads, rows, inputs, self.dtype, bias=False, gated=False, stored=self.stored)
            held.write(0, part)
            if not bool(held.read(0, rows).isfinite().all()):
                raise ModelError(f"it has numbers that are not finite, or too large for scales of {self.stored}")

    def write_codes(
        self, first_row: int, codes: torch.Tensor, scales: torch.Tensor, minimums: torch.Tensor | None
    ) -> None:
        """Pack rows that are quantised already; the matrix must be. See :meth:`check_scales`.

        Args:
            codes: bytes ``[n, num_inputs]``. Signed without minimums: of 4 bits for int4 and uint4, for mxfp4 twice
                the numbers of E2M1. With them from 0 to 15. Codes out of their range are not noticed.
            scales: float32 ``[n, groups]``, for each :data:`QUANTIZED_GROUP` inputs; become half precision, in which
                those below ``2 ** -24`` lose bits, and those up to ``2 ** -35`` become 0.
            minimums: like scales; for uint4 only.

        Raises:
            ValueError: at dtypes or shapes that do not fit the matrix.
            IndexError: at rows that the matrix does not have.
        """
        if self.stored == "native" or (minimums is not None and self.stored != "uint4"):
            raise ValueError(f"a {self.stored} matrix takes no such codes")
        self._check_width("codes", codes, self.matrix.num_inputs)
        if codes.dtype not in (torch.int8, torch.uint8):
            raise ValueError(f"codes must be int8 or uint8, got {codes.dtype}")
        wanted = torch.Size((len(codes), -(-self.matrix.num_inputs // QUANTIZED_GROUP)))
        for name, values in (("scales", scales), ("minimums", minimums)):
            if values is not None and (values.dtype, values.shape) != (torch.float32, wanted):
                raise ValueError(f"{name} must be float32 {list(wanted)}, got {values.dtype} {list(values.shape)}")
        self._check_rows(first_row, len(codes))
        codes, scales = codes.to("cpu").contiguous(), scales.to("cpu").contiguous()
        minimums = None if minimums is None else minimums.to("cpu").contiguous()
        self._library.bough_pack_codes(
            self._threads.handle,
            ctypes.byref(self.matrix),
            first_row,
            len(codes),
            codes.data_ptr(),
            scales.data_ptr(),
            None if minimums is None else minimums.data_ptr(),
        )

    def check_scales(self, scales: torch.Tensor, minimums: torch.Tensor | None) -> None:
        """Refuse what :meth:`write_codes` cannot hold, for any rows: it makes infinite or no numbers of them.

        Raises:
            ModelError: at scales or minimums that half precision has no room for.
        """
        most = _MOST / 8 if self.stored == "uint4" and minimums is None else _MOST  # the minimum is -8 scales
        for name, values, limit in (("scales", scales, most), ("minimums", minimums, _MOST)):
            if values is not None and not bool((values.abs() <= limit).all()):
                raise ModelError(f"its quantised numbers have {name} that are not finite or above {limit:.2f}")

    def read(self, first_row: int, num_rows: int) -> torch.Tensor:
        """Rows as they are held, ``[num_rows, num_inputs]``.

        Raises:
            IndexError: at rows that the matrix does not have.
        """
        self._check_rows(first_row, num_rows)
        rows = torch.empty(num_rows, self.matrix.num_inputs, dtype=self._rows_dtype, device="cpu")
        self._library.bough_unpack_rows(
            self._threads.handle, ctypes.byref(self.matrix), first_row, num_rows, rows.data_ptr()
        )
        return rows.to(self.dtype)

    def write_bias(self, first_row: int, values: torch.Tensor) -> None:
        """Set the bias of some rows, rounded to the weights' dtype as the checkpoint's model has it.

        Raises:
            ValueError: at values that are not in one line.
            IndexError: at rows that the matrix does not have.
        """
        assert self.bias is not None
        if values.ndim != 1:
            raise ValueError(f"a bias must have one dimension, got {list(values.shape)}")
        self._check_rows(first_row, len(values))
        columns = self._bias_columns[first_row : first_row + len(values)]
        self.bias[columns] = values.to("cpu", self.dtype).float()

    def read_bias(self, first_row: int, num_rows: int) -> torch.Tensor:
        """Bias of some rows. Raises :class:`IndexError` at rows that the matrix does not have."""
        assert self.bias is not None
        self._check_rows(first_row, num_rows)
        return self.bias[self._bias_columns[first_row : first_row + num_rows]].to(self.dtype)

    def multiply(
        self, x: torch.Tensor, output_dtype: torch.dtype, activation: Activation = Activation.SILU
    ) -> torch.Tensor:
        """``x Wᵀ + b`` of ``x`` ``[n, num_inputs]`` in the weights' dtype: ``[n, num_outputs]`` in ``output_dtype``.

        Gated weights give ``activation(gate) * value``, ``[n, num_outputs / 2]``.

        Raises:
            ValueError: at inputs of another width.
        """
        self._check_width("inputs", x, self.matrix.num_inputs)
        gated = self.matrix.layout == PanelLayout.GATED
        columns = self.matrix.num_outputs // 2 if gated else self.matrix.num_outputs
        stride = padded_columns(columns, output_dtype) if gated else columns
        x = x.to(self._rows_dtype)
        # Kernels read inputs in pairs: behind an odd number of them there must be a zero, whatever a view has there.
        input_stride = self.matrix.num_inputs + self.matrix.num_inputs % 2
        if x.stride(0) != input_stride or x.stride(1) != 1 or input_stride > self.matrix.num_inputs:
            padded = x.new_zeros(len(x), input_stride)
            padded[:, : self.matrix.num_inputs] = x
            x = padded
        output = torch.empty(len(x), stride, dtype=output_dtype, device="cpu")
        call = GemmCall(
            input=x.data_ptr(),
            input_stride=input_stride,
            num_rows=len(x),
            weights=self.matrix,
            epilogue=Epilogue.GATE if gated else Epilogue.STORE,
            activation=activation,
            output=output.data_ptr(),
            output_stride=stride,
            output_dtype=KERNEL_DTYPES[output_dtype],
        )
        self._library.bough_gemm(self._threads.handle, ctypes.byref(call))
        return output[:, :columns]

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows ``ids`` (``[n]``, whole numbers) of the matrix, in the weights' dtype.

        Raises:
            ValueError: at ids that are not whole numbers in one line.
            IndexError: at ids of no row.
        """
        if ids.ndim != 1 or ids.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"ids must be int32 or int64 [n], got {ids.dtype} {list(ids.shape)}")
        if len(ids):
            least, most = (int(each) for each in ids.aminmax())
            if least < 0 or most >= self.matrix.num_outputs:
                raise IndexError(f"ids from {least} to {most} of a table of {self.matrix.num_outputs} rows")
        output = torch.empty(len(ids), self.matrix.num_inputs, device="cpu")
        ids = ids.to(torch.int32).contiguous()
        self._library.bough_embed(
            self._threads.handle,
            ctypes.byref(self.matrix),
            ids.data_ptr(),
            len(ids),
            output.data_ptr(),
            self.matrix.num_inputs,
        )
        return output.to(self.dtype)

    def _check_rows(self, first_row: int, num_rows: int) -> None:
        """Kernels write and read wherever they are told to."""
        if not 0 <= first_row <= first_row + num_rows <= self.matrix.num_outputs:
            raise IndexError(f"rows {first_row} to {first_row + num_rows} of a matrix of {self.matrix.num_outputs}")

    @staticmethod
    def _check_width(name: str, rows: torch.Tensor, width: int) -> None:
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"{name} must be [n, {width}], got {list(rows.shape)}")
