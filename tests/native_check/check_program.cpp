#include <memory>

#include "check.h"
#include "program.h"

namespace check {

namespace {

constexpr int64_t kHidden = 34, kHeads = 4, kKvHeads = 2, kDim = 10, kWidth = 36, kVocab = 70, kLayers = 2;
constexpr int64_t kHeadColumns = (kHeads + 2 * kKvHeads) * kDim, kValueColumns = kKvHeads * kDim;
constexpr int64_t kRows = 4, kContext = 40, kSlots = kRows * kContext, kPieceTokens = 7;
constexpr double kEps = 1e-6;

struct Layer {
    Layer(ThreadPool& pool, DType dtype)
        : norm(stored(normal(kHidden), dtype)),
          queries_keys(pool, kHeadColumns - kValueColumns, kHidden, dtype, kPlain, true, 0.2F),
          values_of(pool, kValueColumns, kHidden, dtype, kPlain, true, 0.2F),
          output(pool, kHidden, kHeads * kDim, dtype, kPlain, false, 0.2F),
          second_norm(stored(normal(kHidden), dtype)),
          gate_up(pool, 2 * kWidth, kHidden, dtype, kGated, false, 0.2F),
          down(pool, kHidden, kWidth, dtype, kPlain, true, 0.2F),
          keys(zeros(kSlots * kKvHeads * kDim, dtype)),
          values(zeros(kSlots * kKvHeads * kDim, dtype)) {}
    Stored norm;
    Weights queries_keys, values_of, output;
    Stored second_norm;
    Weights gate_up, down;
    Stored keys, values;
};

// A small language model, its program, and the same in double precision.
class Model {
public:
    Model(ThreadPool& pool, DType dtype, int32_t window)
        : dtype_(dtype),
          window_(window),
          table_(pool, kVocab, kHidden, dtype, kPlain, false),
          final_norm_(stored(normal(kHidden), dtype)),
          residual_(kPieceTokens * kHidden),
          rotation_(kPieceTokens * kDim),
          heads_(kPieceTokens * kHeadColumns),
          normed_(zeros(kPieceTokens * kHidden, dtype)),
          attended_(zeros(kPieceTokens * kHeads * kDim, dtype)),
          gated_(zeros(kPieceTokens * kGatedColumns, dtype)),
          head_input_(zeros(kRows * kHidden, dtype)),
          program_(pool, ProgramLimits{kPieceTokens, kRows, kContext, kVocab, kSlots}) {
        for (int64_t i = 0; i < kLayers; ++i) layers_.push_back(std::make_unique<Layer>(pool, dtype));
        for (int64_t i = 0; i < kDim / 2; ++i) inv_freq_.push_back(std::pow(100.0F, -0.2F * static_cast<float>(i)));
        record();
    }

    StepError run(const Step& step) { return program_.run(step); }
    StepError decode(const Step& step, DecodeRun& run) { return program_.decode(step, run); }

    // Logits of a sequence's last token.
    std::vector<double> logits(const std::vector<int32_t>& tokens) const {
        std::vector<std::vector<double>> states;
        for (const int32_t token : tokens) states.push_back(row_of(table_.plain, token));
        for (const std::unique_ptr<Layer>& layer : layers_) apply(*layer, states);
        return multiply(table_, normalised(states.back(), final_norm_));
    }

private:
    using Row = std::vector<double>;

