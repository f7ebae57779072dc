// Putting weights into panels, and reading them back. Rows of the unpacked matrix are output columns of the product.
#pragma once

#include "gemm.h"

namespace bough {

// Words of 32 bits that a matrix takes, padding included; it must start out as zeros.
int64_t packed_words(const PackedMatrix& matrix);

// Thread `thread` packs its share of rows [first_row, first_row + num_rows), given densely in the matrix's dtype, for
// int8 in float32.
void pack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, const void* rows, int thread,
               int num_threads);

// The inverse.
void unpack_rows(const PackedMatrix& matrix, int64_t first_row, int64_t num_rows, void* rows, int thread,
                 int num_threads);

// Where the packed order has the bias of row `row`.
int64_t packed_column(const PackedMatrix& matrix, int64_t row);

// Embedding look-up in a packed table: output [num_tokens, output_stride] in float32.
void embed(const PackedMatrix& table, const int32_t* ids, int64_t num_tokens, float* output, int64_t output_stride,
           int thread, int num_threads);

}  // namespace bough
