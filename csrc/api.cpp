// The C interface of the runtime: instruction sets, packed weights, threads, programs. Functions of one object must
// not be called at the same time, but for a pool's: see thread_pool.h.
#include "api.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "gemm.h"
#include "group.h"
#include "isa.h"
#include "packing.h"
#include "program.h"
#include "thread_pool.h"
#include "works.h"

using namespace bough;

namespace {

thread_local char last_error[256];

}  // namespace

void bough::remember_error(const char* text) noexcept { std::snprintf(last_error, sizeof last_error, "%s", text); }

// Why a function of this thread failed last.
BOUGH_API const char* bough_error() { return last_error; }

// SHA-256 of the sources, as setup.py and library.py compute it: a library that was built from others is not used.
BOUGH_API const char* bough_sources() { return BOUGH_SOURCES; }

BOUGH_API int32_t bough_machine_isa() { return static_cast<int32_t>(machine_isa()); }
BOUGH_API int32_t bough_best_isa() { return static_cast<int32_t>(best_isa()); }
BOUGH_API int32_t bough_current_isa() { return static_cast<int32_t>(current_isa()); }
BOUGH_API int32_t bough_set_isa(int32_t isa) { return set_isa(static_cast<Isa>(isa)) ? 1 : 0; }

// --- threads -----------------------------------------------------------------------------------------------------

BOUGH_API Status bough_pool_create(int32_t num_threads, ThreadPool** pool) {
    return guarded([&] { *pool = new ThreadPool(num_threads); });
}
BOUGH_API void bough_pool_expect_run(ThreadPool* pool) { pool->expect_run(); }

// ids[thread] = what the system calls each thread of the pool, the calling one first.
BOUGH_API Status bough_pool_thread_ids(ThreadPool* pool, int32_t* ids) {
    return guarded(
        [&] { pool->run([&](int thread, int) { ids[thread] = static_cast<int32_t>(syscall(SYS_gettid)); }); });
}
// What its threads have done since it was made: runs of shared operations; other threads that took part in them; chunks
// that were not computed by the thread they belong to; parts of chunks that were computed again, as the thread at work
// had lost its core; parts that were computed for nothing.
BOUGH_API void bough_pool_counts(const ThreadPool* pool, int64_t* counts) {
    counts[0] = pool->num_shared_runs();
    counts[1] = pool->num_joined();
    counts[2] = pool->counts().stolen.load(std::memory_order_relaxed);
    counts[3] = pool->counts().recomputed.load(std::memory_order_relaxed);
    counts[4] = pool->counts().dropped.load(std::memory_order_relaxed);
}
BOUGH_API void bough_pool_destroy(ThreadPool* pool) { ThreadPool::destroy(pool); }

// --- packed weights ----------------------------------------------------------------------------------------------

BOUGH_API int64_t bough_packed_words(const PackedMatrix* matrix) { return packed_words(*matrix); }

// Words of a row of inputs that are quantised for such weights.
BOUGH_API int64_t bough_quantized_row_words(const PackedMatrix* matrix) { return quantized_row_words(*matrix); }
// columns[row] = where the packed order has the bias of each row.
BOUGH_API void bough_packed_columns(const PackedMatrix* matrix, int64_t* columns) {
    for (int64_t row = 0; row < matrix->num_outputs; ++row) columns[row] = packed_column(*matrix, row);
}
BOUGH_API Status bough_place_panels(ThreadPool* pool, const PackedMatrix* matrix) {
    return guarded([&] { pool->run([&](int thread, int threads) { place_panels(*matrix, thread, threads); }); });
}
// Rows in the matrix's dtype or, where it is quantised, in float32 or bfloat16.
BOUGH_API Status bough_pack_rows(ThreadPool* pool, const PackedMatrix* matrix, int64_t first_row, int64_t num_rows,
                                 const void* rows, int32_t rows_dtype) {
    return guarded([&] {
        const DType dtype = static_cast<DType>(rows_dtype);
        if (matrix->dtype == DType::f4) throw std::invalid_argument("a matrix in E2M1 takes codes only");
        if (is_quantized(matrix->dtype) && dtype != DType::f32 && dtype != DType::bf16) {
            throw std::invalid_argument("rows to quantise are neither float32 nor bfloat16");
        }
        pool->run([&](int thread, int threads) {
            if (is_quantized(matrix->dtype)) {
                kernels().packing.quantize_rows(*matrix, first_row, num_rows, rows, dtype, thread, threads);
            } else {
                pack_rows(*matrix, first_row, num_rows, rows, thread, threads);
            }
        });
    });
}
// Rows that are quantised already, in groups of 32 inputs: see packing.h.
BOUGH_API Status bough_pack_codes(ThreadPool* pool, const PackedMatrix* matrix, int64_t first_row, int64_t num_rows,
                                  const int8_t* codes, const float* scales, const float* minimums) {
    return guarded([&] {
        pool->run([&](int thread, int threads) {
            kernels().packing.pack_codes(*matrix, first_row, num_rows, codes, scales, minimums, thread, threads);
        });
    });
}
BOUGH_API Status bough_unpack_rows(ThreadPool* pool, const PackedMatrix* matrix, int64_t first_row, int64_t num_rows,
                                   void* rows) {
    return guarded([&] {
        pool->run([&](int thread, int threads) { unpack_rows(*matrix, first_row, num_rows, rows, thread, threads); });
    });
}
// Bits of the largest magnitude of all numbers.
BOUGH_API Status bough_largest(ThreadPool* pool, const FloatRows* rows, uint32_t* largest) {
    return guarded([&] {
        std::vector<uint32_t> found(pool->num_threads());
        pool->run([&](int thread, int threads) { found[thread] = largest_magnitude(*rows, thread, threads); });
        *largest = *std::max_element(found.begin(), found.end());
    });
}
BOUGH_API Status bough_embed(ThreadPool* pool, const PackedMatrix* table, const int32_t* ids, int64_t num_tokens,
                             float* output, int64_t output_stride) {
    return guarded([&] {
        pool->run([&](int thread, int threads) {
            embed(*table, 0, ids, num_tokens, 1.0F, output, output_stride, thread, threads);
        });
    });
}