    void record() {
        program_.add_embedding(table_.matrix, residual_.data(), kHidden);
        program_.add(RotaryTableCall{inv_freq_.data(), kDim / 2, 1.0F, nullptr, 0, rotation_.data()});
        for (const std::unique_ptr<Layer>& layer : layers_) {
            const KVLayer kv{layer->keys.data(), layer->values.data(), nullptr, nullptr, dtype_};
            add_norm(layer->norm);
            // Side by side, as where values are held otherwise: threads do not meet in between.
            float* const values = heads_.data() + kHeadColumns - kValueColumns;
            const GemmCall both[] = {
                gemm_call(normed_, kHidden, layer->queries_keys, kStore, heads_.data(), kHeadColumns, DType::f32),
                gemm_call(normed_, kHidden, layer->values_of, kStore, values, kHeadColumns, DType::f32)};
            program_.add(both, 2);
            RotaryStoreCall store{};
            store.qkv = heads_.data();
            store.qkv_stride = kHeadColumns;
            store.num_heads = kHeads;
            store.num_kv_heads = kKvHeads;
            store.head_dim = kDim;
            store.half_dim = kDim / 2;
            store.cos_sin = rotation_.data();
            store.kv = kv;
            program_.add(store);
            AttentionCall attention{};
            attention.shape = {kHeads, kKvHeads, kDim, window_, 0.4F};
            attention.kv = kv;
            attention.queries = heads_.data();
            attention.query_stride = kHeadColumns;
            attention.output = attended_.data();
            attention.output_stride = kHeads * kDim;
            attention.output_dtype = dtype_;
            program_.add(attention);
            add_gemm(attended_, kHeads * kDim, layer->output, kAdd, residual_.data(), kHidden, DType::f32);
            add_norm(layer->second_norm);
            add_gemm(normed_, kHidden, layer->gate_up, kSiluMul, gated_.data(), kGatedColumns, dtype_);
            add_gemm(gated_, kGatedColumns, layer->down, kAdd, residual_.data(), kHidden, DType::f32);
        }
        NormCall norm = norm_call(final_norm_);
        norm.output = head_input_.data();
        program_.finish(norm, QuantizeCall{}, table_.matrix);
    }

    NormCall norm_call(Stored& weight) {
        return {residual_.data(), kHidden, nullptr, weight.data(), dtype_, static_cast<float>(kEps), normed_.data(),
                kHidden,          dtype_,  0,       kHidden};
    }

    void add_norm(Stored& weight) { program_.add(norm_call(weight)); }

    static GemmCall gemm_call(Stored& input, int64_t input_stride, Weights& weights, Epilogue epilogue, void* output,
                              int64_t output_stride, DType output_dtype) {
        GemmCall call{};
        call.input = input.data();
        call.input_stride = input_stride;
        call.weights = weights.matrix;
        call.epilogue = epilogue;
        call.output = output;
        call.output_stride = output_stride;
        call.output_dtype = output_dtype;
        return call;
    }

    void add_gemm(Stored& input, int64_t input_stride, Weights& weights, Epilogue epilogue, void* output,
                  int64_t output_stride, DType output_dtype) {
        const GemmCall call = gemm_call(input, input_stride, weights, epilogue, output, output_stride, output_dtype);
        program_.add(&call, 1);
    }

    static Row row_of(const Stored& matrix, int64_t row) {
        const auto begin = matrix.values.begin() + row * kHidden;
        return Row(begin, begin + kHidden);
    }

    static Row normalised(const Row& x, const Stored& weight) {
        double squares = 0;
        for (const double each : x) squares += each * each;
        Row result(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
            result[i] = x[i] / std::sqrt(squares / static_cast<double>(x.size()) + kEps) * weight.values[i];
        }
        return result;
    }

    static Row multiply(const Weights& weights, const Row& x) {
        Row result;
        for (int64_t row = 0; row < weights.matrix.num_outputs; ++row) {
            double sum = weights.plain_bias.empty() ? 0 : weights.plain_bias[row];
            for (size_t k = 0; k < x.size(); ++k) sum += x[k] * weights.plain.values[row * x.size() + k];
            result.push_back(sum);
        }
        return result;
    }

    void apply(const Layer& layer, std::vector<Row>& states) const {
        std::vector<Row> heads;
        for (size_t position = 0; position < states.size(); ++position) {
            const Row normed = normalised(states[position], layer.norm);
            const Row values = multiply(layer.values_of, normed);
            heads.push_back(multiply(layer.queries_keys, normed));
            heads.back().insert(heads.back().end(), values.begin(), values.end());
            for (int64_t head = 0; head < kHeads + kKvHeads; ++head) rotate(&heads.back()[head * kDim], position);
        }
        for (size_t position = 0; position < states.size(); ++position) {
            const Row added = multiply(layer.output, attend(heads, position));
            for (int64_t i = 0; i < kHidden; ++i) states[position][i] += added[i];
            const Row both = multiply(layer.gate_up, normalised(states[position], layer.second_norm));
            Row gated;
            for (int64_t i = 0; i < kWidth; ++i) gated.push_back(both[i] / (1 + std::exp(-both[i])) * both[kWidth + i]);
            const Row more = multiply(layer.down, gated);
            for (int64_t i = 0; i < kHidden; ++i) states[position][i] += more[i];
        }
    }

