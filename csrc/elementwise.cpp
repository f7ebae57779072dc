// Norms, embeddings and the rotation of queries and keys. Parts are whole rows, or whole heads where these are
// independent.
#include <cmath>

#include "kernels.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

// Element-wise access to memory of either type, with the rest of a row that fills no vector.
BOUGH_INLINE Vec load_typed(const void* p, DType dtype, int64_t i) {
    return dtype == DType::bf16 ? load_bf16(static_cast<const uint16_t*>(p) + i)
                                : load(static_cast<const float*>(p) + i);
}
BOUGH_INLINE float get_typed(const void* p, DType dtype, int64_t i) {
    return dtype == DType::bf16 ? as_float(static_cast<const uint16_t*>(p)[i]) : static_cast<const float*>(p)[i];
}
BOUGH_INLINE void store_typed(void* p, DType dtype, int64_t i, Vec x) {
    if (dtype == DType::bf16) {
        store_bf16(static_cast<uint16_t*>(p) + i, x);
    } else {
        store(static_cast<float*>(p) + i, x);
    }
}
BOUGH_INLINE void put_typed(void* p, DType dtype, int64_t i, float x) {
    if (dtype == DType::bf16) {
        static_cast<uint16_t*>(p)[i] = as_bf16(x);
    } else {
        static_cast<float*>(p)[i] = x;
    }
}
BOUGH_INLINE const void* typed_row(const void* p, DType dtype, int64_t offset) {
    return static_cast<const char*>(p) + offset * (dtype == DType::bf16 ? 2 : 4);
}
BOUGH_INLINE void* typed_row(void* p, DType dtype, int64_t offset) {
    return static_cast<char*>(p) + offset * (dtype == DType::bf16 ? 2 : 4);
}

// --- norms -------------------------------------------------------------------------------------------------------

BOUGH_INLINE float inverse_root_mean_square(float sum_of_squares, int64_t size, float eps) {
    return 1.0F / __builtin_sqrtf(sum_of_squares / static_cast<float>(size) + eps);
}

BOUGH_INLINE float sum_of_squares(const float* x, int64_t size) {
    Vec even = splat(0.0F);
    Vec odd = splat(0.0F);
    int64_t i = 0;
    for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
        const Vec a = load(x + i);
        const Vec b = load(x + i + kLanes);
        even = fma(a, a, even);
        odd = fma(b, b, odd);
    }
    float sum = sum_lanes(add(even, odd));
    for (; i < size; ++i) sum = __builtin_fmaf(x[i], x[i], sum);
    return sum;
}

struct NormWeight {
    const void* data;
    DType dtype;
    float offset;
};

// output = x * factor * weight
BOUGH_INLINE void scale_row(const float* x, float factor, NormWeight weight, void* output, DType output_dtype,
                            int64_t size) {
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
        const Vec w = add(load_typed(weight.data, weight.dtype, i), splat(weight.offset));
        store_typed(output, output_dtype, i, mul(mul(load(x + i), splat(factor)), w));
    }
    for (; i < size; ++i) {
        put_typed(output, output_dtype, i, x[i] * factor * (get_typed(weight.data, weight.dtype, i) + weight.offset));
    }
}

// output += x * factor * weight
BOUGH_INLINE void add_scaled_row(const float* x, float factor, NormWeight weight, float* output, int64_t size) {
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
        const Vec w = add(load_typed(weight.data, weight.dtype, i), splat(weight.offset));
        store(output + i, add(load(output + i), mul(mul(load(x + i), splat(factor)), w)));
    }
    for (; i < size; ++i) output[i] += x[i] * factor * (get_typed(weight.data, weight.dtype, i) + weight.offset);
}

static void rms_norm(const NormCall& call, int part, int num_parts) {
    const Share share = share_of(call.num_rows, part, num_parts);
    for (int64_t row = share.first; row < share.end; ++row) {
        const int64_t from = call.row_ids != nullptr ? call.row_ids[row] : row;
        const float* x = call.input + from * call.input_stride;
        const float factor = inverse_root_mean_square(sum_of_squares(x, call.size), call.size, call.eps);
        const NormWeight weight = {call.weight, call.weight_dtype, call.weight_offset};
        void* output = typed_row(call.output, call.output_dtype, row * call.output_stride);
        if (call.adds != 0) {
            add_scaled_row(x, factor, weight, static_cast<float*>(output), call.size);
        } else {
            scale_row(x, factor, weight, output, call.output_dtype, call.size);
        }
    }
}

