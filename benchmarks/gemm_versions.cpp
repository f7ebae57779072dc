// One product on one thread, of whichever version of csrc/gemm.cpp this is linked with: see gemm_versions.py.
#include <chrono>
#include <cstdint>
#include <new>
#include <random>
#include <vector>

#include "gemm.h"

using namespace bough;

namespace {

constexpr uint32_t kOneAndAHalf = 0x3fc0;  // as bfloat16

// As the kernels want panels and scratch memory.
template <class T>
struct OnCacheLines {
    using value_type = T;
    static constexpr std::align_val_t kAlignment{64};
    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
    void deallocate(T* at, size_t) { ::operator delete(at, kAlignment); }
    bool operator==(const OnCacheLines&) const { return true; }
    bool operator!=(const OnCacheLines&) const { return false; }
};
template <class T>
using Aligned = std::vector<T, OnCacheLines<T>>;

struct Product {
    Aligned<uint32_t> panels, input;
    Aligned<float> output, scratch;
    GemmCall call;
};

// Weights of any bits, but for scales, signs and exponents, which make ordinary numbers.
void fill_weights(const PackedMatrix& weights, Aligned<uint32_t>& words, std::minstd_rand& random) {
    for (uint32_t& word : words) {
        word = static_cast<uint32_t>(random()) << 1 ^ static_cast<uint32_t>(random()) >> 8;
        if (weights.dtype == DType::f32) word = (word & 0x807fffffU) | 0x3f000000U;
        if (weights.dtype == DType::bf16) word = (word & 0x807f807fU) | 0x3f003f00U;
    }
    if (!is_quantized(weights.dtype)) return;
    const int64_t group = group_words(weights.dtype), codes = code_words(weights.dtype);
    for (size_t first = 0; first + group <= words.size(); first += group) {
        for (int64_t i = codes; i < group; ++i) words[first + i] = (words[first + i] & 0x03ff03ffU) | 0x20002000U;
    }
}

}  // namespace

extern "C" {

// A product that lives as long as the process; `dtype` is a DType, `rows` at least 1.
void* new_product(int32_t dtype, int64_t rows, int64_t outputs, int64_t inputs) {
    auto* product = new Product{};
    std::minstd_rand random(1);
    PackedMatrix weights{nullptr, nullptr, outputs, inputs, static_cast<DType>(dtype), kPlain};
    constexpr int64_t kBehind = 16384;  // may be asked for ahead of time
    product->panels.resize(num_panels(weights) * panel_words(weights, num_units(weights)) + kBehind);
    fill_weights(weights, product->panels, random);
    weights.panels = product->panels.data();
    std::vector<float> numbers(rows * inputs);
    for (float& number : numbers) number = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
    int64_t stride = inputs;
    if (is_quantized(weights.dtype)) {
        stride = quantized_row_words(weights);
        product->input.resize(rows * stride);
        const QuantizeCall call{numbers.data(), inputs, rows, inputs, product->input.data(), stride, weights.dtype};
        BOUGH_ISA::gemm_kernels.quantize(call, 0, 1);
    } else {
        product->input.resize(rows * stride);
        const uint32_t bits = weights.dtype == DType::bf16 ? kOneAndAHalf << 16 | kOneAndAHalf : 0x3fc00000U;
        for (uint32_t& word : product->input) word = bits ^ (static_cast<uint32_t>(random()) & 0x00400040U);
    }
    product->output.resize(rows * outputs);
    product->scratch.resize(gemm_scratch_floats(rows));
    product->call = GemmCall{product->input.data(),   stride,  rows,       weights, kStore,
                             product->output.data(),  outputs, DType::f32, 0,       nullptr,
                             product->scratch.data(), nullptr};
    return product;
}

// Operations a second, over some seconds; at least one product.
double operations_per_second(void* handle, double seconds) {
    const GemmCall& call = static_cast<Product*>(handle)->call;
    const auto begin = std::chrono::steady_clock::now();
    std::chrono::duration<double> passed{};
    int times = 0;
    do {
        BOUGH_ISA::gemm_kernels.gemm(call, 0, 1);
        ++times;
        passed = std::chrono::steady_clock::now() - begin;
    } while (passed.count() < seconds);
    return 2.0 * call.num_rows * call.weights.num_outputs * call.weights.num_inputs * times / passed.count();
}

// The last results, [rows, outputs].
const float* results(void* handle) { return static_cast<Product*>(handle)->output.data(); }
}