    void rotate(double* head, size_t position) const {
        for (int64_t i = 0; i < kDim / 2; ++i) {
            const double angle = static_cast<double>(position) * inv_freq_[i];
            const double a = head[i], b = head[kDim / 2 + i];
            head[i] = a * std::cos(angle) - b * std::sin(angle);
            head[kDim / 2 + i] = b * std::cos(angle) + a * std::sin(angle);
        }
    }

    Row attend(const std::vector<Row>& heads, size_t position) const {
        Row output(kHeads * kDim);
        const int64_t end = static_cast<int64_t>(position) + 1;
        for (int64_t head = 0; head < kHeads; ++head) {
            const double* query = &heads[position][head * kDim];
            const int64_t key_at = (kHeads + head / (kHeads / kKvHeads)) * kDim, value_at = key_at + kKvHeads * kDim;
            double total = 0;
            for (int64_t other = window_ > 0 ? std::max<int64_t>(end - window_, 0) : 0; other < end; ++other) {
                double score = 0;
                for (int64_t d = 0; d < kDim; ++d) score += query[d] * heads[other][key_at + d];
                const double weight = std::exp(score * double{0.4F});
                total += weight;
                for (int64_t d = 0; d < kDim; ++d) output[head * kDim + d] += weight * heads[other][value_at + d];
            }
            for (int64_t d = 0; d < kDim; ++d) output[head * kDim + d] /= total;
        }
        return output;
    }

    static constexpr int64_t kGatedColumns = (kWidth + 15) / 16 * 16;

    const DType dtype_;
    const int32_t window_;
    Weights table_;
    Stored final_norm_;
    std::vector<std::unique_ptr<Layer>> layers_;
    std::vector<float> inv_freq_;
    std::vector<float> residual_, rotation_, heads_;
    Stored normed_, attended_, gated_, head_input_;
    Program program_;
};

// Sequences that take one step after the other, some tokens each.
struct Batch {
    explicit Batch(DType dtype) : dtype(dtype), table(kRows * kContext, -1), last_tokens(kRows) {}

    // Rows advance by `counts` tokens each, their last one sampled if `decode`. Those that `wanted` lists want logits
    // or a choice, and every one is checked.
    void step(Model& model, const std::vector<int32_t>& counts, bool decode) {
        std::vector<int32_t> slots, prefixes, ids, out_slots;
        std::vector<Wanted> wanted;
        for (size_t row = 0; row < sequences.size(); ++row) {
            slots.push_back(static_cast<int32_t>(row));
            prefixes.push_back(static_cast<int32_t>(sequences[row].size()));
            for (int32_t i = 0; i < counts[row]; ++i) {
                const int32_t token = static_cast<int32_t>(between(0, kVocab - 1));
                // Any place in the pool that is the row's own.
                out_slots.push_back(static_cast<int32_t>((sequences[row].size() * 7) % kContext * kRows + row));
                sequences[row].push_back(token);
                if (decode) last_tokens[row] = token;
                ids.push_back(decode ? -1 : token);
            }
            wanted.push_back(static_cast<Wanted>(between(0, 2)));
        }
        const auto num_logits = std::count(wanted.begin(), wanted.end(), Wanted::logits);
        std::vector<float> logits(static_cast<size_t>(num_logits * kVocab));
        std::vector<int32_t> next(sequences.size(), -1);
        std::vector<uint8_t> finite(sequences.size());
        Stored hidden = zeros(static_cast<int64_t>(ids.size()) * kHidden, dtype);
        Step step{static_cast<int64_t>(sequences.size()),
                  slots.data(),
                  prefixes.data(),
                  counts.data(),
                  ids.data(),
                  out_slots.data(),
                  wanted.data(),
                  table.data(),
                  kContext,
                  last_tokens.data(),
                  next.data(),
                  finite.data(),
                  logits.data(),
                  flip() ? hidden.data() : nullptr,
                  nullptr,
                  nullptr};
        std::vector<uint32_t> mask((kVocab + 31) / 32);
        std::vector<const uint32_t*> allowed(sequences.size());
        for (const uint32_t*& each : allowed) each = flip() ? mask.data() : nullptr;
        step.allowed = allowed.data();
        int32_t ready = 0;
        step.masks_ready = flip() ? &ready : nullptr;
        std::thread writer([&] {
            // One of three tokens may be chosen.
            for (int64_t token = 0; token < kVocab; token += 3) mask[token / 32] |= 1U << token % 32;
            __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
        });
        if (step.masks_ready == nullptr) writer.join();
        const StepError error = model.run(step);
        if (writer.joinable()) writer.join();
        expect(error == StepError::none, "step", 0, 1);
        const float* found = logits.data();
        for (size_t row = 0; row < sequences.size(); ++row) {
            const std::vector<double> expected = model.logits(sequences[row]);
            double largest = -HUGE_VAL;
            for (size_t token = 0; token < expected.size(); token += allowed[row] != nullptr ? 3 : 1) {
                largest = std::max(largest, expected[token]);
            }
            const double tolerance = dtype == DType::f32 ? 1e-3 : 2.5;
            if (wanted[row] == Wanted::choice) {
                expect(next[row] >= 0 && next[row] < kVocab, "choice", next[row], 0);
                expect(allowed[row] == nullptr || next[row] % 3 == 0, "allowed choice", next[row], 0);
                expect_near(expected[std::max(next[row], 0)], largest, 2 * tolerance, "logit of the choice");
            } else if (wanted[row] == Wanted::logits) {
                for (int64_t i = 0; i < kVocab; ++i) expect_near(found[i], expected[i], tolerance, "logit");
                found += kVocab;
            }
            if (wanted[row] != Wanted::logits) expect(finite[row] == 1, "finite row", finite[row], 1);
        }
    }

