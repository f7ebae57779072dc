// How a step's attention is split into items of work and these over the threads.
#include "attention_plan.h"

#include <algorithm>
#include <stdexcept>

namespace bough {

namespace {

constexpr int64_t kMaxPartialBytes = int64_t{32} << 20;
constexpr int kMinItemRows = 64;
// Blocks of a row per thread from which on all of its heads are split together: with fewer, the block that one thread
// has more than another weighs too much.
constexpr int64_t kMinBlocksPerThread = 4;
constexpr int64_t kPackRows = 8;  // packing a key costs about as much as this many query rows that look at it

int64_t max_item_rows(const AttentionShape& shape) { return std::max<int64_t>(kItemRows, shape.num_heads); }

// Fewest and most queries of an item of a row with many.
int64_t tile_queries(const AttentionShape& shape, int64_t rows) {
    const int64_t group = shape.num_heads / shape.num_kv_heads;
    return std::max<int64_t>(rows / group, 1);
}

int64_t item_bound(const AttentionShape& shape, int64_t max_rows, int64_t max_tokens, int num_threads) {
    const int64_t tiles = max_rows + max_tokens / tile_queries(shape, kMinItemRows) + 1;
    return tiles * shape.num_kv_heads + 16 * static_cast<int64_t>(num_threads);
}

size_t plan_bytes_for(int64_t items, int num_threads) {
    return sizeof(AttentionPlan) + static_cast<size_t>(items) * (sizeof(AttentionItem) + sizeof(AttentionMerge)) +
           static_cast<size_t>(num_threads + 1) * sizeof(int32_t);
}

// Makes the items of one step, in order.
class Planner {
public:
    Planner(AttentionPlan* plan, const AttentionShape& shape, const StepRows& rows, int64_t max_context)
        : plan_(plan),
          items_(plan->items),
          merges_(plan->merges),
          shape_(shape),
          rows_(rows),
          group_(shape.num_heads / shape.num_kv_heads),
          free_partials_(partial_capacity(shape, max_context, plan->num_threads)) {}

    bool run() {
        int64_t total = 0;
        for (int32_t row = 0; row < rows_.num_rows; ++row) {
            total += cost(row, 0, rows_.extend_lens[row], shape_.num_kv_heads);
        }
        // Items at most this large leave threads idle for a small part of the step only.
        share_ = plan_->num_threads > 1 ? total / plan_->num_threads : total + 1;
        for (int32_t row = 0; row < rows_.num_rows; ++row) {
            if (!plan_row(row)) return false;
        }
        assign();
        return true;
    }

private:
    // Keys that the queries see together, by position.
    int64_t first_visible(int32_t row, int64_t query) const {
        const int64_t position = rows_.prefix_lens[row] + query;
        return shape_.window > 0 ? std::max<int64_t>(position - shape_.window + 1, 0) : 0;
    }

    // In keys times query rows.
    int64_t cost(int32_t row, int64_t first_query, int64_t num_queries, int64_t num_heads) const {
        const int64_t last = rows_.prefix_lens[row] + first_query + num_queries;
        const int64_t widest = last - first_visible(row, first_query);
        const int64_t hidden = shape_.window > 0 ? 0 : num_queries / 2;
        return num_heads * (std::max<int64_t>(widest - hidden, 1) * num_queries * group_ + widest * kPackRows);
    }

    bool plan_row(int32_t row) {
        const int64_t queries = rows_.extend_lens[row];
        const int64_t kv_heads = shape_.num_kv_heads;
        if (queries * shape_.num_heads <= max_item_rows(shape_)) {
            const AttentionItem all = item_of(row, 0, queries, 0, static_cast<int32_t>(kv_heads));
            const int64_t all_cost = cost(row, 0, queries, kv_heads);
            if (all_cost <= share_ / 4) return add(all, 1);
            // Keys of all heads lie side by side: threads that each read those of one head disturb each other's
            // fetches.
            const int64_t pieces = pieces_of(all_cost);
            if (num_blocks(all) >= kMinBlocksPerThread * plan_->num_threads && can_split(all, pieces)) {
                return add(all, pieces);
            }
        }
        int64_t tile = tile_queries(shape_, kItemRows);
        const int64_t smallest = tile_queries(shape_, kMinItemRows);
        while (tile / 2 >= smallest &&
               cost(row, std::max<int64_t>(queries - tile, 0), std::min(tile, queries), 1) > share_ / 4) {
            tile /= 2;
        }
        const bool even = queries <= tile && kv_heads % plan_->num_threads == 0;
        for (int32_t head = 0; head < kv_heads; ++head) {
            for (int64_t first = 0; first < queries; first += tile) {
                const int64_t count = std::min(tile, queries - first);
                const int64_t item_cost = cost(row, first, count, 1);
                const int64_t pieces = !even && item_cost > share_ / 4 ? pieces_of(item_cost) : 1;
                if (!add(item_of(row, first, count, head, head + 1), pieces)) return false;
            }
        }
        return true;
    }

