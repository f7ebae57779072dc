// Inputs of products with quantised weights: rows of float32 to int8 in groups, as gemm.h describes them.
//
// As many groups are worked off at once as a vector has lanes: what there is one of in each, its largest number, the
// sum of its numbers or its scale, fills a vector, too.
#pragma once

#include <cstring>

#include "gemm.h"
#include "gemm_tile.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

// Whole numbers by what is below 16.
struct Table16 {
    alignas(64) int32_t entries[16];

    BOUGH_INLINE Bits at(const Table16& table, Bits indices) {
#if defined(__AVX512F__)
        return (Bits)_mm512_permutexvar_epi32((__m512i)indices, _mm512_load_si512(table.entries));
#elif defined(__AVX2__)
        const __m256i* entries = reinterpret_cast<const __m256i*>(table.entries);
        const __m256i low = _mm256_permutevar8x32_epi32(_mm256_load_si256(entries), (__m256i)indices);
        const __m256i high = _mm256_permutevar8x32_epi32(_mm256_load_si256(entries + 1), (__m256i)indices);
        return (Bits)_mm256_blendv_epi8(low, high, _mm256_cmpgt_epi32((__m256i)indices, _mm256_set1_epi32(7)));
#else
        Ints found;
        for (int lane = 0; lane < kLanes; ++lane) found[lane] = table.entries[indices[lane]];
        return (Bits)found;
#endif
    }
};

// Of whole numbers, in vectors of floats like everything that is reduced.
struct Sum {
    BOUGH_INLINE Vec of(Vec a, Vec b) { return (Vec)((Ints)a + (Ints)b); }
};
struct Largest {
    BOUGH_INLINE Vec of(Vec a, Vec b) { return max(a, b); }
};

