// How threads wait for each other, and give way to others.
//
// Waiting threads spin, since they seldom wait for long, and what they wait for comes at once. One that waits for
// longer sleeps for a moment: it does not yield, because since version 6.18 Linux takes the rest of its time slice,
// some milliseconds, from a thread that yields beside one that always computes. Yielding every 200 microseconds beside
// a busy loop left a thread a tenth of its core.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace bough {

inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// Time in about thirds of nanoseconds: exact enough to tell a long wait from a short one, and read in some of them.
inline uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
    return __rdtsc();
#else
    using Nanoseconds = std::chrono::nanoseconds;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<Nanoseconds>(now).count()) * 3;
#endif
}

constexpr uint64_t kTicksPerMicrosecond = 3000;

// Waits for something that no other thread can do meanwhile.
class Patience {
public:
    void wait() {
        if (begin_ == 0) begin_ = ticks();
        if (ticks() - begin_ < kSpinning) {
            pause_core();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

private:
    static constexpr uint64_t kSpinning = 30 * kTicksPerMicrosecond;
    uint64_t begin_ = 0;
};

// Gives way to threads that wait for this core, such as those of the process that sends a token, which would get it
// only once the thread's slice is over. Where they have kept the core for longer than such a process needs, they are
// none of ours, and would take most of it: then not again for a while.
class Courtesy {
public:
    void give_way() {
        const uint64_t before = ticks();
        if (before < next_) return;
        std::this_thread::yield();
        const uint64_t after = ticks();
        if (after - before > kLong) next_ = after + kPause * (after - before);
    }

private:
    static constexpr uint64_t kLong = 1000 * kTicksPerMicrosecond, kPause = 100;
    uint64_t next_ = 0;
};

}  // namespace bough
