// Log-probabilities against sorting in double precision.
#include <numeric>

#include "check.h"

namespace check {

void check_logprobs(ThreadPool& pool) {
    const int64_t vocab = pick({1, 5, 64, 100, 1000}), num_rows = between(0, 5);
    const int64_t top_n = std::min(pick({0, 1, 7, 64, 1000}), vocab), num_chosen = between(0, 3);
    const bool shared = flip();
    // Rows may be some of the logits', in any order.
    const bool picks = flip(), scales = flip();
    const int64_t num_logits = num_rows + (picks ? between(1, 3) : 0);
    std::vector<float> logits = normal(num_logits * vocab, 3.0F);
    for (int64_t ties = between(0, 20); ties > 0 && !logits.empty(); --ties) {
        const int64_t last = num_logits * vocab - 1;
        logits[between(0, last)] = flip() ? logits[between(0, last)] : -INFINITY;
    }
    for (int64_t row = 0; row < num_logits; ++row) logits[row * vocab + between(0, vocab - 1)] = 2.0F;
    const auto some_ids = [&](int64_t count) {
        std::vector<int64_t> ids(static_cast<size_t>(count));
        for (int64_t& id : ids) id = between(0, vocab - 1);
        return ids;
    };
    const std::vector<int64_t> targets = some_ids(num_rows);
    const std::vector<int64_t> chosen = some_ids(shared ? num_chosen : num_rows * num_chosen);
    std::vector<int64_t> rows(num_rows);
    std::vector<float> factors(num_rows, 1.0F);
    for (int64_t row = 0; row < num_rows; ++row) {
        rows[row] = picks ? between(0, num_logits - 1) : row;
        if (scales) factors[row] = static_cast<float>(pick({1, 2, 5, 20})) / 4;
    }
    std::vector<float> targets_read(num_rows), top_read(num_rows * top_n), chosen_read(num_rows * num_chosen);
    std::vector<int64_t> top_ids(num_rows * top_n);
    std::vector<uint64_t> keys(num_rows * top_n);
    LogprobCall call{};
    call.logits = logits.data();
    call.logits_stride = call.vocab_size = vocab;
    call.num_rows = num_rows;
    call.logits_rows = picks ? rows.data() : nullptr;
    call.scales = scales ? factors.data() : nullptr;
    call.targets = targets.data();
    call.top_n = top_n;
    call.chosen = chosen.data();
    call.chosen_stride = shared ? 0 : num_chosen;
    call.num_chosen = num_chosen;
    call.targets_read = targets_read.data();
    call.top_read = top_read.data();
    call.top_ids = top_ids.data();
    call.top_keys = keys.data();
    call.chosen_read = chosen_read.data();
    pool.run([&](int thread, int count) { kernels().logprobs.logprobs(call, thread, count); });
    for (int64_t row = 0; row < num_rows; ++row) {
        const float* x = &logits[rows[row] * vocab];
        const double factor = factors[row];
        double total = 0.0;
        for (int64_t id = 0; id < vocab; ++id) total += std::exp(factor * x[id]);
        const auto expect_read = [&](float found, int64_t id, const char* what) {
            if (std::isinf(x[id])) return expect(found == x[id], what, found, x[id]);
            expect_near(found, factor * x[id] - std::log(total), 1e-5 * std::max(1.0, factor), what);
        };
        expect_read(targets_read[row], targets[row], "logprob of the target");
        for (int64_t i = 0; i < num_chosen; ++i) {
            expect_read(chosen_read[row * num_chosen + i], chosen[call.chosen_stride * row + i], "chosen logprob");
        }
        std::vector<int64_t> order(static_cast<size_t>(vocab));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[a] > x[b]; });
        for (int64_t i = 0; i < top_n; ++i) {
            const int64_t id = top_ids[row * top_n + i];
            expect(id == order[i], "likeliest token", static_cast<double>(id), static_cast<double>(order[i]));
            expect_read(top_read[row * top_n + i], order[i], "its logprob");
        }
    }
}

}  // namespace check
