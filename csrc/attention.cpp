// Attention over the paged KV pool, in the manner of FlashAttention (Dao et al. 2022): a tile of query rows goes over
// the keys block by block and keeps a running maximum, sum and output.
//
// An item of work is some queries of one row of the step and some KV heads. The queries of all heads that share a KV
// head are rows of one matrix, so a block of keys and values is packed once and used by all of them.
#include "attention_output.h"
#include "attention_plan.h"
#include "attention_tile.h"

namespace bough {
namespace BOUGH_ISA {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();
constexpr int kScoreStride = kBlockTokens + 16;  // off a power of two, so that rows do not share cache sets
constexpr int kTilePad = 16;

// With at most so many rows, packing a whole block costs more than it gains: two tiles where one has six rows (measured
// with seven rows, the query heads of a key head in Qwen2.5-0.5B, and none between eight and twelve), else one.
constexpr int kFewRows = kRegisters == 32 ? kTileRows : 2 * kTileRows;
static_assert(kFewRows <= kTilePad, "rows of scores");

// One thread's memory.
struct Scratch {
    Word* keys;         // [panel of keys][unit][kPanel]
    Word* values;       // [panel of dimensions][unit of keys][kPanel]
    Word* staging;      // [kLanes][head_dim], rows on their way
    Word* zeros;        // [head_dim]
    float* key_scales;  // [kBlockTokens]
    float* value_scales;
    float* scores;   // [kTilePad][kScoreStride], scores and then weights
    float* product;  // [kTileRows][padded head_dim]
    Word* queries;   // [rows][head_dim], tiles one after the other, each [unit][row of the tile]
    float* sums;     // [rows][padded head_dim]
    float* largest;  // [rows]
    float* totals;   // [rows]
};

BOUGH_INLINE Scratch scratch_of(const AttentionCall& call, int thread) {
    const int64_t dim = call.shape.head_dim;
    const int64_t padded = padded_head_dim(dim);
    const int64_t rows = at_least(kItemRows, call.shape.num_heads) + kTilePad;
    char* at = static_cast<char*>(call.scratch) + thread * call.scratch_stride;
    const auto take = [&at](int64_t count) {
        char* taken = at;
        at += (count * 4 + 63) / 64 * 64;
        return taken;
    };
    Scratch s;
    s.keys = reinterpret_cast<Word*>(take(kBlockTokens * padded));
    s.values = reinterpret_cast<Word*>(take(kBlockTokens * padded));
    s.staging = reinterpret_cast<Word*>(take(16 * padded));
    s.zeros = reinterpret_cast<Word*>(take(padded));
    s.key_scales = reinterpret_cast<float*>(take(kBlockTokens));
    s.value_scales = reinterpret_cast<float*>(take(kBlockTokens));
    s.scores = reinterpret_cast<float*>(take(kTilePad * kScoreStride));
    s.product = reinterpret_cast<float*>(take(kTilePad * padded));
    s.queries = reinterpret_cast<Word*>(take(rows * padded));
    s.sums = reinterpret_cast<float*>(take(rows * padded));
    s.largest = reinterpret_cast<float*>(take(rows));
    s.totals = reinterpret_cast<float*>(take(rows));
    return s;
}

// A thread's work on one item, with keys and values as units of type Unit.
template <class Unit>
class Worker {
public:
    Worker(const AttentionCall& call, const Scratch& scratch)
        : call_(call),
          s_(scratch),
          dim_(call.shape.head_dim),
          padded_(padded_head_dim(call.shape.head_dim)),
          num_units_((call.shape.head_dim + Unit::kPerUnit - 1) / Unit::kPerUnit),
          num_vectors_((call.shape.head_dim + kLanes - 1) / kLanes),
          group_(call.shape.num_heads / call.shape.num_kv_heads),
          row_bytes_(dim_ * (call.kv.dtype == DType::f32    ? 4
                             : call.kv.dtype == DType::bf16 ? 2
                                                            : 1)),
          slot_bytes_(row_bytes_ * call.shape.num_kv_heads),
          direct_(row_bytes_ == dim_ * 4 / Unit::kPerUnit && dim_ % Unit::kPerUnit == 0) {}

