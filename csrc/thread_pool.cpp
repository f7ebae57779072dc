#include "thread_pool.h"

#include <unistd.h>

#include <stdexcept>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace bough {
namespace {

// About 30 microseconds: longer than the threads of a step are apart unless one has lost its core.
constexpr int spins_before_yield = 2000;

// About 50 microseconds between two runs: longer than back-to-back calls need, far shorter than a time slice.
constexpr int spins_before_sleep = 3000;
// The same where a run is expected: longer than its caller needs to prepare it, up to half a millisecond where a pause
// takes long.
constexpr int spins_for_expected = 12000;

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

void SpinBarrier::wait() {
    const uint32_t generation = generation_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == num_threads_ - 1) {
        arrived_.store(0, std::memory_order_relaxed);
        generation_.store(generation + 1, std::memory_order_release);
        return;
    }
    for (int spins = 0; generation_.load(std::memory_order_acquire) == generation;) {
        if (++spins < spins_before_yield) {
            pause();
        } else {
            std::this_thread::yield();
        }
    }
}

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads), process_(getpid()), barrier_(num_threads) {
    workers_.reserve(num_threads - 1);
    try {
        for (int thread = 1; thread < num_threads; ++thread) workers_.emplace_back([this, thread] { worker(thread); });
    } catch (...) {
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() {
    const std::lock_guard<std::mutex> turn(turn_);
    stop();
}

void ThreadPool::destroy(ThreadPool* pool) {
    if (pool->process_ == getpid()) delete pool;
}

void ThreadPool::run(Work work, void* context) {
    if (num_threads_ == 1) {
        work(context, 0, 1);
        return;
    }
    if (process_ != getpid()) throw std::runtime_error("the threads of the kernels stayed in the process that forked");
    const std::lock_guard<std::mutex> turn(turn_);
    work_ = work;
    context_ = context;
    start_run();
    work(context, 0, num_threads_);
    barrier_.wait();
}

void ThreadPool::stop() {
    stopping_ = true;
    start_run();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start_run() {
    // Sequentially consistent with the sleeper's own pair of operations: either it sees the new run, or we see it.
    run_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
        }
        wake_.notify_all();
    }
}

void ThreadPool::expect_run() {
    // Whom this misses, since it falls asleep just now, start_run wakes.
    if (process_ != getpid() || sleepers_.load(std::memory_order_relaxed) == 0) return;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ++expectations_;
    }
    wake_.notify_all();
}

void ThreadPool::await_run(uint32_t previous) {
    for (int most = spins_before_sleep;; most = spins_for_expected) {
        for (int spins = 0; spins < most; ++spins) {
            if (run_.load(std::memory_order_acquire) != previous) return;
            pause();
        }
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t before = expectations_;
        wake_.wait(lock, [&] { return run_.load(std::memory_order_seq_cst) != previous || expectations_ != before; });
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
}

void ThreadPool::worker(int thread) {
    for (uint32_t run = 0;; ++run) {
        await_run(run);
        if (stopping_) return;
        work_(context_, thread, num_threads_);
        barrier_.wait();
    }
}

}  // namespace bough
