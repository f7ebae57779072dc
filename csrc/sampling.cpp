// From logits to tokens, a row at a time: what bough/layers/sampler.py defines, without sorting the vocabulary.
//
// A token's weight is exp((logit - largest) / temperature), counted in integer units of 2**-40: sums of integers do not
// depend on their order. What is kept by top-k, top-p and min-p is a prefix of the tokens in descending order, ties by
// ascending id; its end is found by narrowing down the bits of the last kept logit, and the draw goes by id.
#include "kernels.h"
#include "sampling_scratch.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();
constexpr uint64_t kAll = ~uint64_t{0};
constexpr double kUnits = 1099511627776.0;            // 2**40, units in a weight of 1
constexpr double kMostUnits = 4611686018427387904.0;  // 2**62, more than any row has

// --- weights -----------------------------------------------------------------------------------------------------

BOUGH_INLINE int64_t units_of(float weight) { return static_cast<int64_t>(weight * static_cast<float>(kUnits)); }

// Weights of `count` logits, at most kVocabBlock of them.
BOUGH_INLINE void weigh(const float* logits, int64_t count, float largest, float inverse_temperature, float* weights) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        const Vec scaled = mul(sub(load(logits + i), splat(largest)), splat(inverse_temperature));
        store(weights + i, exp_bounded(scaled));
    }
    if (i < count) {
        float rest[kLanes] = {};
        std::memcpy(rest, logits + i, static_cast<size_t>(count - i) * 4);
        store(rest, exp_bounded(mul(sub(load(rest), splat(largest)), splat(inverse_temperature))));
        std::memcpy(weights + i, rest, static_cast<size_t>(count - i) * 4);
    }
}

BOUGH_INLINE int64_t scaled_target(double uniform, int64_t total) {
    return static_cast<int64_t>(uniform * static_cast<double>(total));
}

// --- one row -----------------------------------------------------------------------------------------------------

class RowSampler {
public:
    RowSampler(float* logits, int64_t vocab_size, const SampleRow& row, const SamplingScratch& scratch)
        : logits_(logits),
          vocab_size_(vocab_size),
          num_blocks_((vocab_size + kVocabBlock - 1) / kVocabBlock),
          row_(row),
          s_(scratch) {}

    int64_t sample(uint8_t* finite) {
        penalise();
        for (int32_t i = 0; i < row_.num_edits; ++i) logits_[row_.edit_ids[i]] += row_.edit_addends[i];
        const bool valid = find_largest();
        *finite = valid ? 1 : 0;
        if (!valid || row_.random == 0) return best_;
        const bool by_weight = row_.top_p < __builtin_inf();
        const bool truncated = by_weight || row_.top_k < __builtin_inf() || row_.log_min_p > -kInfinity;
        return truncated ? draw_truncated(by_weight) : draw_from_all();
    }

private:
    int64_t block_size(int64_t block) const { return at_most(kVocabBlock, vocab_size_ - block * kVocabBlock); }

    void penalise() {
        if (row_.counts == nullptr) return;
        if (row_.num_history < 0) {
            for (int64_t token = 0; token < vocab_size_; ++token) {
                if (row_.counts[token] > 0) penalise_token(token, row_.counts[token]);
            }
            return;
        }
        // A token that occurs again finds its count negative.
        for (int32_t i = 0; i < row_.num_history; ++i) {
            int32_t& count = row_.counts[row_.history[i]];
            if (count <= 0) continue;
            penalise_token(row_.history[i], count);
            count = -count;
        }
        for (int32_t i = 0; i < row_.num_history; ++i) {
            int32_t& count = row_.counts[row_.history[i]];
            if (count < 0) count = -count;
        }
    }

    void penalise_token(int64_t token, int32_t count) {
        float logit = logits_[token];
        const bool scoped = row_.scoped != 0;
        const int32_t produced = scoped ? count & (kRepeated - 1) : count;
        if (scoped && count >= kRepeated) logit = for_repetition(logit);
        if (produced > 0) {
            // One rounding after the other, as the reference has it.
            const volatile float cost = row_.frequency_penalty * static_cast<float>(produced);
            logit -= cost + row_.presence_penalty;
        }
        logits_[token] = scoped ? logit : for_repetition(logit);
    }

    float for_repetition(float logit) const {
        return logit > 0.0F ? logit / row_.repetition_penalty : logit * row_.repetition_penalty;
    }