    // An item, or if it has partial results, its block `part`. `next` is the item that follows, if any: its first keys
    // are fetched meanwhile.
    void run(const AttentionItem& item, int64_t part, const AttentionItem* next) {
        const int64_t rows = static_cast<int64_t>(item.num_queries) * group_;  // per KV head
        const int64_t num_heads = item.end_head - item.first_head;
        first_position_ = call_.rows.prefix_lens[item.row] + item.first_query;
        for (int64_t head = 0; head < num_heads; ++head) pack_queries(item, item.first_head + head, head * rows, rows);
        const bool is_partial = item.partial >= 0;
        const int32_t first_block = item.first_block + (is_partial ? static_cast<int32_t>(part) : 0);
        const int32_t end_block = is_partial ? first_block + 1 : item.end_block;
        for (int32_t block = first_block; block < end_block; ++block) {
            for (int32_t head = item.first_head; head < item.end_head; ++head) {
                const Keys keys = keys_of(item, block, head);
                if (head + 1 < item.end_head) {
                    upcoming_ = keys_of(item, block, head + 1);
                } else if (block + 1 < item.end_block) {
                    upcoming_ = keys_of(item, block + 1, item.first_head);
                } else {
                    upcoming_ = next != nullptr ? keys_of(*next, next->first_block, next->first_head) : Keys{};
                }
                const int64_t first_row = (head - item.first_head) * rows;
                if (rows <= kFewRows) {
                    attend_few(keys, first_row, static_cast<int>(rows), block == first_block);
                } else {
                    pack_block(keys);
                    attend_block(keys, first_row, rows, block == first_block);
                }
            }
        }
    }

    // Puts what `run` has left in the scratch memory into the output or the partial results.
    void commit(const AttentionItem& item, int64_t part, float* partials) {
        const int64_t rows = static_cast<int64_t>(item.num_queries) * group_;
        if (item.partial < 0) return write_output(item.row, item.first_query, item.first_head, item.end_head, rows);
        const int64_t all_rows = rows * (item.end_head - item.first_head);
        store_partial(partials + item.partial + part * partial_floats(all_rows, dim_), all_rows);
    }

    // Fold the partial results of an item's head, in ascending order of their blocks.
    void merge(const AttentionMerge& item, const float* partials) {
        const int64_t rows = static_cast<int64_t>(item.num_queries) * group_;
        const int64_t all_rows = rows * (item.end_head - item.first_head);
        const int64_t first_row = rows * (item.head - item.first_head);
        const int64_t stride = partial_floats(all_rows, dim_);
        for (int64_t block = 0; block < item.num_blocks; ++block) {
            const float* partial = partials + item.partial + block * stride;
            const float* sums = partial + 2 * all_rows + first_row * padded_;
            for (int64_t row = 0; row < rows; row += kTileRows) {
                const int count = static_cast<int>(at_most(kTileRows, rows - row));
                float largest[kTilePad] = {};
                float totals[kTilePad] = {};
                for (int i = 0; i < count; ++i) {
                    largest[i] = partial[first_row + row + i];
                    totals[i] = partial[all_rows + first_row + row + i];
                }
                fold(row, count, largest, totals, sums + row * padded_, block == 0);
            }
        }
    }

    void commit(const AttentionMerge& item) {
        const int64_t rows = static_cast<int64_t>(item.num_queries) * group_;
        write_output(item.row, item.first_query, item.head, item.head + 1, rows);
    }

private:
    // Keys of one KV head in one block, those that any query of an item sees.
    struct Keys {
        const int32_t* slots = nullptr;  // of the block's positions
        int64_t start = 0;               // position of the block
        int first = 0;                   // within the block
        int end = 0;
        const char* keys = nullptr;  // of the head in slot 0
        const char* values = nullptr;
        int64_t head = 0;
    };

    Keys keys_of(const AttentionItem& item, int32_t block, int32_t head) const {
        const int64_t first_position = call_.rows.prefix_lens[item.row] + item.first_query;
        const int64_t window = call_.shape.window;
        Keys keys;
        keys.start = static_cast<int64_t>(block) * kBlockTokens;
        const int64_t first_visible = window > 0 ? first_position - window + 1 : 0;
        keys.first = static_cast<int>(at_least(first_visible - keys.start, 0));
        keys.end = static_cast<int>(at_most(first_position + item.num_queries - keys.start, kBlockTokens));
        keys.slots = call_.rows.req_to_token + call_.rows.req_slots[item.row] * call_.rows.table_stride + keys.start;
        keys.keys = static_cast<const char*>(call_.kv.keys) + head * row_bytes_;
        keys.values = static_cast<const char*>(call_.kv.values) + head * row_bytes_;
        keys.head = head;
        return keys;
    }

