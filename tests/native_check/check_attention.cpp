#include "check.h"

namespace check {

namespace {

// Keys or values [slots, kv_heads, dim] in a pool.
struct Pool {
    std::vector<unsigned char> bytes;
    std::vector<float> scales;  // of i8
    std::vector<float> values;  // what they stand for
};

Pool make_pool(int64_t heads, int64_t dim, DType dtype) {
    Pool pool;
    if (dtype != DType::i8) {
        Stored numbers = stored(normal(heads * dim), dtype);
        pool.bytes = std::move(numbers.bytes);
        pool.values = std::move(numbers.values);
        return pool;
    }
    for (int64_t head = 0; head < heads; ++head) {
        pool.scales.push_back(0.02F + 0.001F * static_cast<float>(head % 7));
        for (int64_t d = 0; d < dim; ++d) {
            const int8_t number = static_cast<int8_t>(pick({-127, 127, between(-127, 127), 0}));
            pool.bytes.push_back(static_cast<unsigned char>(number));
            pool.values.push_back(static_cast<float>(number) * pool.scales.back());
        }
    }
    return pool;
}

}  // namespace

void check_attention(ThreadPool& threads) {
    const int32_t kv_heads = static_cast<int32_t>(between(1, 3));
    const int32_t group = static_cast<int32_t>(pick({1, 2, 4, 7, 13}));
    const int32_t dim = static_cast<int32_t>(pick({1, 8, 33, 37, 64, 80}));
    const int32_t page = static_cast<int32_t>(pick({1, 16}));
    const int32_t window = static_cast<int32_t>(pick({0, 0, 1, 100, 3500}));
    const int32_t heads = kv_heads * group;
    const int64_t num_rows = between(1, 4);
    std::vector<int32_t> prefix, extend, first, req_slots;
    int64_t tokens = 0, longest = 0, slots_used = page;
    for (int64_t row = 0; row < num_rows; ++row) {
        prefix.push_back(static_cast<int32_t>(pick({0, 1, 255, 256, 300, 700, 4000})));
        extend.push_back(static_cast<int32_t>(pick({1, 1, 2, 30})));
        first.push_back(static_cast<int32_t>(tokens));
        req_slots.push_back(static_cast<int32_t>(num_rows - 1 - row));
        tokens += extend.back();
        longest = std::max<int64_t>(longest, prefix.back() + extend.back());
    }
    std::vector<int32_t> table(static_cast<size_t>(num_rows * longest));
    for (int64_t row = 0; row < num_rows; ++row) {
        const int64_t length = prefix[row] + extend[row];
        for (int64_t i = 0; i < length; ++i) table[req_slots[row] * longest + i] = static_cast<int32_t>(slots_used++);
        slots_used = (slots_used + page - 1) / page * page;
    }
    const DType dtype = static_cast<DType>(between(0, 2));
    Pool keys = make_pool(slots_used * kv_heads, dim, dtype), values = make_pool(slots_used * kv_heads, dim, dtype);
    std::vector<float> queries = normal(tokens * heads * dim);
    const DType output_dtype = any_dtype();
    Stored output = zeros(static_cast<int64_t>(queries.size()), output_dtype);
    const int count = threads.num_threads();
    AttentionCall call{};
    const std::vector<float> sinks = normal(heads, 3.0F);
    call.sinks = flip() ? sinks.data() : nullptr;
    call.shape = {heads, kv_heads, dim, window, 1.0F / std::sqrt(static_cast<float>(dim))};
    call.rows = {static_cast<int32_t>(num_rows),
                 req_slots.data(),
                 prefix.data(),
                 extend.data(),
                 first.data(),
                 table.data(),
                 longest};
    call.kv = {keys.bytes.data(), values.bytes.data(), keys.scales.data(), values.scales.data(), dtype};
    call.queries = queries.data();
    call.query_stride = heads * dim;
    call.output = output.data();
    call.output_stride = heads * dim;
    call.output_dtype = output_dtype;
    const size_t plan_bytes = attention_plan_bytes(call.shape, num_rows, tokens, count);
    Aligned<unsigned char> plan(static_cast<int64_t>(plan_bytes));
    Aligned<unsigned char> scratch(static_cast<int64_t>(attention_scratch_bytes(call.shape, longest, count)));
    AttentionPlan* const made = reinterpret_cast<AttentionPlan*>(plan.data());
    attention_plan(made, plan_bytes, call.shape, call.rows, longest, count);
    call.plan = made;
    call.scratch = scratch.data();
    call.scratch_stride = attention_thread_bytes(call.shape);
    threads.reserve(attention_max_items(call.shape, num_rows, tokens, count));
    threads.share([&](Participant& participant) { share_attention(participant, call); });
    // Where bfloat16 is multiplied directly, queries and weights are rounded to it.
    const bool halves = dtype != DType::f32 && current_isa() >= Isa::avx512bf16;
    const double tolerance = halves ? 0.03 : 1e-5;
    for (int64_t row = 0; row < num_rows; ++row) {
        for (int64_t q = 0; q < extend[row]; ++q) {
            const int64_t position = prefix[row] + q;
            const int64_t begin = window > 0 ? std::max<int64_t>(position - window + 1, 0) : 0;
            for (int64_t head = 0; head < heads; ++head) {
                const int64_t at = (first[row] + q) * heads * dim + head * dim;
                std::vector<double> scores, sums(static_cast<size_t>(dim));
                double largest = -1e300, total = 0;
                const auto place = [&](int64_t key) {
                    return (int64_t{table[req_slots[row] * longest + key]} * kv_heads + head / group) * dim;
                };
                for (int64_t key = begin; key <= position; ++key) {
                    double score = 0;
                    for (int64_t d = 0; d < dim; ++d) score += double{queries[at + d]} * keys.values[place(key) + d];
                    scores.push_back(score * call.shape.scale);
                    largest = std::max(largest, scores.back());
                }
                if (call.sinks != nullptr) {
                    largest = std::max(largest, double{sinks[head]});
                    total = std::exp(sinks[head] - largest);
                }
                for (int64_t key = begin; key <= position; ++key) {
                    const double weight = std::exp(scores[key - begin] - largest);
                    total += weight;
                    for (int64_t d = 0; d < dim; ++d) sums[d] += weight * values.values[place(key) + d];
                }
                for (int64_t d = 0; d < dim; ++d) {
                    const double wanted = sums[d] / total;
                    const double rounded = rounding(output_dtype) * std::fabs(wanted);
                    expect_near(output.at(at + d), wanted, 3 * tolerance + rounded, "attention");
                }
            }
        }
    }
}

}  // namespace check