    // Every row takes several steps in one run, the largest logit's token each time, with or without the sampler.
    void decode(Model& model, ThreadPool& pool) {
        constexpr int64_t kSteps = 4;
        const size_t rows = sequences.size();
        std::vector<int32_t> slots, prefixes, out_slots, ones(rows, 1), ids(rows, -1), next(rows * kSteps, -1);
        std::vector<Wanted> wanted;
        for (size_t row = 0; row < rows; ++row) {
            slots.push_back(static_cast<int32_t>(row));
            prefixes.push_back(static_cast<int32_t>(sequences[row].size()));
            sequences[row].push_back(static_cast<int32_t>(last_tokens[row] = between(0, kVocab - 1)));
            wanted.push_back(flip() ? Wanted::choice : Wanted::logits);
        }
        for (int64_t i = 0; i < kSteps; ++i) {
            for (size_t row = 0; row < rows; ++row) {
                out_slots.push_back(static_cast<int32_t>((prefixes[row] + i) * 7 % kContext * kRows + row));
            }
        }
        SampleRow draw{};
        draw.repetition_penalty = 1.0F;
        std::vector<SampleRow> draws;
        const int64_t num_logits = std::count(wanted.begin(), wanted.end(), Wanted::logits);
        for (int64_t i = 0; i < kSteps * num_logits; ++i) {
            draw.logits_row = i % num_logits;
            draws.push_back(draw);
        }
        std::vector<int64_t> num_outputs(rows, 7);
        std::vector<float> logits(static_cast<size_t>(num_logits * kVocab));
        std::vector<uint8_t> finite(rows), is_end(kVocab), checks_end(rows);
        Aligned<unsigned char> scratch(static_cast<int64_t>(sample_scratch_bytes(kVocab, pool.num_threads())));
        Step step{static_cast<int64_t>(rows),
                  slots.data(),
                  prefixes.data(),
                  ones.data(),
                  ids.data(),
                  out_slots.data(),
                  wanted.data(),
                  table.data(),
                  kContext,
                  last_tokens.data(),
                  next.data(),
                  finite.data(),
                  logits.data(),
                  nullptr,
                  nullptr,
                  nullptr};
        // Every other row that draws, the last one first.
        std::vector<int64_t> asked;
        for (int64_t i = num_logits - 1; i >= 0; i -= 2) asked.push_back(i);
        const int64_t num_asked = static_cast<int64_t>(asked.size()), top_n = 2;
        std::vector<float> read(kSteps * num_asked), top_read(kSteps * num_asked * top_n);
        std::vector<int64_t> top_ids(kSteps * num_asked * top_n);
        std::vector<uint64_t> top_keys(num_asked * top_n);
        LogprobCall logprobs{};
        logprobs.num_rows = num_asked;
        logprobs.logits_rows = asked.data();
        logprobs.top_n = top_n;
        logprobs.targets_read = read.data();
        logprobs.top_read = top_read.data();
        logprobs.top_ids = top_ids.data();
        logprobs.top_keys = top_keys.data();
        DecodeRun run{};
        run.logprobs = &logprobs;
        run.num_steps = kSteps;
        run.max_at_once = between(1, kSteps);
        run.num_outputs = num_outputs.data();
        run.draws = draws.data();
        run.sampling_scratch = scratch.data();
        run.is_end = is_end.data();
        run.checks_end = checks_end.data();
        run.seconds = 1e9;
        while (run.has_ended == 0) expect(model.decode(step, run) == StepError::none, "run", 0, 1);
        expect(run.num_done == kSteps, "steps of a run", static_cast<double>(run.num_done), kSteps);
        expect(model.decode(step, run) == StepError::no_decode, "a run that has ended", 0, 1);
        std::vector<size_t> drawing;
        for (size_t row = 0; row < rows; ++row) {
            if (wanted[row] == Wanted::logits) drawing.push_back(row);
        }
        for (int64_t i = 0; i < kSteps * num_asked; ++i) {
            // Rows take their likeliest token.
            const int32_t token = next[i / num_asked * rows + drawing[asked[i % num_asked]]];
            expect(top_ids[i * top_n] == token, "likeliest of a run", static_cast<double>(top_ids[i * top_n]), token);
            expect(read[i] == top_read[i * top_n], "its logprob", read[i], top_read[i * top_n]);
            expect(read[i] <= 0 && top_read[i * top_n + 1] <= read[i], "order of logprobs", read[i], 0);
        }
        for (size_t row = 0; row < rows; ++row) {
            expect(finite[row] == 1, "finite row", finite[row], 1);
            for (int64_t i = 0; i < kSteps; ++i) {
                const int32_t token = next[i * rows + row];
                expect(token >= 0 && token < kVocab, "token of a run", token, 0);
                const std::vector<double> expected = model.logits(sequences[row]);
                const double largest = *std::max_element(expected.begin(), expected.end());
                expect_near(expected[token], largest, dtype == DType::f32 ? 2e-3 : 5, "logit of a run's token");
                sequences[row].push_back(token);
            }
            expect(num_outputs[row] == 7 + kSteps, "counted tokens", static_cast<double>(num_outputs[row]), 7 + kSteps);
            expect(last_tokens[row] == sequences[row].back(), "last token", last_tokens[row], sequences[row].back());
            sequences[row].pop_back();
        }
        run.num_done = 0;
        run.num_steps = kContext;
        expect(model.decode(step, run) == StepError::bad_length, "a run beyond the context", 0, 1);
        if (num_asked == 0) return;
        run.num_steps = 1;
        asked[0] = num_logits;
        expect(model.decode(step, run) == StepError::no_decode, "logprobs of no logits", 0, 1);
    }

