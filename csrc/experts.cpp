#include "experts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "isa.h"
#include "works.h"

namespace bough {

namespace {

// Added to the sum that weights are divided by.
constexpr float kLeastSum = 1e-20F;

// Rows times experts up to which one thread routes all rows while it plans.
constexpr int64_t kRoutedAtOnce = 2048;

// Columns of a row that are combined together.
constexpr int64_t kCombinedColumns = 512;

enum Product { kGateUp = 0, kDown = 1 };

// An expert with rows.
struct Active {
    int32_t expert;
    int32_t num_rows;
    int64_t first;  // of its rows, sorted by expert
    GemmShare shares[2];
    int64_t first_chunk[2];
};

}  // namespace

struct ExpertsPlan {
    // Of the experts that are here.
    int64_t num_active;
    int64_t num_chunks[2];
    int64_t first_copy, end_copy;  // their rows, sorted by expert
    int64_t num_copied;            // rows of experts that have several
};

namespace {

constexpr size_t kPlanHeader = (sizeof(ExpertsPlan) + 63) / 64 * 64;

// The parts of a plan's memory.
struct Parts {
    Active* active;     // [num_experts]
    int32_t* experts;   // [rows, experts_per_row]
    float* weights;     // alike
    int32_t* places;    // alike: where each is, sorted by expert
    int32_t* rows;      // [rows * experts_per_row], sorted by expert
    int32_t* is_alone;  // alike: whether its expert has no other row

