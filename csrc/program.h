// A model's forward pass as a recorded list of kernel calls, replayed once per step.
//
// Recording fixes weights, buffers and the order of the calls; how many rows and tokens a step has, where their KV is
// and what is wanted of them are parameters of a run. Nothing is padded, and one program serves decoding, prompts and
// both at once. A step with more tokens than the buffers hold runs in several pieces, the whole model for each.
//
// Threads share each operation as claims.h has it: none waits for one that has lost its core. Within a run nothing
// allocates, and nothing sleeps but for masks that another thread is late with, and for other ranks.
//
// Ranks (see group.h) each record the program of their share of the model. The buffers that operations of other ranks
// read are in memory that all map: of those, an operation computes this rank's columns, or if it works row by row, this
// rank's rows. Recording says where the ranks meet. The first rank runs steps, the others follow.
//
// To meet takes longer than to norm and quantise a few rows: of so few, each rank does all, into memory of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "experts.h"
#include "gemm.h"
#include "group.h"
#include "kernels.h"
#include "piece_memory.h"
#include "thread_pool.h"
#include "works.h"

namespace bough {

// What a row is to yield.
enum class Wanted : uint8_t {
    nothing = 0,  // its prompt goes on
    choice = 1,   // the token with the largest logit
    logits = 2,
};

// One step, as a StepPlan has it. Rows that decode come with the token -1, "the one sampled last".
struct Step {
    int64_t num_rows;
    const int32_t* req_slots;    // [num_rows]
    const int32_t* prefix_lens;  // [num_rows]
    const int32_t* extend_lens;  // [num_rows]
    const int32_t* input_ids;    // [num_tokens]
    const int32_t* out_slots;    // [num_tokens]
    const Wanted* wanted;        // [num_rows]
    int32_t* req_to_token;       // [request slots, table_stride]; the new tokens' slots are entered
    int64_t table_stride;
    int64_t* last_tokens;  // [request slots]
    int32_t* next_tokens;  // [num_rows], set where a choice is wanted
    uint8_t* finite;       // [num_rows], whether what was computed is; not set where logits are wanted
    float* logits;         // [rows that want logits, vocab_size]
    void* hidden_states;   // [num_tokens, hidden_size] after the final norm, in its output's dtype; null: no
    // [num_rows], a bit for each token, lowest first, that may be chosen; null, or null for a row: all
    const uint32_t* const* allowed;
    const int32_t* masks_ready;  // not 0 once `allowed` may be read, which another thread writes; null: it may
};

// Decode steps one after the other, without the host in between: each row goes on with the token just chosen for it. Of
// the Step, `out_slots` and `next_tokens` are [num_steps, num_rows] then, every row decodes and wants a choice or
// logits, from which a token is drawn; `finite` is that of the last step done.
//
// A run ends early after a step in which a row is not finite or gets a token that ends it, where the next step would
// take it beyond its time, and where there is something to read from one of the descriptors. Until then the same call
// goes on with it, if it returned because of max_at_once.
struct DecodeRun {
    int64_t num_steps;     // at least 1
    int64_t max_at_once;   // steps after which to return, at least 1
    int64_t* num_outputs;  // [request slots], where the tokens of each are counted
    // [num_steps, rows that want logits], in the order of rows. Each token is counted where there are counts, and added
    // to a history that has fewer than history_size.
    const SampleRow* draws;
    int64_t history_size;
    void* sampling_scratch;  // sample_scratch_bytes
    // What to read of tokens that were drawn: `logits_rows` are among the rows that want logits, what is read is
    // [num_steps, ..] but for `top_keys`; what tells of logits and targets is filled in. Null: nothing.
    const LogprobCall* logprobs;
    const uint8_t* is_end;       // [vocab_size]
    const uint8_t* checks_end;   // [num_rows], whether a token that is an end ends the row
    const int32_t* descriptors;  // [num_descriptors], at most kMaxDescriptors
    int64_t num_descriptors;
    double seconds;     // for the whole run
    double begin;       // set: when it has begun, in seconds
    int64_t num_done;   // steps that were run: 0 for a new run, then as it was set
    int32_t has_ended;  // set: whether there is nothing to go on with
};

constexpr int64_t kMaxDescriptors = 8;

// Tokens of a piece of which each rank norms and quantises all.
constexpr int64_t kRepeatedRows = 4;

enum class StepError : int32_t {
    none = 0,
    bad_length = 1,
    bad_token = 2,
    bad_slot = 3,
    no_head = 4,
    no_decode = 5,
    lost_rank = 6,  // in the middle of the step
};

// What a rank that follows needs of the steps beside what pieces tell, all of it shared by the ranks.
struct Following {
    const int32_t* req_to_token;  // [request slots, table_stride]
    int64_t table_stride;
    float* logits;   // [rows that want logits, vocab_size]
    double seconds;  // after which to return
};

class Program {
public:
    // With ranks, `pieces` is shared memory for them, PieceMemory::bytes; both null: there are none.
    Program(ThreadPool& pool, const ProgramLimits& limits, Group* group = nullptr, void* pieces = nullptr);

