// Final step of attention: normalise a head's sums and write them.
#pragma once

#include "kernels.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr float kLog2E = 0x1.715476p0F;

// One over the total of the weights of head `head`, its sink among them. `total` is relative to `largest`, the largest
// score, and scores are logarithms to base 2.
BOUGH_INLINE float inverse_total(const AttentionCall& call, int64_t head, float largest, float total) {
    if (call.sinks == nullptr) return 1.0F / total;
    const float sink = call.sinks[head] * kLog2E, reference = largest > sink ? largest : sink;
    float weights[kLanes] = {largest - reference, sink - reference};
    store(weights, exp2_not_positive(load(weights)));
    return weights[0] / __builtin_fmaf(total, weights[0], weights[1]);
}

// Puts `sums` [head_dim] times `factor` into the output from `offset` on.
BOUGH_INLINE void write_head(const AttentionCall& call, const float* sums, float factor, int64_t offset) {
    const int64_t dim = call.shape.head_dim;
    int64_t i = 0;
    if (call.output_dtype == DType::bf16) {
        uint16_t* output = static_cast<uint16_t*>(call.output) + offset;
        for (; i + kLanes <= dim; i += kLanes) store_bf16(output + i, mul(load(sums + i), splat(factor)));
        for (; i < dim; ++i) output[i] = as_bf16(sums[i] * factor);
    } else {
        float* output = static_cast<float*>(call.output) + offset;
        for (; i + kLanes <= dim; i += kLanes) store(output + i, mul(load(sums + i), splat(factor)));
        for (; i < dim; ++i) output[i] = sums[i] * factor;
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
