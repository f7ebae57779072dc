// What becomes of the sums of a product: bias, activation, and how they get into the output.
#pragma once

#include <cmath>

#include "gemm.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr int kColumns = static_cast<int>(kPanelColumns), kHalf = kColumns / 2;

BOUGH_INLINE void store_row(const GemmCall& call, int64_t row, int64_t column, const float* sums, int count) {
    const int64_t offset = row * call.output_stride + column;
    if (call.output_dtype == DType::f32) {
        float* output = static_cast<float*>(call.output) + offset;
        int i = 0;
        for (; i + kLanes <= count; i += kLanes) store(output + i, load(sums + i));
        for (; i < count; ++i) output[i] = sums[i];
        return;
    }
    uint16_t* output = static_cast<uint16_t*>(call.output) + offset;
    int i = 0;
    for (; i + kLanes <= count; i += kLanes) store_bf16(output + i, load(sums + i));
    for (; i < count; ++i) output[i] = as_bf16(sums[i]);
}

BOUGH_INLINE void add_row(const GemmCall& call, int64_t row, int64_t column, const float* sums, int count) {
    float* output = static_cast<float*>(call.output) + row * call.output_stride + column;
    if (count == kColumns) {
        for (int i = 0; i < kColumns; i += kLanes) store(output + i, add(load(output + i), load(sums + i)));
    } else {
        for (int i = 0; i < count; ++i) output[i] += sums[i];
    }
}

// The negated argument of the logistic function that an activation multiplies its input by.
BOUGH_INLINE Vec negated_logit(Activation activation, Vec x) {
    if (activation == kSilu) return sub(splat(0.0F), x);
    if (activation == kClampedSwish) return mul(x, splat(-1.702F));
    // 2 sqrt(2 / pi) (x + 0.044715 x**3): (1 + tanh(u)) / 2 is the logistic function of 2 u.
    const Vec cubic = fma(mul(x, x), splat(-0x1.2444f2p-4F), splat(-0x1.988454p+0F));
    return mul(x, cubic);
}

// 16 gates, then 16 values, to 16 gated values.
BOUGH_INLINE void gate(Activation activation, float* sums) {
    for (int i = 0; i < kHalf; i += kLanes) {
        Vec gate = load(sums + i), value = load(sums + kHalf + i);
        if (activation == kClampedSwish) {
            // With the operands in this order min and max pass NaN on.
            gate = min(splat(7.0F), gate);
            value = add(max(splat(-7.0F), min(splat(7.0F), value)), splat(1.0F));
        }
        const Vec negated = min(splat(88.0F), negated_logit(activation, gate));
        store(sums + i, mul(div(gate, add(exp_bounded(negated), splat(1.0F))), value));
    }
}

// Also true where a number is NaN.
BOUGH_INLINE bool any_not_at_most(Vec x, Vec bound) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(x, bound, _CMP_NLE_UQ) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps(_mm256_cmp_ps(x, bound, _CMP_NLE_UQ)) != 0;
#else
    const VecBits at_most = x <= bound;
    return (at_most[0] & at_most[1] & at_most[2] & at_most[3]) == 0;
#endif
}

static_assert(kColumns == 32, "a word of a mask for each panel");

BOUGH_INLINE void choose(Choice& choice, int64_t column, const float* sums, int count, uint32_t allowed) {
    if (count == kColumns) {
        const Vec best = splat(choice.value);
        bool unusual = false;
        for (int i = 0; i < kColumns; i += kLanes) {
            unusual |= any_not_at_most(keep_bits(load(sums + i), allowed >> i, best), best);
        }
        if (!unusual) return;
    }
    for (int i = 0; i < count; ++i) {
        if ((allowed >> i & 1) == 0) continue;
        if (sums[i] > choice.value) {
            choice.value = sums[i];
            choice.column = static_cast<int32_t>(column + i);
        }
        if (!(sums[i] < HUGE_VALF)) choice.finite = 0;
    }
}

// What is left to do for the sums [rows][32] of panel `panel` before they are put into the output.
inline void finish_tile(const GemmCall& call, int64_t panel, int rows, float* sums) {
    const float* bias = call.weights.bias != nullptr ? call.weights.bias + panel * kColumns : nullptr;
    for (int row = 0; row < rows; ++row, sums += kColumns) {
        if (bias != nullptr) {
            for (int i = 0; i < kColumns; i += kLanes) store(sums + i, add(load(sums + i), load(bias + i)));
        }
        if (call.epilogue == kGate) gate(call.activation, sums);
    }
}

// Puts the finished sums of a row of panel `panel` into the output.
BOUGH_INLINE void commit_row(const GemmCall& call, Choice* choices, int64_t panel, int64_t row, const float* sums) {
    const int64_t column = panel * kColumns;
    const int64_t left = call.weights.num_outputs - column;
    const int count = left < kColumns && call.weights.layout == kPlain ? static_cast<int>(left) : kColumns;
    switch (call.epilogue) {
        case kStore:
            return store_row(call, row, column, sums, count);
        case kAdd:
            return add_row(call, row, column, sums, count);
        case kGate:
            return store_row(call, row, panel * kHalf, sums, kHalf);
        default:
            if (row >= call.num_choices) return store_row(call, row - call.num_choices, column, sums, count);
            const uint32_t* allowed = call.allowed != nullptr ? call.allowed[row] : nullptr;
            choose(choices[row], column, sums, count, allowed != nullptr ? allowed[panel] : ~0U);
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
