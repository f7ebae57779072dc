// The C interface of single kernels, run by all threads of a pool.
#include <memory>

#include "api.h"
#include "isa.h"
#include "kernels.h"
#include "thread_pool.h"
#include "works.h"

using namespace bough;

template <class Kernel>
static Status run_on(ThreadPool* pool, Kernel&& kernel) {
    return guarded([&] { pool->run(kernel); });
}

// --- sampling ----------------------------------------------------------------------------------------------------

BOUGH_API int64_t bough_sample_scratch_bytes(int64_t vocab_size, int32_t num_threads) {
    return static_cast<int64_t>(sample_scratch_bytes(vocab_size, num_threads));
}
BOUGH_API Status bough_sample(ThreadPool* pool, const SampleCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().sampling.sample(*call, thread, threads, thread); });
}

// --- log-probabilities -------------------------------------------------------------------------------------------

BOUGH_API Status bough_logprobs(ThreadPool* pool, const LogprobCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().logprobs.logprobs(*call, thread, threads); });
}

// --- element-wise ------------------------------------------------------------------------------------------------

BOUGH_API Status bough_rms_norm(ThreadPool* pool, const NormCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().elementwise.rms_norm(*call, thread, threads); });
}
BOUGH_API Status bough_embedding(ThreadPool* pool, const EmbeddingCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().elementwise.embedding(*call, thread, threads); });
}
BOUGH_API Status bough_rotary_table(ThreadPool* pool, const RotaryTableCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().elementwise.rotary_table(*call, thread, threads); });
}
BOUGH_API Status bough_rotary_store(ThreadPool* pool, const RotaryStoreCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().elementwise.rotary_store(*call, thread, threads); });
}
BOUGH_API Status bough_rows_finite(ThreadPool* pool, const FiniteCall* call) {
    return run_on(pool, [&](int thread, int threads) { kernels().elementwise.rows_finite(*call, thread, threads); });
}

// --- attention ---------------------------------------------------------------------------------------------------

// One layer's attention, `plan` and `scratch` of the call excepted: unlike a program, this plans and allocates.
// `num_tokens` new tokens, none at position `max_context` or behind.
BOUGH_API Status bough_attention(ThreadPool* pool, const AttentionCall* call, int64_t num_tokens, int64_t max_context) {
    return guarded([&] {
        const AttentionShape& shape = call->shape;
        const int threads = pool->num_threads();
        const size_t plan_bytes = attention_plan_bytes(shape, call->rows.num_rows, num_tokens, threads);
        const size_t scratch_bytes = attention_scratch_bytes(shape, max_context, threads);
        constexpr size_t kAlignment = 64;
        // Not zeroed, unlike those of a vector.
        std::unique_ptr<uint64_t[]> plan(new uint64_t[plan_bytes / 8 + 1]);
        std::unique_ptr<unsigned char[]> scratch(new unsigned char[scratch_bytes + kAlignment]);
        AttentionPlan* const made = reinterpret_cast<AttentionPlan*>(plan.get());
        const uintptr_t start = reinterpret_cast<uintptr_t>(scratch.get());
        AttentionCall planned = *call;
        planned.plan = made;
        planned.scratch = reinterpret_cast<void*>((start + kAlignment - 1) / kAlignment * kAlignment);
        planned.scratch_stride = attention_thread_bytes(shape);
        attention_plan(made, plan_bytes, shape, call->rows, max_context, threads);
        pool->reserve(attention_max_items(shape, call->rows.num_rows, num_tokens, threads));
        pool->share([&](Participant& participant) { share_attention(participant, planned); });
    });
}