    Parts(const RoutingKind& routing, ExpertsPlan* plan, int64_t num_rows) {
        const int64_t count = num_rows * routing.experts_per_row;
        active = reinterpret_cast<Active*>(reinterpret_cast<char*>(plan) + kPlanHeader);
        experts = reinterpret_cast<int32_t*>(active + routing.num_experts);
        weights = reinterpret_cast<float*>(experts + count);
        places = reinterpret_cast<int32_t*>(weights + count);
        rows = places + count;
        is_alone = rows + count;
    }
    explicit Parts(const ExpertsCall& call) : Parts(call.routing, call.plan, call.num_rows) {}
};

int64_t copies_of(const ExpertsCall& call) { return call.num_rows * call.routing.experts_per_row; }

int64_t input_bytes(const ExpertsCall& call) {
    return call.input_stride * (call.gate_ups->dtype == DType::bf16 ? 2 : 4);
}

int64_t gated_bytes(const ExpertsCall& call) { return call.gated_stride * (call.gated_dtype == DType::bf16 ? 2 : 4); }

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// Takes the ranks of experts that are in none of the best groups to minus infinity. Of equal groups the first counts.
void leave_groups(const RoutingKind& routing, float* ranks) {
    const int32_t size = routing.num_experts / routing.num_groups;
    float scores[kMaxExperts];
    bool is_kept[kMaxExperts] = {};
    for (int32_t group = 0; group < routing.num_groups; ++group) {
        const float* of_group = ranks + group * size;
        float best = -HUGE_VALF, second = -HUGE_VALF;
        for (int32_t i = 0; i < size; ++i) {
            second = std::max(second, std::min(best, of_group[i]));
            best = std::max(best, of_group[i]);
        }
        scores[group] = routing.group_best > 1 && size > 1 ? best + second : best;
    }
    for (int32_t i = 0; i < routing.groups_per_row; ++i) {
        int32_t best = -1;
        for (int32_t group = 0; group < routing.num_groups; ++group) {
            if (!is_kept[group] && (best < 0 || scores[group] > scores[best])) best = group;
        }
        is_kept[best] = true;
    }
    for (int32_t i = 0; i < routing.num_experts; ++i) ranks[i] = is_kept[i / size] ? ranks[i] : -HUGE_VALF;
}

}  // namespace

void choose_experts(const RoutingKind& routing, const float* products, const float* correction, int32_t* experts,
                    float* weights) {
    const int32_t count = routing.num_experts;
    float scores[kMaxExperts], ranks[kMaxExperts];
    if (routing.scores == kSigmoidScores) {
        for (int32_t i = 0; i < count; ++i) scores[i] = sigmoid(products[i]);
    } else {
        const float largest = *std::max_element(products, products + count);
        float sum = 0.0F;
        for (int32_t i = 0; i < count; ++i) sum += scores[i] = std::exp(products[i] - largest);
        for (int32_t i = 0; i < count; ++i) scores[i] /= sum;
    }
    for (int32_t i = 0; i < count; ++i) ranks[i] = correction != nullptr ? scores[i] + correction[i] : scores[i];
    if (routing.groups_per_row < routing.num_groups) leave_groups(routing, ranks);
    // The best so far, in order. Of equal ranks the first counts; any products, also no numbers, give valid experts.
    int32_t found = 0;
    for (int32_t expert = 0; expert < count; ++expert) {
        int32_t place = found;
        while (place > 0 && ranks[expert] > ranks[experts[place - 1]]) --place;
        if (place == routing.experts_per_row) continue;
        found = std::min(found + 1, routing.experts_per_row);
        for (int32_t i = found - 1; i > place; --i) experts[i] = experts[i - 1];
        experts[place] = expert;
    }
    std::sort(experts, experts + found);
    float sum = 0.0F;
    for (int32_t i = 0; i < found; ++i) sum += weights[i] = scores[experts[i]];
    const float divisor = routing.renormalised != 0 ? sum + kLeastSum : 1.0F;
    for (int32_t i = 0; i < found; ++i) weights[i] = weights[i] / divisor * routing.scaling;
}

size_t experts_plan_bytes(const RoutingKind& routing, int64_t max_rows) {
    return kPlanHeader + static_cast<size_t>(routing.num_experts) * sizeof(Active) +
           static_cast<size_t>(max_rows * routing.experts_per_row) * 5 * sizeof(int32_t);
}

int64_t experts_max_chunks(const ExpertsCall& call, int64_t max_rows) {
    const int64_t copies = max_rows * call.routing.experts_per_row;
    const int64_t panels = std::max(num_panels(*call.gate_ups), num_panels(*call.downs));
    return panels * (std::min<int64_t>(copies, call.routing.num_experts) + copies / kLeastPieceRows + 1);
}

namespace {

void route(const ExpertsCall& call, int64_t row) {
    const Parts parts(call);
    const int64_t at = row * call.routing.experts_per_row;
    choose_experts(call.routing, call.products + row * call.products_stride, call.correction, parts.experts + at,
                   parts.weights + at);
}

// Sorts the rows by expert, and cuts the products.
void plan(const ExpertsCall& call) {
    const Parts parts(call);
    ExpertsPlan& made = *call.plan;
    const int64_t copies = copies_of(call);
    Active* const by_expert = parts.active;  // of all experts first, then moved together
    for (int32_t expert = 0; expert < call.routing.num_experts; ++expert) by_expert[expert].num_rows = 0;
    for (int64_t i = 0; i < copies; ++i) ++by_expert[parts.experts[i]].num_rows;
    int64_t first = 0;
    for (int32_t expert = 0; expert < call.routing.num_experts; ++expert) {
        by_expert[expert].first = first;
        first += by_expert[expert].num_rows;
    }
    for (int64_t i = 0; i < copies; ++i) {
        Active& of_expert = by_expert[parts.experts[i]];
        const int64_t place = of_expert.first++;
        parts.places[i] = static_cast<int32_t>(place);
        parts.rows[place] = static_cast<int32_t>(i / call.routing.experts_per_row);
        parts.is_alone[place] = of_expert.num_rows == 1 ? 1 : 0;
    }
    for (int64_t i = 0; call.record != nullptr && i < copies; ++i) {
        const int64_t row = i / call.routing.experts_per_row, index = i % call.routing.experts_per_row;
        call.record[call.slots[row] * call.record_stride + index] = static_cast<int16_t>(parts.experts[i]);
    }
    made.num_active = made.num_copied = made.first_copy = made.end_copy = 0;
    made.num_chunks[kGateUp] = made.num_chunks[kDown] = 0;
    for (int32_t expert = 0; expert < call.routing.num_experts; ++expert) {
        Active active = by_expert[expert];
        if (active.num_rows == 0) continue;
        active.expert = expert;
        active.first -= active.num_rows;
        if (call.loads != nullptr) __atomic_fetch_add(call.loads + expert, active.num_rows, __ATOMIC_RELAXED);
        if (expert < call.first_expert || expert >= call.end_expert) continue;
        if (made.num_active == 0) made.first_copy = active.first;
        made.end_copy = active.first + active.num_rows;
        if (active.num_rows > 1) made.num_copied += active.num_rows;
        for (const Product product : {kGateUp, kDown}) {
            GemmCall gemm{};
            gemm.weights = (product == kGateUp ? call.gate_ups : call.downs)[expert];
            gemm.num_rows = active.num_rows;
            gemm.epilogue = product == kGateUp ? kGate : kStore;
            active.shares[product] = kernels().gemm.share(gemm, 0, 1);
            active.first_chunk[product] = made.num_chunks[product];
            made.num_chunks[product] += active.shares[product].num_chunks();
        }
        by_expert[made.num_active++] = active;
    }
}

// What one thread does before all others go on.
class PlanWork : public Work {
public:
    PlanWork(const ExpertsCall& call, bool routes) : Work(true), call_(call), routes_(routes) {}
    int64_t num_chunks(int owner) const override { return owner == 0 ? 1 : 0; }
    void compute(int, int64_t, int64_t, int) const override {
        for (int64_t row = 0; routes_ && row < call_.num_rows; ++row) route(call_, row);
        plan(call_);
    }

private:
    const ExpertsCall& call_;
    const bool routes_;
};

}  // namespace

// One of the two products of all experts. Not in the unnamed namespace, since late_readers.supp names it.
class ExpertsWork : public Work {
public:
    ExpertsWork(int num_threads, const ExpertsCall& call, Product product)
        : Work(false), num_threads_(num_threads), call_(call), parts_(call), product_(product) {}