    // Bits of the tokens of a block that are allowed.
    uint64_t allowed_in(int64_t block) const {
        if (row_.allowed == nullptr) return kAll;
        const int64_t size = block_size(block);
        const uint64_t low = row_.allowed[2 * block];
        const uint64_t high = size > 32 ? row_.allowed[2 * block + 1] : 0;
        const uint64_t bits = low | high << 32;
        return size == kVocabBlock ? bits : bits & ((uint64_t{1} << size) - 1);
    }

    // The largest logit of each block and of all allowed tokens, and the first token that has it. False if the row is
    // not finite. From here on a block whose largest logit is -infinity is not looked at, and the logits of the others
    // are -infinity where a token is not allowed.
    bool find_largest() {
        bool nan = false;
        largest_ = -kInfinity;
        int64_t best_block = 0;
        for (int64_t block = 0; block < num_blocks_; ++block) {
            float* x = logits_ + block * kVocabBlock;
            const int64_t size = block_size(block);
            const uint64_t allowed = allowed_in(block);
            float largest = -kInfinity;
            if (allowed == 0) {
                s_.block_maxima[block] = largest;
                continue;
            }
            if (allowed != kAll) {
                nan |= mask_block(x, size, allowed, &largest);
            } else if (size == kVocabBlock) {
                Vec most = load(x);
                Vec unordered = sub(most, most);  // NaN for what is not finite
                for (int64_t i = kLanes; i < kVocabBlock; i += kLanes) {
                    const Vec next = load(x + i);
                    most = max(most, next);
                    unordered = add(unordered, mul(next, splat(0.0F)));
                }
                largest = max_lanes(most);
                // -infinity makes it NaN too: only then each element is looked at.
                if (any_not_finite(unordered)) nan |= has_nan(x, size, &largest);
            } else {
                nan |= has_nan(x, size, &largest);
            }
            s_.block_maxima[block] = largest;
            if (largest > largest_) {
                largest_ = largest;
                best_block = block;
            }
        }
        const float* x = logits_ + best_block * kVocabBlock;
        best_ = best_block * kVocabBlock;
        for (int64_t i = 0; i < block_size(best_block); ++i) {
            if (x[i] == largest_) {
                best_ += i;
                break;
            }
        }
        return !nan && __builtin_isfinite(largest_);
    }

    // Makes the logits of tokens that are not allowed -infinity; whether one of the others is NaN, and the largest.
    static bool mask_block(float* x, int64_t size, uint64_t allowed, float* largest) {
        if (size < kVocabBlock) {
            for (int64_t i = 0; i < size; ++i) {
                if ((allowed >> i & 1) == 0) x[i] = -kInfinity;
            }
            return has_nan(x, size, largest);
        }
        Vec most = splat(-kInfinity);
        Vec unordered = splat(0.0F);
        for (int64_t i = 0; i < kVocabBlock; i += kLanes, allowed >>= kLanes) {
            const Vec logits = load(x + i);
            const Vec kept = keep_bits(logits, allowed, splat(-kInfinity));
            store(x + i, kept);
            most = max(most, kept);
            unordered = add(unordered, mul(keep_bits(logits, allowed, splat(0.0F)), splat(0.0F)));
        }
        *largest = max_lanes(most);
        return any_not_finite(unordered) && has_nan(x, kVocabBlock, largest);
    }

    static bool has_nan(const float* x, int64_t size, float* largest) {
        bool nan = false;
        *largest = -kInfinity;
        for (int64_t i = 0; i < size; ++i) {
            nan |= x[i] != x[i];
            if (x[i] > *largest) *largest = x[i];
        }
        return nan;
    }

    // --- all tokens ---

    int64_t draw_from_all() {
        sum_blocks();
        int64_t total = 0;
        for (int64_t block = 0; block < num_blocks_; ++block) {
            total += units_of(s_.block_sums[block]);
        }
        const int64_t target = scaled_target(row_.uniform, total);
        int64_t before = 0;
        int64_t block = 0;
        for (; block + 1 < num_blocks_; ++block) {
            const int64_t size = units_of(s_.block_sums[block]);
            if (before + size > target) break;
            before += size;
        }
        // How far the target lies into its block is the number that draws within the block.
        const float block_sum = s_.block_sums[block];
        const double inside = static_cast<double>(target - before) / static_cast<double>(units_of(block_sum));
        const int64_t count = block_size(block);
        float weights[kVocabBlock];
        weigh(logits_ + block * kVocabBlock, count, largest_, row_.inverse_temperature, weights);
        int64_t units[kVocabBlock];
        int64_t sum = 0;
        for (int64_t i = 0; i < count; ++i) {
            units[i] = units_of(weights[i] / block_sum);
            sum += units[i];
        }
        const int64_t inner_target = scaled_target(inside, sum);
        int64_t cumulative = 0;
        for (int64_t i = 0; i < count; ++i) {
            cumulative += units[i];
            if (cumulative > inner_target) return block * kVocabBlock + i;
        }
        return block * kVocabBlock + count - 1;
    }