// --- embedding ---------------------------------------------------------------------------------------------------

static void embedding(const EmbeddingCall& call, int part, int num_parts) {
    const Share share = share_of(call.num_tokens, part, num_parts);
    for (int64_t token = share.first; token < share.end; ++token) {
        const int64_t row = call.ids[token] - call.first_id;
        if (row < 0 || row >= call.num_ids) continue;
        const void* from = typed_row(call.table, call.table_dtype, row * call.size);
        float* to = call.output + token * call.output_stride;
        int64_t i = 0;
        for (; i + kLanes <= call.size; i += kLanes) {
            store(to + i, mul(load_typed(from, call.table_dtype, i), splat(call.scale)));
        }
        for (; i < call.size; ++i) to[i] = get_typed(from, call.table_dtype, i) * call.scale;
    }
}

static void rows_finite(const FiniteCall& call, int part, int num_parts) {
    const Share share = share_of(call.num_rows, part, num_parts);
    for (int64_t row = share.first; row < share.end; ++row) {
        const int64_t from = call.row_ids != nullptr ? call.row_ids[row] : row;
        const float* x = call.input + from * call.input_stride;
        bool finite = true;
        int64_t i = 0;
        for (; i + kLanes <= call.size; i += kLanes) finite &= !any_not_finite(load(x + i));
        for (; i < call.size; ++i) finite &= __builtin_isfinite(x[i]) != 0;
        call.finite[row] = finite ? 1 : 0;
    }
}

// --- rotary embedding --------------------------------------------------------------------------------------------

// Sine and cosine in double precision: Taylor polynomials behind a reduction to [-pi/4, pi/4], exact enough for any
// float32 angle below 2**30.
BOUGH_INLINE void sine_cosine(double angle, float* sine, float* cosine) {
    const double shift = 6755399441055744.0;  // 1.5 * 2**52: adding it rounds to a whole number
    const double quarters = (angle * 0x1.45f306dc9c883p-1 + shift) - shift;
    double r = angle - quarters * 0x1.921fb54442d18p0;
    r -= quarters * 0x1.1a62633145c07p-54;
    const double z = r * r;
    double s = -1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = r + r * z * s;
    double c = 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = 1.0 + z * c;
    const int64_t quadrant = static_cast<int64_t>(quarters);
    const double swapped_sine = (quadrant & 1) != 0 ? c : s;
    const double swapped_cosine = (quadrant & 1) != 0 ? s : c;
    *sine = static_cast<float>((quadrant & 2) != 0 ? -swapped_sine : swapped_sine);
    *cosine = static_cast<float>(((quadrant + 1) & 2) != 0 ? -swapped_cosine : swapped_cosine);
}

static void rotary_table(const RotaryTableCall& call, int part, int num_parts) {
    const Share share = share_of(call.num_tokens, part, num_parts);
    const int64_t half = call.half_dim;
    for (int64_t token = share.first; token < share.end; ++token) {
        const float position = static_cast<float>(call.positions[token]);
        float* cosines = call.output + token * 2 * half;
        float* sines = cosines + half;
        for (int64_t i = 0; i < half; ++i) {
            float sine;
            float cosine;
            sine_cosine(static_cast<double>(position * call.inv_freq[i]), &sine, &cosine);
            cosines[i] = cosine * call.attention_scaling;
            sines[i] = sine * call.attention_scaling;
        }
    }
}

// Rotate pairs (i, i + half) in place.
BOUGH_INLINE void rotate(float* head, const float* cosines, const float* sines, int64_t half) {
    int64_t i = 0;
    for (; i + kLanes <= half; i += kLanes) {
        const Vec a = load(head + i);
        const Vec b = load(head + half + i);
        const Vec c = load(cosines + i);
        const Vec s = load(sines + i);
        store(head + i, sub(mul(a, c), mul(b, s)));
        store(head + half + i, fma(a, s, mul(b, c)));
    }
    for (; i < half; ++i) {
        const float a = head[i];
        const float b = head[half + i];
        head[i] = a * cosines[i] - b * sines[i];
        head[half + i] = __builtin_fmaf(a, sines[i], b * cosines[i]);
    }
}

