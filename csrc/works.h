// The operations of a model, as threads share them: see claims.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "claims.h"
#include "gemm.h"
#include "isa.h"
#include "kernels.h"

namespace bough {

// Which of `world` equal shares of an operation's rows: that of one rank, where ranks share them (see group.h).
struct RankShare {
    int rank = 0;
    int world = 1;
};

// What works row by row: `kernel(part, num_parts, thread)` does one of `num_parts` parts of `num_rows` rows, each of
// about `row_size` elements.
template <class Kernel>
class RowWork : public Work {
public:
    RowWork(int num_threads, int64_t num_rows, int64_t row_size, const Kernel& kernel, RankShare ranks = {})
        : Work(true),
          num_threads_(num_threads),
          ranks_(ranks),
          num_parts_(parts_of(num_threads, (num_rows + ranks.world - 1) / ranks.world, row_size)),
          kernel_(kernel) {}

    int64_t num_chunks(int owner) const override { return first_of(owner + 1) - first_of(owner); }
    void compute(int owner, int64_t chunk, int64_t, int thread) const override {
        kernel_(static_cast<int>(ranks_.rank * num_parts_ + first_of(owner) + chunk),
                static_cast<int>(ranks_.world * num_parts_), thread);
    }

private:
    // Some microseconds.
    static constexpr int64_t kPartElements = 16384;

    static int64_t parts_of(int num_threads, int64_t num_rows, int64_t row_size) {
        const int64_t per_thread = num_rows * row_size / (kPartElements * num_threads) + 1;
        return std::min(num_rows, num_threads * std::min(per_thread, Claims::kLeastCapacity));
    }
    int64_t first_of(int owner) const { return num_parts_ * owner / num_threads_; }

    const int num_threads_;
    const RankShare ranks_;
    const int64_t num_parts_;  // of this rank
    const Kernel& kernel_;
};

// Does what works row by row, or a rank's share of it, all threads together.
template <class Kernel>
void share_rows(Participant& participant, int64_t num_rows, int64_t row_size, const Kernel& kernel,
                RankShare ranks = {}) {
    participant.share(RowWork<Kernel>(participant.num_threads(), num_rows, row_size, kernel, ranks));
}

// A product, or several that take nothing from each other's outputs.
class ProductWork : public Work {
public:
    // `calls` outlive this.
    ProductWork(int num_threads, const GemmCall* calls, int64_t count);

    // Bound of num_chunks for one product of up to `max_rows` rows.
    static int64_t max_chunks(const PackedMatrix& matrix, int64_t max_rows, int num_threads);

    int64_t num_chunks(int owner) const override;
    void compute(int owner, int64_t chunk, int64_t part, int thread) const override;
    void commit(int owner, int64_t chunk, int64_t part, int thread) const override;

private:
    struct Place {
        const GemmCall& call;
        GemmShare share;
        int64_t chunk;
    };
    Place find(int owner, int64_t chunk) const;
    GemmShare share(int owner, int64_t index) const {
        return keeps_shares_ ? shares_[owner * count_ + index]
                             : kernels().gemm.share(calls_[index], owner, num_threads_);
    }

    static constexpr int64_t kKeptShares = 12;

    const int num_threads_;
    const GemmCall* const calls_;
    const int64_t count_;
    const bool keeps_shares_;
    GemmShare shares_[kKeptShares];  // [num_threads, count] if they are so few
};

// The largest of what `call`, whose epilogue is kChoose, has found for a row.
Choice best_choice(const GemmCall& call, int64_t row, int num_threads);

class AttentionWork : public Work {
public:
    explicit AttentionWork(const AttentionCall& call) : Work(false), call_(call) {}
    int64_t num_chunks(int owner) const override;
    int64_t num_parts(int owner, int64_t chunk) const override;
    void compute(int owner, int64_t chunk, int64_t part, int thread) const override;
    void commit(int owner, int64_t chunk, int64_t part, int thread) const override;

private:
    int64_t item(int owner, int64_t chunk) const { return attention_items(call_.plan, owner).first + chunk; }
    const AttentionCall& call_;
};

class MergeWork : public Work {
public:
    MergeWork(int num_threads, const AttentionCall& call) : Work(false), num_threads_(num_threads), call_(call) {}
    int64_t num_chunks(int owner) const override { return first_of(owner + 1) - first_of(owner); }
    void compute(int owner, int64_t chunk, int64_t part, int thread) const override;
    void commit(int owner, int64_t chunk, int64_t part, int thread) const override;

private:
    int64_t first_of(int owner) const { return attention_merges(call_.plan) * owner / num_threads_; }
    const int num_threads_;
    const AttentionCall& call_;
};

// Attention and, if there are partial results, their merging.
void share_attention(Participant& participant, const AttentionCall& call);

}  // namespace bough
