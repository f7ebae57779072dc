// Ranks, here threads over one memory, compute the bits of one rank.
#include <atomic>
#include <memory>
#include <thread>

#include "check.h"
#include "program.h"

namespace check {

namespace {

constexpr int64_t kHidden = 160, kInner = 224, kVocab = 1000, kRows = 5, kContext = 40,
                  kPieceTokens = kRepeatedRows + 2;
constexpr int64_t kSlots = kRows * kContext, kLayers = 3;

// Those of a rank among `count` panels.
struct Panels {
    Panels(int64_t count, RankShare ranks)
        : first(count * ranks.rank / ranks.world), end(count * (ranks.rank + 1) / ranks.world) {}
    int64_t first, end;
};

// Some panels of a matrix.
PackedMatrix part_of(const PackedMatrix& whole, Panels panels) {
    PackedMatrix part = whole;
    const int64_t words = panel_words(whole, num_units(whole)), columns = whole.layout == kGated ? 16 : kPanelColumns;
    part.panels = static_cast<uint32_t*>(whole.panels) + panels.first * words;
    if (whole.bias != nullptr) part.bias = whole.bias + panels.first * kPanelColumns;
    const int64_t outputs = whole.layout == kGated ? whole.num_outputs / 2 : whole.num_outputs;
    part.num_outputs = std::min(outputs, panels.end * columns) - panels.first * columns;
    if (whole.layout == kGated) part.num_outputs *= 2;
    return part;
}

// Gated feed-forward layers between a table and a head that share their weights. Attention has no other ranks.
struct Model {
    Model(ThreadPool& pool, DType dtype)
        : dtype(dtype),
          table(pool, kVocab, kHidden, dtype, kPlain, false),
          norm(stored(normal(kHidden), activations())) {
        for (int64_t i = 0; i < kLayers; ++i) {
            ups.push_back(std::make_unique<Weights>(pool, 2 * kInner, kHidden, dtype, kGated, true, 0.1F));
            downs.push_back(std::make_unique<Weights>(pool, kHidden, kInner, dtype, kPlain, true, 0.1F));
        }
    }
    DType activations() const { return is_quantized(dtype) ? DType::f32 : dtype; }

    const DType dtype;
    Weights table;
    Stored norm;
    std::vector<std::unique_ptr<Weights>> ups, downs;
};

constexpr ProgramLimits kLimits{kPieceTokens, kRows, kContext, kVocab, kSlots};

// What all ranks map.
struct SharedMemory {
    SharedMemory(const Model& model, int world)
        : world(world),
          group(Group::bytes() + 128),
          pieces(PieceMemory::bytes(kLimits, world) + 128),
          residual(kPieceTokens * kHidden),
          normed(zeros(kPieceTokens * kHidden, model.activations())),
          gated(zeros(kPieceTokens * kInner, model.activations())),
          head_input(zeros(kRows * kHidden, model.activations())),
          normed_codes(kPieceTokens * 3 * kHidden),
          gated_codes(kPieceTokens * 3 * kInner),
          head_codes(kRows * 3 * kHidden),
          table(kRows * kContext),
          logits(kRows * kVocab) {}
    void* at(std::vector<unsigned char>& memory) {
        return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) / 128 * 128);
    }

    const int world;
    std::vector<unsigned char> group, pieces;
    std::vector<float> residual;
    Stored normed, gated, head_input;
    std::vector<uint32_t> normed_codes, gated_codes, head_codes;
    std::vector<int32_t> table;
    std::vector<float> logits;
};

// One rank's program over its own threads.
class Rank {
public:
    Rank(Model& model, SharedMemory& memory, int rank, int num_threads)
        : model_(model),
          memory_(memory),
          ranks_{rank, memory.world},
          pool_(num_threads),
          group_(memory.at(memory.group), rank, memory.world, /*crowded=*/true),
          program_(pool_, kLimits, memory.world > 1 ? &group_ : nullptr,
                   memory.world > 1 ? memory.at(memory.pieces) : nullptr) {
        record();
    }

