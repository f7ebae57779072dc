#include <array>
#include <memory>

#include "check.h"
#include "program.h"

namespace check {

namespace {

constexpr int64_t kHidden = 34, kHeads = 4, kKvHeads = 2, kDim = 10, kWidth = 36, kVocab = 70, kLayers = 2;
constexpr int64_t kHeadColumns = (kHeads + 2 * kKvHeads) * kDim, kValueColumns = kKvHeads * kDim;
constexpr int64_t kRows = 4, kContext = 40, kSlots = kRows * kContext, kPieceTokens = 7;
constexpr float kScale = 0.4F;
constexpr double kEps = 1e-6;

// What logits may be off by because sums are in float32: 2e-6 of their terms, about 30, and some more of the layers'.
constexpr double kOfSums = 1e-4;
// They may be off by more only where a number, but for such an error, is in the middle between two that can be held,
// and the other one is taken. That moves logits by some part of what all roundings together move them by, of which the
// root mean square is taken here: five times that was the most in 20,000 rows. It happens in one row of several
// hundred.
constexpr double kOfRoundings = 8;
constexpr int kRowsPerOtherwise = 50;
int num_rows = 0, num_otherwise = 0;

void count_row(bool is_near) {
    ++num_rows;
    if (!is_near) ++num_otherwise;
}

using Row = std::vector<double>;

// The chosen token's logit, and the largest: both may be off.
void expect_choice(double chosen, double largest, double tolerance, const char* what) {
    expect_near(chosen, largest, 2 * tolerance, what);
    count_row(largest - chosen <= 2 * kOfSums);
}

// Queries, keys and values of a sequence's tokens so far, [layers][tokens][kHeadColumns].
using Past = std::array<std::vector<Row>, kLayers>;

// A sequence that is computed twice: exactly, and rounding what a program rounds.
struct Sequence {
    int32_t length() const { return static_cast<int32_t>(exact[0].size()); }
    Past exact, rounded;
};

struct Expected {
    Row logits;        // [kVocab]
    double tolerance;  // of each
};

// Of weights, of those that make values, which a quantised model may hold otherwise, and of the KV pool.
struct Types {
    DType weights, values, kv;
    DType activations() const { return is_quantized(weights) ? DType::f32 : weights; }
};

struct Layer {
    Layer(ThreadPool& pool, Types types)
        : norm(stored(normal(kHidden), types.activations())),
          queries_keys(pool, kHeadColumns - kValueColumns, kHidden, types.weights, kPlain, true, 0.2F),
          values_of(pool, kValueColumns, kHidden, types.values, kPlain, true, 0.2F),
          output(pool, kHidden, kHeads * kDim, types.weights, kPlain, false, 0.2F),
          second_norm(stored(normal(kHidden), types.activations())),
          gate_up(pool, 2 * kWidth, kHidden, types.weights, kGated, false, 0.2F),
          down(pool, kHidden, kWidth, types.weights, kPlain, true, 0.2F),
          keys(kSlots * kKvHeads, kDim, types.kv),
          values(kSlots * kKvHeads, kDim, types.kv) {}
    Stored norm;
    Weights queries_keys, values_of, output;
    Stored second_norm;
    Weights gate_up, down;
    KVMemory keys, values;
};

// A small language model, its program, and the same in double precision.
class Model {
public:
    Model(ThreadPool& pool, Types types, int32_t window)
        : types_(types),
          window_(window),
          table_(pool, kVocab, kHidden, types.weights, kPlain, false),
          final_norm_(stored(normal(kHidden), types.activations())),
          residual_(kPieceTokens * kHidden),
          rotation_(kPieceTokens * kDim),
          heads_(kPieceTokens * kHeadColumns),
          normed_(zeros(kPieceTokens * kHidden, types.activations())),
          attended_(zeros(kPieceTokens * kHeads * kDim, types.activations())),
          gated_(zeros(kPieceTokens * kGatedColumns, types.activations())),
          head_input_(zeros(kRows * kHidden, types.activations())),
          program_(pool, ProgramLimits{kPieceTokens, kRows, kContext, kVocab, kSlots}) {
        for (int64_t i = 0; i < kLayers; ++i) layers_.push_back(std::make_unique<Layer>(pool, types));
        for (int64_t i = 0; i < kDim / 2; ++i) inv_freq_.push_back(std::pow(100.0F, -0.2F * static_cast<float>(i)));
        record();
    }