    // Memory of a program, about: what it takes whatever is recorded, and for each shape of attention.
    static int64_t bytes(const ProgramLimits& limits, int num_threads);
    static int64_t attention_bytes(const ProgramLimits& limits, const AttentionShape& shape, int num_threads);

    // Recording. Calls are templates: what depends on the step (counts, token ids, positions, slots) is filled in.
    // `first_id` is the token of the table's first row.
    void add_embedding(const PackedMatrix& table, int64_t first_id, float scale, float* output, int64_t output_stride);
    void add(const EmbeddingCall& call) { operations_.emplace_back(call); }
    void add(const RotaryTableCall& call) { operations_.emplace_back(call); }
    void add(const NormCall& call);
    // Products that take nothing from each other's outputs.
    void add(const GemmCall* calls, int64_t count);
    // The same rows for different weights.
    void add(const QuantizeCall* calls, int64_t count);
    void add(const RotaryStoreCall& call) { operations_.emplace_back(call); }
    void add(const AttentionCall& call);
    void add(const ExpertsCall& call, ExpertsStage stage);
    // Where an operation reads what other ranks have written before it, or writes what they have read: in steps of few
    // rows, which each rank norms and quantises itself, and in others.
    void add_meeting(bool if_few, bool if_more) { operations_.emplace_back(Meeting{if_few, if_more}); }
    // The end: the final norm of rows' last tokens into a buffer of max_rows rows, and the head. A quantised head takes
    // what `quantize` makes of the norm's output, and `first_id` is the token of its first column. Without inputs of
    // the head, hidden states are all that steps can want.
    void finish(const NormCall& norm, const QuantizeCall& quantize, const PackedMatrix& head, int64_t first_id);

    // Unless this returns `none` or `lost_rank`, nothing has been computed.
    StepError run(const Step& step);
    StepError decode(const Step& step, DecodeRun& run);
    // The head of some rows, at most max_rows, of hidden states after the final norm, one behind the other: logits
    // [num_rows, vocab_size], which ranks share. Errors are as those of `run`.
    StepError compute_head(const void* states, int64_t num_rows, float* logits);
    // Computes this rank's share of the first rank's steps. Returns why it has stopped, never `piece`.
    Arrival follow(const Following& following);

private:
    struct PackedEmbedding {
        PackedMatrix table;
        int64_t first_id;
        float scale;
        float* output;
        int64_t output_stride;
    };
    struct RecordedAttention {
        AttentionCall call;
        size_t plan;
    };
    struct RecordedExperts {
        ExpertsCall call;
        ExpertsStage stage;
        std::vector<PackedMatrix> gate_ups, downs;
    };
    // What is done to rows one after the other, before the next rows.
    using RowCalls = std::vector<std::variant<NormCall, QuantizeCall>>;
    using Products = std::vector<GemmCall>;
    struct Meeting {
        bool if_few, if_more;
    };
    // This rank's own memory for a few rows of a buffer that ranks share; what the head reads is in no such buffer.
    struct OwnRows {
        const void* shared;
        int64_t row_bytes;
        std::vector<uint64_t> memory;
        void* rows;
    };
    using Operation = std::variant<PackedEmbedding, EmbeddingCall, RotaryTableCall, RowCalls, Products, RotaryStoreCall,
                                   RecordedAttention, RecordedExperts, Meeting>;

    // Layers of one window share how their attention is split.
    struct Plan {
        AttentionShape shape;
        size_t bytes;
        std::vector<uint64_t> memory;
        AttentionPlan* get() { return reinterpret_cast<AttentionPlan*>(memory.data()); }
    };

