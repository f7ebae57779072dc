#include "check.h"

namespace check {

namespace {

void check_rotation(ThreadPool& pool) {
    const int32_t dim = static_cast<int32_t>(pick({8, 34, 64, 96})), half = dim / 2, heads = 3, kv_heads = 2;
    const int64_t tokens = between(1, 6), width = (heads + 2 * kv_heads) * dim;
    Stored weight = stored(normal(dim), DType::bf16);
    std::vector<float> qkv = normal(tokens * width);
    const std::vector<float> given = qkv;
    std::vector<float> inv_freq(half), cos_sin(static_cast<size_t>(tokens * 2 * half));
    for (int32_t i = 0; i < half; ++i) inv_freq[i] = std::pow(1e4F, -static_cast<float>(i) / static_cast<float>(half));
    std::vector<int32_t> positions, slots;
    for (int64_t i = 0; i < tokens; ++i) {
        positions.push_back(static_cast<int32_t>(between(0, 1000000)));
        slots.push_back(static_cast<int32_t>(tokens - 1 - i));
    }
    const DType dtype = static_cast<DType>(between(0, 2));
    KVMemory keys(tokens * kv_heads, dim, dtype), values(tokens * kv_heads, dim, dtype);
    RotaryTableCall table{inv_freq.data(), half, 1.0F, positions.data(), tokens, cos_sin.data()};
    RotaryStoreCall store{};
    store.qkv = qkv.data();
    store.qkv_stride = width;
    store.num_tokens = tokens;
    store.num_heads = heads;
    store.num_kv_heads = kv_heads;
    store.head_dim = dim;
    store.half_dim = half;
    store.cos_sin = cos_sin.data();
    store.q_norm = store.k_norm = weight.data();
    store.norm_dtype = DType::bf16;
    store.eps = 1e-6F;
    store.out_slots = slots.data();
    store.kv = {keys.bytes.data(), values.bytes.data(), keys.scales.data(), values.scales.data(), dtype};
    pool.run([&](int thread, int count) { kernels().elementwise.rotary_table(table, thread, count); });
    pool.run([&](int thread, int count) { kernels().elementwise.rotary_store(store, thread, count); });
    for (int64_t token = 0; token < tokens; ++token) {
        for (int64_t head = 0; head < heads + 2 * kv_heads; ++head) {
            const float* x = &given[token * width + head * dim];
            const int64_t kv_head = (head - heads) % kv_heads;
            const bool is_value = head >= heads + kv_heads;
            const KVMemory& pool_of_head = is_value ? values : keys;
            const int64_t index = slots[token] * kv_heads + kv_head;
            const auto found = [&](int32_t i) {
                return head < heads ? qkv[token * width + head * dim + i] : pool_of_head.at(index, i);
            };
            const double error = 1e-5 + (head < heads ? 0 : pool_of_head.rounding_error(index));
            double squares = 0;
            for (int32_t i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
            const double factor = 1 / std::sqrt(squares / dim + 1e-6);
            for (int32_t i = 0; i < half; ++i) {
                const float angle = static_cast<float>(positions[token]) * inv_freq[i];
                const double c = std::cos(double{angle}), s = std::sin(double{angle});
                const double a = x[i] * factor * weight.values[i], b = x[half + i] * factor * weight.values[half + i];
                const double first = is_value ? x[i] : a * c - b * s, second = is_value ? x[half + i] : b * c + a * s;
                const double relative = head >= heads && dtype == DType::bf16 ? rounding(dtype) : 0;
                expect_near(found(i), first, error + relative * std::fabs(first), "rotation, first half");
                expect_near(found(half + i), second, error + relative * std::fabs(second), "rotation, second half");
            }
        }
    }
}

void check_norm(ThreadPool& pool) {
    const int64_t size = pick({1, 17, 896}), rows = between(1, 5), chosen = between(1, rows);
    std::vector<float> x = normal(rows * size);
    const int64_t broken = between(0, rows);  // `rows`: none
    std::vector<int32_t> row_ids;
    for (int64_t i = 0; i < chosen; ++i) row_ids.push_back(static_cast<int32_t>(rows - 1 - i));
    const DType weight_dtype = any_dtype(), output_dtype = any_dtype();
    Stored weight = stored(normal(size), weight_dtype);
    Stored output = zeros(chosen * size, output_dtype);
    const float offset = flip() ? 1.0F : 0.0F;
    const bool adds = output_dtype == DType::f32 && flip();  // to zeros
    NormCall norm{x.data(), size,         row_ids.data(), weight.data(), weight_dtype, 1e-6F, output.data(),
                  size,     output_dtype, chosen,         size,          offset,       adds};
    pool.run([&](int thread, int count) { kernels().elementwise.rms_norm(norm, thread, count); });
    for (int64_t i = 0; i < chosen; ++i) {
        const float* row = &x[row_ids[i] * size];
        double squares = 0;
        for (int64_t k = 0; k < size; ++k) squares += double{row[k]} * row[k];
        for (int64_t k = 0; k < size; ++k) {
            const double wanted = row[k] / std::sqrt(squares / size + 1e-6) * (weight.values[k] + offset);
            const double relative = 1e-6 + rounding(output_dtype);
            expect_near(output.at(i * size + k), wanted, 1e-6 + relative * std::fabs(wanted), "norm");
        }
    }
    if (broken < rows) x[broken * size + between(0, size - 1)] = flip() ? NAN : -INFINITY;
    std::vector<uint8_t> finite(static_cast<size_t>(rows));
    FiniteCall check{x.data(), size, nullptr, finite.data(), rows, size};
    pool.run([&](int thread, int count) { kernels().elementwise.rows_finite(check, thread, count); });
    for (int64_t row = 0; row < rows; ++row)
        expect(finite[row] == (row != broken), "finite", finite[row], row != broken);
}

void check_embedding(ThreadPool& pool) {
    const int64_t size = pick({1, 17, 96}), tokens = between(1, 7);
    const DType dtype = any_dtype();
    Stored table = stored(normal(5 * size), dtype);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(between(0, 4)));
    std::vector<float> output(static_cast<size_t>(tokens * size));
    EmbeddingCall call{table.data(), dtype, size, ids.data(), tokens, output.data(), size, 1.0F, 0, 5};
    pool.run([&](int thread, int count) { kernels().elementwise.embedding(call, thread, count); });
    for (int64_t i = 0; i < tokens * size; ++i) {
        expect_near(output[i], table.values[ids[i / size] * size + i % size], 0, "embedding");
    }
}

}  // namespace

void check_elementwise(ThreadPool& pool) {
    check_rotation(pool);
    check_norm(pool);
    check_embedding(pool);
}

}  // namespace check