    StepError run(const Step& step) { return program_.run(step); }
    StepError decode(const Step& step, DecodeRun& run) { return program_.decode(step, run); }

    DType activations() const { return types_.activations(); }

    // What comes of a sequence's next token, which is added to it.
    Expected next(Sequence& sequence, int32_t token) {
        const Row exact = logits(sequence.exact, token, false);
        Expected expected{logits(sequence.rounded, token, true), 0};
        double squares = 0;
        for (int64_t i = 0; i < kVocab; ++i) squares += std::pow(expected.logits[i] - exact[i], 2);
        expected.tolerance = kOfRoundings * std::sqrt(squares / kVocab) + kOfSums;
        return expected;
    }

private:
    void record() {
        program_.add_embedding(table_.matrix, 0, 1.0F, residual_.data(), kHidden);
        program_.add(RotaryTableCall{inv_freq_.data(), kDim / 2, 1.0F, nullptr, 0, rotation_.data()});
        for (const std::unique_ptr<Layer>& layer : layers_) {
            const KVLayer kv{layer->keys.bytes.data(), layer->values.bytes.data(), layer->keys.scales.data(),
                             layer->values.scales.data(), types_.kv};
            program_.add(norm_call(layer->norm, normed_));
            // Side by side, as where values are held otherwise: threads do not meet in between.
            float* const values = heads_.data() + kHeadColumns - kValueColumns;
            add_products(normed_, kHidden,
                         {product(layer->queries_keys, kStore, heads_.data(), kHeadColumns),
                          product(layer->values_of, kStore, values, kHeadColumns)});
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
            attention.shape = {kHeads, kKvHeads, kDim, window_, kScale};
            attention.kv = kv;
            attention.queries = heads_.data();
            attention.query_stride = kHeadColumns;
            attention.output = attended_.data();
            attention.output_stride = kHeads * kDim;
            attention.output_dtype = activations();
            program_.add(attention);
            add_products(attended_, kHeads * kDim, {product(layer->output, kAdd, residual_.data(), kHidden)});
            program_.add(norm_call(layer->second_norm, normed_));
            GemmCall gate = product(layer->gate_up, kGate, gated_.data(), kGatedColumns);
            gate.output_dtype = activations();
            add_products(normed_, kHidden, {gate});
            add_products(gated_, kGatedColumns, {product(layer->down, kAdd, residual_.data(), kHidden)});
        }
        QuantizeCall quantize{};
        if (is_quantized(types_.weights)) quantize = quantize_call(head_input_, kHidden, kRows, table_.matrix);
        program_.finish(norm_call(final_norm_, head_input_), quantize, table_.matrix, 0);
    }

    NormCall norm_call(Stored& weight, Stored& output) {
        return {residual_.data(),
                kHidden,
                nullptr,
                weight.data(),
                weight.dtype,
                static_cast<float>(kEps),
                output.data(),
                kHidden,
                output.dtype,
                0,
                kHidden,
                0.0F,
                0};
    }

    // To float32 but for gates.
    static GemmCall product(const Weights& weights, Epilogue epilogue, void* output, int64_t output_stride) {
        GemmCall call{};
        call.weights = weights.matrix;
        call.epilogue = epilogue;
        call.output = output;
        call.output_stride = output_stride;
        call.output_dtype = DType::f32;
        return call;
    }

    QuantizeCall quantize_call(Stored& input, int64_t input_stride, int64_t rows, const PackedMatrix& weights) {
        const int64_t words = quantized_row_words(weights);
        quantized_.emplace_back(static_cast<size_t>(rows * words));
        return {reinterpret_cast<const float*>(input.data()),
                input_stride,
                0,
                weights.num_inputs,
                quantized_.back().data(),
                words,
                weights.dtype};
    }