    const DType dtype;
    std::vector<std::vector<int32_t>> sequences;
    std::vector<int32_t> table;
    std::vector<int64_t> last_tokens;
};

}  // namespace

void check_program(ThreadPool& pool) {
    const DType dtype = any_dtype();
    Model model(pool, dtype, static_cast<int32_t>(pick({0, 3})));
    Batch batch(dtype);
    batch.sequences.resize(static_cast<size_t>(between(1, kRows)));
    for (int steps = 0; steps < 3; ++steps) {
        std::vector<int32_t> counts, ones;
        for (size_t row = 0; row < batch.sequences.size(); ++row) {
            counts.push_back(static_cast<int32_t>(pick({1, 2, 8, 9})));
            ones.push_back(1);
        }
        batch.step(model, counts, false);
        batch.step(model, ones, true);
    }
    batch.decode(model, pool);
    const int32_t beyond = kVocab, zero = 0, one = 1;
    const Wanted nothing = Wanted::nothing;
    Step wrong{1,        &zero,
               &zero,    &one,
               &beyond,  &zero,
               &nothing, batch.table.data(),
               kContext, batch.last_tokens.data(),
               nullptr,  nullptr,
               nullptr,  nullptr,
               nullptr,  0};
    expect(model.run(wrong) == StepError::bad_token, "a token beyond the vocabulary", 0, 1);
    const int32_t future = -1;
    wrong.input_ids = &future;
    batch.last_tokens[0] = kVocab;
    expect(model.run(wrong) == StepError::bad_token, "a last token beyond the vocabulary", 0, 1);
    batch.last_tokens[0] = 0;
    wrong.input_ids = &zero;
    wrong.extend_lens = &zero;
    expect(model.run(wrong) == StepError::bad_length, "a row without tokens", 0, 1);
}

}  // namespace check
