"""GGUF files: where metadata and tensors are. No torch here.

The format is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. A file
may be damaged or made to do harm: every count, length and offset is checked against the size of the file before
anything is allocated for it.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from bough.config.file_kinds import but_is
from bough.errors import CheckpointError, ConfigError

Bytes = npt.NDArray[np.uint8]
T = TypeVar("T")

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MAX_ENTRIES = 2**16
_MAX_ARRAY = 2**24
_MAX_NAME_BYTES = 2**16
_MAX_STRING_BYTES = 2**26
_MAX_DIMENSIONS = 4
_MAX_ALIGNMENT = 2**20

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING = 8
_ARRAY = 9


class TensorType(IntEnum):
    """How the numbers of a tensor are stored. All types that have been in use; :data:`BLOCKS` has those we read."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q5_0 = 6
    Q5_1 = 7
    Q8_0 = 8
    Q8_1 = 9
    Q2_K = 10
    Q3_K = 11
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    Q8_K = 15
    IQ2_XXS = 16
    IQ2_XS = 17
    IQ3_XXS = 18
    IQ1_S = 19
    IQ4_NL = 20
    IQ3_S = 21
    IQ2_S = 22
    IQ4_XS = 23
    I8 = 24
    I16 = 25
    I32 = 26
    I64 = 27
    F64 = 28
    IQ1_M = 29
    BF16 = 30
    TQ1_0 = 34
    TQ2_0 = 35
    MXFP4 = 39
    NVFP4 = 40


@dataclass(frozen=True, slots=True)
class Block:
    """The unit that a type stores numbers in."""

    elements: int
    num_bytes: int
    bits: Literal[4, 8] | None = None
    """That quantised numbers fit into; ``None`` for floating-point ones."""


