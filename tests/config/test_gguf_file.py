from __future__ import annotations

import contextlib
import re
import shutil
import struct
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.config.checkpoint import resolve_model_path
from bough.config.gguf_file import GGUFFile, StringArray, TensorType
from bough.errors import ConfigError
from tests.models.gguf_files import add_entry
from tests.thoroughness import examples

MATRIX = np.arange(64, dtype=np.float32).reshape(2, 32)


def write(path: Path, *, alignment: int | None = None) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    writer.add_uint32("a.whole", 7)
    writer.add_float64("a.number", 0.5)
    writer.add_bool("a.truth", True)
    writer.add_string("a.text", "Größe")
    writer.add_array("a.strings", ["x", "", "ñandú"])
    writer.add_array("a.numbers", [1, -2, 3])
    writer.add_tensor("matrix", MATRIX)
    quantized = gguf.quants.quantize(MATRIX, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("small", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@lru_cache
def content() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return write(Path(directory, "m.gguf")).read_bytes()


def head_bytes() -> int:
    return content().index(MATRIX.tobytes()[4:12]) - 4


def refusal(path: Path, damaged: bytes) -> str:
    path.write_bytes(damaged)
    with pytest.raises(ConfigError) as caught:
        GGUFFile(path)
    message = caught.value.message
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize("alignment", [None, 64])
def test_what_was_written_is_read(tmp_path: Path, alignment: int | None) -> None:
    file = GGUFFile(write(tmp_path / "m.gguf", alignment=alignment))
    assert file.integer("a.whole") == 7
    assert file.number("a.number") == 0.5
    assert file.boolean("a.truth") is True
    assert file.text("a.text") == "Größe"
    strings = file.strings("a.strings")
    assert isinstance(strings, StringArray)
    assert list(strings) == ["x", "", "ñandú"]
    numbers = file.numbers("a.numbers")
    assert numbers is not None
    assert numbers.tolist() == [1, -2, 3]
    matrix = file.tensors["matrix"]
    assert (matrix.type, matrix.shape) == (TensorType.F32, (2, 32))
    assert np.array_equal(file.read_rows(matrix, 1, 1).view(np.float32), MATRIX[1:])
    small = file.tensors["small"]
    assert (small.type, small.shape, small.row_bytes) == (TensorType.Q8_0, (2, 32), 34)


def test_an_entry_of_another_type_is_refused(tmp_path: Path) -> None:
    file = GGUFFile(write(tmp_path / "m.gguf"))
    for read in (file.integer, file.number, file.boolean, file.strings, file.numbers):
        with pytest.raises(ConfigError, match=r"m.gguf: a.text must be .*, got 'Größe'"):
            read("a.text")
    with pytest.raises(ConfigError, match=r"a\.strings must be a string, got an array of 3"):
        file.text("a.strings")


def test_every_cut_within_the_head_and_the_last_tensor_is_noticed(tmp_path: Path) -> None:
    path, whole = tmp_path / "m.gguf", content()
    for length in [*range(head_bytes()), len(whole) - 64]:
        refusal(path, whole[:length])


@settings(max_examples=examples(300))
@given(data=st.data())
def test_damage_is_refused_or_harmless(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    damaged = bytearray(content())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, head_bytes() - 1))
        patch = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, b"\0" * 8])))
        damaged[position : position + len(patch)] = patch
    path.write_bytes(damaged)
    with contextlib.suppress(ConfigError):
        file = GGUFFile(path)
        for value in file.metadata.values():
            if isinstance(value, StringArray):
                list(value)
        for info in file.tensors.values():
            file.read_rows(info, 0, info.num_rows)


