#include "thread_pool.h"

#include <unistd.h>

#include <stdexcept>

#include "spinning.h"

namespace bough {
namespace {

// About 50 microseconds between two runs: longer than back-to-back calls need, far shorter than a time slice.
constexpr int spins_before_sleep = 3000;
// The same where a run is expected: longer than its caller needs to prepare it, up to half a millisecond where a pause
// takes long.
constexpr int spins_for_expected = 12000;

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(num_threads),
      process_(getpid()),
      claims_(num_threads),
      attendance_(new Attendance[static_cast<size_t>(num_threads)]) {
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

void ThreadPool::check_process() const {
    if (process_ != getpid()) throw std::runtime_error("the threads of the kernels stayed in the process that forked");
}

void ThreadPool::run(Body body, void* context, bool needs_all) {
    if (num_threads_ == 1) {
        body(context, 0, 1);
        return;
    }
    check_process();
    const std::lock_guard<std::mutex> turn(turn_);
    body_ = body;
    context_ = context;
    start_run();
    body(context, 0, num_threads_);
    end_run(run_.load(std::memory_order_relaxed), needs_all);
    claims_.number = last_number_;
}

// Waits for the workers within the run, and if it needs all, for the others, too; else these cannot enter it any more.
void ThreadPool::end_run(uint64_t run, bool needs_all) {
    int64_t joined = 0;
    for (int thread = 1; thread < num_threads_; ++thread) {
        std::atomic<uint64_t>& state = attendance_[thread].state;
        uint64_t absent = 2 * (run - 1);
        if (!needs_all &&
            state.compare_exchange_strong(absent, 2 * run, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            continue;
        }
        ++joined;
        Patience waiting;
        while (state.load(std::memory_order_acquire) != 2 * run) waiting.wait();
    }
    if (needs_all) return;
    num_shared_runs_.fetch_add(1, std::memory_order_relaxed);
    num_joined_.fetch_add(joined, std::memory_order_relaxed);
}

void ThreadPool::reserve(int64_t chunks_per_thread) {
    if (num_threads_ == 1) return;
    check_process();
    const std::lock_guard<std::mutex> turn(turn_);
    claims_.reserve(chunks_per_thread);
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

// The run that is there if it is another than `previous`.
uint64_t ThreadPool::await_run(uint64_t previous) {
    for (int most = spins_before_sleep;; most = spins_for_expected) {
        for (int spins = 0; spins < most; ++spins) {
            const uint64_t run = run_.load(std::memory_order_acquire);
            if (run != previous) return run;
            pause_core();
        }
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t before = expectations_;
        wake_.wait(lock, [&] { return run_.load(std::memory_order_seq_cst) != previous || expectations_ != before; });
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
}

void ThreadPool::worker(int thread) {
    std::atomic<uint64_t>& state = attendance_[thread].state;
    for (uint64_t run = 0;;) {
        run = await_run(run);
        if (stopping_) return;
        // Fails if the run is over: a worker that was late for one is not needed there.
        uint64_t absent = 2 * (run - 1);
        if (!state.compare_exchange_strong(absent, absent + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) {
            continue;
        }
        body_(context_, thread, num_threads_);
        state.store(2 * run, std::memory_order_release);
    }
}

}  // namespace bough