    Program& program() { return program_; }
    Group& group() { return group_; }
    Arrival follow() {
        const Following following{memory_.table.data(), kContext, memory_.logits.data(), 0.01};
        Arrival arrival = Arrival::timeout;
        while (arrival == Arrival::timeout) arrival = program_.follow(following);
        return arrival;
    }

private:
    void record() {
        const Panels vocab((kVocab + 31) / 32, ranks_);
        const PackedMatrix table = part_of(model_.table.matrix, vocab);
        program_.add_embedding(table, vocab.first * 32, 1.0F, memory_.residual.data(), kHidden);
        for (int64_t i = 0; i < kLayers; ++i) {
            const Panels inner((kInner + 15) / 16, ranks_), hidden(kHidden / 32, ranks_);
            program_.add_meeting(true, true);
            program_.add(norm(memory_.normed));
            GemmCall up =
                product(memory_.normed, memory_.normed_codes, kHidden, part_of(model_.ups[i]->matrix, inner), kGate);
            up.output = static_cast<char*>(memory_.gated.data()) + inner.first * 16 * size();
            up.output_stride = kInner;
            up.output_dtype = model_.activations();
            program_.add_meeting(false, true);
            program_.add(&up, 1);
            program_.add_meeting(true, true);
            GemmCall down =
                product(memory_.gated, memory_.gated_codes, kInner, part_of(model_.downs[i]->matrix, hidden), kAdd);
            down.output = memory_.residual.data() + hidden.first * 32;
            down.output_stride = kHidden;
            down.output_dtype = DType::f32;
            if (is_quantized(model_.dtype)) program_.add_meeting(false, true);
            program_.add(&down, 1);
        }
        QuantizeCall quantize{};
        if (is_quantized(model_.dtype)) quantize = quantize_call(memory_.head_input, kHidden, memory_.head_codes);
        program_.finish(norm(memory_.head_input), quantize, table, vocab.first * 32);
    }

    int64_t size() const { return model_.activations() == DType::bf16 ? 2 : 4; }

    NormCall norm(Stored& output) {
        return {memory_.residual.data(),
                kHidden,
                nullptr,
                model_.norm.data(),
                model_.norm.dtype,
                1e-6F,
                output.data(),
                kHidden,
                output.dtype,
                0,
                kHidden,
                0.0F,
                0};
    }

    QuantizeCall quantize_call(Stored& input, int64_t columns, std::vector<uint32_t>& codes) {
        PackedMatrix matrix{};
        matrix.num_inputs = columns;
        matrix.dtype = model_.dtype;
        return {reinterpret_cast<const float*>(input.data()),
                columns,
                0,
                columns,
                codes.data(),
                quantized_row_words(matrix),
                model_.dtype};
    }

    // Records that the input is quantised where it has to be.
    GemmCall product(Stored& input, std::vector<uint32_t>& codes, int64_t columns, const PackedMatrix& weights,
                     Epilogue epilogue) {
        GemmCall call{};
        call.input = input.data();
        call.input_stride = columns;
        call.weights = weights;
        call.epilogue = epilogue;
        if (!is_quantized(model_.dtype)) return call;
        const QuantizeCall quantize = quantize_call(input, columns, codes);
        program_.add(&quantize, 1);
        call.input = quantize.output;
        call.input_stride = quantize.output_stride;
        return call;
    }

    Model& model_;
    SharedMemory& memory_;
    const RankShare ranks_;
    ThreadPool pool_;
    Group group_;
    Program program_;
};

