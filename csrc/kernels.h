// Attention, element-wise and sampling kernels: what the rest of the native code calls.
//
// Every kernel is a plain function over raw memory that does part `part` of `num_parts`; the caller runs all parts, and
// only then what reads the results. Those of attention are in two steps: computing, into scratch memory of a thread,
// and committing, as claims.h has it. Nothing allocates, locks, throws or keeps state. What a kernel computes depends
// neither on the number of parts nor on which rows are computed together.
//
// attention.cpp, elementwise.cpp, logprobs.cpp and sampling.cpp are compiled once per instruction set and each define a
// table of functions in namespace bough::BOUGH_ISA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bough {

enum class DType : int32_t {
    f32 = 0,
    bf16 = 1,
    i8 = 2,  // KV: one float32 scale per token and KV head; weights: see gemm.h
    i4 = 3,  // weights only
    u4 = 4,  // weights only
    f4 = 5,  // weights only
};

// --- the rows of a step ------------------------------------------------------------------------------------------

// `num_rows` requests with new tokens each; the new tokens of all rows follow one another in row order.
struct StepRows {
    int32_t num_rows;
    const int32_t* req_slots;     // [num_rows], rows of req_to_token
    const int32_t* prefix_lens;   // [num_rows], tokens in the pool before this step
    const int32_t* extend_lens;   // [num_rows], new tokens, at least 1
    const int32_t* first_tokens;  // [num_rows], index of each row's first new token
    const int32_t* req_to_token;  // [.., table_stride], KV slot of each position, new tokens entered
    int64_t table_stride;
};

// --- attention ---------------------------------------------------------------------------------------------------

// One layer's share of the KV pool: keys and values [slots, num_kv_heads, head_dim], scales [slots, num_kv_heads].
struct KVLayer {
    void* keys;
    void* values;
    float* key_scales;    // i8 only, else null
    float* value_scales;  // i8 only, else null
    DType dtype;
};

struct AttentionShape {
    int32_t num_heads;
    int32_t num_kv_heads;  // divides num_heads
    int32_t head_dim;      // any
    int32_t window;        // positions that a token sees, itself included; 0: all
    float scale;           // factor on the scores
};

// How the work of one step is split; made once per step and window by `attention_plan`, valid for all layers of that
// window. Memory is the caller's: `attention_plan_bytes`.
struct AttentionPlan;

struct AttentionCall {
    AttentionShape shape;
    StepRows rows;
    KVLayer kv;
    const float* queries;  // [tokens, query_stride], heads of head_dim side by side, rotated
    int64_t query_stride;
    void* output;  // [tokens, output_stride], heads side by side
    int64_t output_stride;
    DType output_dtype;  // f32 or bf16
    const AttentionPlan* plan;
    void* scratch;  // 64-byte aligned: of each thread, `scratch_stride` bytes apart, then for partial results
    // At least attention_thread_bytes, a multiple of 64; the same for all calls that use the memory one after the
    // other, since a thread that is late with one of them may still write into its part.
    int64_t scratch_stride;
    const float* sinks;  // [num_heads], scores that take a share of each head's weight and have no value; null: none
};

// Bytes of a plan for steps of up to `max_rows` rows and `max_tokens` new tokens.
size_t attention_plan_bytes(const AttentionShape& shape, int64_t max_rows, int64_t max_tokens, int num_threads);

// Bytes of scratch memory of one thread.
int64_t attention_thread_bytes(const AttentionShape& shape);
// Bytes for partial results, for any step within these bounds.
size_t attention_partial_bytes(const AttentionShape& shape, int64_t max_context, int num_threads);
// Bytes of scratch memory for all threads together, if all calls have this shape.
size_t attention_scratch_bytes(const AttentionShape& shape, int64_t max_context, int num_threads);

// Split a step's attention into items and these over `num_threads`. One thread calls it. A few microseconds.
// `plan` has attention_plan_bytes for bounds that hold for this step, `max_context` as given to
// attention_scratch_bytes. Throws std::length_error, and makes no plan, if the step exceeds `plan_bytes`.
void attention_plan(AttentionPlan* plan, size_t plan_bytes, const AttentionShape& shape, const StepRows& rows,
                    int64_t max_context, int num_threads);

