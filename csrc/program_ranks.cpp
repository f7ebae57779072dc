// What a program does for and with other ranks: see group.h.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "program.h"

namespace bough {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int64_t kLineBytes = 64;

template <class T>
void copy(T* to, const T* from, int64_t count) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
}

}  // namespace

// --- the first rank ----------------------------------------------------------------------------------------------

void Program::publish_piece() {
    *shared_.piece = piece_;
    copy(shared_.ids, ids_.data(), piece_.num_tokens);
    copy(shared_.positions, positions_.data(), piece_.num_tokens);
    copy(shared_.slots, slots_.data(), piece_.num_tokens);
    copy(shared_.req_slots, req_slots_.data(), piece_.num_rows);
    copy(shared_.prefix_lens, prefix_lens_.data(), piece_.num_rows);
    copy(shared_.extend_lens, extend_lens_.data(), piece_.num_rows);
    copy(shared_.first_tokens, first_tokens_.data(), piece_.num_rows);
    copy(shared_.end_tokens, end_tokens_.data(), piece_.num_ends);
    group_->publish();
}

// Puts masks where all ranks can read them.
void Program::share_masks(const Step& step, Participant& participant) {
    if (!is_first()) return;
    share_rows(participant, piece_.num_choices, shared_.mask_words, [&](int part, int parts, int) {
        for (int64_t row = piece_.num_choices * part / parts; row < piece_.num_choices * (part + 1) / parts; ++row) {
            uint32_t* const mask = shared_.masks + row * shared_.mask_words;
            const uint32_t* const allowed = step.allowed[end_rows_[row]];
            if (allowed != nullptr) {
                copy(mask, allowed, shared_.mask_words);
            } else {
                std::fill(mask, mask + shared_.mask_words, ~0U);
            }
        }
    });
}

// --- all ranks ---------------------------------------------------------------------------------------------------

void Program::add_own_rows(const std::variant<NormCall, QuantizeCall>& call) {
    const auto add = [&](const void* shared, int64_t row_bytes) {
        for (const OwnRows& own : own_rows_) {
            if (own.shared != shared) continue;
            if (own.row_bytes != row_bytes) throw std::invalid_argument("rows of two widths have one buffer");
            return;
        }
        std::vector<uint64_t> memory((kRepeatedRows * row_bytes + kLineBytes) / sizeof(uint64_t) + 1);
        const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
        void* const rows = reinterpret_cast<void*>((address + kLineBytes - 1) / kLineBytes * kLineBytes);
        own_rows_.push_back({shared, row_bytes, std::move(memory), rows});
    };
    if (const QuantizeCall* quantize = std::get_if<QuantizeCall>(&call)) {
        add(quantize->output, quantize->output_stride * static_cast<int64_t>(sizeof(uint32_t)));
    } else if (const NormCall& norm = std::get<NormCall>(call); norm.adds == 0) {
        add(norm.output, norm.output_stride * (norm.output_dtype == DType::bf16 ? 2 : 4));
    }
}

void Program::replay(const Step& step, Participant& participant) {
    if (participant.thread() == 0 && has_ranks()) replay_begin_ = now();
    Meetings meetings(group_);
    if (!replay(step, participant, meetings)) participant.skip();
    if (participant.thread() != 0) return;
    last_meeting_ = meetings.number();
    if (has_ranks()) replay_end_ = now();
}

void Program::find_shared_masks() {
    for (int64_t row = 0; row < piece_.num_choices; ++row) {
        // Of this rank's columns, which begin where a word does.
        const int64_t word = row * shared_.mask_words + first_id_ / kPanelColumns;
        end_allowed_[row] = piece_.has_masks != 0 ? shared_.masks + word : nullptr;
    }
}

// The best of this rank's columns.
void Program::share_choices(const GemmCall& head, Participant& participant) {
    Choice* const choices = shared_.choices + group_->rank() * limits_.max_rows;
    share_rows(participant, piece_.num_choices, 1, [&](int part, int parts, int) {
        for (int64_t row = piece_.num_choices * part / parts; row < piece_.num_choices * (part + 1) / parts; ++row) {
            choices[row] = best_choice(head, row, participant.num_threads());
            choices[row].column += static_cast<int32_t>(first_id_);
        }
    });
}

// The best of all columns of a row of the piece.
Choice Program::choice(const GemmCall& head, int64_t row) const {
    if (!has_ranks()) return best_choice(head, row, pool_.num_threads());
    Choice best = shared_.choices[row];
    for (int rank = 1; rank < group_->world(); ++rank) {
        const Choice& other = shared_.choices[rank * limits_.max_rows + row];
        // Ranks have ascending columns: of several equal elements the first one stays.
        if (other.value > best.value) {
            best.value = other.value;
            best.column = other.column;
        }
        best.finite &= other.finite;
    }
    return best;
}

// --- the others --------------------------------------------------------------------------------------------------

Arrival Program::follow(const Following& following) {
    double waits = now();  // since
    const double until = waits + following.seconds;
    logits_ = following.logits;
    while (waits < until) {
        const Arrival arrival = group_->await(until - waits, pool_);
        if (arrival != Arrival::piece) return arrival;
        const double arrived = now();
        take_piece(following);
        if (compute_piece(Step{}) != StepError::none) return Arrival::failed;
        waits = now();
        group_->add_host_time(replay_begin_ - arrived + waits - replay_end_);
    }
    return Arrival::timeout;
}

// Copies the piece, which the first rank may change once all have met.
void Program::take_piece(const Following& following) {
    piece_ = *shared_.piece;
    copy(ids_.data(), shared_.ids, piece_.num_tokens);
    copy(positions_.data(), shared_.positions, piece_.num_tokens);
    copy(slots_.data(), shared_.slots, piece_.num_tokens);
    copy(req_slots_.data(), shared_.req_slots, piece_.num_rows);
    copy(prefix_lens_.data(), shared_.prefix_lens, piece_.num_rows);
    copy(extend_lens_.data(), shared_.extend_lens, piece_.num_rows);
    copy(first_tokens_.data(), shared_.first_tokens, piece_.num_rows);
    copy(end_tokens_.data(), shared_.end_tokens, piece_.num_ends);
    rows_ = {static_cast<int32_t>(piece_.num_rows),
             req_slots_.data(),
             prefix_lens_.data(),
             extend_lens_.data(),
             first_tokens_.data(),
             following.req_to_token,
             following.table_stride};
}

}  // namespace bough