BOUGH_INLINE void store_head(const float* head, int64_t size, void* pool, float* scales, DType dtype, int64_t index) {
    if (dtype == DType::f32) {
        std::memcpy(static_cast<float*>(pool) + index * size, head, static_cast<size_t>(size) * 4);
        return;
    }
    int64_t i = 0;
    if (dtype == DType::bf16) {
        uint16_t* target = static_cast<uint16_t*>(pool) + index * size;
        for (; i + kLanes <= size; i += kLanes) store_bf16(target + i, load(head + i));
        for (; i < size; ++i) target[i] = as_bf16(head[i]);
        return;
    }
    Vec largest = splat(0.0F);
    for (; i + kLanes <= size; i += kLanes) largest = max(largest, absolute(load(head + i)));
    float most = max_lanes(largest);
    for (; i < size; ++i) most = most > __builtin_fabsf(head[i]) ? most : __builtin_fabsf(head[i]);
    bool finite = true;
    for (int64_t j = 0; j < size; ++j) finite &= __builtin_isfinite(head[j]) != 0;
    int8_t* target = static_cast<int8_t*>(pool) + index * size;
    if (!finite) {  // an integer cannot say so, the scale can
        scales[index] = __builtin_nanf("");
        std::memset(target, 0, static_cast<size_t>(size));
        return;
    }
    const float scale = most / 127.0F;
    const float inverse = scale > 1e-30F ? 1.0F / scale : 0.0F;
    scales[index] = scale;
    for (i = 0; i + kLanes <= size; i += kLanes) store_i8(target + i, nearest(mul(load(head + i), splat(inverse))));
    for (; i < size; ++i) target[i] = static_cast<int8_t>(__builtin_rintf(head[i] * inverse));
}

static float query_scale(const RotaryStoreCall& call, int32_t position) {
    const double periods = static_cast<double>(position / call.query_period);
    return static_cast<float>(1.0 + static_cast<double>(call.query_beta) * std::log1p(periods));
}

static void rotary_store(const RotaryStoreCall& call, int part, int num_parts) {
    const int64_t dim = call.head_dim;
    const int64_t half = call.half_dim;
    const int64_t num_heads = call.num_heads;
    const int64_t kv_heads = call.num_kv_heads;
    const int64_t heads = num_heads + 2 * kv_heads;
    const Share share = share_of(call.num_tokens * heads, part, num_parts);
    for (int64_t each = share.first; each < share.end; ++each) {
        const int64_t token = each / heads;
        const int64_t which = each % heads;
        float* head = call.qkv + token * call.qkv_stride + which * dim;
        const bool is_value = which >= num_heads + kv_heads;
        if (!is_value) {
            const void* norm = which < num_heads ? call.q_norm : call.k_norm;
            if (norm != nullptr) {
                const float factor = inverse_root_mean_square(sum_of_squares(head, dim), dim, call.eps);
                scale_row(head, factor, {norm, call.norm_dtype, call.norm_offset}, head, DType::f32, dim);
            }
            const float* cosines = call.cos_sin + token * 2 * half;
            rotate(head, cosines, cosines + half, half);
        }
        if (which < num_heads && call.query_beta != 0.0F) {
            const float factor = query_scale(call, call.positions[token]);
            for (int64_t i = 0; i < dim; ++i) head[i] *= factor;
        }
        if (which >= num_heads) {
            const int64_t kv_head = (which - num_heads) % kv_heads;
            const int64_t index = call.out_slots[token] * kv_heads + kv_head;
            store_head(head, dim, is_value ? call.kv.values : call.kv.keys,
                       is_value ? call.kv.value_scales : call.kv.key_scales, call.kv.dtype, index);
        }
    }
}

}  // namespace

extern const ElementwiseKernels elementwise_kernels = {
    rms_norm, embedding, rotary_table, rotary_store, rows_finite,
};

}  // namespace BOUGH_ISA
}  // namespace bough