// A single product; for quantised weights the input is float32, and choices are [num_choices]. Unlike a program it
// allocates its scratch memory.
BOUGH_API Status bough_gemm(ThreadPool* pool, const GemmCall* call) {
    return guarded([&] {
        // Not zeroed, unlike vectors.
        const int num_threads = pool->num_threads();
        constexpr uintptr_t kAlignment = 64;
        std::unique_ptr<float[]> scratch(new float[num_threads * kGemmScratchFloats + kAlignment / sizeof(float)]);
        std::unique_ptr<uint32_t[]> bytes;
        GemmCall complete = *call;
        const uintptr_t start = reinterpret_cast<uintptr_t>(scratch.get());
        complete.scratch = reinterpret_cast<float*>((start + kAlignment - 1) / kAlignment * kAlignment);
        pool->reserve(ProductWork::max_chunks(call->weights, call->num_rows, num_threads));
        QuantizeCall quantize{};
        const bool quantized = is_quantized(call->weights.dtype);
        if (quantized) {
            const int64_t words = quantized_row_words(call->weights);
            bytes.reset(new uint32_t[call->num_rows * words]);
            quantize = {static_cast<const float*>(call->input),
                        call->input_stride,
                        call->num_rows,
                        call->weights.num_inputs,
                        bytes.get(),
                        words,
                        call->weights.dtype};
            complete.input = bytes.get();
            complete.input_stride = words;
        }
        std::vector<Choice> choices;
        if (call->epilogue == kChoose) {
            choices.resize(num_threads * max_choice_pieces(call->weights, call->num_rows, num_threads) *
                           call->num_choices);
            complete.choices = choices.data();
        }
        pool->share([&](Participant& participant) {
            if (quantized) {
                share_rows(participant, quantize.num_rows, quantize.size,
                           [&](int part, int parts, int) { kernels().gemm.quantize(quantize, part, parts); });
            }
            participant.share(ProductWork(num_threads, &complete, 1));
        });
        for (int64_t row = 0; row < call->num_choices; ++row) {
            call->choices[row] = best_choice(complete, row, num_threads);
        }
    });
}

// Reads memory once, all threads together, for benchmarks: the fastest that any kernel could get through it.
BOUGH_API Status bough_read(ThreadPool* pool, const int64_t* words, int64_t bytes, int64_t* all) {
    return guarded([&] {
        std::vector<int64_t> totals(pool->num_threads());
        const int64_t count = bytes / 8;
        pool->run([&](int thread, int threads) {
            int64_t total = 0;
            for (int64_t i = count * thread / threads; i < count * (thread + 1) / threads; ++i) total ^= words[i];
            totals[thread] = total;
        });
        *all = 0;
        for (const int64_t each : totals) *all ^= each;
    });
}

// --- programs ----------------------------------------------------------------------------------------------------

// Memory that a program takes for itself, and that its attention takes for each shape.
BOUGH_API int64_t bough_program_bytes(const ProgramLimits* limits, int32_t num_threads) {
    return Program::bytes(*limits, num_threads);
}
BOUGH_API int64_t bough_attention_bytes(const ProgramLimits* limits, const AttentionShape* shape, int32_t num_threads) {
    return Program::attention_bytes(*limits, *shape, num_threads);
}

// With ranks (see group.h), `pieces` is shared memory of bough_piece_bytes; else both are null.
BOUGH_API Status bough_program_create(ThreadPool* pool, const ProgramLimits* limits, Group* group, void* pieces,
                                      Program** program) {
    return guarded([&] { *program = new Program(*pool, *limits, group, pieces); });
}
BOUGH_API void bough_program_destroy(Program* program) { delete program; }