    // Ask for part `part` of `parts` of what is looked at next.
    // Inlined always: GCC takes a function that only prefetches for one without effect and removes the call.
    BOUGH_INLINE void prefetch(const Keys& keys, int part, int parts, int64_t slot_bytes, int64_t row_bytes) {
        const int count = keys.end - keys.first;
        const int end = keys.first + count * (part + 1) / parts;
        for (int key = keys.first + count * part / parts; key < end; ++key) {
            const int64_t offset = keys.slots[key] * slot_bytes;
            for (int64_t byte = 0; byte < row_bytes; byte += 64) {
                __builtin_prefetch(keys.keys + offset + byte, 0, 2);
                __builtin_prefetch(keys.values + offset + byte, 0, 2);
            }
        }
    }

    // Part `part` of `parts` of what is looked at next, keys or values, to be asked for in `steps` steps.
    Upcoming upcoming_rows(const char* pool, int64_t part, int64_t parts, int64_t steps) const {
        const int64_t all = upcoming_.end - upcoming_.first;
        const int64_t first = all * part / parts;
        const int64_t count = all * (part + 1) / parts - first;
        return {upcoming_.slots + upcoming_.first + first,
                count,
                (count + steps - 1) / steps,
                pool,
                slot_bytes_,
                row_bytes_};
    }

    // Rows of each tile but the last. Two tiles are about equal.
    static int64_t tile_rows_of(int64_t rows) {
        const int64_t num_tiles = (rows + kTileRows - 1) / kTileRows;
        return (rows + num_tiles - 1) / num_tiles;
    }

    // Rows of queries are the heads of the first query, then those of the second, and so on.
    void pack_queries(const AttentionItem& item, int64_t kv_head, int64_t first_row, int64_t rows) {
        const float scale = call_.shape.scale * kLog2E;
        const int64_t token = call_.rows.first_tokens[item.row] + item.first_query;
        const float* heads = call_.queries + token * call_.query_stride + kv_head * group_ * dim_;
        const int64_t tile_rows = tile_rows_of(rows);
        for (int64_t tile = 0; tile < rows; tile += tile_rows) {
            const int count = static_cast<int>(at_most(tile_rows, rows - tile));
            Word* target = s_.queries + (first_row + tile) * num_units_;
            for (int m = 0; m < count; ++m) {
                const float* query = heads + (tile + m) / group_ * call_.query_stride + (tile + m) % group_ * dim_;
                pack_query(query, scale, s_.staging);
                for (int64_t u = 0; u < num_units_; ++u) target[u * count + m] = s_.staging[u];
            }
        }
    }

    void pack_query(const float* query, float scale, Word* units) {
        int64_t i = 0;
        if constexpr (Unit::kPerUnit == 2) {
            uint16_t* pairs = reinterpret_cast<uint16_t*>(units);
            for (; i + kLanes <= dim_; i += kLanes) store_bf16(pairs + i, mul(load(query + i), splat(scale)));
            for (; i < dim_; ++i) pairs[i] = as_bf16(query[i] * scale);
            if (i % 2 != 0) pairs[i] = 0;
        } else {
            float* floats = reinterpret_cast<float*>(units);
            for (; i + kLanes <= dim_; i += kLanes) store(floats + i, mul(load(query + i), splat(scale)));
            for (; i < dim_; ++i) floats[i] = query[i] * scale;
        }
    }

    // kLanes keys from `key` on as rows of units; zeros for those that nobody sees.
    void key_rows(const Keys& keys, int key, const Word** rows) {
        for (int lane = 0; lane < kLanes; ++lane) {
            const int at = key + lane;
            if (at < keys.first || at >= keys.end) {
                rows[lane] = s_.zeros;
                continue;
            }
            rows[lane] = units_of(keys.keys + keys.slots[at] * slot_bytes_, lane);
        }
    }

    // A row in the pool as units: itself if it consists of whole ones, else a copy.
    const Word* units_of(const char* row, int lane) {
        if (direct_) return reinterpret_cast<const Word*>(row);
        Word* staged = s_.staging + lane * padded_;
        widen_row<Unit>(row, call_.kv.dtype, dim_, staged);
        return staged;
    }

