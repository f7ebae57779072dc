#include "works.h"

namespace bough {

ProductWork::ProductWork(int num_threads, const GemmCall* calls, int64_t count)
    : Work(false),
      num_threads_(num_threads),
      calls_(calls),
      count_(count),
      keeps_shares_(num_threads * count <= kKeptShares) {
    for (int owner = 0; keeps_shares_ && owner < num_threads; ++owner) {
        for (int64_t i = 0; i < count; ++i) {
            shares_[owner * count + i] = kernels().gemm.share(calls[i], owner, num_threads);
        }
    }
}

int64_t ProductWork::max_chunks(const PackedMatrix& matrix, int64_t max_rows, int num_threads) {
    int64_t most = 0;
    for (int along = 1; along <= num_threads; ++along) {
        if (num_threads % along != 0) continue;
        const int64_t panels = num_panels(matrix) / along + 1, rows = max_rows / (num_threads / along) + 1;
        most = std::max(most, panels * (rows / kLeastPieceRows + 1));
    }
    return most;
}

int64_t ProductWork::num_chunks(int owner) const {
    int64_t chunks = 0;
    for (int64_t i = 0; i < count_; ++i) chunks += share(owner, i).num_chunks();
    return chunks;
}

ProductWork::Place ProductWork::find(int owner, int64_t chunk) const {
    for (int64_t i = 0;; ++i) {
        const GemmShare found = share(owner, i);
        if (chunk < found.num_chunks()) return {calls_[i], found, chunk};
        chunk -= found.num_chunks();
    }
}

void ProductWork::compute(int owner, int64_t chunk, int64_t, int thread) const {
    const Place place = find(owner, chunk);
    kernels().gemm.compute(place.call, place.share, place.chunk, place.call.scratch + thread * kGemmScratchFloats);
}

void ProductWork::commit(int owner, int64_t chunk, int64_t, int thread) const {
    const Place place = find(owner, chunk);
    const GemmCall& call = place.call;
    Choice* choices = nullptr;
    if (call.epilogue == kChoose) {
        const int64_t slots = max_choice_pieces(call.weights, call.num_rows, num_threads_);
        choices = call.choices + (owner * slots + place.chunk / place.share.row_pieces) * call.num_choices;
    }
    kernels().gemm.commit(call, place.share, place.chunk, call.scratch + thread * kGemmScratchFloats, choices);
}

Choice best_choice(const GemmCall& call, int64_t row, int num_threads) {
    Choice best = {-__builtin_inff(), 0, 1};
    const int64_t slots = max_choice_pieces(call.weights, call.num_rows, num_threads);
    for (int owner = 0; owner < num_threads; ++owner) {
        const int64_t pieces = kernels().gemm.share(call, owner, num_threads).panel_pieces;
        for (int64_t piece = 0; piece < pieces; ++piece) {
            const Choice& other = call.choices[(owner * slots + piece) * call.num_choices + row];
            // Pieces have ascending columns: of several equal elements the first one stays.
            if (other.value > best.value) {
                best.value = other.value;
                best.column = other.column;
            }
            best.finite &= other.finite;
        }
    }
    return best;
}

int64_t AttentionWork::num_chunks(int owner) const {
    const AttentionItems items = attention_items(call_.plan, owner);
    return items.end - items.first;
}

int64_t AttentionWork::num_parts(int owner, int64_t chunk) const {
    return attention_parts(call_.plan, item(owner, chunk));
}

void AttentionWork::compute(int owner, int64_t chunk, int64_t part, int thread) const {
    const bool has_next = owner == thread && chunk + 1 < num_chunks(owner);
    kernels().attention.attend(call_, item(owner, chunk), part, has_next, thread);
}

void AttentionWork::commit(int owner, int64_t chunk, int64_t part, int thread) const {
    kernels().attention.commit(call_, item(owner, chunk), part, thread);
}

void MergeWork::compute(int owner, int64_t chunk, int64_t, int thread) const {
    kernels().attention.merge(call_, first_of(owner) + chunk, thread);
}

void MergeWork::commit(int owner, int64_t chunk, int64_t, int thread) const {
    kernels().attention.commit_merge(call_, first_of(owner) + chunk, thread);
}

void share_attention(Participant& participant, const AttentionCall& call) {
    participant.share(AttentionWork(call));
    if (attention_merges(call.plan) > 0) participant.share(MergeWork(participant.num_threads(), call));
}

}  // namespace bough
