#include "kernels.h"
#include "sampling_scratch.h"

namespace bough {

size_t sample_scratch_bytes(int64_t vocab_size, int num_threads) {
    return static_cast<size_t>(sampling_thread_bytes(vocab_size) * num_threads);
}

}  // namespace bough
