"""Weights of checkpoints in safetensors format that are quantised already: GPTQ, AWQ, compressed-tensors, FP8.

Their matrices are several tensors: packed codes, scales, and what else there is. What is packed into 32-bit words is
read byte by byte, lowest bits first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import torch

from bough.config.stored_quantization import Layout, StoredQuantization
from bough.errors import StartupError
from bough.layers.checkpoint_weight import StoredWeight, Weight
from bough.layers.quantized_rows import QuantizedRows, groups_of
from bough.layers.stored_formats import StoredForm
from bough.layers.stored_matrix import StoredMatrix
from bough.model_loader.sources import SafetensorsSource, is_of_attention, open_tensors
from bough.models.weight_names import BODY_PREFIX, stored_names, text_name
from bough.observability.progress import Progress

_CODES: dict[Layout, str] = {
    "gptq": "qweight",
    "awq": "qweight",
    "packed": "weight_packed",
    "integers": "weight",
    "float8": "weight",
}
_CODE_DTYPES: dict[Layout, torch.dtype] = {"integers": torch.int8, "float8": torch.float8_e4m3fn}
"""Those of layouts that do not pack codes into words"""
_SCALES: dict[Layout, tuple[str, ...]] = {
    "gptq": ("scales",),
    "awq": ("scales",),
    "packed": ("weight_scale",),
    "integers": ("weight_scale",),
    # Both are what codes are multiplied by.
    "float8": ("weight_scale", "weight_scale_inv"),
}
_COMPANIONS = (
    *("qzeros", "scales", "g_idx"),
    *("weight_scale", "weight_scale_inv", "weight_zero_point", "weight_shape", "weight_g_idx"),
    # What a model was calibrated with; inputs are quantised by what they are instead.
    *("input_scale", "input_scale_ub", "input_zero_point", "output_scale", "output_zero_point", "activation_scale"),
)
_AWQ_PLACES = [0, 4, 1, 5, 2, 6, 3, 7]
"""Where in a word AWQ has each of eight columns."""

_KERNEL_GROUP = 32

_REORDERED_AT_A_TIME = 2**20
"""Numbers of a matrix whose groups are not of neighbours: each has a copy of its scale meanwhile, and of its zero."""


class QuantizedSource(SafetensorsSource):
    """Safetensors files in which some matrices are quantised."""

    def __init__(self, directory: Path, quantization: StoredQuantization) -> None:
        """Raises:
        StartupError: if files are missing or damaged.
        """
        super().__init__(directory)
        self._quantization = quantization
        self.group = quantization.group
        self._opened: tuple[Path, Any] | None = None
        self._centred: set[str] = set()
        self._forms: dict[str, StoredForm | None] = {}
        self._names: dict[Path, list[str]] = {}
        self._files: dict[str, Path] = {}
        for file in self.files:
            self._names[file] = self.names_in(file, self._open(file))
            self._files.update(dict.fromkeys(self._names[file], file))
        # The name of each matrix's scales, by module.
        self._modules = {
            name.removesuffix(f".{part}"): part
            for part in _SCALES[quantization.layout]
            for name in self._files
            if name.endswith(f".{part}")
        }

    @property
    def quantized(self) -> bool:
        return bool(self._modules) and not self._quantization.is_float8

    @property
    def float8(self) -> bool:
        return bool(self._modules) and self._quantization.is_float8

    def form(self, name: str) -> StoredForm | None:
        if name not in self._forms:
            with torch.device("cpu"):  # whoever asks may be making a model elsewhere, or only its outline
                self._forms[name] = self._find_form(name)
        return self._forms[name]

    def _find_form(self, name: str) -> StoredForm | None:
        stored_modules = stored_names(name.removesuffix(".weight"))
        module = next((each for each in stored_modules if each in self._modules), None)
        if module is None:
            return None
        stored = self._quantization
        if stored.is_float8:
            return "float8"
        fits = stored.group is None or stored.group % _KERNEL_GROUP == 0
        if stored.bits == 8 or not fits or self._group_order(module) is not None:
            return "int8"
        # By the configuration, not by the zero points that this matrix happens to have: weights of another checkpoint
        # of the same configuration may take its place. Some that promise the middle have others nevertheless.
        if not stored.zero_points and self._zeros(module) is None:
            return "int4"
        return "int8" if stored.layout == "integers" else "uint4"

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, StoredWeight]]:
        codes = _CODES[self._quantization.layout]
        for name in self._names[file]:
            tensor = self._open(file).get_tensor(name)
            module, _, part = name.rpartition(".")
            if module in self._modules and part == codes:
                yield f"{module}.weight", self._matrix(module)
            elif tensor.dtype == torch.float8_e4m3fn:
                raise StartupError(f"the checkpoint has no scales of {name}; download it again")
            # Some tools give every module a bias, of zeros where the model has none.
            elif not is_of_attention(name) and not (
                module in self._modules
                and (part in _COMPANIONS or (part == "bias" and _is_needless(name, tensor, known)))
            ):
                yield name, tensor
            progress.advance(tensor.nbytes)

    def _matrix(self, module: str) -> StoredMatrix:
        num_rows, num_inputs = self._shape(module)
        read = self._float8_part if self._quantization.is_float8 else self._part
        return StoredMatrix.of(num_rows, num_inputs, lambda rows, columns: read(module, rows, columns))

    def _part(self, module: str, rows: slice, columns: slice) -> Weight:
        """Some rows and columns of a matrix of whole numbers."""
        stored, (num_rows, num_inputs) = self._quantization, self._shape(module)
        zeros, order = self._zeros(module), self._group_order(module)
        # Those of a group may be anywhere.
        codes = self._codes(module, rows, columns if order is None else slice(0, num_inputs), signed=zeros is None)
        scales = self._scales(module)
        if stored.layout in ("gptq", "awq"):
            scales = scales.T
        if scales.ndim != 2 or len(scales) not in (1, num_rows):
            raise StartupError(f"{module} has scales {list(scales.shape)} for {num_rows} rows")
        scales = scales.expand(num_rows, -1)
        if zeros is not None and len(zeros) == 1:
            zeros = zeros.expand(num_rows, -1)
        if zeros is not None and zeros.shape != scales.shape:
            raise StartupError(f"{module} has zero points {list(zeros.shape)} for scales {list(scales.shape)}")
        group = min(stored.group or num_inputs, max(num_inputs, 1))
        here = (rows, slice(None) if order is not None else _groups_of(module, scales, columns, group, num_inputs))
        scales, zeros = scales[here].contiguous(), None if zeros is None else zeros[here]
        if order is not None:
            return self._reordered(module, codes, scales, zeros, order)[:, columns]
        if zeros is None:
            return QuantizedRows(stored.bits, group, codes, scales)
        bits = 8 if stored.layout == "integers" else stored.bits
        return QuantizedRows(bits, group, codes, scales, scales.mul(zeros).neg_())

    def _scales(self, module: str) -> torch.Tensor:
        """float32; one for all, or one for each row, as a matrix of one column."""
        scales = self._tensor(module, self._modules[module]).float()
        return scales.reshape(-1, 1) if scales.ndim < 2 else scales

    def _float8_part(self, module: str, rows: slice, columns: slice) -> QuantizedRows:
        scales, (num_rows, num_inputs) = self._scales(module), self._shape(module)
        group = min(self._quantization.group or num_inputs, max(num_inputs, 1))
        blocks = -(-num_rows // self._quantization.rows)
        if scales.ndim != 2 or len(scales) not in (1, num_rows, blocks):
            raise StartupError(f"{module} has scales {list(scales.shape)} for {num_rows} rows")
        if len(scales) == blocks != num_rows:
            scales = scales.repeat_interleave(self._quantization.rows, 0)[:num_rows]
        groups = _groups_of(module, scales, columns, group, num_inputs)
        scales = scales.expand(num_rows, -1)[rows, groups].contiguous()
        return QuantizedRows(8, group, self._stored_codes(module)[rows, columns], scales)

    def _reordered(
        self, module: str, codes: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, order: torch.Tensor
    ) -> torch.Tensor:
        """Numbers of a matrix whose groups are not of neighbours."""
        if order.shape != codes.shape[1:] or int(order.min()) < 0 or int(order.max()) >= scales.shape[1]:
            raise StartupError(f"{module} has groups that do not fit its scales")
        numbers = codes.new_empty(codes.shape, dtype=torch.float32)
        rows_at_a_time = max(_REORDERED_AT_A_TIME // len(order), 1)
        for start in range(0, len(codes), rows_at_a_time):
            rows = slice(start, start + rows_at_a_time)
            part = numbers[rows].copy_(codes[rows])
            if zeros is not None:
                part -= zeros[rows][:, order]
            part *= scales[rows][:, order]
        return numbers

    def _stored_codes(self, module: str) -> torch.Tensor:
        """Codes as they are stored, two-dimensional."""
        layout = self._quantization.layout
        stored = self._tensor(module, _CODES[layout], _CODE_DTYPES.get(layout, torch.int32))
        if stored.ndim != 2:
            raise StartupError(f"{module} has codes {list(stored.shape)}, which are no matrix")
        return stored

    def _shape(self, module: str) -> tuple[int, int]:
        """Rows and inputs of a matrix."""
        layout, in_word = self._quantization.layout, 32 // self._quantization.bits
        first, second = self._stored_codes(module).shape
        if layout == "gptq":
            return second, first * in_word
        if layout == "awq":
            return second * in_word, first
        if layout != "packed":
            return first, second
        stated = self._tensor(module, "weight_shape")
        if stated.is_floating_point():
            raise StartupError(f"tensor {module}.weight_shape must be whole numbers, got {stated.dtype}")
        shape = stated.flatten().tolist()
        if len(shape) != 2 or shape[0] != first or not 0 <= second * in_word - shape[1] < in_word:
            raise StartupError(f"{module} has {[first, second * in_word]} codes for a matrix {shape}")
        return first, shape[1]

    def _codes(self, module: str, rows: slice, columns: slice, *, signed: bool) -> torch.Tensor:
        """``[rows, columns]``: signed as they are without zero points, or as they are stored."""
        layout, bits = self._quantization.layout, self._quantization.bits
        stored = self._stored_codes(module)
        if layout == "integers":
            part = stored[rows, columns]
            if bits == 4 and bool(((part < -8) | (part > 7)).any()):
                raise StartupError(f"{module} has codes that are not from -8 to 7, as those of 4 bits are")
            return part
        # Only words that have some of the codes are read: [.., .., codes in a word].
        if layout == "gptq":
            words, inner = _words_of(columns, bits)
            codes = _unpacked(stored[words, rows], bits).permute(1, 0, 2).flatten(1)[:, inner]
        elif layout == "awq":
            words, inner = _words_of(rows, bits)
            codes = _unpacked(stored[columns, words], bits)[..., _AWQ_PLACES].flatten(1)[:, inner].T.contiguous()
        else:
            words, inner = _words_of(columns, bits)
            codes = _unpacked(stored[rows, words], bits).flatten(1)[:, inner]
        return (codes - 2 ** (bits - 1)).view(torch.int8) if signed else codes

    def _zeros(self, module: str) -> torch.Tensor | None:
        """Zero points of codes as they are stored, float32 ``[rows, groups]``; ``None`` if all are in the middle."""
        layout, bits = self._quantization.layout, self._quantization.bits
        name = "qzeros" if layout in ("gptq", "awq") else "weight_zero_point"
        if f"{module}.{name}" not in self._files or module in self._centred:
            return None
        stored = self._tensor(module, name, torch.int8 if layout == "integers" else torch.int32)
        if layout == "integers" and stored.ndim < 2:
            stored = stored.reshape(-1, 1)
        if stored.ndim != 2:
            raise StartupError(f"{module} has zero points {list(stored.shape)}, which are no matrix")
        middle = 0 if layout == "integers" else 2 ** (bits - 1)
        if layout == "integers":
            zeros = stored
        elif layout == "packed":  # along the rows, up to whole words
            rows = len(self._stored_codes(module))
            zeros = _unpacked(stored, bits).permute(0, 2, 1).flatten(0, 1)[:rows]
        else:
            codes = _unpacked(stored, bits)
            codes = codes[..., _AWQ_PLACES] if layout == "awq" else codes
            zeros = codes.flatten(1).T
            # Some GPTQ files that promise the middle have it as it is, though their format is that of one less.
            if self._quantization.zero_points or not bool((zeros == middle).all()):
                zeros = (zeros + self._quantization.zero_offset) & (2**bits - 1)
        if bool((zeros == middle).all()):
            self._centred.add(module)
            return None
        return zeros.float()

    def _group_order(self, module: str) -> torch.Tensor | None:
        """The group of each input; ``None`` if they follow each other as usual."""
        name = "g_idx" if self._quantization.layout == "gptq" else "weight_g_idx"
        if f"{module}.{name}" not in self._files:
            return None
        order = self._tensor(module, name)
        if order.ndim != 1 or order.is_floating_point():
            raise StartupError(
                f"tensor {module}.{name} must be a list of whole numbers, got {order.dtype} {list(order.shape)}"
            )
        if self._quantization.layout == "packed" and bool((order == -1).any()):
            return None  # what compressed-tensors starts with, and leaves where nothing is reordered
        order = order.long()
        inputs = max(len(order), 1)
        size = min(self._quantization.group or inputs, inputs)
        return None if torch.equal(order, torch.arange(len(order)) // size) else order

    def _open(self, file: Path) -> Any:
        """A file, mapped. Only one is at a time: their pages count as this process's memory."""
        if self._opened is None or self._opened[0] != file:
            self._opened = None
            self._opened = (file, open_tensors(file))
        return self._opened[1]

    def _tensor(self, module: str, part: str, dtype: torch.dtype | None = None) -> torch.Tensor:
        name = f"{module}.{part}"
        if name not in self._files:
            raise StartupError(f"the checkpoint has no tensor {name}; download it again")
        tensor: torch.Tensor = self._open(self._files[name]).get_tensor(name)
        if dtype is not None and tensor.dtype != dtype:
            raise StartupError(f"tensor {name} must be {dtype}, got {tensor.dtype}")
        return tensor