BOUGH_API Status bough_program_packed_embedding(Program* program, const PackedMatrix* table, int64_t first_id,
                                                float scale, float* output, int64_t output_stride) {
    return guarded([&] { program->add_embedding(*table, first_id, scale, output, output_stride); });
}
BOUGH_API Status bough_program_embedding(Program* program, const EmbeddingCall* call) {
    return guarded([&] { program->add(*call); });
}
BOUGH_API Status bough_program_rotary_table(Program* program, const RotaryTableCall* call) {
    return guarded([&] { program->add(*call); });
}
BOUGH_API Status bough_program_norm(Program* program, const NormCall* call) {
    return guarded([&] { program->add(*call); });
}
BOUGH_API Status bough_program_gemm(Program* program, const GemmCall* calls, int64_t count) {
    return guarded([&] { program->add(calls, count); });
}
BOUGH_API Status bough_program_rotary_store(Program* program, const RotaryStoreCall* call) {
    return guarded([&] { program->add(*call); });
}
BOUGH_API Status bough_program_attention(Program* program, const AttentionCall* call) {
    return guarded([&] { program->add(*call); });
}
BOUGH_API Status bough_program_experts(Program* program, const ExpertsCall* call, int32_t stage) {
    return guarded([&] { program->add(*call, static_cast<ExpertsStage>(stage)); });
}
BOUGH_API int64_t bough_experts_plan_bytes(const RoutingKind* routing, int64_t max_rows) {
    return static_cast<int64_t>(experts_plan_bytes(*routing, max_rows));
}
BOUGH_API Status bough_program_quantize(Program* program, const QuantizeCall* calls, int64_t count) {
    return guarded([&] { program->add(calls, count); });
}
BOUGH_API Status bough_program_meet(Program* program, int32_t if_few, int32_t if_more) {
    return guarded([&] { program->add_meeting(if_few != 0, if_more != 0); });
}
// A null head: hidden states are all that can be wanted.
BOUGH_API void bough_program_finish(Program* program, const NormCall* norm, const QuantizeCall* quantize,
                                    const PackedMatrix* head, int64_t first_id) {
    program->finish(*norm, *quantize, head != nullptr ? *head : PackedMatrix{}, first_id);
}
// `error` tells what a step has that the program cannot run, or that a rank was lost.
BOUGH_API Status bough_program_run(Program* program, const Step* step, StepError* error) {
    return guarded([&] { *error = program->run(*step); });
}
BOUGH_API Status bough_program_decode(Program* program, const Step* step, DecodeRun* run, StepError* error) {
    return guarded([&] { *error = program->decode(*step, *run); });
}

BOUGH_API Status bough_program_head(Program* program, const void* states, int64_t num_rows, float* logits,
                                    StepError* error) {
    return guarded([&] { *error = program->compute_head(states, num_rows, logits); });
}
BOUGH_API Status bough_program_follow(Program* program, const Following* following, Arrival* arrival) {
    return guarded([&] { *arrival = program->follow(*following); });
}

// --- ranks -------------------------------------------------------------------------------------------------------

// Shared memory of a group, and of the pieces of its programs.
BOUGH_API int64_t bough_group_bytes() { return Group::bytes(); }
BOUGH_API int64_t bough_piece_bytes(const ProgramLimits* limits, int32_t world) {
    return PieceMemory::bytes(*limits, world);
}
BOUGH_API Status bough_group_create(void* memory, int32_t rank, int32_t world, int32_t crowded, Group** group) {
    return guarded([&] { *group = new Group(memory, rank, world, crowded != 0); });
}
BOUGH_API void bough_group_destroy(Group* group) { delete group; }
BOUGH_API void bough_group_expect(Group* group) { group->expect(); }
BOUGH_API void bough_group_call(Group* group) { group->call(); }
BOUGH_API int64_t bough_group_calls(const Group* group) { return group->calls(); }
BOUGH_API void bough_group_fail(Group* group) { group->fail(); }
BOUGH_API void bough_group_host_time(const Group* group, int32_t rank, int64_t* num_pieces, double* seconds) {
    const Group::HostTime time = group->host_time(rank);
    *num_pieces = time.num_pieces;
    *seconds = time.seconds;
}
BOUGH_API int32_t bough_group_has_failed(const Group* group) { return group->has_failed() ? 1 : 0; }

// For Step::masks_ready: what this thread has written before is there for whoever sees it.
BOUGH_API void bough_set_ready(int32_t* ready) { __atomic_store_n(ready, 1, __ATOMIC_RELEASE); }

// Sizes of the structures that cross this interface, in the order of structures.py.
BOUGH_API int64_t bough_structure_size(int32_t index) {
    constexpr int64_t sizes[] = {
        sizeof(PackedMatrix),  sizeof(GemmCall),      sizeof(Choice),          sizeof(AttentionCall),
        sizeof(NormCall),      sizeof(EmbeddingCall), sizeof(RotaryTableCall), sizeof(RotaryStoreCall),
        sizeof(ProgramLimits), sizeof(Step),          sizeof(FiniteCall),      sizeof(SampleCall),
        sizeof(QuantizeCall),  sizeof(SampleRow),     sizeof(LogprobCall),     sizeof(DecodeRun),
        sizeof(Following),     sizeof(ExpertsCall),   sizeof(FloatRows),
    };
    constexpr int32_t count = sizeof(sizes) / sizeof(sizes[0]);
    return index >= 0 && index < count ? sizes[index] : 0;
}