    void sum_blocks() {
        const Vec shift = splat(largest_);
        const Vec factor = splat(row_.inverse_temperature);
        for (int64_t block = 0; block < num_blocks_; ++block) {
            const float* x = logits_ + block * kVocabBlock;
            const int64_t size = block_size(block);
            float sum = 0.0F;
            if (s_.block_maxima[block] == -kInfinity) {
                // Nothing of it can be drawn.
            } else if (size == kVocabBlock) {
                Vec even = splat(0.0F);
                Vec odd = splat(0.0F);
                for (int64_t i = 0; i < kVocabBlock; i += 2 * kLanes) {
                    even = add(even, exp_bounded(mul(sub(load(x + i), shift), factor)));
                    odd = add(odd, exp_bounded(mul(sub(load(x + i + kLanes), shift), factor)));
                }
                sum = sum_lanes(add(even, odd));
            } else {
                float weights[kVocabBlock];
                weigh(x, size, largest_, row_.inverse_temperature, weights);
                for (int64_t i = 0; i < size; ++i) sum += weights[i];
            }
            s_.block_sums[block] = sum;
        }
    }

    // --- what truncation keeps ---

    // Candidates are gathered from the top: all tokens with at least some logit, with their weights in units, until
    // they are known to hold everything that is kept.
    int64_t draw_truncated(bool by_weight) {
        int64_t limit = 0;
        if (by_weight) {
            sum_blocks();
            int64_t total = 0;
            for (int64_t block = 0; block < num_blocks_; ++block) total += units_of(s_.block_sums[block]);
            const double wanted = row_.top_p * static_cast<double>(total);
            limit = static_cast<int64_t>(__builtin_ceil(wanted < kMostUnits ? wanted : kMostUnits));
        }
        const double most =
            row_.top_k < static_cast<double>(vocab_size_) ? row_.top_k : static_cast<double>(vocab_size_);
        const int64_t top_k = static_cast<int64_t>(most);
        // Blocks are as good as tokens to find a bound with: at least `guess` tokens are as large as the guess-th
        // largest block maximum.
        for (int64_t guess = first_guess(top_k, by_weight); guess < num_blocks_; guess *= 8) {
            gather(nth_largest_maximum(guess));
            const int64_t kept = count_kept(top_k, by_weight, limit);
            if (kept < num_candidates_ || top_k <= num_candidates_) return draw_kept();
        }
        gather(-kInfinity);
        count_kept(top_k, by_weight, limit);
        return draw_kept();
    }

    int64_t first_guess(int64_t top_k, bool by_weight) const {
        const bool only_top_k = !by_weight && row_.log_min_p == -kInfinity;
        return only_top_k ? at_least(top_k, 1) : 64;
    }

    float nth_largest_maximum(int64_t n) {
        for (int64_t i = 0; i < num_blocks_; ++i) s_.orders[i] = order_of(s_.block_maxima[i]);
        return value_of(nth_largest(s_.orders, num_blocks_, n));
    }

    // The n-th largest, n from 1 on, by counting one byte after the other. Linear in `count`.
    static uint32_t nth_largest(const uint32_t* orders, int64_t count, int64_t n) {
        uint32_t prefix = 0;
        uint32_t known = 0;
        for (int shift = 24; shift >= 0; shift -= 8) {
            int64_t histogram[256] = {};
            for (int64_t i = 0; i < count; ++i) {
                if ((orders[i] & known) == prefix) ++histogram[orders[i] >> shift & 0xFFU];
            }
            uint32_t byte = 255;
            while (byte > 0 && histogram[byte] < n) n -= histogram[byte--];
            prefix |= byte << shift;
            known |= 0xFFU << shift;
        }
        return prefix;
    }

    // All tokens of at least `bound`, ascending by id, without blocks in which nothing is allowed.
    void gather(float bound) {
        num_candidates_ = 0;
        for (int64_t block = 0; block < num_blocks_; ++block) {
            if (s_.block_maxima[block] < bound || s_.block_maxima[block] == -kInfinity) continue;
            const float* x = logits_ + block * kVocabBlock;
            const int64_t size = block_size(block);
            float weights[kVocabBlock];
            weigh(x, size, largest_, row_.inverse_temperature, weights);
            for (int64_t i = 0; i < size; ++i) {
                s_.ids[num_candidates_] = static_cast<int32_t>(block * kVocabBlock + i);
                s_.orders[num_candidates_] = order_of(x[i]);
                s_.units[num_candidates_] = units_of(weights[i]);
                s_.scaled[num_candidates_] = (x[i] - largest_) * row_.inverse_temperature;
                num_candidates_ += x[i] >= bound ? 1 : 0;
            }
        }
    }

