// The C interface of single kernels, run by all threads of a pool.
#include <memory>
#include <new>

#include "api.h"
#include "isa.h"
#include "kernels.h"
#include "thread_pool.h"

using namespace bough;

// --- sampling ----------------------------------------------------------------------------------------------------

BOUGH_API int64_t bough_sample_scratch_bytes(int64_t vocab_size, int32_t num_threads) {
    return static_cast<int64_t>(sample_scratch_bytes(vocab_size, num_threads));
}
BOUGH_API void bough_sample(ThreadPool* pool, const SampleCall* call) {
    pool->run([&](int thread, int threads) { kernels().sampling.sample(*call, thread, threads); });
}

// --- element-wise ------------------------------------------------------------------------------------------------

BOUGH_API void bough_rms_norm(ThreadPool* pool, const NormCall* call) {
    pool->run([&](int thread, int threads) { kernels().elementwise.rms_norm(*call, thread, threads); });
}
BOUGH_API void bough_embedding(ThreadPool* pool, const EmbeddingCall* call) {
    pool->run([&](int thread, int threads) { kernels().elementwise.embedding(*call, thread, threads); });
}
BOUGH_API void bough_rotary_table(ThreadPool* pool, const RotaryTableCall* call) {
    pool->run([&](int thread, int threads) { kernels().elementwise.rotary_table(*call, thread, threads); });
}
BOUGH_API void bough_rotary_store(ThreadPool* pool, const RotaryStoreCall* call) {
    pool->run([&](int thread, int threads) { kernels().elementwise.rotary_store(*call, thread, threads); });
}
BOUGH_API void bough_rows_finite(ThreadPool* pool, const FiniteCall* call) {
    pool->run([&](int thread, int threads) { kernels().elementwise.rows_finite(*call, thread, threads); });
}

// --- attention ---------------------------------------------------------------------------------------------------

// One layer's attention, `plan` and `scratch` of the call excepted: unlike a program, this plans and allocates.
// `num_tokens` new tokens, none at position `max_context` or behind. Returns 0 if there is no memory left.
BOUGH_API int32_t bough_attention(ThreadPool* pool, const AttentionCall* call, int64_t num_tokens,
                                  int64_t max_context) {
    const AttentionShape& shape = call->shape;
    const int threads = pool->num_threads();
    const size_t plan_bytes = attention_plan_bytes(shape, call->rows.num_rows, num_tokens, max_context, threads);
    const size_t scratch_bytes = attention_scratch_bytes(shape, max_context, threads);
    constexpr size_t kAlignment = 64;
    std::unique_ptr<uint64_t[]> plan(new (std::nothrow) uint64_t[plan_bytes / 8 + 1]);
    std::unique_ptr<unsigned char[]> scratch(new (std::nothrow) unsigned char[scratch_bytes + kAlignment]);
    if (!plan || !scratch) return 0;
    AttentionCall planned = *call;
    AttentionPlan* const made = reinterpret_cast<AttentionPlan*>(plan.get());
    planned.plan = made;
    const uintptr_t start = reinterpret_cast<uintptr_t>(scratch.get());
    planned.scratch = reinterpret_cast<void*>((start + kAlignment - 1) / kAlignment * kAlignment);
    if (!attention_plan(made, plan_bytes, shape, call->rows, max_context, threads)) return 0;
    pool->run([&](int thread, int num_threads) {
        kernels().attention.attention(planned, thread, num_threads);
        if (!attention_needs_merge(made)) return;
        pool->barrier();
        kernels().attention.merge(planned, thread, num_threads);
    });
    return 1;
}
