// What ranks know of the piece of a step that they compute, in memory that they share: see group.h.
#pragma once

#include <cstdint>

#include "gemm.h"

namespace bough {

struct ProgramLimits {
    int64_t max_tokens;   // of one piece: rows of all activation buffers
    int64_t max_rows;     // requests of a step
    int64_t max_context;  // positions of a request
    int64_t vocab_size;   // token ids are below
    int64_t num_slots;    // KV slots are below
};

// The tokens of a step that go through the model together.
struct Piece {
    int64_t num_tokens;
    int64_t num_rows;
    int64_t first_token;  // within the step
    // Rows whose last new token is in this piece: those that want a choice, then logits, then nothing.
    int64_t num_choices;
    int64_t num_logits;
    int64_t num_ends;
    int64_t first_logits;  // among the step's rows that want logits
    int64_t has_masks;     // not 0 if choices are among tokens that masks allow
    int64_t only_head;     // not 0 if the final norm's output is there already
};

class PieceMemory {
public:
    // `memory` may be null, for its size.
    PieceMemory(void* memory, const ProgramLimits& limits, int world)
        : piece(take<Piece>(memory, 1)),
          ids(take<int32_t>(memory, limits.max_tokens)),
          positions(take<int32_t>(memory, limits.max_tokens)),
          slots(take<int32_t>(memory, limits.max_tokens)),
          req_slots(take<int32_t>(memory, limits.max_rows)),
          prefix_lens(take<int32_t>(memory, limits.max_rows)),
          extend_lens(take<int32_t>(memory, limits.max_rows)),
          first_tokens(take<int32_t>(memory, limits.max_rows)),
          end_tokens(take<int32_t>(memory, limits.max_rows)),
          choices(take<Choice>(memory, limits.max_rows * world)),
          mask_words((limits.vocab_size + kPanelColumns - 1) / kPanelColumns),
          masks(take<uint32_t>(memory, limits.max_rows * mask_words)) {}

    static int64_t bytes(const ProgramLimits& limits, int world) { return PieceMemory(nullptr, limits, world).used_; }

private:
    // Each array on cache lines of its own.
    template <class T>
    T* take(void* memory, int64_t count) {
        const int64_t begin = used_;
        used_ += (count * static_cast<int64_t>(sizeof(T)) + 127) / 128 * 128;
        return memory == nullptr ? nullptr : reinterpret_cast<T*>(static_cast<char*>(memory) + begin);
    }

    int64_t used_ = 0;

public:
    Piece* const piece;
    // As Program has them of its own.
    int32_t *const ids, *const positions, *const slots;
    int32_t *const req_slots, *const prefix_lens, *const extend_lens, *const first_tokens, *const end_tokens;
    Choice* const choices;  // [world, max_rows], the best of each rank's columns
    const int64_t mask_words;
    uint32_t* const masks;  // [max_rows, mask_words], of the rows that want a choice
};

}  // namespace bough