    int64_t num_chunks(int owner) const override { return first_of(owner + 1) - first_of(owner); }
    void compute(int owner, int64_t chunk, int64_t, int thread) const override {
        const Place place = find(first_of(owner) + chunk);
        kernels().gemm.compute(place.call, place.share, place.chunk, scratch(thread));
    }
    void commit(int owner, int64_t chunk, int64_t, int thread) const override {
        const Place place = find(first_of(owner) + chunk);
        kernels().gemm.commit(place.call, place.share, place.chunk, scratch(thread), nullptr);
    }

private:
    struct Place {
        GemmCall call;
        const GemmShare& share;
        int64_t chunk;
    };

    int64_t first_of(int owner) const { return call_.plan->num_chunks[product_] * owner / num_threads_; }
    float* scratch(int thread) const { return call_.scratch + thread * kGemmScratchFloats; }

    Place find(int64_t chunk) const {
        const Active* const end = parts_.active + call_.plan->num_active;
        const Active* const next = std::upper_bound<const Active*>(
            parts_.active, end, chunk,
            [this](int64_t wanted, const Active& each) { return wanted < each.first_chunk[product_]; });
        const Active& active = next[-1];
        const GemmCall call = product_ == kGateUp ? gate_up(active) : down(active);
        return {call, active.shares[product_], chunk - active.first_chunk[product_]};
    }

    GemmCall gate_up(const Active& active) const {
        GemmCall gemm{};
        const bool is_alone = active.num_rows == 1;
        const int64_t row = is_alone ? parts_.rows[active.first] : active.first;
        gemm.input = static_cast<const char*>(is_alone ? call_.input : call_.copies) + row * input_bytes(call_);
        gemm.input_stride = call_.input_stride;
        gemm.num_rows = active.num_rows;
        gemm.weights = call_.gate_ups[active.expert];
        gemm.epilogue = kGate;
        gemm.output = static_cast<char*>(call_.gated) + active.first * gated_bytes(call_);
        gemm.output_stride = call_.gated_stride;
        gemm.output_dtype = call_.gated_dtype;
        gemm.activation = call_.activation;
        return gemm;
    }

    GemmCall down(const Active& active) const {
        GemmCall gemm{};
        gemm.input = static_cast<const char*>(call_.gated) + active.first * gated_bytes(call_);
        gemm.input_stride = call_.gated_stride;
        if (call_.quantized != nullptr) {
            gemm.input = call_.quantized + active.first * call_.quantized_stride;
            gemm.input_stride = call_.quantized_stride;
        }
        gemm.num_rows = active.num_rows;
        gemm.weights = call_.downs[active.expert];
        gemm.epilogue = kStore;
        gemm.output = call_.results + active.first * call_.results_stride;
        gemm.output_stride = call_.results_stride;
        gemm.output_dtype = DType::f32;
        return gemm;
    }