    int64_t pieces_of(int64_t item_cost) const { return (8 * item_cost + share_ - 1) / std::max<int64_t>(share_, 1); }

    AttentionItem item_of(int32_t row, int64_t first_query, int64_t num_queries, int32_t first_head,
                          int32_t end_head) const {
        const int64_t last = rows_.prefix_lens[row] + first_query + num_queries;
        const int64_t first_block = first_visible(row, first_query) / kBlockTokens;
        const int64_t end_block = (last + kBlockTokens - 1) / kBlockTokens;
        return {row,      static_cast<int32_t>(first_query), static_cast<int32_t>(num_queries), first_head,
                end_head, static_cast<int32_t>(first_block), static_cast<int32_t>(end_block),   -1};
    }

    static int64_t num_blocks(const AttentionItem& item) { return item.end_block - item.first_block; }

    // Floats of a partial result of each of the item's blocks.
    int64_t floats_per_block(const AttentionItem& item) const {
        return partial_floats(item.num_queries * group_ * (item.end_head - item.first_head), shape_.head_dim);
    }

    // Whether there is room for partial results. Splitting may use what the bound leaves for it, so that a later row
    // finds room for its unsplit items.
    bool can_split(const AttentionItem& item, int64_t pieces) const {
        return floats_per_block(item) * num_blocks(item) <= free_partials_ &&
               split_items_ + pieces <= 16 * plan_->num_threads;
    }

    // One item, or up to `pieces` with partial results if there is room for them.
    bool add(AttentionItem item, int64_t pieces) {
        const int64_t blocks = num_blocks(item);
        pieces = std::min(pieces, blocks);
        if (pieces > 1 && can_split(item, pieces)) {
            if (plan_->num_items + pieces > plan_->max_items) return false;
            if (plan_->num_merges + item.end_head - item.first_head > plan_->max_items) return false;
            const int32_t first_block = item.first_block;
            const int64_t floats = floats_per_block(item);
            split_items_ += pieces;
            for (int32_t head = item.first_head; head < item.end_head; ++head) {
                merges_[plan_->num_merges++] = {item.row,
                                                item.first_query,
                                                item.num_queries,
                                                head,
                                                item.first_head,
                                                item.end_head,
                                                static_cast<int32_t>(blocks),
                                                used_partials_};
            }
            for (int64_t piece = 0; piece < pieces; ++piece) {
                const int64_t begin = blocks * piece / pieces;
                item.first_block = first_block + static_cast<int32_t>(begin);
                item.end_block = first_block + static_cast<int32_t>(blocks * (piece + 1) / pieces);
                item.partial = used_partials_ + begin * floats;
                items_[plan_->num_items++] = item;
            }
            used_partials_ += floats * blocks;
            free_partials_ -= floats * blocks;
            return true;
        }
        if (plan_->num_items >= plan_->max_items) return false;
        items_[plan_->num_items++] = item;
        return true;
    }

    // Neighbouring items go to the same thread: their keys are the same, or near in memory.
    void assign() {
        int32_t* first_item = plan_->first_items;
        const int64_t threads = plan_->num_threads;
        int64_t all = 0;
        for (int32_t i = 0; i < plan_->num_items; ++i) all += item_cost(items_[i]);
        int64_t done = 0;
        int64_t thread = 0;
        first_item[0] = 0;
        for (int32_t i = 0; i < plan_->num_items; ++i) {
            const int64_t cost = item_cost(items_[i]);
            const int64_t middle = done + cost / 2;
            while (thread + 1 < threads && middle * threads >= all * (thread + 1)) first_item[++thread] = i;
            done += cost;
        }
        while (thread < threads) first_item[++thread] = plan_->num_items;
    }

