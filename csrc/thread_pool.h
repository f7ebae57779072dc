// Threads that live as long as the program and meet at barriers.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace bough {

// A barrier that spins for some microseconds and then yields, so that a thread whose partner lost its core to another
// process gives that process its own.
class SpinBarrier {
public:
    explicit SpinBarrier(int num_threads) : num_threads_(num_threads) {}
    void wait();

private:
    const int num_threads_;
    alignas(128) std::atomic<int> arrived_{0};
    alignas(128) std::atomic<uint32_t> generation_{0};
};

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
    using Work = void (*)(void* context, int thread, int num_threads);
    void run(Work work, void* context);

    template <class Function>
    void run(Function&& function) {
        using Plain = std::remove_reference_t<Function>;
        run([](void* context, int thread, int threads) { (*static_cast<Plain*>(context))(thread, threads); },
            const_cast<void*>(static_cast<const void*>(&function)));
    }

    // A run comes soon: threads that sleep may wake up meanwhile, which takes them about as long as a small kernel.
    void expect_run();

    // For use within a run: waits until every thread is there.
    void barrier() {
        if (num_threads_ > 1) barrier_.wait();
    }

private:
    void start_run();
    void stop();
    void worker(int thread);
    void await_run(uint32_t previous);

    const int num_threads_;
    const pid_t process_;
    std::mutex turn_;
    SpinBarrier barrier_;
    Work work_ = nullptr;
    void* context_ = nullptr;
    bool stopping_ = false;
    alignas(128) std::atomic<uint32_t> run_{0};
    std::atomic<int> sleepers_{0};
    std::mutex mutex_;
    uint32_t expectations_ = 0;  // calls of expect_run that found sleepers; guarded by mutex_
    std::condition_variable wake_;
    std::vector<std::thread> workers_;
};

}  // namespace bough
