// Memory of a thread that samples.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bough {

// Token ids per block: what bough/sampling/vocab_blocks.py calls BLOCK. Random draws go block by block, so both must
// use the same.
constexpr int64_t kVocabBlock = 64;

struct SamplingScratch {
    float* block_maxima;  // [blocks]
    float* block_sums;    // [blocks]
    // Candidates, ascending by id: [vocab_size + 1], the last place is written and not counted
    int32_t* ids;
    uint32_t* orders;
    float* scaled;
    int64_t* units;
};

namespace {

inline int64_t sampling_thread_bytes(int64_t vocab_size) {
    const int64_t blocks = (vocab_size + kVocabBlock - 1) / kVocabBlock;
    return ((blocks * 8 + (vocab_size + 64) * 20) + 127) / 64 * 64;
}

inline SamplingScratch sampling_scratch_of(void* memory, int64_t vocab_size, int thread) {
    const int64_t blocks = (vocab_size + kVocabBlock - 1) / kVocabBlock;
    char* at = static_cast<char*>(memory) + thread * sampling_thread_bytes(vocab_size);
    const int64_t places = vocab_size + 64;
    SamplingScratch s;
    s.units = reinterpret_cast<int64_t*>(at);
    s.ids = reinterpret_cast<int32_t*>(at + places * 8);
    s.orders = reinterpret_cast<uint32_t*>(at + places * 12);
    s.scaled = reinterpret_cast<float*>(at + places * 16);
    s.block_maxima = reinterpret_cast<float*>(at + places * 20);
    s.block_sums = s.block_maxima + blocks;
    return s;
}

}  // namespace
}  // namespace bough