    void load_scales(const Keys& keys) {
        if (call_.kv.dtype != DType::i8) return;
        const int64_t kv_heads = call_.shape.num_kv_heads;
        for (int key = keys.first; key < keys.end; ++key) {
            s_.key_scales[key] = call_.kv.key_scales[keys.slots[key] * kv_heads + keys.head];
            s_.value_scales[key] = call_.kv.value_scales[keys.slots[key] * kv_heads + keys.head];
        }
    }

    // All keys and their values as panels.
    void pack_block(const Keys& keys) {
        const int end = (keys.end + kLanes - 1) / kLanes * kLanes;
        for (int key = keys.first / kPanel * kPanel; key < end; key += kLanes) {
            const Word* rows[kLanes];
            key_rows(keys, key, rows);
            transpose_lanes(rows, num_units_, s_.keys + key / kPanel * (num_units_ * kPanel) + key % kPanel);
            pack_value_lanes(keys, key);
        }
        load_scales(keys);
    }

    void pack_value_lanes(const Keys& keys, int key) {
        const Word* rows[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
            const int at = key + lane;
            const bool seen = at >= keys.first && at < keys.end;
            rows[lane] = seen ? units_of(keys.values + keys.slots[at] * slot_bytes_, lane) : s_.zeros;
        }
        for (int lane = 0; lane < kLanes; lane += Unit::kPerUnit) {
            pack_values(rows + lane, (key + lane) / Unit::kPerUnit);
        }
    }

    static constexpr int64_t kValuePanel = static_cast<int64_t>(kBlockTokens / Unit::kPerUnit) * kPanel;

    // The values of one unit of keys.
    void pack_values(const Word* const* rows, int64_t unit) {
        Word* target = s_.values + unit * kPanel;
        int64_t i = 0;
#if defined(__AVX512BF16__)
        if constexpr (Unit::kPerUnit == 2) {
            const uint16_t* even = reinterpret_cast<const uint16_t*>(rows[0]);
            const uint16_t* odd = reinterpret_cast<const uint16_t*>(rows[1]);
            for (; i + kPanel <= dim_; i += kPanel) {
                const __m512i low = _mm512_loadu_si512(even + i);
                const __m512i high = _mm512_loadu_si512(odd + i);
                _mm512_storeu_si512(target, _mm512_permutex2var_epi16(low, interleave_low(), high));
                _mm512_storeu_si512(target + kLanes, _mm512_permutex2var_epi16(low, interleave_high(), high));
                target += kValuePanel;
            }
            for (int64_t lane = 0; i < dim_; ++i, ++lane) {
                target[lane] = even[i] | static_cast<uint32_t>(odd[i]) << 16;
            }
            return;
        }
#endif
        for (; i + kPanel <= dim_; i += kPanel) {
            std::memcpy(target, rows[0] + i, kPanel * 4);
            target += kValuePanel;
        }
        if (i < dim_) std::memcpy(target, rows[0] + i, static_cast<size_t>(dim_ - i) * 4);
    }

    // All rows of one KV head against a packed block.
    void attend_block(const Keys& keys, int64_t first_row, int64_t rows, bool fresh) {
        const int first_panel = keys.first / kPanel;
        const int64_t tile_rows = tile_rows_of(rows);
        const int num_tiles = static_cast<int>((rows + tile_rows - 1) / tile_rows);
        for (int index = 0; index < num_tiles; ++index) {
            prefetch(upcoming_, index, num_tiles, slot_bytes_, row_bytes_);
            const int64_t tile = index * tile_rows;
            const int count = static_cast<int>(at_most(tile_rows, rows - tile));
            // Positions ascend with the rows: the last row sees furthest.
            const int64_t last_position = first_position_ + (tile + count - 1) / group_;
            const int end = static_cast<int>(at_most(last_position + 1 - keys.start, keys.end));
            if (end <= keys.first) {  // the rows lie before the block
                if (fresh) clear(first_row + tile, count);
                continue;
            }
            const int num_vectors = (end + kLanes - 1) / kLanes - first_panel * 2;
            multiply<Unit, 0>(count, s_.queries + (first_row + tile) * num_units_,
                              s_.keys + first_panel * (num_units_ * kPanel), num_units_, num_units_ * kPanel,
                              num_vectors, s_.scores + first_panel * kPanel, kScoreStride);
            float largest[kTilePad] = {};
            float totals[kTilePad] = {};
            weigh_tile(keys, s_.scores, tile, count, num_vectors, largest, totals);
            const int first_unit = first_panel * kPanel / Unit::kPerUnit;
            multiply<Unit, kScoreStride>(count, reinterpret_cast<const Word*>(s_.scores) + first_unit,
                                         s_.values + first_unit * kPanel, num_vectors * kLanes / Unit::kPerUnit,
                                         kValuePanel, num_vectors_, s_.product, padded_);
            fold(first_row + tile, count, largest, totals, s_.product, fresh);
        }
    }