def header(num_tensors: int, num_entries: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_entries) + rest


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def entry(kind: int, value: bytes, name: bytes = b"k") -> bytes:
    return text(name) + struct.pack("<I", kind) + value


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "is not a GGUF file"),
        (b"PK\x03\x04" + b"\0" * 60, "is not a GGUF file"),
        (header(0, 0, version=1), "GGUF version 1 .* is not supported"),
        (header(0, 0, version=0x03000000), "byte order"),
        (header(2**63, 0), "there are to be 9223372036854775808 of something"),
        (header(0, 2**40), "of something"),
        (header(0, 1, struct.pack("<Q", 2**64 - 1)), "of something"),
        (header(0, 1, struct.pack("<Q", 1000) + b"key"), "ends within its head"),
        (header(0, 1, entry(99, b"")), "unknown type 99"),
        (header(0, 1, entry(9, struct.pack("<IQ", 9, 1))), "an array has elements of the type 9"),
        (header(0, 1, entry(9, struct.pack("<IQ", 4, 2**24))), "ends within its head"),
        (header(0, 1, entry(9, struct.pack("<IQ", 8, 2**24))), "ends within its head"),
        (header(0, 1, entry(8, text(b"\xff\xfe"))), "not UTF-8"),
        (header(0, 2, entry(4, struct.pack("<I", 1)) * 2), "k is there twice"),
        (header(0, 1, entry(4, struct.pack("<I", 3), b"general.alignment")), "power of two"),
        (header(0, 1, entry(8, text(b"x"), b"general.alignment")), "power of two"),
        (header(1, 0, tensor(b"t", (), 0, 0)), "tensor t has 0 dimensions"),
        (header(1, 0, tensor(b"t", (1,) * 5, 0, 0)), "tensor t has 5 dimensions"),
        (header(1, 0, tensor(b"t", (0, 4), 0, 0)), "tensor t is empty"),
        (header(1, 0, tensor(b"t", (2**62, 2**62), 0, 0)), "tensor t ends after the file"),
        (header(1, 0, tensor(b"t", (32,), 0, 2**63)), "tensor t ends after the file"),
        (header(1, 0, tensor(b"t", (32,), 0, 8)), "no multiple of 32"),
        (header(1, 0, tensor(b"t", (33,), 8, 0)), "do not consist of whole blocks"),
        (
            header(1, 0, tensor(b"t", (32,), 22, 0)),
            "t has type IQ2_S, which is not supported; supported are F32",
        ),
        (header(1, 0, tensor(b"t", (32,), 99, 0)), "tensor t has type 99"),
        (header(2, 0, tensor(b"t", (1,), 0, 0) * 2 + b"\0" * 96), "tensor t is there twice"),
    ],
)
def test_hostile_heads_are_refused_by_name(tmp_path: Path, damaged: bytes, message: str) -> None:
    assert re.search(message, refusal(tmp_path / "m.gguf", damaged))


def test_a_file_that_shrinks_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    file = GGUFFile(write(tmp_path / "m.gguf"))
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="tensor matrix ends after the file"):
        file.read_rows(file.tensors["matrix"], 0, 2)


def test_a_directory_stands_for_its_only_file(tmp_path: Path) -> None:
    path = write(tmp_path / "model.Q8_0.gguf")
    assert resolve_model_path(str(tmp_path)) == path
    assert resolve_model_path(str(path)) == path
    shutil.copy(path, tmp_path / "other.gguf")
    with pytest.raises(ConfigError, match=r"has several GGUF files .*; name one"):
        resolve_model_path(str(tmp_path))
    (tmp_path / "model.safetensors").touch()
    assert resolve_model_path(str(tmp_path)) == tmp_path
    (tmp_path / "other.gguf").unlink()
    assert resolve_model_path(str(tmp_path), load_format="gguf") == path
    path.unlink()
    with pytest.raises(ConfigError, match="has no GGUF file"):
        resolve_model_path(str(tmp_path), load_format="gguf")


def test_a_split_model_is_read_from_all_its_parts(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        writer = gguf.GGUFWriter(tmp_path / f"m-{number:05}-of-00003.gguf", "llama")
        writer.add_uint16("split.count", 3)
        writer.add_tensor(f"t{number}", MATRIX + number)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    first = resolve_model_path(str(tmp_path))
    assert first.name == "m-00001-of-00003.gguf"
    file = GGUFFile(first)
    for number in (1, 2, 3):
        info = file.tensors[f"t{number}"]
        assert np.array_equal(file.read_rows(info, 0, 2).view(np.float32), MATRIX + number)
    with pytest.raises(ConfigError, match="name the first"):
        GGUFFile(tmp_path / "m-00002-of-00003.gguf")
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    with pytest.raises(ConfigError, match=r"m-00002-of-00003\.gguf are missing"):
        GGUFFile(first)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("3", r"split\.count must be a whole number, got '3'"),
        ([1, 2], r"split\.count must be a whole number, got an array of 2"),
        (100_000, r"split\.count must be from 0 to 99999, got 100000"),
    ],
)
def test_a_strange_number_of_parts_is_refused(tmp_path: Path, count: Any, message: str) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    add_entry(writer, "split.count", count)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ConfigError, match=message):
        GGUFFile(tmp_path / "m.gguf")