// How a plan cuts the work: each thread's items are in a row, and an item with partial results has a part for each.
struct AttentionItems {
    int64_t first;
    int64_t end;
};
AttentionItems attention_items(const AttentionPlan* plan, int thread);
int64_t attention_parts(const AttentionPlan* plan, int64_t item);
// Partial results to be merged when all items are done.
int64_t attention_merges(const AttentionPlan* plan);
// Most items of any thread, or merges, of steps within these bounds.
int64_t attention_max_items(const AttentionShape& shape, int64_t max_rows, int64_t max_tokens, int num_threads);

// --- element-wise ------------------------------------------------------------------------------------------------

// Strides are in elements. A weight vector may be f32 or bf16, as the checkpoint has it.
struct NormCall {
    const float* input;  // [.., input_stride]
    int64_t input_stride;
    const int32_t* row_ids;  // [num_rows], rows of the input; null: 0, 1, …
    const void* weight;      // [size]
    DType weight_dtype;
    float eps;
    void* output;  // [num_rows, output_stride]
    int64_t output_stride;
    DType output_dtype;
    int64_t num_rows;
    int64_t size;
    float weight_offset;  // added to the weights: 1 where a family stores what is beyond that
    int32_t adds;         // 1: the result is added to the output, which is f32
};

struct EmbeddingCall {
    const void* table;  // [num_ids, size]
    DType table_dtype;
    int64_t size;
    const int32_t* ids;  // [num_tokens]
    int64_t num_tokens;
    float* output;  // [num_tokens, output_stride]; rows of tokens that the table does not have are left as they are
    int64_t output_stride;
    float scale;       // factor on the rows
    int64_t first_id;  // of the table's first row
    int64_t num_ids;
};

// Cosines and sines of a step's positions, for all layers: output [num_tokens, 2, half_dim], cosines first.
struct RotaryTableCall {
    const float* inv_freq;  // [half_dim]
    int32_t half_dim;
    float attention_scaling;   // factor on cosines and sines
    const int32_t* positions;  // [num_tokens]
    int64_t num_tokens;
    float* output;
};

// Normalise each head of q and k (if it has weights), rotate pairs (i, i + half_dim) of the first 2 * half_dim
// dimensions, scale q by 1 + query_beta * log(1 + floor(position / query_period)), as Llama 4 does, write q back in
// place and k, v to the pool.
struct RotaryStoreCall {
    float* qkv;  // [num_tokens, qkv_stride]: query heads, key heads, value heads
    int64_t qkv_stride;
    int64_t num_tokens;
    int32_t num_heads;
    int32_t num_kv_heads;
    int32_t head_dim;
    int32_t half_dim;      // 2 * half_dim <= head_dim; 0: nothing is rotated
    const float* cos_sin;  // of RotaryTableCall
    const void* q_norm;    // [head_dim] or null
    const void* k_norm;    // [head_dim] or null
    DType norm_dtype;
    float eps;
    const int32_t* out_slots;  // [num_tokens], KV slots
    KVLayer kv;
    float norm_offset;         // as in NormCall
    float query_beta;          // 0: queries are not scaled
    int32_t query_period;      // positions
    const int32_t* positions;  // [num_tokens]
};

// finite[i] = 1 if no element of row row_ids[i] is NaN or infinite.
struct FiniteCall {
    const float* input;
    int64_t input_stride;
    const int32_t* row_ids;
    uint8_t* finite;  // [num_rows]
    int64_t num_rows;
    int64_t size;
};

// --- sampling ----------------------------------------------------------------------------------------------------

// What a count has above the number of times that a token was produced, where the row is scoped: how often it is in the
// scope of the repetition penalty, or 1 if it is there for good.
constexpr int32_t kRepeated = 1 << 18;

