#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

namespace check {

// Pools come and go at any moment, and runs of several threads take turns.
void check_threads() {
    for (int round = 0; round < 50; ++round) {
        ThreadPool pool(1 + round % 4);
        std::atomic<int> calls{0};
        if (round % 10 == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // all fall asleep
        if (round % 3 == 0) pool.expect_run();
        if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // no run comes
        if (round % 5 != 0) pool.run([&](int, int) { ++calls; });
        expect(calls == (round % 5 != 0 ? pool.num_threads() : 0), "calls of a run", calls, pool.num_threads());
    }
    ThreadPool pool(3);
    int64_t turns = 0;  // not atomic: one thread of a run adds
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
        callers.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // others fall asleep
                if (i % 5 == 0) pool.expect_run();
                pool.run([&](int thread, int) {
                    if (thread == 2) ++turns;
                });
                pool.run([&](int thread, int) {
                    if (thread == 1) ++turns;
                });
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
    expect(turns == 3 * 200 * 2, "runs of several threads", static_cast<double>(turns), 1200);
}

}  // namespace check