    // The same for few rows: keys are packed some at a time, values are read where they are.
    void attend_few(const Keys& keys, int64_t first_row, int rows, bool fresh) {
        constexpr int kKeysAtOnce = 2 * kPanel;
        const int tile_rows = static_cast<int>(tile_rows_of(rows));
        const int first_panel = keys.first / kPanel;
        const int num_vectors = (keys.end + kLanes - 1) / kLanes - first_panel * 2;
        const int end = first_panel * kPanel + num_vectors * kLanes;
        const int parts = (end - first_panel * kPanel + kKeysAtOnce - 1) / kKeysAtOnce;
        load_scales(keys);
        int part = 0;
        for (int key = first_panel * kPanel; key < end; key += kKeysAtOnce, ++part) {
            const int vectors = static_cast<int>(at_most(kKeysAtOnce, end - key)) / kLanes;
            for (int v = 0; v < vectors; ++v) {
                const Word* lanes[kLanes];
                key_rows(keys, key + v * kLanes, lanes);
                transpose_lanes(lanes, num_units_, s_.keys + v / 2 * (num_units_ * kPanel) + v % 2 * kLanes);
            }
            for (int tile = 0; tile < rows; tile += tile_rows) {
                const int count = static_cast<int>(at_most(tile_rows, rows - tile));
                // The first tile asks for what comes next.
                const int64_t steps = num_units_ * num_column_tiles(count, vectors);
                multiply<Unit, 0>(count, s_.queries + (first_row + tile) * num_units_, s_.keys, num_units_,
                                  num_units_ * kPanel, vectors, s_.scores + tile * kScoreStride + key, kScoreStride,
                                  tile == 0 ? upcoming_rows(upcoming_.keys, part, parts, steps) : Upcoming{});
            }
        }
        for (int tile = 0; tile < rows; tile += tile_rows) {
            const int count = static_cast<int>(at_most(tile_rows, rows - tile));
            float largest[kTilePad] = {};
            float totals[kTilePad] = {};
            float* scores = s_.scores + tile * kScoreStride;
            weigh_tile(keys, scores, tile, count, num_vectors, largest, totals);
            weigh_few(keys, scores, count, first_panel * kPanel, end, tile == 0);
            fold(first_row + tile, count, largest, totals, s_.product, fresh);
        }
    }

    // product = weights by values of keys `first` to `end`.
    void weigh_few(const Keys& keys, const float* scores, int count, int first, int end, bool first_tile) {
        const Word* weights = reinterpret_cast<const Word*>(scores);
        const int first_unit = first / Unit::kPerUnit;
        const int end_unit = end / Unit::kPerUnit;
        const int whole_rows = Unit::kPerUnit == 2 ? kPanel : kLanes;
        const int64_t steps = static_cast<int64_t>(end_unit - first_unit) * num_column_tiles(count, num_vectors_);
        const Upcoming next = first_tile ? upcoming_rows(upcoming_.values, 0, 1, steps) : Upcoming{};
        if (call_.kv.dtype == DType::i8 || dim_ % whole_rows != 0) {
            for (int key = first; first_tile && key < end; key += kLanes) pack_value_lanes(keys, key);
            multiply<Unit, kScoreStride>(count, weights + first_unit, s_.values + first_unit * kPanel,
                                         end_unit - first_unit, kValuePanel, num_vectors_, s_.product, padded_, next);
            return;
        }
        const void* rows[kBlockTokens];
        for (int key = first; key < end; ++key) {
            const bool seen = key >= keys.first && key < keys.end;
            rows[key] = seen ? keys.values + keys.slots[key] * slot_bytes_ : reinterpret_cast<const char*>(s_.zeros);
        }
#if defined(__AVX512BF16__)
        if constexpr (Unit::kPerUnit == 2) {
            weigh_values<Unit, PairRows, kScoreStride>(count, weights, rows, first_unit, end_unit, num_vectors_,
                                                       s_.product, padded_, next);
            return;
        }
#endif
        if constexpr (Unit::kPerUnit == 1) {
            if (call_.kv.dtype == DType::f32) {
                weigh_values<Unit, FloatRows, kScoreStride>(count, weights, rows, first_unit, end_unit, num_vectors_,
                                                            s_.product, padded_, next);
            } else {
                weigh_values<Unit, WidenedRows, kScoreStride>(count, weights, rows, first_unit, end_unit, num_vectors_,
                                                              s_.product, padded_, next);
            }
        }
    }

