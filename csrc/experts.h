// Mixtures of experts: each row is computed by a few of many small gated networks, and gets the weighted sum of their
// results.
//
// Rows choose their experts; copies of rows are sorted by expert, once for a piece of a step, so that an expert reads
// its weights once for all of its rows; products are cut into chunks of some panels and rows of one expert, so that a
// single row keeps all threads busy; and each row adds up its experts' results in ascending order of their numbers. An
// element depends neither on the other rows nor on how many threads there are, and weights are read of experts that
// have rows only.
//
// Ranks (see group.h) share the experts of a layer, each of which one of them has whole, or the outputs of every
// expert's matrices. All of them route all rows. Where experts are shared, what one computes stays with its rank but
// for the results; else gates are shared as well, of which a rank computes some columns. Either way a rank sums up the
// results of its share of the rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "claims.h"
#include "gemm.h"
#include "works.h"

namespace bough {

enum ExpertScores : int32_t {
    kSoftmaxScores = 0,
    kSigmoidScores = 1,
};

// How a row chooses its experts by the router's products, one for each.
struct RoutingKind {
    int32_t num_experts;
    int32_t experts_per_row;
    ExpertScores scores;
    int32_t renormalised;  // 1: weights are divided by their sum
    float scaling;         // factor on the weights
    // Experts are in groups of neighbours, and those of the best groups can be chosen. A group's score is the sum of so
    // many of its best.
    int32_t num_groups;
    int32_t groups_per_row;
    int32_t group_best;
};

constexpr int64_t kMaxExperts = 1024;

// A step's rows and places, sorted by expert, and how products are cut; of one layer, since a thread that is late may
// still read it while others are at the next.
struct ExpertsPlan;

struct ExpertsCall {
    RoutingKind routing;
    const float* products;  // [num_rows, products_stride]
    int64_t products_stride;
    const float* correction;  // [num_experts], added to scores where experts are chosen; null: nothing
    int64_t num_rows;
    const void* input;  // [num_rows, input_stride] as GemmCall takes it for `gate_ups`
    int64_t input_stride;
    // The experts that are here: [first_expert, end_expert).
    int32_t first_expert, end_expert;
    const PackedMatrix* gate_ups;  // [num_experts], all of one shape and type; of experts elsewhere without panels
    const PackedMatrix* downs;     // alike
    Activation activation;
    DType gated_dtype;
    float* output;  // [num_rows, output_stride]; results are added, of `size` columns
    int64_t output_stride;
    int64_t size;
    // Memory for num_rows * experts_per_row rows each, strides in elements; of inputs as `input`, of quantised gates as
    // GemmCall takes them for `downs`, null if these are not quantised.
    void* copies;
    void* gated;
    int64_t gated_stride;
    uint32_t* quantized;
    int64_t quantized_stride;
    float* results;
    int64_t results_stride;
    // Results of a network beside the experts, [num_rows, shared_stride], which are added times the sigmoid of
    // shared_products [num_rows, shared_products_stride]; null: there is none.
    const float* shared;
    int64_t shared_stride;
    const float* shared_products;
    int64_t shared_products_stride;
    int64_t* loads;  // [num_experts], to which the rows of each are added; null: to nothing
    // Where the experts of each row are kept, ascending, by the KV slot of its token: [slots, record_stride], of which
    // the first experts_per_row are those of this layer; null: nowhere.
    int16_t* record;
    int64_t record_stride;
    const int32_t* slots;  // [num_rows]
    ExpertsPlan* plan;     // experts_plan_bytes
    float* scratch;        // of GemmCall
};

size_t experts_plan_bytes(const RoutingKind& routing, int64_t max_rows);
// Bound of the chunks of an operation, all threads together.
int64_t experts_max_chunks(const ExpertsCall& call, int64_t max_rows);

// Experts and weights of one row, experts ascending: [experts_per_row] each.
void choose_experts(const RoutingKind& routing, const float* products, const float* correction, int32_t* experts,
                    float* weights);

// What ranks do between two meetings.
enum ExpertsStage : int32_t {
    kRouteAndGate = 0,   // plans, and writes `gated`, from the first column of this rank on
    kQuantizeGates = 1,  // if `quantized` is not null; reads `gated` from the first column of all on
    kMultiplyDown = 2,   // writes `results`, from the first column of this rank on
    kCombine = 3,        // adds to `output`; reads `results` from the first column of all on
};

// A stage, with all threads; `ranks` share what works row by row.
void share_experts(Participant& participant, const ExpertsCall& call, ExpertsStage stage, RankShare ranks = {});

}  // namespace bough
