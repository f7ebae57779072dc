#include "claims.h"

#include <algorithm>

#include "spinning.h"

namespace bough {

#ifdef BOUGH_CHECKS
std::atomic<void (*)()> claim_hook{nullptr};
std::atomic<bool> claims_are_recomputed{true};
#endif

namespace {

// A word is the number of an operation and how far the chunk is: twice the parts that are committed, one more while
// another part is being committed.
constexpr int kProgressBits = 16;
constexpr uint64_t kDone = (uint64_t{1} << kProgressBits) - 1;

uint64_t number_of(uint64_t word) { return word >> kProgressBits; }
uint64_t progress_of(uint64_t word) { return word & kDone; }
uint64_t claimed_word(uint64_t number) { return number << kProgressBits; }
uint64_t done_word(uint64_t number) { return claimed_word(number) | kDone; }

// Waiting before chunks that others are at are computed again, in ticks: at least some microseconds, and if the thread
// has computed nothing of the operation itself, about what a large chunk takes.
constexpr uint64_t kLeastPatience = 4 * kTicksPerMicrosecond, kPatienceWithoutChunks = 70 * kTicksPerMicrosecond;
// The most, since the time of a thread's own chunks may have passed without its core.
constexpr uint64_t kMostPatience = 1000 * kTicksPerMicrosecond;

constexpr int64_t kWordsPerLine = 128 / sizeof(uint64_t);

inline void may_pause() {
#ifdef BOUGH_CHECKS
    if (void (*hook)() = claim_hook.load(std::memory_order_relaxed)) hook();
#endif
}

inline bool may_recompute(const Work& work) {
#ifdef BOUGH_CHECKS
    if (!claims_are_recomputed.load(std::memory_order_relaxed)) return false;
#endif
    return !work.is_exclusive;
}

}  // namespace

Claims::Claims(int num_threads) : num_threads_(num_threads) { reserve(kLeastCapacity); }

void Claims::reserve(int64_t chunks_per_thread) {
    if (chunks_per_thread <= stride_) return;
    const int64_t stride = (chunks_per_thread + kWordsPerLine - 1) / kWordsPerLine * kWordsPerLine;
    memory_.reset(new std::atomic<uint64_t>[num_threads_ * stride + kWordsPerLine]());
    stride_ = stride;
    const uintptr_t bytes = kWordsPerLine * sizeof(uint64_t);
    const uintptr_t start = (reinterpret_cast<uintptr_t>(memory_.get()) + bytes - 1) / bytes * bytes;
    words_ = reinterpret_cast<std::atomic<uint64_t>*>(start);
}

Participant::~Participant() {
    if (num_threads_ == 1) return;
    claims_.counts.stolen.fetch_add(stolen_, std::memory_order_relaxed);
    claims_.counts.recomputed.fetch_add(recomputed_, std::memory_order_relaxed);
    claims_.counts.dropped.fetch_add(dropped_, std::memory_order_relaxed);
}

void Participant::share(const Work& work) {
    ++number_;
    if (num_threads_ == 1) return alone(work);
    completed_ = 0;
    const uint64_t begin = ticks();
    if (!take_all(work)) return;
    const uint64_t spent = ticks() - begin;
    wait(work, completed_ == 0
                   ? kPatienceWithoutChunks
                   : std::clamp(2 * spent / static_cast<uint64_t>(completed_), kLeastPatience, kMostPatience));
}

void Participant::give_way() {
    thread_local Courtesy courtesy;
    courtesy.give_way();
}

void Participant::alone(const Work& work) const {
    for (int64_t chunk = 0; chunk < work.num_chunks(0); ++chunk) {
        for (int64_t part = 0; part < work.num_parts(0, chunk); ++part) {
            work.compute(0, chunk, part, 0);
            if (!work.is_exclusive) work.commit(0, chunk, part, 0);
        }
    }
}

// The thread's own chunks in order, then those of others from their end. False if the operation is over.
bool Participant::take_all(const Work& work) {
    for (int64_t chunk = 0, count = work.num_chunks(thread_); chunk < count; ++chunk) {
        if (!take(work, thread_, chunk)) return false;
    }
    for (int distance = 1; distance < num_threads_; ++distance) {
        const int owner = (thread_ + distance) % num_threads_;
        for (int64_t chunk = work.num_chunks(owner) - 1; chunk >= 0; --chunk) {
            if (!take(work, owner, chunk)) return false;
        }
    }
    return true;
}

// Completes a chunk that is free. False if the operation is over.
bool Participant::take(const Work& work, int owner, int64_t chunk) {
    std::atomic<uint64_t>& word = claims_.word(owner, chunk);
    uint64_t seen = word.load(std::memory_order_acquire);
    if (number_of(seen) >= number_) return number_of(seen) == number_;
    const uint64_t claimed = claimed_word(number_);
    const uint64_t wanted = claimed | (work.is_exclusive ? 1 : 0);
    may_pause();
    // Who fails to claim it has lost it to a thread that is at this operation or a later one.
    if (!word.compare_exchange_strong(seen, wanted, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return number_of(seen) == number_;
    }
    if (owner != thread_) ++stolen_;
    if (work.is_exclusive) {
        for (int64_t part = 0; part < work.num_parts(owner, chunk); ++part) work.compute(owner, chunk, part, thread_);
        word.store(done_word(number_), std::memory_order_release);
        ++completed_;
    } else {
        complete(work, owner, chunk, claimed);
    }
    return true;
}

// Computes and commits the parts of a chunk from where `claimed` has it until another thread gets ahead.
void Participant::complete(const Work& work, int owner, int64_t chunk, uint64_t claimed) {
    std::atomic<uint64_t>& word = claims_.word(owner, chunk);
    const int64_t num_parts = work.num_parts(owner, chunk);
    for (int64_t part = static_cast<int64_t>(progress_of(claimed) / 2); part < num_parts; ++part, claimed += 2) {
        work.compute(owner, chunk, part, thread_);
        ++completed_;
        may_pause();
        uint64_t expected = claimed;
        if (!word.compare_exchange_strong(expected, claimed + 1, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
            ++dropped_;
            return;
        }
        may_pause();
        work.commit(owner, chunk, part, thread_);
        word.store(part + 1 == num_parts ? done_word(number_) : claimed + 2, std::memory_order_release);
    }
}

// Until all chunks are done. Once `patience` ticks are over, computes what other threads have claimed.
void Participant::wait(const Work& work, uint64_t patience) {
    uint64_t deadline = ticks() + patience;
    for (int distance = 1; distance <= num_threads_; ++distance) {
        const int owner = (thread_ + distance) % num_threads_;
        for (int64_t chunk = 0, count = work.num_chunks(owner); chunk < count; ++chunk) {
            const std::atomic<uint64_t>& word = claims_.word(owner, chunk);
            Patience waiting;
            uint64_t seen;
            while ((seen = word.load(std::memory_order_acquire)) < done_word(number_)) {
                if (!may_recompute(work)) {
                    waiting.wait();
                } else if (ticks() <= deadline) {
                    pause_core();
                } else {
                    const int64_t before = completed_;
                    if (!recompute(work)) return;
                    // Where all that is left is being committed, its thread may want this core.
                    if (completed_ == before) {
                        waiting.wait();
                    } else {
                        deadline = ticks() + patience;
                    }
                }
            }
            if (number_of(seen) > number_) return;
        }
    }
}

// What other threads have claimed and not committed. False if the operation is over.
bool Participant::recompute(const Work& work) {
    for (int distance = 1; distance <= num_threads_; ++distance) {
        const int owner = (thread_ + distance) % num_threads_;
        for (int64_t chunk = 0, count = work.num_chunks(owner); chunk < count; ++chunk) {
            const uint64_t seen = claims_.word(owner, chunk).load(std::memory_order_acquire);
            if (number_of(seen) > number_) return false;
            if (progress_of(seen) % 2 != 0) continue;  // done, or being committed
            const int64_t before = dropped_;
            complete(work, owner, chunk, seen);
            recomputed_ += dropped_ == before ? 1 : 0;
        }
    }
    return true;
}

}  // namespace bough