    // Scores of a tile's rows to weights.
    void weigh_tile(const Keys& keys, float* scores, int64_t tile, int count, int num_vectors, float* largest,
                    float* totals) {
        const int first_vector = keys.first / kPanel * 2;
        const int64_t window = call_.shape.window;
        for (int m = 0; m < count; ++m) {
            const int64_t position = first_position_ + (tile + m) / group_;
            const int visible_end = static_cast<int>(at_most(position + 1 - keys.start, kBlockTokens));
            const int visible_first =
                window > 0 ? static_cast<int>(at_least(position - window + 1 - keys.start, 0)) : 0;
            weigh(scores + m * kScoreStride, first_vector, first_vector + num_vectors, visible_first, visible_end,
                  &largest[m], &totals[m]);
        }
    }

    // Turn one row's scores into weights relative to the largest, as units in the same place. Scores are logarithms
    // to base 2.
    void weigh(float* scores, int first_vector, int end_vector, int visible_first, int visible_end, float* largest,
               float* total) {
        const bool scaled = call_.kv.dtype == DType::i8;
        Vec best = splat(kMinusInfinity);
        for (int v = first_vector; v < end_vector; ++v) {
            Vec x = load(scores + v * kLanes);
            if (scaled) {
                x = mul(x, load(s_.key_scales + v * kLanes));
                store(scores + v * kLanes, x);
            }
            best = max(best, mask(x, v, visible_first, visible_end, splat(kMinusInfinity)));
        }
        *largest = max_lanes(best);
        const Vec shift = splat(*largest);
        Vec sum = splat(0.0F);
        for (int v = first_vector; v < end_vector; ++v) {
            Vec weight = exp2_not_positive(sub(load(scores + v * kLanes), shift));
            weight = mask(weight, v, visible_first, visible_end, splat(0.0F));
            sum = add(sum, weight);
            if (scaled) {
                weight = mul(weight, load(s_.value_scales + v * kLanes));
                weight = mask(weight, v, visible_first, visible_end, splat(0.0F));
            }
            if constexpr (Unit::kPerUnit == 2) {
                store_bf16(reinterpret_cast<uint16_t*>(scores) + v * kLanes, weight);
            } else {
                store(scores + v * kLanes, weight);
            }
        }
        *total = sum_lanes(sum);
    }

    BOUGH_INLINE Vec mask(Vec x, int vector, int first, int end, Vec other) {
        const int start = vector * kLanes;
        if (first <= start && end >= start + kLanes) return x;
        return keep_lanes(x, first - start, end - start, other);
    }

    void clear(int64_t row, int count) {
        for (int m = 0; m < count; ++m) {
            s_.largest[row + m] = kMinusInfinity;
            s_.totals[row + m] = 0.0F;
        }
        std::memset(s_.sums + row * padded_, 0, static_cast<size_t>(count * padded_) * 4);
    }