// Tokens, and bits of logits, of some steps: a prompt in pieces, rows under masks, a run of decode steps.
std::vector<uint32_t> steps(Program& program, SharedMemory& memory) {
    std::vector<uint32_t> results;
    std::vector<int32_t> rows{0, 1, 2}, prefixes{0, 0, 0}, extends{14, 1, 4}, ids, slots;
    for (int32_t i = 0; i < 19; ++i) {
        ids.push_back((i * 377 + 5) % kVocab);
        slots.push_back(i);
    }
    std::vector<Wanted> wanted{Wanted::choice, Wanted::logits, Wanted::choice};
    std::vector<int64_t> last(kRows), counts(kRows);
    std::vector<int32_t> next(64, -1);
    std::vector<uint8_t> finite(kRows, 1), is_end(kVocab), checks(kRows);
    std::vector<uint32_t> mask((kVocab + 31) / 32, 0x10101010);
    const uint32_t* const allowed[] = {mask.data(), nullptr, nullptr};
    Step step{3,
              rows.data(),
              prefixes.data(),
              extends.data(),
              ids.data(),
              slots.data(),
              wanted.data(),
              memory.table.data(),
              kContext,
              last.data(),
              next.data(),
              finite.data(),
              memory.logits.data(),
              nullptr,
              allowed,
              nullptr};
    const auto keep = [&](int64_t count) {
        for (int64_t i = 0; i < count; ++i) results.push_back(static_cast<uint32_t>(next[i]));
        uint32_t bits;
        for (int64_t i = 0; i < kVocab; ++i) {
            std::memcpy(&bits, &memory.logits[i], sizeof bits);
            results.push_back(bits);
        }
    };
    expect(program.run(step) == StepError::none, "a step of ranks", 1, 0);
    keep(3);
    const std::vector<int32_t> decoded{14, 1, 4}, ones{1, 1, 1}, given{7, 8, 9};
    step.prefix_lens = decoded.data();
    step.extend_lens = ones.data();
    step.input_ids = given.data();
    step.allowed = nullptr;
    wanted.assign(3, Wanted::choice);
    DecodeRun run{};
    run.num_steps = run.max_at_once = 6;
    run.num_outputs = counts.data();
    run.is_end = is_end.data();
    run.checks_end = checks.data();
    run.seconds = 1e9;
    expect(program.decode(step, run) == StepError::none, "a run of ranks", 1, 0);
    keep(18);
    step.num_rows = kRows + 1;
    expect(program.run(step) == StepError::bad_length, "a step that does not fit", 1, 0);
    return results;
}

std::vector<uint32_t> run_ranks(Model& model, int world, int num_threads, int repeats) {
    SharedMemory memory(model, world);
    std::vector<std::unique_ptr<Rank>> ranks;
    for (int rank = 0; rank < world; ++rank) {
        // Numbers of threads may differ.
        ranks.push_back(std::make_unique<Rank>(model, memory, rank, num_threads + rank % 2));
    }
    std::vector<std::thread> followers;
    for (int rank = 1; rank < world; ++rank) {
        followers.emplace_back([&ranks, rank] {
            const Arrival arrival = ranks[rank]->follow();
            expect(arrival == Arrival::called, "a rank that is called", static_cast<int>(arrival), 3);
        });
    }
    std::vector<uint32_t> results;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        const std::vector<uint32_t> again = steps(ranks[0]->program(), memory);
        if (repeat > 0) expect(again == results, "bits of the same steps again", 0, 1);
        results = again;
    }
    ranks[0]->group().call();
    for (std::thread& each : followers) each.join();
    return results;
}

// A group that fails ends the waits of all its ranks, for good.
void check_failure(Model& model) {
    SharedMemory memory(model, 3);
    Rank first(model, memory, 0, 2), second(model, memory, 1, 1), third(model, memory, 2, 1);
    std::thread follower([&] {
        const Arrival arrival = second.follow();
        expect(arrival == Arrival::failed, "a rank of a group that failed", static_cast<int>(arrival), 4);
    });
    std::thread breaker([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        third.group().fail();
    });
    std::vector<int32_t> row{0}, zero{0}, one{1}, id{3}, next{-1};
    std::vector<Wanted> wanted{Wanted::choice};
    std::vector<int64_t> last(kRows);
    std::vector<uint8_t> finite(1, 1);
    const Step step{1,           row.data(),    zero.data(),          one.data(), id.data(),
                    zero.data(), wanted.data(), memory.table.data(),  kContext,   last.data(),
                    next.data(), finite.data(), memory.logits.data(), nullptr,    nullptr,
                    nullptr};
    for (int repeat = 0; repeat < 2; ++repeat) {
        expect(first.program().run(step) == StepError::lost_rank, "a step without a rank", 0, 6);
    }
    follower.join();
    breaker.join();
}

}  // namespace

void check_ranks() {
    ThreadPool one(1);
    for (const DType dtype : {DType::f32, DType::bf16, DType::i8, DType::i4, DType::u4, DType::f4}) {
        Model model(one, dtype);
        const std::vector<uint32_t> alone = run_ranks(model, 1, 1, 1);
        for (const int world : {2, 3}) {
            const int num_threads = static_cast<int>(between(1, 2));
            expect(run_ranks(model, world, num_threads, 2) == alone, "bits of ranks", world, 1);
            const Pauses pauses;
            expect(run_ranks(model, world, num_threads, 2) == alone, "bits of ranks that pause", world, 1);
        }
        check_failure(model);
    }
}

}  // namespace check