    StepError check(const Step& step) const;
    StepError check(const Step& step, const DecodeRun& run) const;
    StepError compute(const Step& step);
    StepError compute_piece(const Step& step);
    void draw(const Step& step, const DecodeRun& run);
    void read_logprobs(const Step& step, const DecodeRun& run);
    Step step_of_run(const Step& first, int64_t num_done);
    static bool goes_on(const Step& step, const DecodeRun& run);
    void fill_piece(const Step& step, int64_t num_tokens);
    void sort_ends(const Step& step);
    void find_allowed(const Step& step);
    void plan_attention();
    void add_row_call(const std::variant<NormCall, QuantizeCall>& call, const float* input);
    void add_own_rows(const std::variant<NormCall, QuantizeCall>& call);
    void replay(const Step& step, Participant& participant);
    bool replay(const Step& step, Participant& participant, Meetings& meetings);
    void publish_piece();
    void take_piece(const Following& following);
    bool repeats_rows() const { return piece_.num_tokens <= kRepeatedRows; }
    // Where an operation finds or leaves the rows of a buffer.
    template <class T>
    T* rows_of(T* shared) const {
        if (repeats_rows()) {
            for (const OwnRows& own : own_rows_) {
                if (own.shared == shared) return static_cast<T*>(own.rows);
            }
        }
        return shared;
    }
    void share(Participant& participant, const PackedEmbedding& call);
    void share(Participant& participant, EmbeddingCall call);
    void share(Participant& participant, RotaryTableCall call);
    void share(Participant& participant, const RowCalls& calls, int64_t num_rows);
    void share(Participant& participant, const RowCalls& calls) { share(participant, calls, piece_.num_tokens); }
    void share(Participant& participant, const Products& products);
    void share(Participant& participant, RotaryStoreCall call);
    void share(Participant& participant, const RecordedAttention& recorded);
    void share(Participant& participant, const RecordedExperts& recorded);
    bool finish_piece(const Step& step, Participant& participant, Meetings& meetings);
    bool share_head(const Step& step, Participant& participant, Meetings& meetings);
    void find_shared_masks();
    void share_masks(const Step& step, Participant& participant);
    void share_choices(const GemmCall& head, Participant& participant);
    Choice choice(const GemmCall& head, int64_t row) const;
    GemmCall head_call();
    void report(const Step& step);

    bool has_ranks() const { return group_ != nullptr; }
    bool is_first() const { return group_ == nullptr || group_->rank() == 0; }
    RankShare ranks() const { return has_ranks() ? RankShare{group_->rank(), group_->world()} : RankShare{}; }

    ThreadPool& pool_;
    const ProgramLimits limits_;
    Group* const group_;
    const PieceMemory shared_;
    uint64_t last_meeting_ = 0;                   // of the run
    double replay_begin_ = 0.0, replay_end_ = 0;  // in seconds, where there are ranks
    std::vector<Operation> operations_;
    std::vector<OwnRows> own_rows_;
    std::vector<Plan> plans_;
    NormCall final_norm_{};
    RowCalls before_head_;  // the final norm of rows that are sampled, and what a quantised head takes
    RowCalls head_inputs_;  // the latter alone, if there is one
    PackedMatrix head_{};
    bool has_head_ = false;
    int64_t first_id_ = 0;  // of the head
    std::vector<float> gemm_scratch_;
    std::vector<unsigned char> attention_scratch_;
    // The most of any attention.
    int64_t thread_bytes_ = 0, partial_bytes_ = 0;

    // Where the next piece begins.
    int64_t next_row_ = 0;
    int32_t next_offset_ = 0;  // among the row's new tokens

    Piece piece_{};
    float* logits_ = nullptr;  // of the step
    StepRows rows_{};
    // [max_tokens]
    std::vector<int32_t> ids_, positions_, slots_;
    // [max_rows]
    std::vector<int32_t> req_slots_, prefix_lens_, extend_lens_, first_tokens_;
    std::vector<int32_t> end_tokens_, end_rows_;  // indices among the piece's tokens and the step's rows
    std::vector<uint8_t> end_finite_;
    std::vector<const uint32_t*> end_allowed_;
    std::vector<Choice> choices_;  // [num_threads, max_choice_pieces, max_rows]
    // Of a decode run, [max_rows]
    std::vector<int32_t> run_lens_, just_chosen_;
    std::vector<int64_t> drawn_, targets_;
    std::vector<uint8_t> drawn_finite_;
};

}  // namespace bough