    // Merge a block's result into the running one of rows `row` to `row + count`; `fresh` if there is none yet.
    void fold(int64_t row, int count, const float* largest, const float* totals, const float* sums, bool fresh) {
        float* running = s_.sums + row * padded_;
        if (fresh) {
            for (int m = 0; m < count; ++m) {
                s_.largest[row + m] = largest[m];
                s_.totals[row + m] = totals[m];
            }
            for (int64_t i = 0; i < count * padded_; i += kLanes) store(running + i, load(sums + i));
            return;
        }
        float old_factor[kTilePad];
        float new_factor[kTilePad];
        for (int m = 0; m < kTilePad; m += kLanes) {
            const Vec before = load(s_.largest + row + m);
            const Vec block = load(largest + m);
            const Vec both = max(before, block);
            const Vec shift = max(splat(-3e38F), both);  // nothing visible so far: finite, so that factors are zero
            store(old_factor + m, exp2_not_positive(sub(before, shift)));
            store(new_factor + m, exp2_not_positive(sub(block, shift)));
            float merged[kLanes];
            store(merged, both);
            for (int i = 0; i < kLanes && m + i < count; ++i) s_.largest[row + m + i] = merged[i];
        }
        for (int m = 0; m < count; ++m) {
            const Vec old_weight = splat(old_factor[m]);
            const Vec new_weight = splat(new_factor[m]);
            s_.totals[row + m] = __builtin_fmaf(s_.totals[row + m], old_factor[m], totals[m] * new_factor[m]);
            for (int64_t i = m * padded_; i < m * padded_ + num_vectors_ * kLanes; i += kLanes) {
                store(running + i, fma(load(running + i), old_weight, mul(load(sums + i), new_weight)));
            }
        }
    }

    void store_partial(float* target, int64_t rows) {
        std::memcpy(target, s_.largest, static_cast<size_t>(rows) * 4);
        std::memcpy(target + rows, s_.totals, static_cast<size_t>(rows) * 4);
        std::memcpy(target + 2 * rows, s_.sums, static_cast<size_t>(rows * padded_) * 4);
    }

    void write_output(int32_t row, int64_t first_query, int64_t first_head, int64_t end_head, int64_t rows) {
        const int64_t token = call_.rows.first_tokens[row] + first_query;
        for (int64_t head = first_head; head < end_head; ++head) {
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t at = (head - first_head) * rows + r;
                const int64_t query_head = head * group_ + r % group_;
                const int64_t offset = (token + r / group_) * call_.output_stride + query_head * dim_;
                const float factor = inverse_total(call_, query_head, s_.largest[at], s_.totals[at]);
                write_head(call_, s_.sums + at * padded_, factor, offset);
            }
        }
    }

    const AttentionCall& call_;
    const Scratch s_;
    const int64_t dim_;
    const int64_t padded_;
    const int64_t num_units_;  // per head
    const int num_vectors_;    // of output per head
    const int64_t group_;      // query heads per KV head
    const int64_t row_bytes_;  // of one head in the pool
    const int64_t slot_bytes_;
    const bool direct_;           // rows in the pool consist of whole units
    int64_t first_position_ = 0;  // of the item's first query
    Keys upcoming_;
};

BOUGH_INLINE float* partials_of(const AttentionCall& call) {
    char* memory = static_cast<char*>(call.scratch);
    return reinterpret_cast<float*>(memory + call.plan->num_threads * call.scratch_stride);
}

// Calls `use(worker)` with what suits the keys and values of a call.
template <class Use>
BOUGH_INLINE void with_worker(const AttentionCall& call, int thread, const Use& use) {
    const Scratch scratch = scratch_of(call, thread);
    if (call.kv.dtype == DType::f32) {
        Worker<FloatUnit> worker(call, scratch);
        use(worker);
    } else {
        Worker<HalfUnit> worker(call, scratch);
        use(worker);
    }
}

static void attend(const AttentionCall& call, int64_t item, int64_t part, bool has_next, int thread) {
    const AttentionItem* items = call.plan->items + item;
    std::memset(scratch_of(call, thread).zeros, 0, static_cast<size_t>(padded_head_dim(call.shape.head_dim)) * 4);
    with_worker(call, thread, [&](auto& worker) { worker.run(*items, part, has_next ? items + 1 : nullptr); });
}

static void commit(const AttentionCall& call, int64_t item, int64_t part, int thread) {
    with_worker(call, thread, [&](auto& worker) { worker.commit(call.plan->items[item], part, partials_of(call)); });
}

static void merge(const AttentionCall& call, int64_t index, int thread) {
    with_worker(call, thread, [&](auto& worker) { worker.merge(call.plan->merges[index], partials_of(call)); });
}

static void commit_merge(const AttentionCall& call, int64_t index, int thread) {
    with_worker(call, thread, [&](auto& worker) { worker.commit(call.plan->merges[index]); });
}

}  // namespace

extern const AttentionKernels attention_kernels = {attend, commit, merge, commit_merge};

}  // namespace BOUGH_ISA
}  // namespace bough
