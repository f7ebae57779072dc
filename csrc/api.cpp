// The C interface of the runtime: instruction sets, packed weights, threads, programs. Functions of one object must
// not be called at the same time.
#include "api.h"

#include <new>
#include <vector>

#include "gemm.h"
#include "isa.h"
#include "packing.h"
#include "program.h"
#include "thread_pool.h"

using namespace bough;

BOUGH_API int32_t bough_best_isa() { return static_cast<int32_t>(best_isa()); }
BOUGH_API int32_t bough_current_isa() { return static_cast<int32_t>(current_isa()); }
BOUGH_API int32_t bough_set_isa(int32_t isa) { return set_isa(static_cast<Isa>(isa)) ? 1 : 0; }

// --- threads -----------------------------------------------------------------------------------------------------

// Null if the system has no more threads.
BOUGH_API ThreadPool* bough_pool_create(int32_t num_threads) {
    try {
        return new ThreadPool(num_threads);
    } catch (const std::exception&) {
        return nullptr;
    }
}
BOUGH_API void bough_pool_destroy(ThreadPool* pool) { delete pool; }

// --- packed weights ----------------------------------------------------------------------------------------------

BOUGH_API int64_t bough_packed_words(const PackedMatrix* matrix) { return packed_words(*matrix); }
BOUGH_API int64_t bough_packed_column(const PackedMatrix* matrix, int64_t row) { return packed_column(*matrix, row); }
BOUGH_API void bough_pack_rows(ThreadPool* pool, const PackedMatrix* matrix, int64_t first_row, int64_t num_rows,
                               const void* rows) {
    pool->run([&](int thread, int threads) { pack_rows(*matrix, first_row, num_rows, rows, thread, threads); });
}
BOUGH_API void bough_unpack_rows(ThreadPool* pool, const PackedMatrix* matrix, int64_t first_row, int64_t num_rows,
                                 void* rows) {
    pool->run([&](int thread, int threads) { unpack_rows(*matrix, first_row, num_rows, rows, thread, threads); });
}
BOUGH_API void bough_embed(ThreadPool* pool, const PackedMatrix* table, const int32_t* ids, int64_t num_tokens,
                           float* output, int64_t output_stride) {
    pool->run([&](int thread, int threads) {
        embed(*table, ids, num_tokens, output, output_stride, thread, threads);
    });
}

// A single product. Unlike a program it allocates its scratch memory. Returns 0 if there is none left.
BOUGH_API int32_t bough_gemm(ThreadPool* pool, const GemmCall* call) {
    try {
        std::vector<float> scratch(pool->num_threads() * gemm_scratch_floats(call->num_rows));
        GemmCall with_scratch = *call;
        with_scratch.scratch = scratch.data();
        pool->run([&](int thread, int threads) { kernels().gemm.gemm(with_scratch, thread, threads); });
        return 1;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

// Reads memory once, all threads together, for benchmarks: the fastest that any kernel could get through it.
BOUGH_API int64_t bough_read(ThreadPool* pool, const int64_t* words, int64_t bytes) {
    std::vector<int64_t> totals(pool->num_threads());
    const int64_t count = bytes / 8;
    pool->run([&](int thread, int threads) {
        int64_t total = 0;
        for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) total ^= words[i];
        totals[thread] = total;
    });
    int64_t total = 0;
    for (const int64_t each : totals) total ^= each;
    return total;
}

// --- programs ----------------------------------------------------------------------------------------------------

// Null if there is not enough memory; likewise 0 from the functions that record.
BOUGH_API Program* bough_program_create(ThreadPool* pool, const ProgramLimits* limits) {
    try {
        return new Program(*pool, *limits);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
BOUGH_API void bough_program_destroy(Program* program) { delete program; }

template <class Record>
static int32_t recorded(Record&& record) {
    try {
        record();
        return 1;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

BOUGH_API int32_t bough_program_packed_embedding(Program* program, const PackedMatrix* table, float* output,
                                                 int64_t output_stride) {
    return recorded([&] { program->add_embedding(*table, output, output_stride); });
}
BOUGH_API int32_t bough_program_embedding(Program* program, const EmbeddingCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API int32_t bough_program_rotary_table(Program* program, const RotaryTableCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API int32_t bough_program_norm(Program* program, const NormCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API int32_t bough_program_gemm(Program* program, const GemmCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API int32_t bough_program_rotary_store(Program* program, const RotaryStoreCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API int32_t bough_program_attention(Program* program, const AttentionCall* call) {
    return recorded([&] { program->add(*call); });
}
BOUGH_API void bough_program_finish(Program* program, const NormCall* norm, const PackedMatrix* head) {
    program->finish(*norm, *head);
}
BOUGH_API int32_t bough_program_run(Program* program, const Step* step) {
    return static_cast<int32_t>(program->run(*step));
}

// Sizes of the structures that cross this interface, in the order of structures.py: a library that was built from
// other sources is found out before it does harm.
BOUGH_API int64_t bough_structure_size(int32_t index) {
    constexpr int64_t sizes[] = {
        sizeof(PackedMatrix),  sizeof(GemmCall),        sizeof(Choice),          sizeof(AttentionCall), sizeof(NormCall),
        sizeof(EmbeddingCall), sizeof(RotaryTableCall), sizeof(RotaryStoreCall), sizeof(ProgramLimits), sizeof(Step),
        sizeof(FiniteCall),    sizeof(SampleCall),
    };
    constexpr int32_t count = sizeof(sizes) / sizeof(sizes[0]);
    return index >= 0 && index < count ? sizes[index] : 0;
}
