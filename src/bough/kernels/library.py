"""The shared library of native kernels: finding it, and the types of its functions."""

from __future__ import annotations

import ctypes
import hashlib
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bough.kernels import structures

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LIBRARY_FILE = Path(__file__).with_name("libbough.so")

SOURCES = Path(__file__).parents[3] / "csrc"
"""The library's sources, if the package is used where they are."""


class KernelError(RuntimeError):
    """A native function has failed, or cannot be called like this."""


class _Status(ctypes.c_int32):
    """What functions return that can fail."""


_OK, _NO_MEMORY = 0, 1

_INT32 = ctypes.c_int32
_INT64 = ctypes.c_int64
_POINTER = ctypes.c_void_p

_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "bough_error": (ctypes.c_char_p, ()),
    "bough_sources": (ctypes.c_char_p, ()),
    "bough_machine_isa": (_INT32, ()),
    "bough_best_isa": (_INT32, ()),
    "bough_current_isa": (_INT32, ()),
    "bough_set_isa": (_INT32, (_INT32,)),
    "bough_structure_size": (_INT64, (_INT32,)),
    "bough_pool_create": (_Status, (_INT32, _POINTER)),
    "bough_pool_counts": (None, (_POINTER, _POINTER)),
    "bough_pool_destroy": (None, (_POINTER,)),
    "bough_pool_expect_run": (None, (_POINTER,)),
    "bough_pool_thread_ids": (_Status, (_POINTER, _POINTER)),
    "bough_packed_words": (_INT64, (_POINTER,)),
    "bough_quantized_row_words": (_INT64, (_POINTER,)),
    "bough_packed_columns": (None, (_POINTER, _POINTER)),
    "bough_place_panels": (_Status, (_POINTER, _POINTER)),
    "bough_pack_rows": (_Status, (_POINTER, _POINTER, _INT64, _INT64, _POINTER, _INT32)),
    "bough_pack_codes": (_Status, (_POINTER, _POINTER, _INT64, _INT64, _POINTER, _POINTER, _POINTER)),
    "bough_unpack_rows": (_Status, (_POINTER, _POINTER, _INT64, _INT64, _POINTER)),
    "bough_largest": (_Status, (_POINTER, _POINTER, _POINTER)),
    "bough_embed": (_Status, (_POINTER, _POINTER, _POINTER, _INT64, _POINTER, _INT64)),
    "bough_read": (_Status, (_POINTER, _POINTER, _INT64, _POINTER)),
    "bough_gemm": (_Status, (_POINTER, _POINTER)),
    "bough_rms_norm": (_Status, (_POINTER, _POINTER)),
    "bough_embedding": (_Status, (_POINTER, _POINTER)),
    "bough_rotary_table": (_Status, (_POINTER, _POINTER)),
    "bough_rotary_store": (_Status, (_POINTER, _POINTER)),
    "bough_rows_finite": (_Status, (_POINTER, _POINTER)),
    "bough_attention": (_Status, (_POINTER, _POINTER, _INT64, _INT64)),
    "bough_sample_scratch_bytes": (_INT64, (_INT64, _INT32)),
    "bough_sample": (_Status, (_POINTER, _POINTER)),
    "bough_logprobs": (_Status, (_POINTER, _POINTER)),
    "bough_program_bytes": (_INT64, (_POINTER, _INT32)),
    "bough_attention_bytes": (_INT64, (_POINTER, _POINTER, _INT32)),
    "bough_program_create": (_Status, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER)),
    "bough_program_destroy": (None, (_POINTER,)),
    "bough_program_packed_embedding": (_Status, (_POINTER, _POINTER, _INT64, ctypes.c_float, _POINTER, _INT64)),
    "bough_program_embedding": (_Status, (_POINTER, _POINTER)),
    "bough_program_rotary_table": (_Status, (_POINTER, _POINTER)),
    "bough_program_norm": (_Status, (_POINTER, _POINTER)),
    "bough_program_gemm": (_Status, (_POINTER, _POINTER, _INT64)),
    "bough_program_quantize": (_Status, (_POINTER, _POINTER, _INT64)),
    "bough_program_rotary_store": (_Status, (_POINTER, _POINTER)),
    "bough_program_attention": (_Status, (_POINTER, _POINTER)),
    "bough_program_experts": (_Status, (_POINTER, _POINTER, _INT32)),
    "bough_experts_plan_bytes": (_INT64, (_POINTER, _INT64)),
    "bough_program_meet": (_Status, (_POINTER, _INT32, _INT32)),
    "bough_program_finish": (None, (_POINTER, _POINTER, _POINTER, _POINTER, _INT64)),
    "bough_program_run": (_Status, (_POINTER, _POINTER, _POINTER)),
    "bough_program_decode": (_Status, (_POINTER, _POINTER, _POINTER, _POINTER)),
    "bough_program_head": (_Status, (_POINTER, _POINTER, _INT64, _POINTER, _POINTER)),
    "bough_program_follow": (_Status, (_POINTER, _POINTER, _POINTER)),
    "bough_group_bytes": (_INT64, ()),
    "bough_piece_bytes": (_INT64, (_POINTER, _INT32)),
    "bough_group_create": (_Status, (_POINTER, _INT32, _INT32, _INT32, _POINTER)),
    "bough_group_destroy": (None, (_POINTER,)),
    "bough_group_expect": (None, (_POINTER,)),
    "bough_group_call": (None, (_POINTER,)),
    "bough_group_calls": (_INT64, (_POINTER,)),
    "bough_group_fail": (None, (_POINTER,)),
    "bough_group_host_time": (None, (_POINTER, _INT32, _POINTER, _POINTER)),
    "bough_group_has_failed": (_INT32, (_POINTER,)),
    "bough_set_ready": (None, (_POINTER,)),
}