    // Products of the same rows with some weights: quantised, for each that is.
    void add_products(Stored& input, int64_t input_stride, std::vector<GemmCall> products) {
        std::vector<QuantizeCall> quantizations;
        for (GemmCall& product : products) {
            product.input = input.data();
            product.input_stride = input_stride;
            if (!is_quantized(product.weights.dtype)) continue;
            quantizations.push_back(quantize_call(input, input_stride, kPieceTokens, product.weights));
            product.input = quantizations.back().output;
            product.input_stride = quantizations.back().output_stride;
        }
        if (!quantizations.empty()) program_.add(quantizations.data(), static_cast<int64_t>(quantizations.size()));
        program_.add(products.data(), static_cast<int64_t>(products.size()));
    }

    // Of one more token. Beside the products' inputs a program rounds keys and values, and queries and weights of
    // attention where bfloat16 is multiplied directly.
    Row logits(Past& past, int32_t token, bool rounds) {
        const auto embedding = table_.plain.values.begin() + token * kHidden;
        Row state(embedding, embedding + kHidden);
        for (int64_t i = 0; i < kLayers; ++i) apply(*layers_[i], past[i], state, rounds);
        return multiply(table_, normalised(state, final_norm_), rounds);
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

    Row multiply(const Weights& weights, Row x, bool rounds) {
        if (rounds) {
            Stored input = stored(std::vector<float>(x.begin(), x.end()), activations());
            const int64_t size = weights.matrix.num_inputs;
            if (is_quantized(weights.matrix.dtype)) quantized(alone_, input, size, 1, weights.matrix);
            x.assign(input.values.begin(), input.values.end());
        }
        Row result;
        for (int64_t row = 0; row < weights.matrix.num_outputs; ++row) {
            double sum = weights.plain_bias.empty() ? 0 : weights.plain_bias[row];
            for (size_t k = 0; k < x.size(); ++k) sum += x[k] * weights.plain.values[row * x.size() + k];
            result.push_back(sum);
        }
        return result;
    }

    void apply(const Layer& layer, std::vector<Row>& past, Row& state, bool rounds) {
        const Row normed = normalised(state, layer.norm), values = multiply(layer.values_of, normed, rounds);
        Row heads = multiply(layer.queries_keys, normed, rounds);
        heads.insert(heads.end(), values.begin(), values.end());
        for (int64_t head = 0; head < kHeads + kKvHeads; ++head) rotate(&heads[head * kDim], past.size());
        for (int64_t head = kHeads; rounds && head < kHeads + 2 * kKvHeads; ++head) store(&heads[head * kDim]);
        past.push_back(heads);
        const Row added = multiply(layer.output, attend(past, rounds), rounds);
        for (int64_t i = 0; i < kHidden; ++i) state[i] += added[i];
        const Row both = multiply(layer.gate_up, normalised(state, layer.second_norm), rounds);
        Row gated;
        for (int64_t i = 0; i < kWidth; ++i) gated.push_back(both[i] / (1 + std::exp(-both[i])) * both[kWidth + i]);
        const Row more = multiply(layer.down, gated, rounds);
        for (int64_t i = 0; i < kHidden; ++i) state[i] += more[i];
    }

    void rotate(double* head, size_t position) const {
        for (int64_t i = 0; i < kDim / 2; ++i) {
            const double angle = static_cast<double>(position) * inv_freq_[i];
            const double a = head[i], b = head[kDim / 2 + i];
            head[i] = a * std::cos(angle) - b * std::sin(angle);
            head[kDim / 2 + i] = b * std::cos(angle) + a * std::sin(angle);
        }
    }

    // What a head's numbers are multiples of in a pool of int8.
    static double step_of(const double* head) {
        double largest = 0;
        for (int64_t d = 0; d < kDim; ++d) largest = std::max(largest, std::fabs(head[d]));
        return largest / 127;
    }

    // A head of keys or values as the pool holds it.
    void store(double* head) const {
        const double step = step_of(head);
        for (int64_t d = 0; d < kDim; ++d) {
            if (types_.kv == DType::i8) head[d] = std::nearbyint(head[d] / step) * step;
            if (types_.kv == DType::bf16) head[d] = from_bf16(to_bf16(static_cast<float>(head[d])));
        }
    }

    // The last token's.
    Row attend(const std::vector<Row>& heads, bool rounds) const {
        const bool halves = rounds && types_.kv != DType::f32 && current_isa() >= Isa::avx512bf16;
        const auto rounded = [halves](double x) { return halves ? from_bf16(to_bf16(static_cast<float>(x))) : x; };
        Row output(kHeads * kDim);
        const int64_t end = static_cast<int64_t>(heads.size());
        const int64_t first = window_ > 0 ? std::max<int64_t>(end - window_, 0) : 0;
        for (int64_t head = 0; head < kHeads; ++head) {
            const double* query = &heads.back()[head * kDim];
            const int64_t key_at = (kHeads + head / (kHeads / kKvHeads)) * kDim, value_at = key_at + kKvHeads * kDim;
            Row scores;  // logarithms to base 2
            for (int64_t other = first; other < end; ++other) {
                double score = 0;
                for (int64_t d = 0; d < kDim; ++d) {
                    score += rounded(query[d] * kScale * M_LOG2E) * heads[other][key_at + d];
                }
                scores.push_back(score);
            }
            const double largest = *std::max_element(scores.begin(), scores.end());
            double total = 0;
            for (int64_t other = first; other < end; ++other) {
                const double* values = &heads[other][value_at];
                const double weight = std::exp2(scores[other - first] - largest);
                total += weight;
                // Values are multiplied by weights as the numbers that the pool has, of int8 by weights times steps.
                const double step = types_.kv == DType::i8 ? step_of(values) : 1;
                const double held = rounded(weight * step) / step;
                for (int64_t d = 0; d < kDim; ++d) output[head * kDim + d] += held * values[d];
            }
            for (int64_t d = 0; d < kDim; ++d) output[head * kDim + d] /= total;
        }
        return output;
    }

    static constexpr int64_t kGatedColumns = (kWidth + 15) / 16 * 16;

    const Types types_;
    const int32_t window_;
    Weights table_;
    Stored final_norm_;
    std::vector<std::unique_ptr<Layer>> layers_;
    std::vector<float> inv_freq_;
    std::vector<float> residual_, rotation_, heads_;
    Stored normed_, attended_, gated_, head_input_;
    std::vector<std::vector<uint32_t>> quantized_;
    ThreadPool alone_{1};
    Program program_;
};

// Sequences that take one step after the other, some tokens each.
struct Batch {
    Batch() : table(kRows * kContext, -1), last_tokens(kRows) {}

