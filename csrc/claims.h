// Sharing out operation after operation among threads of which any may lose its core at any moment.
//
// An operation consists of chunks. Each chunk has a word in memory that all threads see, and goes through states that
// only ascend: free (the word is that of an earlier operation), claimed, committing, done. A thread claims a chunk,
// computes it into memory of its own, and commits the result: that alone writes what others read. Work whose result
// does not depend on the thread may be computed twice, but only one of the threads gets to commit it. So no thread
// waits for one that the system has taken off its core in the middle of a chunk: the others compute that chunk again
// and go on, and when the absent thread comes back, it finds its chunk committed, drops its result, and joins the
// operation that is under way.
//
// Words hold numbers of operations, which only grow, so nothing is reset and a late thread cannot take an old word for
// a new one. An operation is over when all of its chunks are done, which every thread sees for itself; a word of a
// later operation says the same of all earlier ones. Words are the only thing that threads share here: any memory that
// they all map will do, and nothing sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace bough {

// An operation, cut into chunks of which each belongs to a thread: the thread that is best placed to compute it,
// because its caches or its memory hold the weights. The others compute it if that thread is late.
//
// A chunk may have several parts, which are computed and committed in order.
class Work {
public:
    // If `exclusive`, `compute` writes the result itself, nothing is committed, and no chunk is computed twice. Only
    // for what takes some microseconds, since everyone waits for a thread that loses its core in the middle.
    explicit Work(bool exclusive) : is_exclusive(exclusive) {}
    virtual ~Work() = default;
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // Chunks that belong to thread `owner`: the same number whoever asks.
    virtual int64_t num_chunks(int owner) const = 0;
    virtual int64_t num_parts(int /*owner*/, int64_t /*chunk*/) const { return 1; }
    // Computes into memory of thread `thread`. If the operation is over meanwhile, its inputs may change while this
    // reads them: the result is dropped, and must not depend on them in how much is read or written.
    virtual void compute(int owner, int64_t chunk, int64_t part, int thread) const = 0;
    // Writes what `compute` has left in the thread's memory. Short: nobody else can do it once it has begun.
    virtual void commit(int /*owner*/, int64_t /*chunk*/, int64_t /*part*/, int /*thread*/) const {}

    const bool is_exclusive;
};

// What threads have done for each other since the process began.
struct ClaimCounts {
    std::atomic<int64_t> stolen{0};      // chunks that another thread than the owner took
    std::atomic<int64_t> recomputed{0};  // parts of chunks that were committed by another thread than the one at work
    std::atomic<int64_t> dropped{0};     // parts that were computed for nothing
};

// The words of a pool's threads.
class Claims {
public:
    explicit Claims(int num_threads);

    // Chunks per thread for which there always is room.
    static constexpr int64_t kLeastCapacity = 256;

    int num_threads() const { return num_threads_; }
    // Room for operations with so many chunks per thread. Not during a run.
    void reserve(int64_t chunks_per_thread);

    std::atomic<uint64_t>& word(int owner, int64_t chunk) const { return words_[owner * stride_ + chunk]; }

    // Of the last operation.
    uint64_t number = 0;
    ClaimCounts counts;

private:
    const int num_threads_;
    int64_t stride_ = 0;
    std::unique_ptr<std::atomic<uint64_t>[]> memory_;
    std::atomic<uint64_t>* words_ = nullptr;  // [num_threads, stride], on cache lines of each thread's own
};

// One thread's part in a run. All threads go through the same operations in the same order.
class Participant {
public:
    Participant(Claims& claims, int thread)
        : claims_(claims), thread_(thread), num_threads_(claims.num_threads()), number_(claims.number) {}
    ~Participant();
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;

    int thread() const { return thread_; }
    int num_threads() const { return num_threads_; }
    uint64_t number() const { return number_; }

    // Takes part in the next operation and returns when it is over.
    void share(const Work& work);
    // Between operations: lets threads run that wait for this core, if these need it for a moment only.
    void give_way();
    // Leaves out all operations of the run that are to come, as if all were over.
    void skip() { number_ += kMostSkipped; }

private:
    // More than a run has.
    static constexpr uint64_t kMostSkipped = 1 << 20;

    void alone(const Work& work) const;
    bool take_all(const Work& work);
    bool take(const Work& work, int owner, int64_t chunk);
    void complete(const Work& work, int owner, int64_t chunk, uint64_t claimed);
    void wait(const Work& work, uint64_t patience);
    bool recompute(const Work& work);

    Claims& claims_;
    const int thread_;
    const int num_threads_;
    uint64_t number_;  // of the operation
    int64_t completed_ = 0;
    int64_t stolen_ = 0, recomputed_ = 0, dropped_ = 0;
};

#ifdef BOUGH_CHECKS
// Called wherever losing its core would hurt a thread most: tests pause there.
extern std::atomic<void (*)()> claim_hook;
// Whether chunks are computed a second time. If not, no thread reads what others write meanwhile, and ThreadSanitizer
// can look at everything else.
extern std::atomic<bool> claims_are_recomputed;
#endif

}  // namespace bough
