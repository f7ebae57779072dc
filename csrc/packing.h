// Putting weights into panels, and reading them back. Rows of the unpacked matrix are output columns of the product.
#pragma once

#include "gemm.h"

namespace bough {

// Words of 32 bits that a matrix takes, padding included; it must start out as zeros.
int64_t packed_words(const PackedMatrix& matrix);

// Touches, without changing it, what thread `thread` reads of the panels in products of few rows. Where processors have
// memory of their own, the system puts a page into that of the thread which is the first to write there.
void place_panels(const PackedMatrix& matrix, int thread, int num_threads);

// Thread `thread` packs its share of rows [first_row, first_row + num_rows), given densely in the matrix's dtype, which
// is not quantised.
void pack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
               int num_threads);

// Those of an instruction set that pack rows of a quantised matrix, in the same way as pack_rows. All sets give the
// same codes.
struct PackingKernels {
    // Rows in float32 or bfloat16, for matrices in anything but f4, which only takes codes.
    void (*quantize_rows)(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows,
                          DType rows_dtype, int thread, int num_threads);
    // Rows that are quantised already: codes [num_rows, num_inputs], scales and minimums [num_rows, num_groups]. Null
    // minimums: codes are signed; u4 then takes those of 4 bits, and f4 twice the numbers of E2M1. Not null: codes are
    // from 0 to 15, for u4 only.
    void (*pack_codes)(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const int8_t* codes,
                       const float* scales, const float* minimums, int thread, int num_threads);
};

// Numbers of 16 or 32 bits, floating point of any kind.
struct FloatRows {
    const void* numbers;  // [num_rows, stride], of which `size` of each row count
    int64_t num_rows;
    int64_t size;
    int64_t stride;
    int64_t bytes;  // of a number
};

// The bits of the largest magnitude in the share of thread `thread`; those of infinity and NaN are larger than all
// others. Zero of no numbers.
uint32_t largest_magnitude(const FloatRows& rows, int thread, int num_threads);

// The inverse of packing; rows of quantised weights are float32.
void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads);

// Where the packed order has the bias of row `row`.
int64_t packed_column(const PackedMatrix& matrix, int64_t row);

// Embedding look-up in a packed table whose first row is that of token `first_id`, times `scale`: output [num_tokens,
// output_stride] in float32. Rows of tokens that the table does not have are left as they are.
void embed(const PackedMatrix& table, int64_t first_id, const int32_t* ids, int64_t num_tokens, float scale,
           float* output, int64_t output_stride, int thread, int num_threads);

}  // namespace bough