    int64_t item_cost(const AttentionItem& item) const {
        const int64_t whole = cost(item.row, item.first_query, item.num_queries, item.end_head - item.first_head);
        if (item.partial < 0) return whole;
        const int64_t last = rows_.prefix_lens[item.row] + item.first_query + item.num_queries;
        const int64_t first = first_visible(item.row, item.first_query);
        const int64_t seen = std::min<int64_t>(int64_t{item.end_block} * kBlockTokens, last) -
                             std::max<int64_t>(int64_t{item.first_block} * kBlockTokens, first);
        return whole * std::max<int64_t>(seen, 1) / std::max<int64_t>(last - first, 1);
    }

    AttentionPlan* plan_;
    AttentionItem* items_;
    AttentionMerge* merges_;
    const AttentionShape& shape_;
    const StepRows& rows_;
    int64_t group_;
    int64_t share_ = 0;  // cost per thread
    int64_t free_partials_;
    int64_t used_partials_ = 0;
    int64_t split_items_ = 0;
};

}  // namespace

int64_t attention_thread_bytes(const AttentionShape& shape) {
    const int64_t padded = padded_head_dim(shape.head_dim);
    const int64_t rows = max_item_rows(shape) + 16;
    const int64_t counts[] = {
        kBlockTokens * padded,    kBlockTokens * padded, 16 * padded,   padded,        kBlockTokens, kBlockTokens,
        16 * (kBlockTokens + 16), 16 * padded,           rows * padded, rows * padded, rows,         rows};
    int64_t bytes = 0;
    for (const int64_t count : counts) bytes += (count * 4 + 63) / 64 * 64;
    return (bytes + 4095) / 4096 * 4096;
}

int64_t partial_capacity(const AttentionShape& shape, int64_t max_context, int num_threads) {
    if (num_threads <= 1) return 0;
    const int64_t blocks = max_context / kBlockTokens + 1;
    const int64_t wanted = 4 * blocks * partial_floats(shape.num_heads, shape.head_dim);
    return std::min(wanted, kMaxPartialBytes / 4);
}

size_t attention_plan_bytes(const AttentionShape& shape, int64_t max_rows, int64_t max_tokens, int num_threads) {
    return plan_bytes_for(item_bound(shape, max_rows, max_tokens, num_threads), num_threads);
}

size_t attention_partial_bytes(const AttentionShape& shape, int64_t max_context, int num_threads) {
    return static_cast<size_t>(partial_capacity(shape, max_context, num_threads)) * 4;
}

size_t attention_scratch_bytes(const AttentionShape& shape, int64_t max_context, int num_threads) {
    return static_cast<size_t>(num_threads * attention_thread_bytes(shape)) +
           attention_partial_bytes(shape, max_context, num_threads);
}

void attention_plan(AttentionPlan* plan, size_t plan_bytes, const AttentionShape& shape, const StepRows& rows,
                    int64_t max_context, int num_threads) {
    const size_t fixed = plan_bytes_for(0, num_threads);
    if (plan_bytes < fixed) throw std::length_error("no room for a plan of attention");
    const size_t max_items = (plan_bytes - fixed) / (sizeof(AttentionItem) + sizeof(AttentionMerge));
    AttentionItem* const items = reinterpret_cast<AttentionItem*>(plan + 1);
    AttentionMerge* const merges = reinterpret_cast<AttentionMerge*>(items + max_items);
    *plan = {num_threads,
             0,
             0,
             static_cast<int32_t>(max_items),
             items,
             merges,
             reinterpret_cast<int32_t*>(merges + max_items)};
    if (!Planner(plan, shape, rows, max_context).run()) throw std::length_error("a plan of attention is too long");
}

AttentionItems attention_items(const AttentionPlan* plan, int thread) {
    return {plan->first_items[thread], plan->first_items[thread + 1]};
}

int64_t attention_parts(const AttentionPlan* plan, int64_t item) {
    const AttentionItem& each = plan->items[item];
    return each.partial < 0 ? 1 : each.end_block - each.first_block;
}

int64_t attention_merges(const AttentionPlan* plan) { return plan->num_merges; }

int64_t attention_max_items(const AttentionShape& shape, int64_t max_rows, int64_t max_tokens, int num_threads) {
    return item_bound(shape, max_rows, max_tokens, num_threads);
}

}  // namespace bough