    const int num_threads_;
    const ExpertsCall& call_;
    const Parts parts_;
    const Product product_;
};

namespace {

// Copies of rows whose expert has others as well; alone, they are read where they are.
void copy_rows(const ExpertsCall& call, int part, int num_parts) {
    const Parts parts(call);
    const int64_t first = call.plan->first_copy, copies = call.plan->end_copy - first, bytes = input_bytes(call);
    for (int64_t place = first + copies * part / num_parts; place < first + copies * (part + 1) / num_parts; ++place) {
        if (parts.is_alone[place] != 0) continue;
        std::memcpy(static_cast<char*>(call.copies) + place * bytes,
                    static_cast<const char*>(call.input) + parts.rows[place] * bytes, static_cast<size_t>(bytes));
    }
}

// Columns [first, end) of a row: output += the sum of what its experts have made of it.
void combine(const ExpertsCall& call, int64_t row, int64_t first, int64_t end) {
    const Parts parts(call);
    const int64_t at = row * call.routing.experts_per_row;
    float sums[kCombinedColumns] = {};
    for (int64_t i = at; i < at + call.routing.experts_per_row; ++i) {
        const float* result = call.results + parts.places[i] * call.results_stride + first;
        const float weight = parts.weights[i];
        for (int64_t column = 0; column < end - first; ++column) sums[column] += weight * result[column];
    }
    if (call.shared != nullptr) {
        const float* result = call.shared + row * call.shared_stride + first;
        const float weight = sigmoid(call.shared_products[row * call.shared_products_stride]);
        for (int64_t column = 0; column < end - first; ++column) sums[column] += weight * result[column];
    }
    float* output = call.output + row * call.output_stride + first;
    for (int64_t column = 0; column < end - first; ++column) output[column] += sums[column];
}

void route_and_gate(Participant& participant, const ExpertsCall& call) {
    const int64_t num_experts = call.routing.num_experts;
    const bool routes_at_once = call.num_rows * num_experts <= kRoutedAtOnce;
    if (!routes_at_once) {
        constexpr int64_t kElementsPerScore = 16;
        share_rows(participant, call.num_rows, kElementsPerScore * num_experts, [&](int part, int parts, int) {
            for (int64_t row = call.num_rows * part / parts; row < call.num_rows * (part + 1) / parts; ++row) {
                route(call, row);
            }
        });
    }
    participant.share(PlanWork(call, routes_at_once));
    if (call.plan->num_copied > 0) {
        share_rows(participant, call.plan->end_copy - call.plan->first_copy, input_bytes(call) / 4,
                   [&](int part, int parts, int) { copy_rows(call, part, parts); });
    }
    participant.share(ExpertsWork(participant.num_threads(), call, kGateUp));
}

void quantize_gates(Participant& participant, const ExpertsCall& call, RankShare ranks) {
    const int64_t first = call.plan->first_copy, copies = call.plan->end_copy - first;
    const QuantizeCall quantize{static_cast<const float*>(call.gated) + first * call.gated_stride,
                                call.gated_stride,
                                copies,
                                call.downs->num_inputs,
                                call.quantized + first * call.quantized_stride,
                                call.quantized_stride,
                                call.downs->dtype};
    // Gates of experts that one rank has are with it alone.
    const bool has_all = call.end_expert - call.first_expert == call.routing.num_experts;
    share_rows(
        participant, copies, quantize.size,
        [&](int part, int parts, int) { kernels().gemm.quantize(quantize, part, parts); },
        has_all ? ranks : RankShare{});
}

void combine_rows(Participant& participant, const ExpertsCall& call, RankShare ranks) {
    const int64_t first_row = call.num_rows * ranks.rank / ranks.world;
    const int64_t num_rows = call.num_rows * (ranks.rank + 1) / ranks.world - first_row;
    const int64_t blocks = (call.size + kCombinedColumns - 1) / kCombinedColumns, all = num_rows * blocks;
    share_rows(participant, all, kCombinedColumns * (call.routing.experts_per_row + 1), [&](int part, int parts, int) {
        for (int64_t i = all * part / parts; i < all * (part + 1) / parts; ++i) {
            const int64_t first = i % blocks * kCombinedColumns;
            combine(call, first_row + i / blocks, first, std::min(first + kCombinedColumns, call.size));
        }
    });
}

}  // namespace

void share_experts(Participant& participant, const ExpertsCall& call, ExpertsStage stage, RankShare ranks) {
    switch (stage) {
        case kRouteAndGate:
            return route_and_gate(participant, call);
        case kQuantizeGates:
            return quantize_gates(participant, call, ranks);
        case kMultiplyDown:
            return participant.share(ExpertsWork(participant.num_threads(), call, kDown));
        case kCombine:
            return combine_rows(participant, call, ranks);
    }
}

}  // namespace bough