def _is_needless(name: str, bias: torch.Tensor, known: Collection[str]) -> bool:
    own_name = text_name(name) or name
    return own_name not in known and f"{BODY_PREFIX}{own_name}" not in known and not bool(bias.any())


def _groups_of(module: str, scales: torch.Tensor, columns: slice, group: int, num_inputs: int) -> slice:
    """Return the columns of a matrix's scales for some of its inputs; there must be as many as its inputs need."""
    if scales.shape[1] != -(-num_inputs // group):
        raise StartupError(
            f"{module} has scales {list(scales.shape)} for rows of {num_inputs} codes in groups of {group}"
        )
    return groups_of(columns, group, num_inputs)


def _words_of(codes: slice, bits: Literal[4, 8]) -> tuple[slice, slice]:
    """Return the words that some codes are in, and the places of these among all codes of the words."""
    in_word = 32 // bits
    words = slice(codes.start // in_word, -(-codes.stop // in_word))
    return words, slice(codes.start - words.start * in_word, codes.stop - words.start * in_word)


def _unpacked(words: torch.Tensor, bits: Literal[4, 8]) -> torch.Tensor:
    """The codes in each word: uint8 ``[..., 32 / bits]``."""
    packed = words.contiguous().view(torch.uint8).reshape(*words.shape, 4)
    if bits == 8:
        return packed
    return torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2)
