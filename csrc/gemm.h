// Matrix products with packed weights: output = epilogue(input · weightsᵀ).
//
// Weights are packed once, when they are loaded, into panels of 32 output columns, and decoding and prompts read the
// same panels: [num_panels][num_units][32 columns] words of 32 bits, where a unit is what 32 bits hold of a column's
// inputs (one float32, two bfloat16, four int8). Missing columns and inputs are zeros.
//
// Quantised weights come in groups of 32 inputs that share a scale in half precision, so that single channels that are
// much larger than others do not cost the others' precision. Inputs are int8, in the same groups.
//
//   i8  codes from -128 to 127. A group of a panel is [8 units][32 columns]
//       words of code + 128, and 32 scales.
//   i4  codes from -8 to 7. A group is [8 units][16 columns] words, with code + 8 of columns 0 to 15 in the lower half
//       of each byte and of columns 16 to 31 in the upper one, and 32 scales.
//   u4  codes from 0 to 15, with a number to be added to scale * code: like i4, and behind the scales 32 minimums in
//       half precision.
//   f4  floating point of 4 bits, E2M1 of "OCP Microscaling Formats" v1.0. Arranged as i4. Products are of twice these
//       numbers (kDoubledE2M1), so scales are half of what they would be.
//
// Scales of inputs are made to meet those of weights without multipliers, which have enough to do with the products:
// they are numbers that are added to the bits of floats, in the exponents. Of inputs for 4 bits they are a power of two
// times a factor of the row, which makes them up to twice as coarse as they could be: little beside weights of 4 bits.
// Of inputs for i8 they are the sum or difference of two powers, rarely more than an eighth too coarse, times the
// factor with which a row's groups lose least. Of groups far larger than others, what is left of their numbers comes as
// groups of their own, outliers.
//
// A group of inputs is 8 words of numbers, then what is added to the bits of the weights' scales; then, with u4, the
// sum of the inputs divided by the factor (float32), otherwise -8, -12 (f4) or -128 times the sum of the numbers
// (int32); then,
// for i8, the second power. Behind the groups are the factor, NaN if any input is not finite; the number of outliers;
// and for each of them the index of its group, and a group.
//
// Where multiplying bytes saturates (see gemm_tile_pairs.h) a multiplier is free, and has the scale of a group of
// inputs as a float in place of the first power; the second one is not read. What products start from, but with u4, is
// two int16 in one word there: -8, or -12, times the sums of the first two numbers of each unit and of the last two.
//
// One accumulator per output element runs over all inputs in ascending order (of bfloat16 with AMX over sums of 32
// each), in every tile and with every number of threads: an element's value depends on its own row and column alone.
// Sums are in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels.h"

namespace bough {

constexpr int64_t kPanelColumns = 32;

constexpr int64_t kGroupInputs = 32;
constexpr int64_t kGroupUnits = kGroupInputs / 4;

// Scales of weights are stored times this, which makes them normal numbers of half precision, those of inputs divided.
constexpr float kScaleFactor = 1024.0F;

enum PanelLayout : int32_t {
    kPlain = 0,
    kGated = 1,  // a panel holds 16 gates and the 16 values that they gate; outputs are gates first, then values
};

struct PackedMatrix {
    void* panels;       // 64-byte aligned
    const float* bias;  // [num_panels * 32] in the order of the panels' columns; null: none
    int64_t num_outputs;
    int64_t num_inputs;
    DType dtype;  // says what the input is, too
    PanelLayout layout;
};

// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

inline int64_t num_panels(const PackedMatrix& matrix) {
    if (matrix.layout == kGated) return (matrix.num_outputs / 2 + 15) / 16;
    return (matrix.num_outputs + kPanelColumns - 1) / kPanelColumns;
}

inline int64_t num_groups(const PackedMatrix& matrix) { return (matrix.num_inputs + kGroupInputs - 1) / kGroupInputs; }

constexpr bool has_4_bits(DType dtype) { return dtype == DType::i4 || dtype == DType::u4 || dtype == DType::f4; }
constexpr bool is_quantized(DType dtype) { return dtype == DType::i8 || has_4_bits(dtype); }

// Offset added to make codes unsigned, where products subtract it.
constexpr int32_t code_offset(DType dtype) { return dtype == DType::i8 ? 128 : dtype == DType::f4 ? 12 : 8; }

// Twice the numbers that stand for the codes of f4.
constexpr int8_t kDoubledE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Words of the codes of a panel's group, and of the group.
constexpr int64_t code_words(DType dtype) { return kGroupUnits * (dtype == DType::i8 ? kPanelColumns : 16); }
constexpr int64_t group_words(DType dtype) {
    return code_words(dtype) + (dtype == DType::u4 ? kPanelColumns : kPanelColumns / 2);
}

// Of quantised inputs.
constexpr int64_t input_group_words(DType weights) { return kGroupUnits + (weights == DType::i8 ? 3 : 2); }
constexpr int64_t outlier_words(DType weights) { return input_group_words(weights) + 1; }
constexpr int64_t kMaxOutliers = 8;

// Words of 32 bits that the numbers of a row of inputs take.
inline int64_t num_units(const PackedMatrix& matrix) {
    if (is_quantized(matrix.dtype)) return num_groups(matrix) * kGroupUnits;
    return matrix.dtype == DType::bf16 ? (matrix.num_inputs + 1) / 2 : matrix.num_inputs;
}

// Words of a row of quantised inputs.
inline int64_t quantized_row_words(const PackedMatrix& matrix) {
    return num_groups(matrix) * input_group_words(matrix.dtype) + 2 + kMaxOutliers * outlier_words(matrix.dtype);
}

// Words of the first `units` units of a panel, whole groups if they are quantised.
inline int64_t panel_words(const PackedMatrix& matrix, int64_t units) {
    return is_quantized(matrix.dtype) ? units / kGroupUnits * group_words(matrix.dtype) : units * kPanelColumns;
}

}  // namespace

