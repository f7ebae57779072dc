// Threads that live as long as the program.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "claims.h"

namespace bough {

// The calling thread takes part: `num_threads - 1` others are kept. Between two runs these spin for a moment and then
// sleep; within a run nothing sleeps.
//
// A child of fork() has none of the other threads: a pool of more than one thread cannot be used there.
class ThreadPool {
public:
    // Throws std::system_error if the system has no more threads.
    explicit ThreadPool(int num_threads);
    // Waits for a run that goes on.
    ~ThreadPool();
    // Deletes a pool, but leaks that of another process.
    static void destroy(ThreadPool* pool);
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int num_threads() const { return num_threads_; }

    // Calls `work(context, thread, num_threads)` on every thread and returns when all have. Callers of a pool of
    // several threads take turns; a pool of one is nothing but the caller, whose work may run beside that of another.
    // Throws std::runtime_error if the pool of several is another process's.
    using Body = void (*)(void* context, int thread, int num_threads);
    void run(Body body, void* context) { run(body, context, true); }

    template <class Function>
    void run(Function&& function) {
        using Plain = std::remove_reference_t<Function>;
        run([](void* context, int thread, int threads) { (*static_cast<Plain*>(context))(thread, threads); },
            const_cast<void*>(static_cast<const void*>(&function)));
    }

    // Calls `function(participant)` on every thread that has its core; all must share the same operations. Returns when
    // these are over and no thread is at work on them any more. A thread that does not come at all is not waited for.
    template <class Function>
    void share(Function&& function) {
        using Plain = std::remove_reference_t<Function>;
        Sharing<Plain> sharing{*this, function};
        run(
            [](void* context, int thread, int) {
                Sharing<Plain>& sharing = *static_cast<Sharing<Plain>*>(context);
                Participant participant(sharing.pool.claims_, thread);
                sharing.function(participant);
                if (thread == 0) sharing.pool.finish_part(participant);
            },
            &sharing, false);
    }

    // A single operation.
    void share_one(const Work& work) {
        share([&](Participant& participant) { participant.share(work); });
    }

    // Room for operations of so many chunks per thread. Waits for a run that goes on.
    void reserve(int64_t chunks_per_thread);

    const ClaimCounts& counts() const { return claims_.counts; }
    // Runs of shared operations, and other threads that took part in them, together.
    int64_t num_shared_runs() const { return num_shared_runs_.load(std::memory_order_relaxed); }
    int64_t num_joined() const { return num_joined_.load(std::memory_order_relaxed); }

    // A run comes soon: threads that sleep may wake up meanwhile, which takes them about as long as a small kernel.
    void expect_run();

private:
    template <class Function>
    struct Sharing {
        ThreadPool& pool;
        Function& function;
    };

    void check_process() const;
    void run(Body body, void* context, bool needs_all);
    // Of the calling thread, while others may still begin theirs.
    void finish_part(const Participant& participant) {
        if (num_threads_ > 1) last_number_ = participant.number();
    }
    void end_run(uint64_t run, bool needs_all);
    void start_run();
    void stop();
    void worker(int thread);
    uint64_t await_run(uint64_t previous);

    // How far a worker is: twice the runs that are over for it, one more within a run.
    struct alignas(128) Attendance {
        std::atomic<uint64_t> state{0};
    };

    const int num_threads_;
    const pid_t process_;
    std::mutex turn_;
    Claims claims_;
    uint64_t last_number_ = 0;                  // of an operation of the run
    std::unique_ptr<Attendance[]> attendance_;  // [num_threads]
    Body body_ = nullptr;
    void* context_ = nullptr;
    std::atomic<bool> stopping_{false};
    std::atomic<int64_t> num_shared_runs_{0}, num_joined_{0};
    alignas(128) std::atomic<uint64_t> run_{0};
    std::atomic<int> sleepers_{0};
    std::mutex mutex_;
    uint32_t expectations_ = 0;  // calls of expect_run that found sleepers; guarded by mutex_
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
};

}  // namespace bough
