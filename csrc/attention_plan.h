// The plan of a step's attention: made by attention_plan.cpp, carried out by attention.cpp.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace bough {

// Keys are looked at in blocks that start at multiples of this position. A block's result is computed by itself and
// merged with those before it, so where work is cut never shows.
constexpr int kBlockTokens = 256;

// Most query rows (queries times heads) of an item, unless one query has more heads than this.
constexpr int kItemRows = 256;

struct AttentionItem {
    int32_t row;
    int32_t first_query;  // among the row's new tokens
    int32_t num_queries;
    int32_t first_head;  // KV heads
    int32_t end_head;
    int32_t first_block;
    int32_t end_block;
    int64_t partial;  // -1: the item writes its output; else where in the partial results its first block's is
};

// One KV head of an item whose blocks were computed apart.
struct AttentionMerge {
    int32_t row;
    int32_t first_query;
    int32_t num_queries;
    int32_t head;
    int32_t first_head;  // of the item
    int32_t end_head;
    int32_t num_blocks;
    int64_t partial;
};

struct AttentionPlan {
    int32_t num_threads;
    int32_t num_items;
    int32_t num_merges;
    int32_t max_items;
    // Behind this in the plan's memory.
    AttentionItem* items;    // [max_items]
    AttentionMerge* merges;  // [max_items]
    int32_t* first_items;    // [num_threads + 1], of each thread
};

// In an unnamed namespace, like everything inline here: see isa.h.
namespace {

// Output columns of a head in partial results and running sums, a whole number of the widest vectors' pairs.
inline int64_t padded_head_dim(int64_t head_dim) { return (head_dim + 31) / 32 * 32; }

// A partial result of `rows` query rows: largest score, sum of weights, then the weighted values of each.
inline int64_t partial_floats(int64_t rows, int64_t head_dim) { return rows * (padded_head_dim(head_dim) + 2); }

}  // namespace

// Floats of partial results that a step may have.
int64_t partial_capacity(const AttentionShape& shape, int64_t max_context, int num_threads);

}  // namespace bough
