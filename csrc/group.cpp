#include "group.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>

#include "spinning.h"

namespace bough {

namespace {

// Longer than a rank is behind another one where all have their cores: one may get more of the memory's bandwidth than
// the other, and sleeping takes tens of microseconds more than is slept for.
constexpr uint64_t kMeetingTicks = 300 * kTicksPerMicrosecond, kLeastMeetingTicks = 2 * kTicksPerMicrosecond;
// Where ranks have to share cores, one that spins keeps the other from coming.
constexpr uint64_t kCrowdedTicks = 50 * kTicksPerMicrosecond;
// Who comes so late had no core: far less than a time slice, and more than a rank is behind that has one.
constexpr uint64_t kLateTicks = 1000 * kTicksPerMicrosecond;
// The same between pieces, and where one is expected.
constexpr uint64_t kPieceTicks = 50 * kTicksPerMicrosecond, kExpectedTicks = 500 * kTicksPerMicrosecond;
// After which a rank that waits asks whether the others' processes are there.
constexpr double kSecondsToLook = 0.02;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Waits while the word has this value. Not private: other processes wake it. 0, or the reason why it did not sleep or
// woke up.
int futex_wait(const std::atomic<uint32_t>& word, uint32_t value, double seconds) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(seconds);
    timeout.tv_nsec = static_cast<long>((seconds - static_cast<double>(timeout.tv_sec)) * 1e9);
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
    return result == 0 ? 0 : errno;
}

void futex_wake(const std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

struct alignas(128) Group::Word {
    std::atomic<uint64_t> number;    // of the last meeting that the rank has come to
    std::atomic<uint32_t> turns;     // changes with the number, for those who sleep
    std::atomic<uint32_t> sleepers;  // who wait for it
    std::atomic<int32_t> process;    // 0 before there is one
};

struct alignas(128) Group::HostCount {
    std::atomic<int64_t> num_pieces, nanoseconds;
};

struct Group::State {
    alignas(128) std::atomic<uint32_t> failed;
    alignas(128) std::atomic<uint64_t> pieces;  // published so far
    std::atomic<uint32_t> calls;                // for something else
    std::atomic<uint32_t> signals;              // changes with both, and where a piece is expected
    std::atomic<uint32_t> sleepers;             // who wait for signals
    Word words[kMaxRanks];
    HostCount host_counts[kMaxRanks];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free,
              "shared by processes");

int64_t Group::bytes() { return sizeof(State); }

Group::Group(void* memory, int rank, int world, bool crowded)
    : state_(*static_cast<State*>(memory)),
      rank_(rank),
      world_(world),
      crowded_(crowded),
      most_spinning_(crowded ? kCrowdedTicks : kMeetingTicks),
      spinning_(most_spinning_) {
    for (int& each : descriptors_) each = -1;
    state_.words[rank].process.store(getpid(), std::memory_order_release);
}

Group::~Group() {
    for (const int each : descriptors_) {
        if (each >= 0) close(each);
    }
}

bool Group::has_failed() const { return state_.failed.load(std::memory_order_relaxed) != 0; }

void Group::fail() {
    state_.failed.store(1, std::memory_order_seq_cst);
    for (int rank = 0; rank < world_; ++rank) {
        state_.words[rank].turns.fetch_add(1, std::memory_order_seq_cst);
        futex_wake(state_.words[rank].turns);
    }
    signal();
}

// --- meetings ----------------------------------------------------------------------------------------------------

bool Group::meet(uint64_t number) {
#ifdef BOUGH_CHECKS
    if (void (*hook)() = claim_hook.load(std::memory_order_relaxed)) hook();
#endif
    if (has_failed()) return false;
    Word& own = state_.words[rank_];
    uint64_t seen = own.number.load(std::memory_order_acquire);
    while (seen < number) {
        if (!own.number.compare_exchange_weak(seen, number, std::memory_order_seq_cst, std::memory_order_acquire)) {
            continue;
        }
        if (own.sleepers.load(std::memory_order_seq_cst) > 0) {
            own.turns.fetch_add(1, std::memory_order_seq_cst);
            futex_wake(own.turns);
        }
        break;
    }
    for (int distance = 1; distance < world_; ++distance) {
        if (!wait_for((rank_ + distance) % world_, number)) return false;
    }
    return true;
}

bool Group::wait_for(int rank, uint64_t number) {
    Word& other = state_.words[rank];
    const auto has_come = [&] { return other.number.load(std::memory_order_seq_cst) >= number; };
    if (has_come()) return true;
    const uint64_t most = spinning_.load(std::memory_order_relaxed), begin = ticks();
    const auto spin_longer = [&] {
        if (most < most_spinning_) spinning_.store(std::min(2 * most, most_spinning_), std::memory_order_relaxed);
    };
    while (ticks() - begin < most) {
        pause_core();
        if (!has_come()) continue;
        spin_longer();
        return true;
    }
    double looked = now();
    while (!has_come()) {
        if (has_failed()) return false;
        // Either this sees that the rank has come, or the rank sees the sleeper and changes the word.
        other.sleepers.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t turn = other.turns.load(std::memory_order_seq_cst);
        if (!has_come()) futex_wait(other.turns, turn, kSecondsToLook);
        other.sleepers.fetch_sub(1, std::memory_order_relaxed);
        if (now() - looked > kSecondsToLook) {
            look_for_lost();
            looked = now();
        }
    }
    if (!crowded_ && ticks() - begin < kLateTicks) {
        spin_longer();
    } else {
        spinning_.store(std::max(most / 2, kLeastMeetingTicks), std::memory_order_relaxed);
    }
    return true;
}

void Group::look_for_lost() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int rank = 0; rank < world_ && !has_failed(); ++rank) {
        if (rank != rank_ && is_lost(rank)) fail();
    }
}