BLOCKS = {
    TensorType.F32: Block(1, 4),
    TensorType.F16: Block(1, 2),
    TensorType.BF16: Block(1, 2),
    TensorType.Q4_0: Block(32, 18, 4),
    TensorType.Q4_1: Block(32, 20, 4),
    TensorType.Q5_0: Block(32, 22, 8),
    TensorType.Q5_1: Block(32, 24, 8),
    TensorType.Q8_0: Block(32, 34, 8),
    TensorType.IQ4_NL: Block(32, 18, 8),
    TensorType.IQ4_XS: Block(256, 136, 8),
    TensorType.MXFP4: Block(32, 17, 8),
    TensorType.Q2_K: Block(256, 84, 8),
    TensorType.Q3_K: Block(256, 110, 8),
    TensorType.Q4_K: Block(256, 144, 4),
    TensorType.Q5_K: Block(256, 176, 8),
    TensorType.Q6_K: Block(256, 210, 8),
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of a file."""

    name: str
    type: TensorType
    shape: tuple[int, ...]
    """Outermost dimension first, as torch has it: a matrix is ``(rows, inputs)``."""
    part: int
    """Which file of a split model it is in."""
    offset: int
    """Of its first byte in that file."""

    @property
    def block(self) -> Block:
        """How its numbers are stored."""
        return BLOCKS[self.type]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of numbers (of a vector: of all)."""
        return self.shape[-1] // self.block.elements * self.block.num_bytes

    @property
    def num_rows(self) -> int:
        """Rows of ``shape[-1]`` numbers."""
        rows = 1
        for size in self.shape[:-1]:
            rows *= size
        return rows

    @property
    def num_bytes(self) -> int:
        """Bytes in the file."""
        return self.num_rows * self.row_bytes


class StringArray:
    """Strings of the metadata, decoded when they are asked for: vocabularies have hundreds of thousands."""

    def __init__(self, content: mmap.mmap, offset: int, count: int, path: Path) -> None:
        self._content, self._offset, self._count, self._path = content, offset, count, path

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        offset, content = self._offset, self._content
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(self._count):
            begin = offset + 8
            offset = begin + unpack(content, offset)[0]
            try:
                yield content[begin:offset].decode()
            except UnicodeDecodeError:
                raise damaged(self._path, "a string is not UTF-8") from None


Scalar: TypeAlias = "int | float | bool | str"
Value: TypeAlias = "Scalar | StringArray | npt.NDArray[np.generic]"


class GGUFFile:
    """A model in the GGUF format, in one file or split into several."""

    def __init__(self, path: Path) -> None:
        """Read all but the tensors' numbers.

        Raises:
            ConfigError: one line that says what is wrong with the file.
        """
        self.path = path
        first = _Header(path, 0)
        self.metadata = first.metadata
        self.tensors = first.tensors
        self.paths = [path]
        for part, other in enumerate(_other_parts(path, self._num_parts()), start=1):
            self.paths.append(other)
            for name, info in _Header(other, part).tensors.items():
                if name in self.tensors:
                    raise damaged(other, f"tensor {name} is in an earlier part already")
                self.tensors[name] = info
        self._files = [os.open(part, os.O_RDONLY | os.O_CLOEXEC) for part in self.paths]
        weakref.finalize(self, _close, self._files)

    def read_rows(self, info: TensorInfo, first: int, count: int) -> Bytes:
        """The stored bytes of some rows of a tensor, ``[count, row_bytes]``, in memory of their own.

        Raises:
            ConfigError: if the file has become shorter.
        """
        output = np.empty((count, info.row_bytes), dtype=np.uint8)
        view = memoryview(output.reshape(-1).data)
        offset = info.offset + first * info.row_bytes
        while view:
            got = os.preadv(self._files[info.part], [view], offset)
            if got == 0:
                raise damaged(self.paths[info.part], f"tensor {info.name} ends after the file")
            view, offset = view[got:], offset + got
        return output

    def _num_parts(self) -> int:
        key = "split.count"
        count = self.integer(key)
        if count is not None and not 0 <= count < 100_000:  # five digits of a file's name
            raise self.wrong(key, "must be from 0 to 99999")
        return count or 1

    def text(self, key: str) -> str | None:
        """A string of the metadata. Raises :class:`ConfigError` if it is something else."""
        return self._typed(key, str, "a string")

    def integer(self, key: str) -> int | None:
        """A whole number of the metadata; see :meth:`text`."""
        return self._typed(key, int, "a whole number")

    def number(self, key: str) -> float | None:
        """A number of the metadata; see :meth:`text`."""
        value = self._typed(key, float, "a number", int)
        return None if value is None else float(value)

    def boolean(self, key: str) -> bool | None:
        """A truth value of the metadata; see :meth:`text`."""
        return self._typed(key, bool, "true or false")

    def strings(self, key: str) -> StringArray | None:
        """An array of strings of the metadata; see :meth:`text`."""
        return self._typed(key, StringArray, "an array of strings")

    def numbers(self, key: str) -> npt.NDArray[np.generic] | None:
        """An array of numbers of the metadata; see :meth:`text`."""
        return self._typed(key, np.ndarray, "an array of numbers")

    def _typed(self, key: str, kind: type[T], expected: str, *others: type) -> T | None:
        value = self.metadata.get(key)
        if value is not None and (
            not isinstance(value, (kind, *others)) or (isinstance(value, bool) and kind is not bool)
        ):
            raise self.wrong(key, f"must be {expected}")
        return cast("T | None", value)

    def wrong(self, key: str, rule: str) -> ConfigError:
        """The error of an entry that does not follow ``rule``."""
        value = self.metadata.get(key)
        shown = repr(value) if isinstance(value, (str, int, float, type(None))) else f"an array of {len(value)}"
        return ConfigError(f"{self.path}: {key} {rule}, got {shown[:100]}", param="model_path")


def damaged(path: Path, what: str) -> ConfigError:
    """The error of a file that is not what it should be."""
    return CheckpointError(f"{path} is damaged or cut short: {what}; download it again", param="model_path")


def find_gguf(directory: Path) -> Path | None:
    """The GGUF file of a directory, of a split model the first part; ``None`` if it has none.

    Raises:
        ConfigError: if it has several.
    """
    files = [file for file in sorted(directory.glob("*.gguf")) if _part_number(file) in (None, 1)]
    if len(files) > 1:
        raise ConfigError(
            f"{directory} has several GGUF files ({', '.join(file.name for file in files[:8])}); name one of them",
            param="model_path",
        )
    return files[0] if files else None


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


_PART = re.compile(r"(.*-)(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


def _part_number(path: Path) -> int | None:
    match = _PART.fullmatch(path.name)
    return int(match[2]) if match else None


def _other_parts(path: Path, count: int) -> list[Path]:
    if count <= 1:
        return []
    match = _PART.fullmatch(path.name)
    if match is None or int(match[2]) != 1 or int(match[3]) != count:
        raise CheckpointError(
            f"{path} is one of {count} files of a split model; name the first, NAME-00001-of-{count:05}.gguf, and keep "
            "the others beside it",
            param="model_path",
        )
    parts = [path.with_name(f"{match[1]}{number:05}-of-{match[3]}.gguf") for number in range(2, int(match[3]) + 1)]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        raise CheckpointError(f"{path} is a split model, and {', '.join(missing[:8])} are missing", param="model_path")
    return parts


class _Header:
    """Reads the head of one file, from its beginning to its end."""

    def __init__(self, path: Path, part: int) -> None:
        self._path = path
        self._offset = 0
        self.metadata: dict[str, Value] = {}
        self.tensors: dict[str, TensorInfo] = {}
        try:
            with path.open("rb") as file:
                self._size = os.fstat(file.fileno()).st_size
                if self._size < len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
                    raise CheckpointError(f"{path} is not a GGUF file{but_is(path)}", param="model_path")
                # Pages are read as they are needed: the head is small, the numbers after it are not.
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error.strerror or error}", param="model_path") from None
        self._offset = len(_MAGIC)
        version = self._whole("I")
        if version not in _VERSIONS:
            raise CheckpointError(
                f"{path}: GGUF version {version} (or byte order) is not supported, only versions 2 and 3, "
                "little-endian; convert the model again",
                param="model_path",
            )
        num_tensors, num_entries = self._count(_MAX_ENTRIES), self._count(_MAX_ENTRIES)
        for _ in range(num_entries):
            name = self._string(_MAX_NAME_BYTES)
            if name in self.metadata:
                raise damaged(path, f"{name} is there twice")
            self.metadata[name] = self._value(self._whole("I"))
        infos = [self._tensor_info() for _ in range(num_tensors)]
        self._place(infos, part)

    def _place(self, infos: list[tuple[str, TensorType, tuple[int, ...], int]], part: int) -> None:
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 1 <= alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1):
            raise damaged(self._path, "general.alignment is no power of two")
        begin = -(-self._offset // alignment) * alignment
        for name, kind, shape, offset in infos:
            info = TensorInfo(name, kind, shape, part, begin + offset)
            if name in self.tensors:
                raise damaged(self._path, f"tensor {name} is there twice")
            if offset % alignment:
                raise damaged(self._path, f"tensor {name} begins at {offset}, no multiple of {alignment}")
            if shape[-1] % info.block.elements:
                raise damaged(self._path, f"rows of tensor {name} do not consist of whole blocks")
            if info.offset + info.num_bytes > self._size:
                raise damaged(self._path, f"tensor {name} ends after the file")
            self.tensors[name] = info

    def _tensor_info(self) -> tuple[str, TensorType, tuple[int, ...], int]:
        name = self._string(_MAX_NAME_BYTES)
        num_dimensions = self._whole("I")
        if not 1 <= num_dimensions <= _MAX_DIMENSIONS:
            raise damaged(self._path, f"tensor {name} has {num_dimensions} dimensions")
        shape = tuple(self._whole("Q") for _ in range(num_dimensions))[::-1]
        if 0 in shape:
            raise damaged(self._path, f"tensor {name} is empty")
        number = self._whole("I")
        kind = TensorType(number) if number in TensorType._value2member_map_ else None
        if kind is None or kind not in BLOCKS:
            raise CheckpointError(
                f"{self._path}: tensor {name} has type {number if kind is None else kind.name}, which is not "
                f"supported; supported are {', '.join(supported.name for supported in BLOCKS)}",
                param="model_path",
            )
        return name, kind, shape, self._whole("Q")

    def _value(self, kind: int) -> Value:
        if kind == _STRING:
            return self._string(_MAX_STRING_BYTES)
        if kind == _ARRAY:
            return self._array(self._whole("I"))
        if kind not in _SCALARS:
            raise damaged(self._path, f"a value has the unknown type {kind}")
        return self._scalar(_SCALARS[kind])

    def _array(self, kind: int) -> Value:
        count = self._count(_MAX_ARRAY)
        begin = self._offset
        if kind == _STRING:
            for _ in range(count):
                self._take(self._count(_MAX_STRING_BYTES))
            return StringArray(self._content, begin, count, self._path)
        if kind not in _SCALARS:
            raise damaged(self._path, f"an array has elements of the type {kind}")
        dtype = np.dtype(_SCALARS[kind]).newbyteorder("<")
        self._take(count * dtype.itemsize)
        return np.frombuffer(self._content[begin : self._offset], dtype=dtype)

    def _string(self, longest: int) -> str:
        length = self._count(longest)
        begin = self._take(length)
        try:
            return self._content[begin : begin + length].decode()
        except UnicodeDecodeError:
            raise damaged(self._path, "a string is not UTF-8") from None

    def _count(self, most: int) -> int:
        count = self._whole("Q")
        if count > most:
            raise damaged(self._path, f"there are to be {count} of something, at most {most} are possible")
        return count

    def _whole(self, code: Literal["I", "Q"]) -> int:
        return int(self._scalar(code))

    def _scalar(self, code: str) -> int | float | bool:
        value: int | float | bool
        layout = struct.Struct(f"<{code}")
        (value,) = layout.unpack_from(self._content, self._take(layout.size))
        # 0.7 and 1e-5, as whoever wrote it meant, not what they become in double precision.
        return float(str(np.float32(value))) if code == "f" else value

    def _take(self, size: int) -> int:
        """Where the next ``size`` bytes begin."""
        begin = self._offset
        if size > self._size - begin:
            raise damaged(self._path, "it ends within its head")
        self._offset = begin + size
        return begin
