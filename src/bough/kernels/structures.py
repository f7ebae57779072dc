"""The structures of ``csrc/*.h``, field by field. The headers say what each field means."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy.typing as npt

_KINDS: dict[str, type] = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "pointer": ctypes.c_void_p,
    "uint64": ctypes.c_uint64,
}


def declared(members: str) -> tuple[tuple[str, type], ...]:
    """Fields of a structure, from declarations such as ``int32 rows, columns; pointer data``, in the header's order.

    A kind is one of :data:`_KINDS`, or a structure of this module for one inside of another.
    """
    fields: list[tuple[str, type]] = []
    for declaration in members.split(";"):
        kind, names = declaration.split(maxsplit=1)
        fields += ((name.strip(), _KINDS.get(kind) or globals()[kind]) for name in names.split(","))
    return tuple(fields)


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
    F4 = 5


class PanelLayout(IntEnum):
    """Order of a packed matrix's columns."""

    PLAIN = 0
    GATED = 1


class Epilogue(IntEnum):
    """What becomes of a product."""

    STORE = 0
    ADD = 1
    GATE = 2
    CHOOSE = 3


class Activation(IntEnum):
    """Function of gates."""

    SILU = 0
    GELU_TANH = 1
    CLAMPED_SWISH = 2


class PackedMatrix(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = declared("pointer panels, bias; int64 num_outputs, num_inputs; int32 dtype, layout")


class GemmCall(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = declared(
        """
        pointer input; int64 input_stride, num_rows; PackedMatrix weights; int32 epilogue; pointer output;
        int64 output_stride; int32 output_dtype; int64 num_choices; pointer choices, scratch, allowed;
        int32 activation
        """
    )


class QuantizeCall(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = declared(
        """
        pointer input; int64 input_stride, num_rows, size; pointer output; int64 output_stride; int32 weights
        """
    )


class Choice(ctypes.Structure):
    """``gemm.h``"""

    _fields_ = declared("float value; int32 column, finite")


class StepRows(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        int32 num_rows; pointer req_slots, prefix_lens, extend_lens, first_tokens, req_to_token; int64 table_stride
        """
    )


class KVLayer(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared("pointer keys, values, key_scales, value_scales; int32 dtype")


class AttentionShape(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared("int32 num_heads, num_kv_heads, head_dim, window; float scale")


class AttentionCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        AttentionShape shape; StepRows rows; KVLayer kv; pointer queries; int64 query_stride; pointer output;
        int64 output_stride; int32 output_dtype; pointer plan, scratch; int64 scratch_stride; pointer sinks
        """
    )


class NormCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer input; int64 input_stride; pointer row_ids, weight; int32 weight_dtype; float eps; pointer output;
        int64 output_stride; int32 output_dtype; int64 num_rows, size; float weight_offset; int32 adds
        """
    )


class EmbeddingCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer table; int32 table_dtype; int64 size; pointer ids; int64 num_tokens; pointer output;
        int64 output_stride; float scale; int64 first_id, num_ids
        """
    )


class RotaryTableCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer inv_freq; int32 half_dim; float attention_scaling; pointer positions; int64 num_tokens;
        pointer output
        """
    )


class RotaryStoreCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer qkv; int64 qkv_stride, num_tokens; int32 num_heads, num_kv_heads, head_dim, half_dim;
        pointer cos_sin, q_norm, k_norm; int32 norm_dtype; float eps; pointer out_slots; KVLayer kv;
        float norm_offset, query_beta; int32 query_period; pointer positions
        """
    )


class FiniteCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared("pointer input; int64 input_stride; pointer row_ids, finite; int64 num_rows, size")


class ExpertScores(IntEnum):
    """Function of a router's products."""

    SOFTMAX = 0
    SIGMOID = 1


class ExpertsStage(IntEnum):
    """Part of the computation of experts, between two meetings of ranks."""

    ROUTE_AND_GATE = 0
    QUANTIZE_GATES = 1
    MULTIPLY_DOWN = 2
    COMBINE = 3


class RoutingKind(ctypes.Structure):
    """``experts.h``"""

    _fields_ = declared(
        """
        int32 num_experts, experts_per_row, scores, renormalised; float scaling;
        int32 num_groups, groups_per_row, group_best
        """
    )


class ExpertsCall(ctypes.Structure):
    """``experts.h``"""

    _fields_ = declared(
        """
        RoutingKind routing; pointer products; int64 products_stride; pointer correction; int64 num_rows;
        pointer input; int64 input_stride; int32 first_expert, end_expert; pointer gate_ups, downs;
        int32 activation, gated_dtype; pointer output; int64 output_stride, size; pointer copies, gated;
        int64 gated_stride; pointer quantized; int64 quantized_stride; pointer results; int64 results_stride;
        pointer shared; int64 shared_stride; pointer shared_products; int64 shared_products_stride;
        pointer loads, record; int64 record_stride; pointer slots, plan, scratch
        """
    )


REPEATED = 1 << 18
"""Value of ``kRepeated`` in ``kernels.h``."""


class SampleRow(ctypes.Structure):
    """``kernels.h``. Addresses are those of memory that the caller keeps."""

    _fields_ = declared(
        """
        int64 logits_row; int32 random; float inverse_temperature; double uniform, top_p, top_k;
        float log_min_p, frequency_penalty, presence_penalty, repetition_penalty; int32 num_history, scoped;
        uint64 history, counts; int32 num_edits; uint64 edit_ids, edit_addends, allowed
        """
    )


class SampleCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer logits; int64 logits_stride, vocab_size; pointer rows; int64 num_rows;
        pointer tokens, finite, scratch
        """
    )


class LogprobCall(ctypes.Structure):
    """``kernels.h``"""

    _fields_ = declared(
        """
        pointer logits; int64 logits_stride, vocab_size, num_rows; pointer logits_rows, scales, targets;
        int64 top_n; pointer chosen; int64 chosen_stride, num_chosen;
        pointer targets_read, top_read, top_ids, top_keys, chosen_read
        """
    )


class ProgramLimits(ctypes.Structure):
    """``program.h``"""

    _fields_ = declared("int64 max_tokens, max_rows, max_context, vocab_size, num_slots")


class Step(ctypes.Structure):
    """``program.h``"""

    _fields_ = declared(
        """
        int64 num_rows; pointer req_slots, prefix_lens, extend_lens, input_ids, out_slots, wanted, req_to_token;
        int64 table_stride; pointer last_tokens, next_tokens, finite, logits, hidden_states, allowed, masks_ready
        """
    )


class DecodeRun(ctypes.Structure):
    """``program.h``"""

    _fields_ = declared(
        """
        int64 num_steps, max_at_once; pointer num_outputs, draws; int64 history_size;
        pointer sampling_scratch, logprobs, is_end, checks_end, descriptors; int64 num_descriptors;
        double seconds, begin; int64 num_done; int32 has_ended
        """
    )


class Following(ctypes.Structure):
    """``program.h``"""

    _fields_ = declared("pointer req_to_token; int64 table_stride; pointer logits; double seconds")


class FloatRows(ctypes.Structure):
    """``packing.h``"""

    _fields_ = declared("pointer numbers; int64 num_rows, size, stride, bytes")


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
    Following,
    ExpertsCall,
    FloatRows,
)

SHARED_SIZES = tuple(map(ctypes.sizeof, _SHARED))
"""Bytes of each structure, in the order in which the library reports them: one of another version is not used."""
