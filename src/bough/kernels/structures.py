"""The structures of ``csrc/*.h``, field by field. The headers say what each field means."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

_INT32 = ctypes.c_int32
_INT64 = ctypes.c_int64
_FLOAT = ctypes.c_float
_POINTER = ctypes.c_void_p


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of an array's elements, for the field of a structure; the owner of that keeps the array."""
    address: int = array.__array_interface__["data"][0]
    return address


class DType(IntEnum):
    """Of elements in memory."""

    F32 = 0
    BF16 = 1
    I8 = 2
    I4 = 3
    U4 = 4


class PanelLayout(IntEnum):
    """Order of a packed matrix's columns."""

    PLAIN = 0
    GATED = 1


class Epilogue(IntEnum):
    """What becomes of a product."""

    STORE = 0
    ADD = 1
    SILU_MUL = 2
    CHOOSE = 3


class PackedMatrix(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = (
        ("panels", _POINTER),
        ("bias", _POINTER),
        ("num_outputs", _INT64),
        ("num_inputs", _INT64),
        ("dtype", _INT32),
        ("layout", _INT32),
    )


class GemmCall(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = (
        ("input", _POINTER),
        ("input_stride", _INT64),
        ("num_rows", _INT64),
        ("weights", PackedMatrix),
        ("epilogue", _INT32),
        ("output", _POINTER),
        ("output_stride", _INT64),
        ("output_dtype", _INT32),
        ("num_choices", _INT64),
        ("choices", _POINTER),
        ("scratch", _POINTER),
        ("allowed", _POINTER),
    )


class QuantizeCall(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = (
        ("input", _POINTER),
        ("input_stride", _INT64),
        ("num_rows", _INT64),
        ("size", _INT64),
        ("output", _POINTER),
        ("output_stride", _INT64),
        ("weights", _INT32),
    )


class Choice(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = (("value", _FLOAT), ("column", _INT32), ("finite", _INT32))


class StepRows(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("num_rows", _INT32),
        ("req_slots", _POINTER),
        ("prefix_lens", _POINTER),
        ("extend_lens", _POINTER),
        ("first_tokens", _POINTER),
        ("req_to_token", _POINTER),
        ("table_stride", _INT64),
    )


class KVLayer(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("keys", _POINTER),
        ("values", _POINTER),
        ("key_scales", _POINTER),
        ("value_scales", _POINTER),
        ("dtype", _INT32),
    )


class AttentionShape(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("num_heads", _INT32),
        ("num_kv_heads", _INT32),
        ("head_dim", _INT32),
        ("window", _INT32),
        ("scale", _FLOAT),
    )


class AttentionCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("shape", AttentionShape),
        ("rows", StepRows),
        ("kv", KVLayer),
        ("queries", _POINTER),
        ("query_stride", _INT64),
        ("output", _POINTER),
        ("output_stride", _INT64),
        ("output_dtype", _INT32),
        ("plan", _POINTER),
        ("scratch", _POINTER),
    )


class NormCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("input", _POINTER),
        ("input_stride", _INT64),
        ("row_ids", _POINTER),
        ("weight", _POINTER),
        ("weight_dtype", _INT32),
        ("eps", _FLOAT),
        ("output", _POINTER),
        ("output_stride", _INT64),
        ("output_dtype", _INT32),
        ("num_rows", _INT64),
        ("size", _INT64),
    )


class EmbeddingCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("table", _POINTER),
        ("table_dtype", _INT32),
        ("size", _INT64),
        ("ids", _POINTER),
        ("num_tokens", _INT64),
        ("output", _POINTER),
        ("output_stride", _INT64),
    )


class RotaryTableCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("inv_freq", _POINTER),
        ("half_dim", _INT32),
        ("attention_scaling", _FLOAT),
        ("positions", _POINTER),
        ("num_tokens", _INT64),
        ("output", _POINTER),
    )


class RotaryStoreCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("qkv", _POINTER),
        ("qkv_stride", _INT64),
        ("num_tokens", _INT64),
        ("num_heads", _INT32),
        ("num_kv_heads", _INT32),
        ("head_dim", _INT32),
        ("half_dim", _INT32),
        ("cos_sin", _POINTER),
        ("q_norm", _POINTER),
        ("k_norm", _POINTER),
        ("norm_dtype", _INT32),
        ("eps", _FLOAT),
        ("out_slots", _POINTER),
        ("kv", KVLayer),
    )


class FiniteCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("input", _POINTER),
        ("input_stride", _INT64),
        ("row_ids", _POINTER),
        ("finite", _POINTER),
        ("num_rows", _INT64),
        ("size", _INT64),
    )


REPEATED = 1 << 18
"""Value of ``kRepeated`` in ``kernels.h``."""


class SampleRow(ctypes.Structure):
    """``kernels.h``. Addresses are those of memory that the caller keeps."""

    _fields_ = (
        ("logits_row", _INT64),
        ("random", _INT32),
        ("inverse_temperature", _FLOAT),
        ("uniform", ctypes.c_double),
        ("top_p", ctypes.c_double),
        ("top_k", ctypes.c_double),
        ("log_min_p", _FLOAT),
        ("frequency_penalty", _FLOAT),
        ("presence_penalty", _FLOAT),
        ("repetition_penalty", _FLOAT),
        ("num_history", _INT32),
        ("scoped", _INT32),
        ("history", ctypes.c_uint64),
        ("counts", ctypes.c_uint64),
        ("num_edits", _INT32),
        ("edit_ids", ctypes.c_uint64),
        ("edit_addends", ctypes.c_uint64),
        ("allowed", ctypes.c_uint64),
    )


class SampleCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("logits", _POINTER),
        ("logits_stride", _INT64),
        ("vocab_size", _INT64),
        ("rows", _POINTER),
        ("num_rows", _INT64),
        ("tokens", _POINTER),
        ("finite", _POINTER),
        ("scratch", _POINTER),
    )


class LogprobCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = (
        ("logits", _POINTER),
        ("logits_stride", _INT64),
        ("vocab_size", _INT64),
        ("num_rows", _INT64),
        ("logits_rows", _POINTER),
        ("scales", _POINTER),
        ("targets", _POINTER),
        ("top_n", _INT64),
        ("chosen", _POINTER),
        ("chosen_stride", _INT64),
        ("num_chosen", _INT64),
        ("targets_read", _POINTER),
        ("top_read", _POINTER),
        ("top_ids", _POINTER),
        ("top_keys", _POINTER),
        ("chosen_read", _POINTER),
    )


class ProgramLimits(ctypes.Structure):
    """``program.h``"""

    _fields_ = (
        ("max_tokens", _INT64),
        ("max_rows", _INT64),
        ("max_context", _INT64),
        ("vocab_size", _INT64),
        ("num_slots", _INT64),
    )


class Step(ctypes.Structure):
    """``program.h``"""

    _fields_ = (
        ("num_rows", _INT64),
        ("req_slots", _POINTER),
        ("prefix_lens", _POINTER),
        ("extend_lens", _POINTER),
        ("input_ids", _POINTER),
        ("out_slots", _POINTER),
        ("wanted", _POINTER),
        ("req_to_token", _POINTER),
        ("table_stride", _INT64),
        ("last_tokens", _POINTER),
        ("next_tokens", _POINTER),
        ("finite", _POINTER),
        ("logits", _POINTER),
        ("hidden_states", _POINTER),
        ("allowed", _POINTER),
        ("masks_ready", _POINTER),
    )


class DecodeRun(ctypes.Structure):
    """``program.h``"""

    _fields_ = (
        ("num_steps", _INT64),
        ("max_at_once", _INT64),
        ("num_outputs", _POINTER),
        ("draws", _POINTER),
        ("history_size", _INT64),
        ("sampling_scratch", _POINTER),
        ("logprobs", _POINTER),
        ("is_end", _POINTER),
        ("checks_end", _POINTER),
        ("descriptors", _POINTER),
        ("num_descriptors", _INT64),
        ("seconds", ctypes.c_double),
        ("begin", ctypes.c_double),
        ("num_done", _INT64),
        ("has_ended", ctypes.c_int32),
    )


_SHARED = (
    PackedMatrix,
    GemmCall,
    Choice,
    AttentionCall,
    NormCall,
    EmbeddingCall,
    RotaryTableCall,
    RotaryStoreCall,
    ProgramLimits,
    Step,
    FiniteCall,
    SampleCall,
    QuantizeCall,
    SampleRow,
    LogprobCall,
    DecodeRun,
)

SHARED_SIZES = tuple(map(ctypes.sizeof, _SHARED))
"""Bytes of each structure, in the order in which the library reports them: one of another version is not used."""