bool Group::is_lost(int rank) {
    const pid_t process = state_.words[rank].process.load(std::memory_order_acquire);
    if (process == 0) return false;
    int& descriptor = descriptors_[rank];
#ifdef SYS_pidfd_open
    if (descriptor < 0) descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#endif
    if (descriptor < 0) return kill(process, 0) != 0 && errno == ESRCH;
    // What has ended can be read from, even where its parent has not noticed.
    pollfd polled{descriptor, POLLIN, 0};
    return poll(&polled, 1, 0) > 0;
}

// --- pieces ------------------------------------------------------------------------------------------------------

void Group::signal() {
    state_.signals.fetch_add(1, std::memory_order_seq_cst);
    if (state_.sleepers.load(std::memory_order_seq_cst) > 0) futex_wake(state_.signals);
}

void Group::expect() {
    if (state_.sleepers.load(std::memory_order_relaxed) > 0) signal();
}

void Group::publish() {
    state_.pieces.fetch_add(1, std::memory_order_seq_cst);
    signal();
}

void Group::call() {
    state_.calls.fetch_add(1, std::memory_order_seq_cst);
    signal();
}

uint32_t Group::calls() const { return state_.calls.load(std::memory_order_acquire); }

Arrival Group::await(double seconds, ThreadPool& pool) {
    const double until = now() + seconds;
    Arrival arrival = Arrival::timeout;
    const auto has_arrived = [&] {
        if (has_failed()) {
            arrival = Arrival::failed;
        } else if (state_.pieces.load(std::memory_order_seq_cst) != pieces_seen_) {
            arrival = Arrival::piece;
            ++pieces_seen_;
        } else if (state_.calls.load(std::memory_order_seq_cst) != calls_seen_) {
            arrival = Arrival::called;
            calls_seen_ = state_.calls.load(std::memory_order_seq_cst);
        } else {
            return false;
        }
        return true;
    };
    for (uint64_t most = kPieceTicks;; most = kExpectedTicks) {
        for (const uint64_t begin = ticks(); ticks() - begin < most;) {
            if (has_arrived()) return arrival;
            pause_core();
        }
        const double left = until - now();
        if (left <= 0) return Arrival::timeout;
        state_.sleepers.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t before = state_.signals.load(std::memory_order_seq_cst);
        const bool came = has_arrived();
        const int reason = came ? 0 : futex_wait(state_.signals, before, left);
        state_.sleepers.fetch_sub(1, std::memory_order_relaxed);
        if (came) return arrival;
        if (reason == ETIMEDOUT) return Arrival::timeout;
        if (reason == EINTR) return Arrival::interrupted;
        pool.expect_run();
    }
}

Group::HostTime Group::host_time(int rank) const {
    const HostCount& count = state_.host_counts[rank];
    const int64_t nanoseconds = count.nanoseconds.load(std::memory_order_relaxed);
    return {count.num_pieces.load(std::memory_order_relaxed), static_cast<double>(nanoseconds) * 1e-9};
}

void Group::add_host_time(double seconds) {
    HostCount& count = state_.host_counts[rank_];
    count.nanoseconds.fetch_add(static_cast<int64_t>(seconds * 1e9), std::memory_order_relaxed);
    count.num_pieces.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace bough
