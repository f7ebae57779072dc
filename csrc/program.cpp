#include "program.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "isa.h"
#include "packing.h"
#include "spinning.h"

namespace bough {

namespace {

void wait_for(const int32_t* flag) {
    Patience waiting;
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0) waiting.wait();
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool can_be_read(const int32_t* descriptors, int64_t count) {
    pollfd polled[kMaxDescriptors];
    for (int64_t i = 0; i < count; ++i) polled[i] = {descriptors[i], POLLIN, 0};
    return count > 0 && poll(polled, static_cast<nfds_t>(count), 0) > 0;
}

constexpr size_t kAlignment = 64;

template <class T>
T* aligned(std::vector<T>& memory) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
    return reinterpret_cast<T*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

bool same_shape(const AttentionShape& a, const AttentionShape& b) {
    return a.num_heads == b.num_heads && a.num_kv_heads == b.num_kv_heads && a.head_dim == b.head_dim &&
           a.window == b.window;
}

int64_t num_choices(const PackedMatrix& head, int64_t max_rows, int num_threads) {
    return num_threads * max_choice_pieces(head, max_rows, num_threads) * max_rows;
}

}  // namespace

int64_t Program::bytes(const ProgramLimits& limits, int num_threads) {
    const int64_t per_row = 8 * sizeof(int32_t) + 2 + sizeof(void*) + 2 * sizeof(int64_t);
    PackedMatrix head{};
    head.num_outputs = limits.vocab_size;
    return num_threads * kGemmScratchFloats * sizeof(float) + limits.max_tokens * 3 * sizeof(int32_t) +
           limits.max_rows * per_row + num_choices(head, limits.max_rows, num_threads) * sizeof(Choice);
}

int64_t Program::attention_bytes(const ProgramLimits& limits, const AttentionShape& shape, int num_threads) {
    return static_cast<int64_t>(attention_plan_bytes(shape, limits.max_rows, limits.max_tokens, num_threads) +
                                attention_scratch_bytes(shape, limits.max_context, num_threads));
}

Program::Program(ThreadPool& pool, const ProgramLimits& limits, Group* group, void* pieces)
    : pool_(pool),
      limits_(limits),
      group_(group),
      shared_(pieces, limits, group != nullptr ? group->world() : 1),
      gemm_scratch_(pool.num_threads() * kGemmScratchFloats + kAlignment / sizeof(float)),
      ids_(limits.max_tokens),
      positions_(limits.max_tokens),
      slots_(limits.max_tokens),
      req_slots_(limits.max_rows),
      prefix_lens_(limits.max_rows),
      extend_lens_(limits.max_rows),
      first_tokens_(limits.max_rows),
      end_tokens_(limits.max_rows),
      end_rows_(limits.max_rows),
      end_finite_(limits.max_rows),
      end_allowed_(limits.max_rows),
      run_lens_(limits.max_rows),
      just_chosen_(limits.max_rows, -1),
      drawn_(limits.max_rows),
      targets_(limits.max_rows),
      drawn_finite_(limits.max_rows) {}

// --- recording ---------------------------------------------------------------------------------------------------

void Program::add_embedding(const PackedMatrix& table, int64_t first_id, float scale, float* output,
                            int64_t output_stride) {
    operations_.emplace_back(PackedEmbedding{table, first_id, scale, output, output_stride});
}

void Program::add(const NormCall& call) { add_row_call(call, call.input); }

void Program::add(const QuantizeCall* calls, int64_t count) {
    for (const QuantizeCall* call = calls; call < calls + count; ++call) add_row_call(*call, call->input);
}

// Goes on with rows that the operation before has normed, or quantised for other weights.
void Program::add_row_call(const std::variant<NormCall, QuantizeCall>& call, const float* input) {
    if (has_ranks()) add_own_rows(call);
    RowCalls* before = operations_.empty() ? nullptr : std::get_if<RowCalls>(&operations_.back());
    if (before != nullptr) {
        const NormCall* norm = std::get_if<NormCall>(&before->back());
        const QuantizeCall* quantized = std::get_if<QuantizeCall>(&before->back());
        if (norm != nullptr ? norm->output == input : quantized->input == input) return before->push_back(call);
    }
    operations_.emplace_back(RowCalls{call});
}

void Program::add(const GemmCall* calls, int64_t count) {
    int64_t chunks = 0;
    for (int64_t i = 0; i < count; ++i) {
        chunks += ProductWork::max_chunks(calls[i].weights, limits_.max_tokens, pool_.num_threads());
    }
    pool_.reserve(chunks);
    operations_.emplace_back(Products(calls, calls + count));
}

void Program::add(const AttentionCall& call) {
    const int threads = pool_.num_threads();
    size_t index = 0;
    while (index < plans_.size() && !same_shape(plans_[index].shape, call.shape)) ++index;
    if (index == plans_.size()) {
        const size_t bytes = attention_plan_bytes(call.shape, limits_.max_rows, limits_.max_tokens, threads);
        plans_.push_back({call.shape, bytes, std::vector<uint64_t>((bytes + 7) / 8)});
        thread_bytes_ = std::max(thread_bytes_, attention_thread_bytes(call.shape));
        const size_t partial_bytes = attention_partial_bytes(call.shape, limits_.max_context, threads);
        partial_bytes_ = std::max(partial_bytes_, static_cast<int64_t>(partial_bytes));
        attention_scratch_.resize(threads * thread_bytes_ + partial_bytes_ + kAlignment);
        pool_.reserve(attention_max_items(call.shape, limits_.max_rows, limits_.max_tokens, threads));
    }
    operations_.emplace_back(RecordedAttention{call, index});
}

void Program::add(const ExpertsCall& call, ExpertsStage stage) {
    const int64_t count = call.routing.num_experts;
    pool_.reserve(experts_max_chunks(call, limits_.max_tokens) / pool_.num_threads() + 1);
    operations_.emplace_back(
        RecordedExperts{call, stage, {call.gate_ups, call.gate_ups + count}, {call.downs, call.downs + count}});
}

void Program::finish(const NormCall& norm, const QuantizeCall& quantize, const PackedMatrix& head, int64_t first_id) {
    final_norm_ = norm;
    NormCall sampled = norm;
    sampled.row_ids = end_tokens_.data();
    before_head_ = {sampled};
    if (is_quantized(head.dtype)) {
        before_head_.emplace_back(quantize);
        head_inputs_.emplace_back(quantize);
    }
    head_ = head;
    first_id_ = first_id;
    has_head_ = head.num_inputs > 0;
    if (!has_head_) return;
    for (const OwnRows& own : own_rows_) {
        if (own.shared == norm.output || own.shared == quantize.output) {
            throw std::invalid_argument("the head's inputs and a layer's have one buffer");
        }
    }
    pool_.reserve(ProductWork::max_chunks(head, limits_.max_rows, pool_.num_threads()));
    choices_.resize(num_choices(head, limits_.max_rows, pool_.num_threads()));
}

// --- running -----------------------------------------------------------------------------------------------------

StepError Program::run(const Step& step) {
    const StepError error = check(step);
    return error == StepError::none ? compute(step) : error;
}

StepError Program::decode(const Step& step, DecodeRun& run) {
    if (run.num_done == 0) {
        StepError error = check(step);
        if (error == StepError::none) error = check(step, run);
        if (error != StepError::none) return error;
        run.begin = now();
        run.has_ended = 0;
    }
    if (run.has_ended != 0 || run.max_at_once < 1) return StepError::no_decode;
    const int64_t until = std::min(run.num_steps, run.num_done + run.max_at_once);
    while (run.num_done < until && run.has_ended == 0) {
        const Step next = step_of_run(step, run.num_done);
        const StepError error = compute(next);
        if (error != StepError::none) return error;
        draw(next, run);
        read_logprobs(next, run);
        ++run.num_done;
        for (int64_t row = 0; row < step.num_rows; ++row) {
            const int32_t req_slot = step.req_slots[row];
            next.last_tokens[req_slot] = next.next_tokens[row];
            ++run.num_outputs[req_slot];
        }
        run.has_ended = goes_on(next, run) ? 0 : 1;
    }
    return StepError::none;
}

// The step of a run that so many come before.
Step Program::step_of_run(const Step& first, int64_t num_done) {
    Step step = first;
    for (int64_t row = 0; row < first.num_rows; ++row) {
        run_lens_[row] = first.prefix_lens[row] + static_cast<int32_t>(num_done);
    }
    step.prefix_lens = run_lens_.data();
    if (num_done > 0) step.input_ids = just_chosen_.data();
    step.out_slots += num_done * first.num_rows;
    step.next_tokens += num_done * first.num_rows;
    return step;
}

// The tokens of rows whose logits were wanted.
void Program::draw(const Step& step, const DecodeRun& run) {
    const int64_t num_draws = std::count(step.wanted, step.wanted + step.num_rows, Wanted::logits);
    if (num_draws == 0) return;
    SampleCall call{};
    call.logits = step.logits;
    call.logits_stride = call.vocab_size = limits_.vocab_size;
    call.rows = run.draws + run.num_done * num_draws;
    call.num_rows = num_draws;
    call.tokens = drawn_.data();
    call.finite = drawn_finite_.data();
    call.scratch = run.sampling_scratch;
    pool_.share([&](Participant& participant) {
        share_rows(participant, num_draws, call.vocab_size,
                   [&](int part, int parts, int thread) { kernels().sampling.sample(call, part, parts, thread); });
    });
    for (int64_t row = 0, i = 0; row < step.num_rows; ++row) {
        if (step.wanted[row] != Wanted::logits) continue;
        const SampleRow& draw = call.rows[i];
        const int32_t token = step.next_tokens[row] = static_cast<int32_t>(drawn_[i]);
        step.finite[row] = drawn_finite_[i++];
        if (draw.counts == nullptr) continue;
        draw.counts[token] = (draw.counts[token] + 1) | (draw.scoped != 0 ? kRepeated : 0);
        if (draw.num_history >= 0 && draw.num_history < run.history_size) draw.history[draw.num_history] = token;
    }
}

void Program::read_logprobs(const Step& step, const DecodeRun& run) {
    if (run.logprobs == nullptr) return;
    LogprobCall call = *run.logprobs;
    call.logits = step.logits;
    call.logits_stride = call.vocab_size = limits_.vocab_size;
    for (int64_t i = 0; i < call.num_rows; ++i) targets_[i] = drawn_[call.logits_rows[i]];
    call.targets = targets_.data();
    const int64_t done = run.num_done * call.num_rows;
    call.targets_read += done;
    call.top_read += done * call.top_n;
    call.top_ids += done * call.top_n;
    call.chosen_read += done * call.num_chosen;
    pool_.share([&](Participant& participant) {
        share_rows(participant, call.num_rows, call.vocab_size,
                   [&](int part, int parts, int) { kernels().logprobs.logprobs(call, part, parts); });
    });
}

bool Program::goes_on(const Step& step, const DecodeRun& run) {
    if (run.num_done == run.num_steps) return false;
    const double done = static_cast<double>(run.num_done);
    if ((now() - run.begin) * (done + 1) / done > run.seconds) return false;
    for (int64_t row = 0; row < step.num_rows; ++row) {
        if (step.finite[row] == 0 || (run.checks_end[row] != 0 && run.is_end[step.next_tokens[row]] != 0)) return false;
    }
    return !can_be_read(run.descriptors, run.num_descriptors);
}

StepError Program::compute(const Step& step) {
    int64_t num_tokens = 0;
    for (int64_t row = 0; row < step.num_rows; ++row) num_tokens += step.extend_lens[row];
    // Pieces of equal size: a small last one would read all weights for little.
    const int64_t num_pieces = (num_tokens + limits_.max_tokens - 1) / limits_.max_tokens;
    next_row_ = 0;
    next_offset_ = 0;
    piece_ = Piece{};
    logits_ = step.logits;
    for (int64_t index = 0; index < num_pieces; ++index) {
        const int64_t first = num_tokens * index / num_pieces;
        piece_.first_token = first;
        fill_piece(step, num_tokens * (index + 1) / num_pieces - first);
        if (has_ranks()) publish_piece();
        const StepError error = compute_piece(step);
        if (error != StepError::none) return error;
        report(step);
        piece_.first_logits += piece_.num_logits;
    }
    return StepError::none;
}

StepError Program::compute_head(const void* states, int64_t num_rows, float* logits) {
    if (!has_head_) return StepError::no_head;
    if (num_rows > limits_.max_rows) return StepError::bad_length;
    piece_ = Piece{};
    piece_.num_logits = piece_.num_ends = num_rows;
    piece_.only_head = 1;
    logits_ = logits;
    const int64_t size = final_norm_.output_dtype == DType::bf16 ? 2 : 4;
    for (int64_t row = 0; row < num_rows; ++row) {
        std::memcpy(static_cast<char*>(final_norm_.output) + row * final_norm_.output_stride * size,
                    static_cast<const char*>(states) + row * final_norm_.size * size,
                    static_cast<size_t>(final_norm_.size * size));
    }
    if (has_ranks()) publish_piece();
    return compute_piece(Step{});
}

StepError Program::compute_piece(const Step& step) {
    if (piece_.only_head == 0) plan_attention();
    if (has_ranks()) find_shared_masks();
    pool_.share([&](Participant& participant) { replay(step, participant); });
    if (!has_ranks()) return StepError::none;
    group_->meetings = last_meeting_;
    return group_->has_failed() ? StepError::lost_rank : StepError::none;
}

StepError Program::check(const Step& step) const {
    if (step.num_rows > limits_.max_rows) return StepError::bad_length;
    int64_t token = 0;
    for (int64_t row = 0; row < step.num_rows; ++row) {
        const int64_t prefix = step.prefix_lens[row], extend = step.extend_lens[row];
        if (prefix < 0 || extend < 1 || prefix + extend > limits_.max_context) return StepError::bad_length;
        if (step.req_slots[row] < 0 || step.req_slots[row] >= limits_.max_rows) return StepError::bad_slot;
        if (!has_head_ && step.wanted[row] != Wanted::nothing) return StepError::no_head;
        for (int64_t end = token + extend; token < end; ++token) {
            const int64_t given = step.input_ids[token];
            const int64_t id = given == -1 ? step.last_tokens[step.req_slots[row]] : given;
            if (id < 0 || id >= limits_.vocab_size) return StepError::bad_token;
            if (step.out_slots[token] < 0 || step.out_slots[token] >= limits_.num_slots) return StepError::bad_slot;
        }
    }
    return StepError::none;
}

// What a run of decode steps adds to a step that is sound.
StepError Program::check(const Step& step, const DecodeRun& run) const {
    if (run.num_steps < 1 || run.num_descriptors > kMaxDescriptors) return StepError::no_decode;
    if (step.hidden_states != nullptr || step.allowed != nullptr) return StepError::no_decode;
    for (int64_t row = 0; row < step.num_rows; ++row) {
        if (step.extend_lens[row] != 1 || step.wanted[row] == Wanted::nothing) return StepError::no_decode;
        if (step.prefix_lens[row] + run.num_steps > limits_.max_context) return StepError::bad_length;
    }
    if (run.logprobs != nullptr) {
        const LogprobCall& call = *run.logprobs;
        const int64_t num_logits = std::count(step.wanted, step.wanted + step.num_rows, Wanted::logits);
        if (call.num_rows > limits_.max_rows || call.top_n > limits_.vocab_size) return StepError::no_decode;
        for (int64_t i = 0; i < call.num_rows; ++i) {
            if (call.logits_rows[i] < 0 || call.logits_rows[i] >= num_logits) return StepError::no_decode;
        }
    }
    for (int64_t i = 0; i < run.num_steps * step.num_rows; ++i) {
        if (step.out_slots[i] < 0 || step.out_slots[i] >= limits_.num_slots) return StepError::bad_slot;
    }
    return StepError::none;
}

// Takes the step's next tokens, and enters their slots into the request table.
void Program::fill_piece(const Step& step, int64_t num_tokens) {
    piece_.num_tokens = num_tokens;
    piece_.num_rows = piece_.num_ends = 0;
    for (int64_t token = 0; token < num_tokens;) {
        const int32_t left = step.extend_lens[next_row_] - next_offset_;
        const int32_t count = static_cast<int32_t>(std::min<int64_t>(left, num_tokens - token));
        const int32_t req_slot = step.req_slots[next_row_];
        const int32_t prefix = step.prefix_lens[next_row_] + next_offset_;
        const int64_t row = piece_.num_rows++;
        req_slots_[row] = req_slot;
        prefix_lens_[row] = prefix;
        extend_lens_[row] = count;
        first_tokens_[row] = static_cast<int32_t>(token);
        int32_t* table = step.req_to_token + req_slot * step.table_stride;
        for (int32_t i = 0; i < count; ++i, ++token) {
            const int32_t id = step.input_ids[piece_.first_token + token];
            ids_[token] = id >= 0 ? id : static_cast<int32_t>(step.last_tokens[req_slot]);
            positions_[token] = prefix + i;
            slots_[token] = table[prefix + i] = step.out_slots[piece_.first_token + token];
        }
        next_offset_ += count;
        if (count == left) {
            end_tokens_[piece_.num_ends] = static_cast<int32_t>(token - 1);
            end_rows_[piece_.num_ends++] = static_cast<int32_t>(next_row_++);
            next_offset_ = 0;
        }
    }
    rows_ = {static_cast<int32_t>(piece_.num_rows),
             req_slots_.data(),
             prefix_lens_.data(),
             extend_lens_.data(),
             first_tokens_.data(),
             step.req_to_token,
             step.table_stride};
    sort_ends(step);
}

void Program::sort_ends(const Step& step) {
    int64_t sorted = 0;
    const auto move_up = [&](Wanted wanted) {
        const int64_t first = sorted;
        for (int64_t i = first; i < piece_.num_ends; ++i) {
            if (step.wanted[end_rows_[i]] != wanted) continue;
            // Rotated and not swapped: the order within each kind is that of the rows.
            std::rotate(end_rows_.begin() + sorted, end_rows_.begin() + i, end_rows_.begin() + i + 1);
            std::rotate(end_tokens_.begin() + sorted, end_tokens_.begin() + i, end_tokens_.begin() + i + 1);
            ++sorted;
        }
        return sorted - first;
    };
    piece_.num_choices = move_up(Wanted::choice);
    piece_.num_logits = move_up(Wanted::logits);
    find_allowed(step);
}

void Program::find_allowed(const Step& step) {
    piece_.has_masks = step.allowed != nullptr ? 1 : 0;
    for (int64_t i = 0; i < piece_.num_choices; ++i) {
        end_allowed_[i] = step.allowed != nullptr ? step.allowed[end_rows_[i]] : nullptr;
    }
}

void Program::plan_attention() {
    for (Plan& plan : plans_) {
        attention_plan(plan.get(), plan.bytes, plan.shape, rows_, limits_.max_context, pool_.num_threads());
    }
}

// False if the group has failed meanwhile.
bool Program::replay(const Step& step, Participant& participant, Meetings& meetings) {
    bool goes_on = true;
    for (const Operation& operation : operations_) {
        if (piece_.only_head != 0) break;
        std::visit(
            [&](const auto& call) {
                if constexpr (std::is_same_v<decltype(call), const Meeting&>) {
                    if (repeats_rows() ? call.if_few : call.if_more) goes_on = meetings.meet();
                } else {
                    share(participant, call);
                }
            },
            operation);
        if (!goes_on) return false;
        if (std::holds_alternative<RecordedAttention>(operation)) participant.give_way();
    }
    return meetings.meet() && finish_piece(step, participant, meetings);
}

void Program::share(Participant& participant, const PackedEmbedding& call) {
    share_rows(participant, piece_.num_tokens, call.table.num_inputs, [&](int part, int parts, int) {
        embed(call.table, call.first_id, ids_.data(), piece_.num_tokens, call.scale, call.output, call.output_stride,
              part, parts);
    });
}

void Program::share(Participant& participant, EmbeddingCall call) {
    call.ids = ids_.data();
    call.num_tokens = piece_.num_tokens;
    share_rows(participant, call.num_tokens, call.size,
               [&](int part, int parts, int) { kernels().elementwise.embedding(call, part, parts); });
}

void Program::share(Participant& participant, RotaryTableCall call) {
    constexpr int64_t kElementsPerSine = 8;
    call.positions = positions_.data();
    call.num_tokens = piece_.num_tokens;
    share_rows(
        participant, call.num_tokens, kElementsPerSine * call.half_dim,
        [&](int part, int parts, int) { kernels().elementwise.rotary_table(call, part, parts); }, ranks());
}

void Program::share(Participant& participant, const RowCalls& calls, int64_t num_rows) {
    const auto size = [](const auto& call) { return call.size; };
    const int64_t row_size = static_cast<int64_t>(calls.size()) * std::visit(size, calls.front());
    const auto compute = [&](int part, int parts, int) {
        for (const auto& each : calls) {
            std::visit(
                [&](auto call) {
                    call.num_rows = num_rows;
                    call.input = rows_of(call.input);
                    call.output = rows_of(call.output);
                    if constexpr (std::is_same_v<decltype(call), NormCall>) {
                        kernels().elementwise.rms_norm(call, part, parts);
                    } else {
                        kernels().gemm.quantize(call, part, parts);
                    }
                },
                each);
        }
    };
    const auto is_own = [&](const auto& call) { return rows_of(call.output) != call.output; };
    share_rows(participant, num_rows, row_size, compute, std::visit(is_own, calls.front()) ? RankShare{} : ranks());
}

void Program::share(Participant& participant, const Products& products) {
    constexpr size_t kMostProducts = 8;
    for (size_t first = 0; first < products.size(); first += kMostProducts) {
        const size_t count = std::min(kMostProducts, products.size() - first);
        GemmCall calls[kMostProducts];
        for (size_t i = 0; i < count; ++i) {
            calls[i] = products[first + i];
            calls[i].input = rows_of(calls[i].input);
            calls[i].num_rows = piece_.num_tokens;
            calls[i].scratch = aligned(gemm_scratch_);
        }
        participant.share(ProductWork(participant.num_threads(), calls, static_cast<int64_t>(count)));
    }
}

void Program::share(Participant& participant, RotaryStoreCall call) {
    call.num_tokens = piece_.num_tokens;
    call.out_slots = slots_.data();
    call.positions = positions_.data();
    share_rows(participant, call.num_tokens * (call.num_heads + 2 * call.num_kv_heads), call.head_dim,
               [&](int part, int parts, int) { kernels().elementwise.rotary_store(call, part, parts); });
}

void Program::share(Participant& participant, const RecordedAttention& recorded) {
    AttentionCall call = recorded.call;
    call.rows = rows_;
    call.plan = plans_[recorded.plan].get();
    call.scratch = aligned(attention_scratch_);
    call.scratch_stride = thread_bytes_;
    share_attention(participant, call);
}

void Program::share(Participant& participant, const RecordedExperts& recorded) {
    ExpertsCall call = recorded.call;
    call.num_rows = piece_.num_tokens;
    call.input = rows_of(call.input);
    call.slots = slots_.data();
    call.gate_ups = recorded.gate_ups.data();
    call.downs = recorded.downs.data();
    call.scratch = aligned(gemm_scratch_);
    share_experts(participant, call, recorded.stage, ranks());
}

bool Program::finish_piece(const Step& step, Participant& participant, Meetings& meetings) {
    if (is_first() && step.hidden_states != nullptr) {
        NormCall norm = final_norm_;
        norm.output_stride = norm.size;
        const int64_t bytes = norm.size * (norm.output_dtype == DType::bf16 ? 2 : 4);
        norm.output = static_cast<char*>(step.hidden_states) + piece_.first_token * bytes;
        norm.num_rows = piece_.num_tokens;
        share_rows(participant, norm.num_rows, norm.size,
                   [&](int part, int parts, int) { kernels().elementwise.rms_norm(norm, part, parts); });
    }
    const int64_t num_sampled = piece_.num_choices + piece_.num_logits;
    FiniteCall finite{};
    finite.input = final_norm_.input;
    finite.input_stride = final_norm_.input_stride;
    finite.row_ids = end_tokens_.data() + num_sampled;
    finite.finite = end_finite_.data() + num_sampled;
    finite.num_rows = piece_.num_ends - num_sampled;
    finite.size = final_norm_.size;
    if (is_first() && finite.num_rows > 0) {
        share_rows(participant, finite.num_rows, finite.size,
                   [&](int part, int parts, int) { kernels().elementwise.rows_finite(finite, part, parts); });
    }
    return num_sampled == 0 || share_head(step, participant, meetings);
}

bool Program::share_head(const Step& step, Participant& participant, Meetings& meetings) {
    const RowCalls& before = piece_.only_head == 0 ? before_head_ : head_inputs_;
    if (!before.empty()) share(participant, before, piece_.num_choices + piece_.num_logits);
    if (piece_.num_choices > 0 && step.masks_ready != nullptr) wait_for(step.masks_ready);
    if (has_ranks() && piece_.has_masks != 0) share_masks(step, participant);
    if (!meetings.meet()) return false;
    const GemmCall head = head_call();
    participant.share(ProductWork(participant.num_threads(), &head, 1));
    if (has_ranks()) share_choices(head, participant);
    return meetings.meet();
}

GemmCall Program::head_call() {
    GemmCall head{};
    const NormCall& norm = std::get<NormCall>(before_head_.front());
    head.input = norm.output;
    head.input_stride = norm.output_stride;
    if (const QuantizeCall* quantize = std::get_if<QuantizeCall>(&before_head_.back())) {
        head.input = quantize->output;
        head.input_stride = quantize->output_stride;
    }
    head.num_rows = piece_.num_choices + piece_.num_logits;
    head.weights = head_;
    head.epilogue = kChoose;
    head.output = logits_ + piece_.first_logits * limits_.vocab_size + first_id_;
    head.output_stride = limits_.vocab_size;
    head.output_dtype = DType::f32;
    head.num_choices = piece_.num_choices;
    head.choices = choices_.data();
    head.allowed = end_allowed_.data();
    head.scratch = aligned(gemm_scratch_);
    return head;
}

void Program::report(const Step& step) {
    const GemmCall head = head_call();
    for (int64_t i = 0; i < piece_.num_choices; ++i) {
        const Choice best = choice(head, i);
        step.next_tokens[end_rows_[i]] = best.column;
        step.finite[end_rows_[i]] = best.finite != 0 && best.value > -__builtin_inff();
    }
    for (int64_t i = piece_.num_choices + piece_.num_logits; i < piece_.num_ends; ++i) {
        step.finite[end_rows_[i]] = end_finite_[i];
    }
}

}  // namespace bough