    // Rows advance by `counts` tokens each, their last one sampled if `decode`. Those that `wanted` lists want logits
    // or a choice, and every one is checked.
    void step(Model& model, const std::vector<int32_t>& counts, bool decode) {
        std::vector<int32_t> slots, prefixes, ids, out_slots;
        std::vector<Wanted> wanted;
        std::vector<Expected> expected(sequences.size());
        for (size_t row = 0; row < sequences.size(); ++row) {
            slots.push_back(static_cast<int32_t>(row));
            prefixes.push_back(sequences[row].length());
            for (int32_t i = 0; i < counts[row]; ++i) {
                const int32_t token = static_cast<int32_t>(between(0, kVocab - 1));
                // Any place in the pool that is the row's own.
                out_slots.push_back(static_cast<int32_t>(sequences[row].length() * 7 % kContext * kRows + row));
                expected[row] = model.next(sequences[row], token);
                if (decode) last_tokens[row] = token;
                ids.push_back(decode ? -1 : token);
            }
            wanted.push_back(static_cast<Wanted>(between(0, 2)));
        }
        const auto num_logits = std::count(wanted.begin(), wanted.end(), Wanted::logits);
        std::vector<float> logits(static_cast<size_t>(num_logits * kVocab));
        std::vector<int32_t> next(sequences.size(), -1);
        std::vector<uint8_t> finite(sequences.size());
        Stored hidden = zeros(static_cast<int64_t>(ids.size()) * kHidden, model.activations());
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
            const Row& likely = expected[row].logits;
            const double tolerance = expected[row].tolerance;
            double largest = -HUGE_VAL;
            for (size_t token = 0; token < likely.size(); token += allowed[row] != nullptr ? 3 : 1) {
                largest = std::max(largest, likely[token]);
            }
            if (wanted[row] == Wanted::choice) {
                expect(next[row] >= 0 && next[row] < kVocab, "choice", next[row], 0);
                expect(allowed[row] == nullptr || next[row] % 3 == 0, "allowed choice", next[row], 0);
                expect_choice(likely[std::max(next[row], 0)], largest, tolerance, "logit of the choice");
            } else if (wanted[row] == Wanted::logits) {
                bool is_near = true;
                for (int64_t i = 0; i < kVocab; ++i) {
                    expect_near(found[i], likely[i], tolerance, "logit");
                    is_near &= std::fabs(found[i] - likely[i]) <= kOfSums;
                }
                count_row(is_near);
                found += kVocab;
            }
            if (wanted[row] != Wanted::logits) expect(finite[row] == 1, "finite row", finite[row], 1);
        }
    }