// How one row's token is chosen. Defaults in brackets switch a stage off.
struct SampleRow {
    int64_t logits_row;         // row of the logits
    int32_t random;             // 0: greedy, and nothing of the draw below counts
    float inverse_temperature;  // [1]
    double uniform;             // 0 to 1 - 2**-40
    double top_p;               // [infinity]
    double top_k;               // whole number, [infinity]
    float log_min_p;            // [-infinity]
    // Penalties: tokens produced so far, and how often each was (null: none). Counts are changed and restored.
    float frequency_penalty;   // [0]
    float presence_penalty;    // [0]
    float repetition_penalty;  // [1]
    int32_t num_history;       // entries of history; -1: visit the whole vocabulary
    int32_t scoped;            // 1: repeated tokens have kRepeated in their counts, and are penalised for that first
    int32_t* history;
    int32_t* counts;  // [vocab_size] or null
    // Numbers added to single logits after the penalties; -infinity bans a token.
    int32_t num_edits;
    const int64_t* edit_ids;
    const float* edit_addends;
    // Bits of the tokens that the row may have, lowest first: [ceil(vocab_size / 32)], null: all. Logits of others are
    // not looked at, whatever they are; those that share a block of kVocabBlock with one of them are overwritten.
    const uint32_t* allowed;
};

struct SampleCall {
    float* logits;  // [.., logits_stride], changed by penalties, edits and masks
    int64_t logits_stride;
    int64_t vocab_size;
    const SampleRow* rows;
    int64_t num_rows;
    int64_t* tokens;  // [num_rows], always valid ids
    uint8_t* finite;  // [num_rows], 0 where a row holds NaN or +infinity, or allows no token
    void* scratch;    // sample_scratch_bytes
};

size_t sample_scratch_bytes(int64_t vocab_size, int num_threads);

// --- log-probabilities -------------------------------------------------------------------------------------------

// Log-softmax of each row, read at some of its tokens. All ids are below vocab_size.
struct LogprobCall {
    const float* logits;  // [.., logits_stride]
    int64_t logits_stride;
    int64_t vocab_size;
    int64_t num_rows;
    const int64_t* logits_rows;  // [num_rows], which logits each has; null: row i has the logits i
    const float* scales;         // [num_rows], factors above 0 on the logits; null: none
    const int64_t* targets;      // [num_rows]
    int64_t top_n;               // likeliest tokens, at most vocab_size
    const int64_t* chosen;       // [num_rows, chosen_stride]; stride 0: the same ids for all rows
    int64_t chosen_stride;
    int64_t num_chosen;
    float* targets_read;  // [num_rows]
    float* top_read;      // [num_rows, top_n], descending, ties by ascending id
    int64_t* top_ids;     // [num_rows, top_n]
    uint64_t* top_keys;   // [num_rows, top_n], scratch
    float* chosen_read;   // [num_rows, num_chosen]
};

// --- the tables --------------------------------------------------------------------------------------------------

struct AttentionKernels {
    // `has_next`: the thread goes on with the next item, whose keys may be fetched.
    void (*attend)(const AttentionCall&, int64_t item, int64_t part, bool has_next, int thread);
    void (*commit)(const AttentionCall&, int64_t item, int64_t part, int thread);
    void (*merge)(const AttentionCall&, int64_t index, int thread);
    void (*commit_merge)(const AttentionCall&, int64_t index, int thread);
};

struct ElementwiseKernels {
    void (*rms_norm)(const NormCall&, int part, int num_parts);
    void (*embedding)(const EmbeddingCall&, int part, int num_parts);
    void (*rotary_table)(const RotaryTableCall&, int part, int num_parts);
    void (*rotary_store)(const RotaryStoreCall&, int part, int num_parts);
    void (*rows_finite)(const FiniteCall&, int part, int num_parts);
};

struct LogprobKernels {
    void (*logprobs)(const LogprobCall&, int part, int num_parts);
};

struct SamplingKernels {
    // With the scratch memory of thread `thread`.
    void (*sample)(const SampleCall&, int part, int num_parts, int thread);
};

#ifdef BOUGH_ISA
namespace BOUGH_ISA {
extern const AttentionKernels attention_kernels;
extern const ElementwiseKernels elementwise_kernels;
extern const LogprobKernels logprob_kernels;
extern const SamplingKernels sampling_kernels;
}  // namespace BOUGH_ISA
#endif

}  // namespace bough
