// Matrix products with packed weights: output = epilogue(input · weightsᵀ).
//
// Weights are packed once, when they are loaded, into panels of 32 output columns, and decoding and prompts read the
// same panels: [num_panels][num_units][32 columns] words of 32 bits, where a unit is what 32 bits hold of a column's
// inputs (one float32, two bfloat16, four int8). Missing columns and inputs are zeros.
//
// int8 weights come in groups of 32 inputs. A group of a panel is [8 units][32 columns] words, 32 scales (bfloat16) and
// 32 sums of its weights (int16). Inputs are int8 with 128 added, and behind each row's bytes the scales of its groups
// (float32). Scales per group keep single channels that are much larger than others from costing the others' precision.
//
// One accumulator per output element runs over all inputs in ascending order, in every tile and with every number of
// threads: an element's value depends on its own row and column alone. Sums are in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace bough {

constexpr int64_t kPanelColumns = 32;

constexpr int64_t kGroupInputs = 32;
constexpr int64_t kGroupUnits = kGroupInputs / 4;
constexpr int64_t kGroupWords = kGroupUnits * kPanelColumns + kPanelColumns / 2 + kPanelColumns / 2;

enum PanelLayout : int32_t {
    kPlain = 0,
    kGated = 1,  // a panel holds 16 gates and the 16 values that they gate; outputs are gates first, then values
};

struct PackedMatrix {
    void* panels;       // 64-byte aligned
    const float* bias;  // [num_panels * 32] in the order of the panels' columns; null: none
    int64_t num_outputs;
    int64_t num_inputs;
    DType dtype;  // the input's as well
    PanelLayout layout;
};

// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

inline int64_t num_panels(const PackedMatrix& matrix) {
    if (matrix.layout == kGated) return (matrix.num_outputs / 2 + 15) / 16;
    return (matrix.num_outputs + kPanelColumns - 1) / kPanelColumns;
}

inline int64_t num_groups(const PackedMatrix& matrix) { return (matrix.num_inputs + kGroupInputs - 1) / kGroupInputs; }

// Words of 32 bits that the numbers of a row of inputs take.
inline int64_t num_units(const PackedMatrix& matrix) {
    if (matrix.dtype == DType::i8) return num_groups(matrix) * kGroupUnits;
    return matrix.dtype == DType::bf16 ? (matrix.num_inputs + 1) / 2 : matrix.num_inputs;
}

// Words of a row of int8 inputs with its scales.
inline int64_t int8_row_words(const PackedMatrix& matrix) { return num_units(matrix) + num_groups(matrix); }

// Words of the first `units` units of a panel, whole groups of int8.
inline int64_t panel_words(const PackedMatrix& matrix, int64_t units) {
    return matrix.dtype == DType::i8 ? units / kGroupUnits * kGroupWords : units * kPanelColumns;
}

}  // namespace

enum Epilogue : int32_t {
    kStore = 0,    // output = product + bias
    kAdd = 1,      // output (f32) += product + bias
    kSiluMul = 2,  // output = silu(gates) * values; layout kGated; the output has half the columns, rounded up to 16
    kChoose = 3,   // the first rows: their largest element only; the others: output (f32) = product
};

// The largest element of a row of the columns that one thread has; the first one of several equal ones.
struct Choice {
    float value;
    int32_t column;
    int32_t finite;  // 0 if any element was NaN or +infinity
};

struct GemmCall {
    const void* input;     // [num_rows, input_stride]; an odd last bfloat16 is followed by a zero or any finite number
    int64_t input_stride;  // in elements; of int8 in words of 32 bits
    int64_t num_rows;
    PackedMatrix weights;
    Epilogue epilogue;
    void* output;  // [num_rows, output_stride]; kChoose: of the rows after the first num_choices
    int64_t output_stride;
    DType output_dtype;
    int64_t num_choices;
    Choice* choices;  // kChoose: [num_threads, num_choices]
    float* scratch;   // gemm_scratch_floats for each thread
};

// Panels whose sums are kept while long rows of inputs are worked off block by block.
constexpr int64_t kMaxGroupPanels = 8;

namespace {

// Scratch memory of one thread for up to `max_rows` rows, of any matrix.
inline int64_t gemm_scratch_floats(int64_t max_rows) {
    return (max_rows < 16 ? 16 : max_rows) * kMaxGroupPanels * kPanelColumns;
}

}  // namespace

// Rows of float32 to int8 as GemmCall takes it. A group that is not finite gets NaN for a scale.
struct QuantizeCall {
    const float* input;  // [num_rows, input_stride]
    int64_t input_stride;
    int64_t num_rows;
    int64_t size;
    uint32_t* output;  // [num_rows, output_stride] words
    int64_t output_stride;
};

struct GemmKernels {
    void (*gemm)(const GemmCall&, int thread, int num_threads);
    void (*quantize)(const QuantizeCall&, int thread, int num_threads);
};

#ifdef BOUGH_ISA
namespace BOUGH_ISA {
extern const GemmKernels gemm_kernels;
}  // namespace BOUGH_ISA
#endif

}  // namespace bough