    // Every row takes several steps in one run, the largest logit's token each time, with or without the sampler.
    void decode(Model& model, ThreadPool& pool) {
        constexpr int64_t kSteps = 4;
        const size_t rows = sequences.size();
        std::vector<int32_t> slots, prefixes, out_slots, ones(rows, 1), ids(rows, -1), next(rows * kSteps, -1), firsts;
        std::vector<Wanted> wanted;
        for (size_t row = 0; row < rows; ++row) {
            slots.push_back(static_cast<int32_t>(row));
            prefixes.push_back(sequences[row].length());
            last_tokens[row] = between(0, kVocab - 1);
            firsts.push_back(static_cast<int32_t>(last_tokens[row]));
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
            int32_t token = firsts[row];
            for (int64_t i = 0; i < kSteps; ++i) {
                const Expected expected = model.next(sequences[row], token);
                token = next[i * rows + row];
                expect(token >= 0 && token < kVocab, "token of a run", token, 0);
                const double largest = *std::max_element(expected.logits.begin(), expected.logits.end());
                expect_choice(expected.logits[token], largest, expected.tolerance, "logit of a run's token");
            }
            expect(num_outputs[row] == 7 + kSteps, "counted tokens", static_cast<double>(num_outputs[row]), 7 + kSteps);
            expect(last_tokens[row] == token, "last token", last_tokens[row], token);
        }
        run.num_done = 0;
        run.num_steps = kContext;
        expect(model.decode(step, run) == StepError::bad_length, "a run beyond the context", 0, 1);
        if (num_asked == 0) return;
        run.num_steps = 1;
        asked[0] = num_logits;
        expect(model.decode(step, run) == StepError::no_decode, "logprobs of no logits", 0, 1);
    }

    std::vector<Sequence> sequences;
    std::vector<int32_t> table;
    std::vector<int64_t> last_tokens;
};

}  // namespace

void check_program(ThreadPool& pool) {
    const DType dtype = static_cast<DType>(between(0, 5));
    const DType of_values = is_quantized(dtype) ? static_cast<DType>(between(2, 5)) : dtype;
    const Types types{dtype, of_values, static_cast<DType>(between(0, 2))};
    Model model(pool, types, static_cast<int32_t>(pick({0, 3})));
    Batch batch;
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
    expect(num_otherwise <= num_rows / kRowsPerOtherwise + 10, "rows that were rounded otherwise", num_otherwise,
           num_rows);
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