class Isa(IntEnum):
    """Instruction sets; later is better. Each includes all earlier ones, but AVX-512 need not include ``AVX2VNNI``."""

    PORTABLE = 0
    AVX2 = 1
    AVX2VNNI = 2
    AVX512 = 3
    AVX512VNNI = 4
    AVX512BF16 = 5
    AMX = 6


class LibraryMissing(Exception):
    """There is no library to load; the text says why and what to do."""


@cache
def load_library() -> ctypes.CDLL:
    """The library, its functions declared.

    Functions that can fail raise ``MemoryError`` or :class:`KernelError`.

    Raises:
        LibraryMissing: if it was not built, or not from the sources that this package belongs to.
    """
    if not LIBRARY_FILE.is_file():
        raise LibraryMissing(
            "the native CPU kernels were not built; install a C++17 compiler (g++ or clang++) and Bough again"
        )
    try:
        library = ctypes.CDLL(str(LIBRARY_FILE))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            if result is _Status:
                function.restype, function.errcheck = _INT32, _raise_error
    except (OSError, AttributeError) as error:
        raise LibraryMissing(f"they cannot be loaded ({error}); install Bough again") from None
    if SOURCES.is_dir() and library.bough_sources().decode() != sources_hash():
        raise LibraryMissing("they were built from other sources; install Bough again")
    for index, size in enumerate(structures.SHARED_SIZES):
        if library.bough_structure_size(index) != size:
            raise LibraryMissing("they are those of another version; install Bough again")
    return library


def is_source(name: str) -> bool:
    """True if a file of csrc goes into the library, and is not what an editor keeps there meanwhile."""
    return not name.startswith(".") and (name.endswith((".cpp", ".h")) or name == "flags.mk")


def sources_hash() -> str:
    """SHA-256 of the sources, as setup.py computes it for the library."""
    digest = hashlib.sha256()
    for path in sorted(path for path in SOURCES.iterdir() if is_source(path.name)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _raise_error(status: int, *_: object) -> int:
    if status == _NO_MEMORY:
        raise MemoryError("not enough memory for native kernels")
    if status != _OK:
        raise KernelError(load_library().bough_error().decode(errors="replace"))
    return status


def machine_isa() -> Isa:
    """The best instruction set of this machine that Bough has kernels for."""
    return Isa(load_library().bough_machine_isa())


def best_isa() -> Isa:
    """The best one that this build has kernels for: the compiler may have lacked some."""
    return Isa(load_library().bough_best_isa())


def current_isa() -> Isa:
    """The instruction set in use."""
    return Isa(load_library().bough_current_isa())


def set_isa(isa: Isa) -> bool:
    """Use another instruction set, for tests; false, changing nothing, if this machine lacks it."""
    return bool(load_library().bough_set_isa(isa))


def set_ready(ready: npt.NDArray[np.int32]) -> None:
    """Tell kernels that wait for it on another thread that what this thread has written may be read."""
    library = _library_or_none()
    if library is not None:  # or else there are none that wait
        library.bough_set_ready(structures.address_of(ready))


@cache
def _library_or_none() -> ctypes.CDLL | None:
    try:
        return load_library()
    except LibraryMissing:
        return None
