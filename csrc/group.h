// Ranks: processes on one machine that compute a model together. Each has the weights of some outputs of every matrix,
// and the keys and values of some heads; activations lie in memory that all of them map.
//
// Within a rank, threads share each operation as claims.h has it. Where an operation reads what other ranks have
// written, all ranks meet before it. Each has a word for that, the number of the last meeting to which it has come,
// which only ascends: any thread that finds the rank's part of the work done may write it, and one that is late changes
// nothing. So a rank waits for another one, which alone has its weights, but never for a single thread of it.
//
// The first rank says what is computed: it writes a piece of a step into shared memory and publishes it. The others
// wait for that in one call, without the host's language: for a moment they spin, then they sleep (futex(2)).
//
// A rank whose process has ended fails the group within some hundredths of a second; nothing is computed any more then.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "thread_pool.h"

namespace bough {

constexpr int kMaxRanks = 64;

// What a wait for the first rank ends with.
enum class Arrival : int32_t {
    piece = 0,
    timeout = 1,
    interrupted = 2,  // by a signal
    called = 3,       // the first rank wants the others for something else
    failed = 4,
};

class Group {
public:
    // Of the shared memory: zeros when the first rank comes, at a multiple of 128.
    static int64_t bytes();

    // `crowded` if the ranks have fewer cores than threads.
    Group(void* memory, int rank, int world, bool crowded);
    ~Group();
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    int rank() const { return rank_; }
    int world() const { return world_; }

    // Comes to a meeting; numbers ascend without gaps. Returns when all ranks have come, or false if the group has
    // failed. Any thread, several at once, too.
    bool meet(uint64_t number);
    // Of the last meeting before a run; not during one.
    uint64_t meetings = 0;

    bool has_failed() const;
    // Ends all waits, for good.
    void fail();

    // Of the first rank. A piece comes soon: ranks that sleep may wake up meanwhile.
    void expect();
    // A piece is there; the one before must be over.
    void publish();
    void call();
    // How often it was called since the group began.
    uint32_t calls() const;

    // Of the others: waits for the next piece, whose threads `pool` has.
    Arrival await(double seconds, ThreadPool& pool);

    // Seconds of one of the others, over all pieces so far, in which it neither computed nor waited for other ranks.
    struct HostTime {
        int64_t num_pieces;
        double seconds;
    };
    HostTime host_time(int rank) const;
    // Adds those of a piece to this rank's.
    void add_host_time(double seconds);

private:
    struct State;
    struct Word;
    struct HostCount;

    bool wait_for(int rank, uint64_t number);
    void signal();
    void look_for_lost();
    bool is_lost(int rank);

    State& state_;
    const int rank_, world_;
    uint64_t pieces_seen_ = 0;
    uint32_t calls_seen_ = 0;
    const bool crowded_;
    const uint64_t most_spinning_;    // before a meeting, in ticks
    std::atomic<uint64_t> spinning_;  // the same, now
    std::mutex mutex_;                // of what follows
    int descriptors_[kMaxRanks];      // of the ranks' processes (pidfd_open(2)); -1: not open
};

// One thread's way through the meetings of a run.
class Meetings {
public:
    // Null: there are no ranks to meet.
    explicit Meetings(Group* group) : group_(group), number_(group != nullptr ? group->meetings : 0) {}
    // False if the group has failed.
    bool meet() { return group_ == nullptr || group_->meet(++number_); }
    uint64_t number() const { return number_; }

private:
    Group* const group_;
    uint64_t number_;
};

}  // namespace bough
