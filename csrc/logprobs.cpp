// Reading log-probabilities out of logits, a row at a time: what bough/layers/logprobs.py defines. Scales are applied
// to distances from the largest logit, which are exact where that matters.
#include <cmath>

#include "kernels.h"
#include "sampling_scratch.h"
#include "vec.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

// The largest numbers seen so far: a heap in the caller's memory whose root is the smallest of them.
class Largest {
public:
    Largest(uint64_t* keys, int64_t capacity) : keys_(keys), capacity_(capacity) {}

    // Only a number above this one changes anything.
    float bound() const { return bound_; }

    // Ids come in ascending order, so that of equal numbers the first stay.
    void offer(float value, int64_t id) {
        const uint64_t key = static_cast<uint64_t>(order_of(value)) << 32 | (kLowWord - static_cast<uint64_t>(id));
        if (size_ < capacity_) {
            int64_t at = size_++;
            for (; at > 0 && keys_[(at - 1) / 2] > key; at = (at - 1) / 2) keys_[at] = keys_[(at - 1) / 2];
            keys_[at] = key;
        } else if (key > keys_[0]) {
            sift_down(key, size_);
        } else {
            return;
        }
        if (size_ == capacity_) bound_ = value_of(static_cast<uint32_t>(keys_[0] >> 32));
    }

    // Leaves the ids in descending order of their numbers.
    void sort(int64_t* ids) {
        for (int64_t end = size_ - 1; end >= 0; --end) {
            const uint64_t least = keys_[0];
            if (end > 0) sift_down(keys_[end], end);
            ids[end] = static_cast<int64_t>(kLowWord - (least & kLowWord));
        }
    }

private:
    static constexpr uint64_t kLowWord = 0xFFFFFFFFU;

    // Puts `key` in the place of the root of the first `size` entries.
    void sift_down(uint64_t key, int64_t size) {
        int64_t at = 0;
        for (int64_t child = 1; child < size; child = 2 * at + 1) {
            if (child + 1 < size && keys_[child + 1] < keys_[child]) ++child;
            if (keys_[child] >= key) break;
            keys_[at] = keys_[child];
            at = child;
        }
        keys_[at] = key;
    }

    uint64_t* const keys_;
    const int64_t capacity_;
    int64_t size_ = 0;
    float bound_ = -kInfinity;  // once it is full
};

BOUGH_INLINE float block_maximum(const float* x) {
    Vec most = load(x);
    for (int64_t i = kLanes; i < kVocabBlock; i += kLanes) most = max(most, load(x + i));
    return max_lanes(most);
}

// The largest logit, `top_n` of the largest ones on the way.
BOUGH_INLINE float look_through(const float* logits, int64_t vocab_size, int64_t top_n, Largest& top) {
    float largest = -kInfinity;
    for (int64_t start = 0; start < vocab_size; start += kVocabBlock) {
        const int64_t size = at_most(kVocabBlock, vocab_size - start);
        const float* x = logits + start;
        float most = -kInfinity;
        if (size == kVocabBlock) {
            most = block_maximum(x);
        } else {
            for (int64_t i = 0; i < size; ++i) most = x[i] > most ? x[i] : most;
        }
        largest = most > largest ? most : largest;
        if (start < top_n || (top_n > 0 && most > top.bound())) {
            for (int64_t i = 0; i < size; ++i) top.offer(x[i], start + i);
        }
    }
    return largest;
}

// log(sum(exp((logit - largest) * scale))), summed per block, then over the blocks.
BOUGH_INLINE float log_total_weight(const float* logits, int64_t vocab_size, float largest, float scale) {
    double total = 0.0;
    for (int64_t start = 0; start < vocab_size; start += kVocabBlock) {
        const int64_t size = at_most(kVocabBlock, vocab_size - start);
        float rest[kVocabBlock];
        const float* x = logits + start;
        if (size < kVocabBlock) {
            for (int64_t i = 0; i < kVocabBlock; ++i) rest[i] = i < size ? x[i] : -kInfinity;
            x = rest;
        }
        Vec sum = splat(0.0F);
        for (int64_t i = 0; i < kVocabBlock; i += kLanes) {
            sum = add(sum, exp_bounded(mul(sub(load(x + i), splat(largest)), splat(scale))));
        }
        total += static_cast<double>(sum_lanes(sum));
    }
    return static_cast<float>(std::log(total));
}

static void logprobs(const LogprobCall& call, int part, int num_parts) {
    const Share share = share_of(call.num_rows, part, num_parts);
    for (int64_t row = share.first; row < share.end; ++row) {
        const int64_t logits_row = call.logits_rows != nullptr ? call.logits_rows[row] : row;
        const float* logits = call.logits + logits_row * call.logits_stride;
        const float scale = call.scales != nullptr ? call.scales[row] : 1.0F;
        int64_t* top_ids = call.top_ids + row * call.top_n;
        Largest top(call.top_keys + row * call.top_n, call.top_n);
        const float largest = look_through(logits, call.vocab_size, call.top_n, top);
        const float log_total = log_total_weight(logits, call.vocab_size, largest, scale);
        // The largest logit goes first, because subtracting close numbers is exact.
        const auto read = [&](int64_t id) { return (logits[id] - largest) * scale - log_total; };
        call.targets_read[row] = read(call.targets[row]);
        top.sort(top_ids);
        for (int64_t i = 0; i < call.top_n; ++i) call.top_read[row * call.top_n + i] = read(top_ids[i]);
        const int64_t* ids = call.chosen + row * call.chosen_stride;
        for (int64_t i = 0; i < call.num_chosen; ++i) call.chosen_read[row * call.num_chosen + i] = read(ids[i]);
    }
}

}  // namespace

extern const LogprobKernels logprob_kernels = {logprobs};

}  // namespace BOUGH_ISA
}  // namespace bough
