// Mixtures of experts: what they compute, and that its bits depend on neither threads nor the rows beside.
#include <memory>

#include "check.h"
#include "experts.h"

namespace check {

namespace {

constexpr int64_t kSize = 70, kWidth = 44;

// Layers of experts one behind the other, which share memory for everything but their plans.
class Mixture {
public:
    Mixture(ThreadPool& pool, int64_t rows)
        : rows_(rows), dtype_(static_cast<DType>(between(0, 5))), start_(normal(rows * kSize)) {
        routing_.num_experts = static_cast<int32_t>(pick({4, 6, 12}));
        routing_.experts_per_row = static_cast<int32_t>(between(1, 4));
        routing_.scores = flip() ? kSigmoidScores : kSoftmaxScores;
        routing_.renormalised = flip() ? 1 : 0;
        routing_.scaling = 1.5F;
        routing_.num_groups = 2;
        routing_.groups_per_row = routing_.experts_per_row * 2 <= routing_.num_experts && flip() ? 1 : 2;
        routing_.group_best = flip() ? 1 : 2;
        for (int32_t expert = 0; expert < routing_.num_experts; ++expert) {
            owners_.push_back(std::make_unique<Weights>(pool, 2 * kWidth, kSize, dtype_, kGated, true, 0.2F));
            gate_ups_.push_back(owners_.back()->matrix);
            owners_.push_back(std::make_unique<Weights>(pool, kSize, kWidth, dtype_, kPlain, true, 0.2F));
            downs_.push_back(owners_.back()->matrix);
        }
        correction_ = normal(routing_.num_experts, 0.1F);
        products_ = normal(rows * routing_.num_experts);
        if (flip()) {  // all rows go to the same experts
            for (int64_t row = 1; row < rows; ++row) {
                std::copy_n(products_.begin(), routing_.num_experts, products_.begin() + row * routing_.num_experts);
            }
        }
    }

    std::vector<uint32_t> run(ThreadPool& pool, int num_layers, int64_t first, int64_t end) {
        const int64_t rows = end - first, copies = rows * routing_.experts_per_row;
        const bool quantized = is_quantized(dtype_);
        const DType activations = quantized ? DType::f32 : dtype_;
        stream_.assign(start_.begin() + first * kSize, start_.begin() + end * kSize);
        const int64_t words = quantized ? quantized_row_words(gate_ups_[0]) : kSize;
        inputs_.assign(static_cast<size_t>(rows * words), 0);
        Aligned<float> scratch(kGemmScratchFloats * pool.num_threads());
        std::vector<uint32_t> copied(static_cast<size_t>(copies * words));
        std::vector<uint32_t> gated(static_cast<size_t>(copies * kGatedStride));
        std::vector<uint32_t> gated_words(static_cast<size_t>(copies * quantized_row_words(downs_[0])));
        std::vector<float> results(static_cast<size_t>(copies * kSize));
        const int64_t plan_words = static_cast<int64_t>(experts_plan_bytes(routing_, rows) / 8 + 1);
        std::vector<uint64_t> plans(static_cast<size_t>(num_layers * plan_words));
        ExpertsCall call{};
        call.routing = routing_;
        call.products = products_.data() + first * routing_.num_experts;
        call.products_stride = routing_.num_experts;
        call.correction = correction_.data();
        call.num_rows = rows;
        call.input = inputs_.data();
        call.input_stride = words;
        call.gate_ups = gate_ups_.data();
        call.downs = downs_.data();
        call.gated_dtype = activations;
        call.output = stream_.data();
        call.output_stride = call.size = kSize;
        call.end_expert = routing_.num_experts;
        call.copies = copied.data();
        call.gated = gated.data();
        call.gated_stride = kGatedStride;
        call.quantized = quantized ? gated_words.data() : nullptr;
        call.quantized_stride = quantized_row_words(downs_[0]);
        call.results = results.data();
        call.results_stride = kSize;
        call.scratch = scratch.data();
        pool.reserve(experts_max_chunks(call, rows));
        pool.share([&](Participant& participant) {
            for (int layer = 0; layer < num_layers; ++layer) {
                prepare(participant, rows, words);
                ExpertsCall of_layer = call;
                of_layer.plan = reinterpret_cast<ExpertsPlan*>(plans.data() + layer * plan_words);
                for (const ExpertsStage stage : {kRouteAndGate, kQuantizeGates, kMultiplyDown, kCombine}) {
                    if (stage != kQuantizeGates || quantized) share_experts(participant, of_layer, stage);
                }
            }
        });
        std::vector<uint32_t> bits(stream_.size());
        std::memcpy(bits.data(), stream_.data(), bits.size() * sizeof(uint32_t));
        return bits;
    }

    int64_t rows() const { return rows_; }

private:
    static constexpr int64_t kGatedStride = (kWidth + 15) / 16 * 16;

    void prepare(Participant& participant, int64_t rows, int64_t words) {
        const QuantizeCall quantize{stream_.data(), kSize, rows, kSize, inputs_.data(), words, dtype_};
        share_rows(participant, rows, kSize, [&](int part, int parts, int) {
            if (is_quantized(dtype_)) return kernels().gemm.quantize(quantize, part, parts);
            for (int64_t i = rows * part / parts * kSize; i < rows * (part + 1) / parts * kSize; ++i) {
                if (dtype_ == DType::f32) std::memcpy(&inputs_[i], &stream_[i], sizeof stream_[i]);
                if (dtype_ == DType::bf16) reinterpret_cast<uint16_t*>(inputs_.data())[i] = to_bf16(stream_[i]);
            }
        });
    }

    const int64_t rows_;
    const DType dtype_;
    const std::vector<float> start_;
    RoutingKind routing_{};
    std::vector<std::unique_ptr<Weights>> owners_;
    std::vector<PackedMatrix> gate_ups_, downs_;
    std::vector<float> correction_, products_, stream_;
    std::vector<uint32_t> inputs_;
};

void expect_same(const std::vector<uint32_t>& whole, int64_t first, const std::vector<uint32_t>& part,
                 const char* what) {
    for (size_t i = 0; i < part.size(); ++i) {
        const uint32_t wanted = whole[static_cast<size_t>(first * kSize) + i];
        expect(part[i] == wanted, what, part[i], wanted);
    }
}

}  // namespace

void check_experts(ThreadPool& pool) {
    ThreadPool one(1);
    Mixture mixture(pool, pick({1, 3, 20, 150, 700}));
    const std::vector<uint32_t> alone = mixture.run(one, 3, 0, mixture.rows());
    const int64_t row = between(0, mixture.rows() - 1);
    expect_same(alone, row, mixture.run(one, 3, row, row + 1), "bits of experts' rows alone");
    const Pauses pauses;
    for (int repeat = 0; repeat < 2; ++repeat) {
        expect_same(alone, 0, mixture.run(pool, 3, 0, mixture.rows()), "bits of experts with several threads");
    }
}

}  // namespace check
