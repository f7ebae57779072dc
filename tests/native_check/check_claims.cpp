// Results do not depend on how many threads compute them, nor on which of these lose their cores in the middle.
#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"

namespace check {

namespace {

std::atomic<uint32_t> seeds{1};

void pause_at_random() {
    thread_local std::minstd_rand bits(seeds++);
    const auto number = bits() % 256;
    if (number == 0) std::this_thread::sleep_for(std::chrono::microseconds(bits() % 3000));
    if (number < 8) std::this_thread::sleep_for(std::chrono::microseconds(bits() % 100));
    if (number < 32) std::this_thread::yield();
}

// Layers that write to the same memory again and again, so that what comes late would be seen.
class Layers {
public:
    Layers(ThreadPool& pool, int64_t rows)
        : rows_(rows),
          dtype_(static_cast<DType>(between(0, 5))),
          up_(pool, kInner, kSize, dtype_, kGated, true, 0.1F),
          down_(pool, kSize, kInner / 2, dtype_, kPlain, true, 0.1F),
          head_(pool, kVocab, kSize, dtype_, kPlain, false, 0.1F),
          norm_(normal(kSize)),
          start_(normal(rows * kSize)) {}

    // Bits of the last residual, then the columns that are chosen.
    std::vector<uint32_t> run(ThreadPool& pool, int num_layers) {
        const int threads = pool.num_threads();
        const int64_t scratch_floats = kGemmScratchFloats * threads;
        residual_ = start_;
        normed_.assign(static_cast<size_t>(rows_ * kSize), 0);
        gated_.assign(static_cast<size_t>(rows_ * kInner / 2), 0);
        inputs_.assign(static_cast<size_t>(rows_ * (quantized_row_words(down_.matrix) + kInner)), 0);
        Aligned<float> scratch(scratch_floats);
        const GemmCall up = call(up_, kGate, gated_.data(), kInner / 2, scratch.data());
        const GemmCall down = call(down_, kAdd, residual_.data(), kSize, scratch.data());
        GemmCall head = call(head_, kChoose, nullptr, 0, scratch.data());
        head.num_choices = rows_;
        std::vector<Choice> choices(
            static_cast<size_t>(threads * max_choice_pieces(head_.matrix, rows_, threads) * rows_));
        head.choices = choices.data();
        pool.reserve(ProductWork::max_chunks(head_.matrix, rows_, threads));
        pool.share([&](Participant& participant) {
            for (int layer = 0; layer < num_layers; ++layer) {
                norm(participant);
                participant.share(ProductWork(threads, &up, 1));
                prepare(participant, gated_, kInner / 2, down_.matrix);
                participant.share(ProductWork(threads, &down, 1));
            }
            norm(participant);
            participant.share(ProductWork(threads, &head, 1));
        });
        std::vector<uint32_t> results(residual_.size());
        std::memcpy(results.data(), residual_.data(), results.size() * sizeof(uint32_t));
        for (int64_t row = 0; row < rows_; ++row) {
            results.push_back(static_cast<uint32_t>(best_choice(head, row, threads).column));
        }
        return results;
    }

private:
    static constexpr int64_t kSize = 160, kInner = 704, kVocab = 1000;

    GemmCall call(const Weights& weights, Epilogue epilogue, float* output, int64_t stride, float* scratch) {
        GemmCall call{};
        call.input = inputs_.data();
        call.input_stride = is_quantized(dtype_) ? quantized_row_words(weights.matrix) : weights.matrix.num_inputs;
        call.num_rows = rows_;
        call.weights = weights.matrix;
        call.epilogue = epilogue;
        call.output = output;
        call.output_stride = stride;
        call.output_dtype = DType::f32;
        call.scratch = scratch;
        return call;
    }

    void norm(Participant& participant) {
        NormCall norm{};
        norm.input = residual_.data();
        norm.input_stride = norm.output_stride = norm.size = kSize;
        norm.weight = norm_.data();
        norm.output = normed_.data();
        norm.num_rows = rows_;
        norm.eps = 1e-6F;
        share_rows(participant, rows_, kSize,
                   [&](int part, int parts, int) { kernels().elementwise.rms_norm(norm, part, parts); });
        prepare(participant, normed_, kSize, up_.matrix);
    }

    // Rows as the products take them.
    void prepare(Participant& participant, const std::vector<float>& rows, int64_t size, const PackedMatrix& matrix) {
        const QuantizeCall quantize{rows.data(), size, rows_, size, inputs_.data(), quantized_row_words(matrix),
                                    dtype_};
        share_rows(participant, rows_, size, [&](int part, int parts, int) {
            if (is_quantized(dtype_)) return kernels().gemm.quantize(quantize, part, parts);
            for (int64_t row = rows_ * part / parts; row < rows_ * (part + 1) / parts; ++row) {
                for (int64_t i = row * size; i < (row + 1) * size; ++i) {
                    if (dtype_ == DType::f32) std::memcpy(&inputs_[i], &rows[i], sizeof rows[i]);
                    if (dtype_ == DType::bf16) reinterpret_cast<uint16_t*>(inputs_.data())[i] = to_bf16(rows[i]);
                }
            }
        });
    }

    const int64_t rows_;
    const DType dtype_;
    Weights up_, down_, head_;
    const std::vector<float> norm_, start_;
    std::vector<float> residual_, normed_, gated_;
    std::vector<uint32_t> inputs_;
};

}  // namespace

Pauses::Pauses() { claim_hook = pause_at_random; }
Pauses::~Pauses() { claim_hook = nullptr; }

void check_claims(ThreadPool& pool) {
    ThreadPool one(1);
    Layers layers(pool, pick({1, 3, 8, 33, 140}));
    const std::vector<uint32_t> alone = layers.run(one, 6);
    const Pauses pauses;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const std::vector<uint32_t> together = layers.run(pool, 6);
        for (size_t i = 0; i < alone.size(); ++i) {
            expect(alone[i] == together[i], "bits of several threads", together[i], alone[i]);
        }
    }
}

}  // namespace check