enum Epilogue : int32_t {
    kStore = 0,  // output = product + bias
    kAdd = 1,    // output (f32) += product + bias
    kGate = 2,  // output = activation(gates) * values; layout kGated; the output has half the columns, rounded up to 16
    kChoose = 3,  // the first rows: their largest allowed element only; the others: output (f32) = product
};

// The largest element of a row of some columns; the first one of several equal ones.
struct Choice {
    float value;
    int32_t column;
    int32_t finite;  // 0 if any of them was NaN or +infinity
};

enum Activation : int32_t {
    kSilu = 0,
    kGeluTanh = 1,      // GELU by its tanh formula (Hendrycks and Gimpel 2016)
    kClampedSwish = 2,  // of gates of at most 7, times 1 plus values between -7 and 7 (gpt-oss)
};

struct GemmCall {
    const void* input;     // [num_rows, input_stride]; an odd last bfloat16 is followed by a zero or any finite number
    int64_t input_stride;  // in elements; of quantised ones in words of 32 bits
    int64_t num_rows;
    PackedMatrix weights;
    Epilogue epilogue;
    void* output;  // [num_rows, output_stride]; kChoose: of the rows after the first num_choices
    int64_t output_stride;
    DType output_dtype;
    int64_t num_choices;
    Choice* choices;  // kChoose: [num_threads, max_choice_pieces, num_choices]
    float* scratch;   // kGemmScratchFloats for each thread, 64-byte aligned
    // kChoose: [num_choices], a bit for each column, lowest first, whose element counts; null, or null for a row: all
    const uint32_t* const* allowed;
    Activation activation;  // kGate
};

// One thread's share of a product: a rectangle of the output, cut into pieces of about equal size. A chunk is a piece
// of the panels and one of the rows; chunks of the same panels follow one another.
struct GemmShare {
    int64_t first_panel, end_panel;
    int64_t first_row, end_row;
    int64_t panel_pieces;
    int64_t row_pieces;
    int64_t piece_rows;  // of each piece of the rows but the last
    int64_t num_chunks() const { return panel_pieces * row_pieces; }
};

// Most rows times panels of a chunk, whose sums are kept until they are committed.
constexpr int64_t kMaxPieceRows = 132, kLeastPieceRows = 64;
constexpr int64_t kChunkRowPanels = 8 * kMaxPieceRows;

// Scratch memory of one thread.
constexpr int64_t kGemmScratchFloats = kChunkRowPanels * kPanelColumns;

// Pieces of a share's panels from which on each costs more than it helps.
constexpr int64_t kManyPieces = 64;

namespace {

// Most pieces that a share's panels are cut into for up to `max_rows` rows.
inline int64_t max_choice_pieces(const PackedMatrix& matrix, int64_t max_rows, int num_threads) {
    const int64_t rows = max_rows < kMaxPieceRows ? max_rows : kMaxPieceRows;
    const int64_t panels = num_panels(matrix) / num_threads + 1;
    const int64_t fitting = kChunkRowPanels / (rows > 0 ? rows : 1);
    const int64_t pieces = kManyPieces + panels / fitting + 1;
    return pieces < panels ? pieces : panels;
}

}  // namespace

// Rows of float32 to int8 as GemmCall takes them for such weights. What is not finite makes the factor of the row
// NaN.
struct QuantizeCall {
    const float* input;  // [num_rows, input_stride]
    int64_t input_stride;
    int64_t num_rows;
    int64_t size;
    uint32_t* output;  // [num_rows, output_stride] words
    int64_t output_stride;
    DType weights;
};

// `compute` leaves the results of a chunk in `scratch`, kGemmScratchFloats, whence `commit` puts them into the output.
// While `compute` runs, inputs may change: what comes of it is wrong then, but stays in the scratch memory.
struct GemmKernels {
    GemmShare (*share)(const GemmCall&, int owner, int num_threads);
    void (*compute)(const GemmCall&, const GemmShare&, int64_t chunk, float* scratch);
    // `choices` [num_choices] of the chunk's piece of panels, of which it sets those of its rows.
    void (*commit)(const GemmCall&, const GemmShare&, int64_t chunk, float* scratch, Choice* choices);
    void (*quantize)(const QuantizeCall&, int part, int num_parts);
};

#ifdef BOUGH_ISA
namespace BOUGH_ISA {
extern const GemmKernels gemm_kernels;
}  // namespace BOUGH_ISA
#endif

}  // namespace bough
