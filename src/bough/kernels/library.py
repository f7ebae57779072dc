"""The shared library of native kernels: finding it, and the types of its functions."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache
from pathlib import Path

from bough.kernels import structures

LIBRARY_FILE = Path(__file__).with_name("libbough.so")

_INT32 = ctypes.c_int32
_INT64 = ctypes.c_int64
_POINTER = ctypes.c_void_p

_FUNCTIONS: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "bough_best_isa": (_INT32, ()),
    "bough_current_isa": (_INT32, ()),
    "bough_set_isa": (_INT32, (_INT32,)),
    "bough_structure_size": (_INT64, (_INT32,)),
    "bough_pool_create": (_POINTER, (_INT32,)),
    "bough_pool_destroy": (None, (_POINTER,)),
    "bough_packed_words": (_INT64, (_POINTER,)),
    "bough_packed_column": (_INT64, (_POINTER, _INT64)),
    "bough_pack_rows": (None, (_POINTER, _POINTER, _INT64, _INT64, _POINTER)),
    "bough_unpack_rows": (None, (_POINTER, _POINTER, _INT64, _INT64, _POINTER)),
    "bough_embed": (None, (_POINTER, _POINTER, _POINTER, _INT64, _POINTER, _INT64)),
    "bough_read": (_INT64, (_POINTER, _POINTER, _INT64)),
    "bough_gemm": (_INT32, (_POINTER, _POINTER)),
    "bough_rms_norm": (None, (_POINTER, _POINTER)),
    "bough_embedding": (None, (_POINTER, _POINTER)),
    "bough_rotary_table": (None, (_POINTER, _POINTER)),
    "bough_rotary_store": (None, (_POINTER, _POINTER)),
    "bough_rows_finite": (None, (_POINTER, _POINTER)),
    "bough_attention": (_INT32, (_POINTER, _POINTER, _INT64, _INT64)),
    "bough_sample_scratch_bytes": (_INT64, (_INT64, _INT32)),
    "bough_sample": (None, (_POINTER, _POINTER)),
    "bough_program_create": (_POINTER, (_POINTER, _POINTER)),
    "bough_program_destroy": (None, (_POINTER,)),
    "bough_program_packed_embedding": (_INT32, (_POINTER, _POINTER, _POINTER, _INT64)),
    "bough_program_embedding": (_INT32, (_POINTER, _POINTER)),
    "bough_program_rotary_table": (_INT32, (_POINTER, _POINTER)),
    "bough_program_norm": (_INT32, (_POINTER, _POINTER)),
    "bough_program_gemm": (_INT32, (_POINTER, _POINTER)),
    "bough_program_rotary_store": (_INT32, (_POINTER, _POINTER)),
    "bough_program_attention": (_INT32, (_POINTER, _POINTER)),
    "bough_program_finish": (None, (_POINTER, _POINTER, _POINTER)),
    "bough_program_run": (_INT32, (_POINTER, _POINTER)),
}


class Isa(IntEnum):
    """Instruction sets, ascending; each includes those before it."""

    PORTABLE = 0
    AVX2 = 1
    AVX512 = 2
    AVX512BF16 = 3


class LibraryMissing(Exception):
    """There is no library to load; the text says why and what to do."""


@cache
def load_library() -> ctypes.CDLL:
    """The library, its functions declared.

    Raises:
        LibraryMissing: if it was not built, or not from the sources that this package belongs to.
    """
    if not LIBRARY_FILE.is_file():
        raise LibraryMissing(
            "the native CPU kernels were not built; install a C++ compiler (g++ or clang++) and Bough again"
        )
    try:
        library = ctypes.CDLL(str(LIBRARY_FILE))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise LibraryMissing(f"they cannot be loaded ({error}); install Bough again") from None
    for index, structure in enumerate(structures.SHARED):
        if library.bough_structure_size(index) != ctypes.sizeof(structure):
            raise LibraryMissing("they are those of another version; install Bough again")
    return library


def best_isa() -> Isa:
    """The best instruction set of this machine that the kernels know."""
    return Isa(load_library().bough_best_isa())


def current_isa() -> Isa:
    """The instruction set in use."""
    return Isa(load_library().bough_current_isa())


def set_isa(isa: Isa) -> bool:
    """Use another instruction set, for tests; false, changing nothing, if this machine lacks it."""
    return bool(load_library().bough_set_isa(isa))