    // How many candidates are kept, and the bound that goes with it: all above bound_, and of those equal to it the
    // first ties_.
    int64_t count_kept(int64_t top_k, bool by_weight, int64_t limit) {
        int64_t most = at_most(top_k, num_candidates_);
        if (row_.log_min_p > -kInfinity) {
            int64_t likely = 0;
            for (int64_t i = 0; i < num_candidates_; ++i) likely += s_.scaled[i] >= row_.log_min_p ? 1 : 0;
            most = at_most(most, at_least(likely, 1));
        }
        if (by_weight) most = at_most(most, count_within(limit));
        most = at_least(most, 1);
        bound_ = nth_largest(s_.orders, num_candidates_, most);
        int64_t above = 0;
        for (int64_t i = 0; i < num_candidates_; ++i) above += s_.orders[i] > bound_ ? 1 : 0;
        ties_ = most - above;
        return most;
    }

    // How many of the candidates in descending order have less than `limit` units before them: the first whose prefix
    // reaches the limit is the last. Narrows down the bits of its logit by summing the units per byte.
    int64_t count_within(int64_t limit) {
        uint32_t prefix = 0;
        uint32_t known = 0;
        int64_t before = 0;  // units above the range that is left
        int64_t count = 0;   // tokens above it
        for (int shift = 24; shift >= 0; shift -= 8) {
            int64_t units[256] = {};
            int64_t tokens[256] = {};
            for (int64_t i = 0; i < num_candidates_; ++i) {
                if ((s_.orders[i] & known) != prefix) continue;
                const uint32_t byte = s_.orders[i] >> shift & 0xFFU;
                units[byte] += s_.units[i];
                ++tokens[byte];
            }
            int byte = 255;
            while (byte > 0 && before + units[byte] < limit) {
                before += units[byte];
                count += tokens[byte--];
            }
            prefix |= static_cast<uint32_t>(byte) << shift;
            known |= 0xFFU << shift;
        }
        // What is left are ties, all of the same weight.
        int64_t ties = 0;
        int64_t weight = 0;
        for (int64_t i = 0; i < num_candidates_; ++i) {
            if (s_.orders[i] != prefix) continue;
            ++ties;
            weight = s_.units[i];
        }
        if (before >= limit || ties == 0) return count;
        const int64_t fitting = weight == 0 ? ties : at_most((limit - before + weight - 1) / weight, ties);
        return count + fitting;
    }

    // Draws from the candidates that count_kept has bounded.
    int64_t draw_kept() {
        int64_t total = 0;
        int64_t room = ties_;
        for (int64_t i = 0; i < num_candidates_; ++i) {
            const bool tied = s_.orders[i] == bound_;
            const bool keep = s_.orders[i] > bound_ || (tied && room > 0);
            room -= tied ? 1 : 0;
            if (!keep) s_.units[i] = 0;
            total += s_.units[i];
        }
        const int64_t target = scaled_target(row_.uniform, total);
        int64_t cumulative = 0;
        for (int64_t i = 0; i < num_candidates_; ++i) {
            cumulative += s_.units[i];
            if (cumulative > target) return s_.ids[i];
        }
        return best_;
    }

    float* const logits_;
    const int64_t vocab_size_;
    const int64_t num_blocks_;
    const SampleRow& row_;
    const SamplingScratch s_;
    float largest_ = 0.0F;
    int64_t best_ = 0;
    int64_t num_candidates_ = 0;
    uint32_t bound_ = 0;
    int64_t ties_ = 0;
};

static void sample(const SampleCall& call, int part, int num_parts, int thread) {
    const SamplingScratch scratch = sampling_scratch_of(call.scratch, call.vocab_size, thread);
    for (int64_t i = part; i < call.num_rows; i += num_parts) {
        const SampleRow& row = call.rows[i];
        RowSampler sampler(call.logits + row.logits_row * call.logits_stride, call.vocab_size, row, scratch);
        call.tokens[i] = sampler.sample(&call.finite[i]);
    }
}

}  // namespace

extern const SamplingKernels sampling_kernels = {sample};

}  // namespace BOUGH_ISA
}  // namespace bough