// What kLanes vectors are reduced to, each of them: the first one in the first lane, and so on. Changes them.
template <class Reduction>
BOUGH_INLINE Vec reduce_each(Vec* x) {
    // After each step there are half as many vectors, and of each original one half as many lanes.
#if defined(__AVX512F__)
    BOUGH_UNROLL for (int i = 0; i < 8; ++i) {
        x[i] = Reduction::of(_mm512_shuffle_f32x4(x[i], x[i + 8], 0x44), _mm512_shuffle_f32x4(x[i], x[i + 8], 0xEE));
    }
    BOUGH_UNROLL for (int i = 0; i < 4; ++i) {
        x[i] = Reduction::of(_mm512_shuffle_f32x4(x[i], x[i + 4], 0x88), _mm512_shuffle_f32x4(x[i], x[i + 4], 0xDD));
    }
    BOUGH_UNROLL for (int i = 0; i < 2; ++i) {
        x[i] = Reduction::of(_mm512_unpacklo_ps(x[i], x[i + 2]), _mm512_unpackhi_ps(x[i], x[i + 2]));
    }
    const Vec all = Reduction::of(_mm512_unpacklo_ps(x[0], x[1]), _mm512_unpackhi_ps(x[0], x[1]));
    return _mm512_shuffle_f32x4(all, all, 0xD8);  // those of 0 to 3, 8 to 11, 4 to 7 and 12 to 15 in order
#elif defined(__AVX2__)
    BOUGH_UNROLL for (int i = 0; i < 4; ++i) {
        x[i] =
            Reduction::of(_mm256_permute2f128_ps(x[i], x[i + 4], 0x20), _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    }
    BOUGH_UNROLL for (int i = 0; i < 2; ++i) {
        x[i] = Reduction::of(_mm256_unpacklo_ps(x[i], x[i + 2]), _mm256_unpackhi_ps(x[i], x[i + 2]));
    }
    return Reduction::of(_mm256_unpacklo_ps(x[0], x[1]), _mm256_unpackhi_ps(x[0], x[1]));
#else
    for (int lanes = kLanes; lanes > 1; lanes /= 2) {
        for (int i = 0; i < lanes / 2; ++i) {
            Vec low, high;
            for (int j = 0; j < kLanes / 2; ++j) {
                low[2 * j] = x[i][j];
                low[2 * j + 1] = x[i + lanes / 2][j];
                high[2 * j] = x[i][kLanes / 2 + j];
                high[2 * j + 1] = x[i + lanes / 2][kLanes / 2 + j];
            }
            x[i] = Reduction::of(low, high);
        }
    }
    return x[0];
#endif
}

// Whether products start from two numbers of 16 bits: see gemm.h.
template <DType kWeights>
constexpr bool kSumsByPairs = kBytesSaturate && kWeights != DType::u4;

constexpr int kInputGroup = static_cast<int>(kGroupInputs);
constexpr int kGroupVectors = kInputGroup / kLanes;
constexpr uint32_t kSign = 0x80000000U;

// The groups of a row of inputs, zeros behind the last input.
class Groups {
public:
    Groups(const float* input, int64_t size) : input_(input), whole_(size / kInputGroup) {
        const int64_t begin = whole_ * kInputGroup;
        if (begin < size) std::memcpy(last_, input + begin, static_cast<size_t>(size - begin) * sizeof *input);
    }
    const float* at(int64_t index) const { return index < whole_ ? input_ + index * kInputGroup : last_; }

private:
    const float* const input_;
    const int64_t whole_;
    alignas(64) float last_[kInputGroup] = {};
};

// The scales that `count` groups from `first` on would like to have, in the sign bit whether they are to be negative.
// What is of the larger magnitude is to be negative for i8, where there is one number more: the scale then has the
// opposite sign. Adds zeros to `zeros`, unless an input is not finite.
template <DType kWeights>
BOUGH_INLINE Bits wanted_scales(const Groups& groups, int64_t first, int count, Vec* zeros) {
    constexpr bool kBothSigns = kWeights == DType::i8;
    Vec highs[kLanes], lows[kLanes];
    for (int i = 0; i < count; ++i) {
        const float* group = groups.at(first + i);
        Vec high = load(group), low = high;
        if (!kBothSigns) high = absolute(high);
        zeros[0] = fma(low, splat(0.0F), zeros[0]);
        BOUGH_UNROLL for (int v = 1; v < kGroupVectors; ++v) {
            const Vec value = load(group + v * kLanes);
            zeros[v] = fma(value, splat(0.0F), zeros[v]);
            high = max(high, kBothSigns ? value : absolute(value));
            if (kBothSigns) low = min(low, value);
        }
        highs[i] = high;
        lows[i] = sub(splat(0.0F), low);
    }
    for (int i = count; i < kLanes; ++i) highs[i] = lows[i] = splat(0.0F);
    const Vec zero = splat(0.0F), least = splat(0x1p-60F);  // leaves room for all powers
    const Vec high = max(reduce_each<Largest>(highs), zero);
    if constexpr (!kBothSigns) return (Bits)max(div(high, splat(127.0F)), least);
    const Vec low = max(reduce_each<Largest>(lows), zero);
    // Magnitudes compare like the whole numbers of their bits.
    const Bits is_negative = (Bits)((Ints)high > (Ints)low);
    const Vec wanted = max(mul(max(high, low), splat(1.0F / 128.5F)), mul(min(high, low), splat(1.0F / 127.5F)));
    return (Bits)max(wanted, least) | (is_negative & kSign);
}

// The numbers of a group, given 1 / scale; returned are sums of them, one a lane, or where pairs of products are summed
// in 16 bits, of the first two of each unit, and of the last two times 2**16.
template <DType kWeights>
BOUGH_INLINE Ints store_numbers(const float* group, uint32_t* output, float inverse) {
    Ints total = {};
    BOUGH_UNROLL for (int v = 0; v < kGroupVectors; ++v) {
        // In this order a NaN becomes a number, too.
        const Vec scaled = mul(load(group + v * kLanes), splat(inverse));
        const Ints numbers = nearest(max(min(scaled, splat(127.0F)), splat(-128.0F)));
        store_i8(reinterpret_cast<int8_t*>(output) + v * kLanes, numbers);
        total = total + numbers;
    }
    if constexpr (!kSumsByPairs<kWeights>) return total;
    Bits shifts;
    for (int lane = 0; lane < kLanes; ++lane) shifts[lane] = lane % 4 < 2 ? 0 : 16;
    return (Ints)((Bits)total << shifts);
}

// Powers of two by which the groups of a row differ. Much smaller ones than the largest get that of one at the lower
// end, below which there is room for remainders of outliers, of 8 bits more, and for second powers.
constexpr int kRemainderPower = 8, kLeastPower = kRemainderPower + 4, kMostPower = kLeastPower + 44;
// By which an outlier is above the median.
constexpr int kOutlierPower = 3;

// The least sum or difference of two powers of two that is no smaller than sixteen and so many sixteenths: the powers,
// and the sign of the second one.
constexpr Table16 kFirstPower = {{-1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1}};
constexpr Table16 kSecondPower = {{-1, -4, -3, -2, -2, -1, -1, -1, -1, -2, -2, -2, -2, -3, -3, -4}};
constexpr int32_t kMinus = static_cast<int32_t>(kSign);
constexpr Table16 kSecondSign = {{0, 0, 0, 0, 0, 0, 0, 0, 0, kMinus, kMinus, kMinus, kMinus, kMinus, kMinus, kMinus}};
// How many sixteenths that is.
constexpr Table16 kRounded = {{0, 1, 2, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 14, 14, 15}};

BOUGH_INLINE Vec power_of_two(Bits power) { return (Vec)((power + 127) << 23); }

// How coarse groups of inputs are: what is added to the bits of weights' scales, and what these are multiplied by.
struct GroupScales {
    Bits first;
    Bits second;
    Vec value;

    // At least 2**(level / 16) * (1 + level % 16 / 16), negated where the sign bit is set. For 4 bits levels are
    // multiples of 16.
    template <DType kWeights>
    BOUGH_INLINE GroupScales of(Bits levels) {
        const Bits sign = levels & kSign, power = (levels ^ sign) >> 4;
        if constexpr (kWeights != DType::i8) return {power << 23, Bits{}, power_of_two(power)};
        const Bits sixteenths = levels & 15;
        const Bits first = power + Table16::at(kFirstPower, sixteenths);
        const Bits second = power + Table16::at(kSecondPower, sixteenths);
        const Bits second_sign = Table16::at(kSecondSign, sixteenths);
        const Vec value = add(power_of_two(first), (Vec)((Bits)power_of_two(second) | second_sign));
        return {first << 23 | sign, second << 23 | (second_sign ^ sign), (Vec)((Bits)value ^ sign)};
    }
};

// What products of groups with such sums start from.
template <DType kWeights>
BOUGH_INLINE Bits starts_of(const GroupScales& scales, Ints sums) {
    if constexpr (kWeights == DType::u4) return (Bits)mul(to_float(sums), scales.value);
    if constexpr (!kSumsByPairs<kWeights>) return (Bits)(sums * -code_offset(kWeights));
    // Two numbers of 16 bits: what the lower one has borrowed from the upper one is given back. Of i8 these are for the
    // upper halves of codes, of which each is 8 too much.
    const Ints both = sums * (kWeights == DType::i8 ? -8 : -code_offset(kWeights)), low = (both << 16) >> 16;
    return ((Bits)both & 0xffffU) | (Bits)(both - low);
}

// What comes with the numbers of groups, given their sums.
template <DType kWeights>
BOUGH_INLINE void store_scales(const GroupScales& scales, Ints sums, int count, uint32_t* output, int64_t stride) {
    constexpr int kUnits = static_cast<int>(kGroupUnits);
    uint32_t firsts[kLanes], starts[kLanes], seconds[kLanes];
    store_bits(firsts, kBytesSaturate ? (Bits)scales.value : scales.first);
    store_bits(starts, starts_of<kWeights>(scales, sums));
    store_bits(seconds, scales.second);
    for (int i = 0; i < count; ++i) {
        output[i * stride + kUnits] = firsts[i];
        output[i * stride + kUnits + 1] = starts[i];
        if constexpr (kWeights == DType::i8) output[i * stride + kUnits + 2] = seconds[i];
    }
}

// The sixteenths of a row's factor that make scales of groups, rounded up to two powers, least coarse: the noise of a
// group goes with the square of its scale. `wanted` has the bits of what groups would like to have, and `largest` those
// of the largest. What is above `most` is likely an outlier, of which no noise is left.
BOUGH_INLINE uint32_t best_fraction(const uint32_t* wanted, int64_t groups, uint32_t largest, uint32_t most) {
    constexpr int kTries = 16, kVectors = kTries / kLanes;
    alignas(64) float factors[kTries], noises[kTries];
    for (int i = 0; i < kTries; ++i) factors[i] = 1.0F + static_cast<float>(i) / kTries;
    Vec inverses[kVectors], noise[kVectors] = {};
    const Vec inverse = splat(1.0F / float_of(largest & 0x7f800000U));
    for (int v = 0; v < kVectors; ++v) inverses[v] = div(inverse, load(factors + v * kLanes));
    for (int64_t i = 0; i < groups; ++i) {
        const uint32_t bits = wanted[i] & ~kSign;
        if (bits > most) continue;
        const Vec group = splat(float_of(bits));
        BOUGH_UNROLL for (int v = 0; v < kVectors; ++v) {
            const Bits above = (Bits)mul(inverses[v], group) + 0x7ffff;
            const Bits sixteenths = Table16::at(kRounded, above >> 19 & 15);
            const Vec scale = (Vec)((above & 0x7f800000) | sixteenths << 19);
            noise[v] = fma(scale, scale, noise[v]);
        }
    }
    for (int v = 0; v < kVectors; ++v) {
        const Vec each = load(factors + v * kLanes);
        store(noises + v * kLanes, mul(noise[v], mul(each, each)));
    }
    uint32_t best = 0;
    float least = noises[0];
    for (uint32_t i = 1; i < kTries; ++i) {
        best = noises[i] < least ? i : best;
        least = noises[i] < least ? noises[i] : least;
    }
    return best;
}

BOUGH_INLINE int power_above(uint32_t level) { return static_cast<int>(((level & ~kSign) + 15) >> 4); }

// The least power of an outlier, which at most kMaxOutliers of the groups reach; more than any if there are none.
inline int outlier_power(const uint32_t* levels, int64_t groups) {
    uint32_t least = ~0U, most = 0;
    for (int64_t i = 0; i < groups; ++i) {
        const uint32_t level = levels[i] & ~kSign;
        least = level < least ? level : least;
        most = level > most ? level : most;
    }
    const int lowest = power_above(least), highest = power_above(most);
    if (highest < lowest + kOutlierPower) return highest + 1;  // none is so far above the median
    int64_t counts[kMostPower + 2] = {};
    for (int64_t i = 0; i < groups; ++i) ++counts[power_above(levels[i])];
    int median = lowest;
    for (int64_t below = counts[lowest]; below <= groups / 2;) below += counts[++median];
    int power = highest + 1;
    for (int64_t above = 0; power > median + kOutlierPower; --power) {
        above += counts[power - 1];
        if (above > kMaxOutliers) break;
    }
    return power;
}

// What the numbers of a group leave of it, as one more group behind the row's.
template <DType kWeights>
void add_outlier(const float* group, int64_t index, const uint32_t* numbers, uint32_t level, float factor,
                 uint32_t* behind) {
    const Vec step = mul(splat(-factor), GroupScales::of<kWeights>(Bits{} + level).value);
    alignas(64) float left[kInputGroup];
    for (int i = 0; i < kInputGroup; i += kLanes) {
        store(left + i, fma(load_i8(reinterpret_cast<const int8_t*>(numbers) + i), step, load(group + i)));
    }
    uint32_t* entry = behind + 2 + behind[1]++ * outlier_words(kWeights);
    entry[0] = static_cast<uint32_t>(index);
    const GroupScales scales = GroupScales::of<kWeights>(Bits{} + (level - 16 * kRemainderPower));
    float inverses[kLanes];
    store(inverses, div(splat(1.0F), mul(splat(factor), scales.value)));
    Vec totals[kLanes] = {(Vec)store_numbers<kWeights>(left, entry + 1, inverses[0])};
    store_scales<kWeights>(scales, (Ints)reduce_each<Sum>(totals), 1, entry + 1, 0);
}

template <DType kWeights>
void quantize_row(const float* input, int64_t size, uint32_t* output) {
    constexpr int64_t kWords = input_group_words(kWeights);
    const int64_t num_groups = (size + kInputGroup - 1) / kInputGroup;
    uint32_t* const behind = output + num_groups * kWords;
    const Groups groups(input, size);
    // First the scales that groups would like to have, then their levels. They are where the last groups will be, of
    // which none is written before the levels up to it are read. Whole vectors reach into what is behind.
    static_assert(2 + kMaxOutliers * outlier_words(kWeights) >= kLanes, "room behind the groups");
    uint32_t* const levels = behind - num_groups;
    Vec zeros[kGroupVectors] = {};
    for (int64_t i = 0; i < num_groups; i += kLanes) {
        const int count = static_cast<int>(at_most(kLanes, num_groups - i));
        store_bits(levels + i, wanted_scales<kWeights>(groups, i, count, zeros));
    }
    for (int v = 1; v < kGroupVectors; ++v) zeros[0] = add(zeros[0], zeros[v]);
    if (any_not_finite(zeros[0])) {
        std::memset(output, 0, static_cast<size_t>(num_groups * kWords) * sizeof *output);
        behind[0] = bits_of(__builtin_nanf(""));
        behind[1] = 0;
        return;
    }
    uint32_t largest = 0;
    uint64_t total = 0;
    for (int64_t i = 0; i < num_groups; ++i) {
        const uint32_t bits = levels[i] & ~kSign;
        largest = bits > largest ? bits : largest;
        total += bits;
    }
    // Scales are rounded up; of powers of two alone, that of the largest group is what it would like.
    constexpr bool kPowers = kWeights != DType::i8;
    const uint32_t base = (largest >> 23) - kMostPower;
    // The mean of bits is about that of logarithms, which a few outliers hardly move.
    const uint32_t most = static_cast<uint32_t>(total / static_cast<uint64_t>(num_groups)) + (kOutlierPower << 23);
    const uint32_t fraction = kPowers ? largest & 0x7fffffU : best_fraction(levels, num_groups, largest, most) << 19;
    const float factor = float_of((base << 23) + fraction);
    for (int64_t i = 0; i < num_groups; i += kLanes) {
        constexpr int kStepBits = kPowers ? 23 : 19;
        const Bits bits = load_bits(levels + i), sign = bits & kSign, wanted = bits ^ sign;
        const Bits relative =
            kPowers ? wanted - fraction : (Bits)mul((Vec)wanted, splat(1.0F / factor)) + ((base - 127U) << 23);
        const Bits above = (relative + ((1U << kStepBits) - 1)) >> kStepBits << (kStepBits - 19);
        const Bits level = above > (base + kLeastPower) * 16 ? above - base * 16 : Bits{} + kLeastPower * 16;
        store_bits(levels + i, level | sign);
    }
    const int outlier = outlier_power(levels, num_groups);
    behind[0] = bits_of(factor / kScaleFactor);
    behind[1] = 0;
    for (int64_t first = 0; first < num_groups; first += kLanes) {
        const int count = static_cast<int>(at_most(kLanes, num_groups - first));
        uint32_t* at = output + first * kWords;
        uint32_t level[kLanes];
        store_bits(level, load_bits(levels + first));
        const GroupScales scales = GroupScales::of<kWeights>(load_bits(level));
        float inverses[kLanes];
        store(inverses, div(splat(1.0F), mul(splat(factor), scales.value)));
        Vec totals[kLanes];
        for (int i = 0; i < count; ++i) {
            totals[i] = (Vec)store_numbers<kWeights>(groups.at(first + i), at + i * kWords, inverses[i]);
        }
        for (int i = count; i < kLanes; ++i) totals[i] = splat(0.0F);
        store_scales<kWeights>(scales, (Ints)reduce_each<Sum>(totals), count, at, kWords);
        for (int i = 0; i < count; ++i) {
            if (power_above(level[i]) < outlier) continue;
            add_outlier<kWeights>(groups.at(first + i), first + i, at + i * kWords, level[i], factor, behind);
        }
    }
}

inline void quantize(const QuantizeCall& call, int part, int num_parts) {
    const Share rows = share_of(call.num_rows, part, num_parts);
    const auto quantize_one = call.weights == DType::i8   ? quantize_row<DType::i8>
                              : call.weights == DType::i4 ? quantize_row<DType::i4>
                              : call.weights == DType::f4 ? quantize_row<DType::f4>
                                                          : quantize_row<DType::u4>;
    for (int64_t row = rows.first; row < rows.end; ++row) {
        quantize_one(call.input + row * call.input_stride, call.size, call.output + row * call.output_stride);
    }
}

}  // namespace
}  // namespace BOUGH_ISA
}  // namespace bough
