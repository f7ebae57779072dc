#include <limits>

#include "check.h"

namespace check {

namespace {

// Evenly spaced uniform numbers must draw each kept token as often as its share says, in ascending order of id.
void check_draws(ThreadPool& pool) {
    const int64_t vocab = pick({5, 64, 100, 1000, 5003}), draws = 1000;
    const std::vector<float> row = normal(vocab, 2.0F);
    const double top_k =
        pick({0, 1}) != 0 ? static_cast<double>(between(1, 50)) : std::numeric_limits<double>::infinity();
    const double top_p = pick({0, 1}) != 0 ? 0.7 : std::numeric_limits<double>::infinity();
    const float log_min_p = flip() ? std::log(0.05F) : -std::numeric_limits<float>::infinity();
    const float inverse_temperature = 1.25F;
    const bool masked = flip();
    std::vector<uint32_t> allowed(static_cast<size_t>((vocab + 31) / 32));
    std::vector<int64_t> order;
    for (int64_t token = 0; token < vocab; ++token) {
        if (masked && token != vocab / 2 && (token / 100 % 2 == 1 || flip())) continue;
        allowed[token / 32] |= uint32_t{1} << token % 32;
        order.push_back(token);
    }
    std::vector<float> logits;
    std::vector<SampleRow> rows;
    for (int64_t i = 0; i < draws; ++i) {
        logits.insert(logits.end(), row.begin(), row.end());
        SampleRow sample{};
        sample.logits_row = i;
        sample.random = 1;
        sample.inverse_temperature = inverse_temperature;
        sample.uniform = (static_cast<double>(i) + 0.5) / static_cast<double>(draws);
        sample.top_p = top_p;
        sample.top_k = top_k;
        sample.log_min_p = log_min_p;
        sample.repetition_penalty = 1.0F;
        sample.allowed = masked ? allowed.data() : nullptr;
        rows.push_back(sample);
    }
    std::vector<int64_t> tokens(draws);
    std::vector<uint8_t> finite(draws);
    Aligned<unsigned char> scratch(static_cast<int64_t>(sample_scratch_bytes(vocab, pool.num_threads())));
    SampleCall call{logits.data(), vocab, vocab, rows.data(), draws, tokens.data(), finite.data(), scratch.data()};
    pool.run([&](int thread, int count) { kernels().sampling.sample(call, thread, count, thread); });

    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] > row[b]; });
    std::vector<double> share(vocab);
    double total = 0, kept = 0;
    const int64_t candidates = static_cast<int64_t>(order.size());
    for (const int64_t token : order) total += std::exp((row[token] - row[order[0]]) * 1.25);
    for (int64_t i = 0; i < candidates && static_cast<double>(i) < top_k && kept < top_p * total; ++i) {
        if ((row[order[i]] - row[order[0]]) * inverse_temperature < log_min_p) break;
        share[order[i]] = std::exp((row[order[i]] - row[order[0]]) * 1.25);
        kept += share[order[i]];
    }
    std::vector<double> found(vocab);
    for (int64_t i = 0; i < draws; ++i) {
        found[tokens[i]] += 1;
        expect(finite[i] == 1 && (i == 0 || tokens[i] >= tokens[i - 1]), "order of draws", double(tokens[i]), 0);
    }
    for (int64_t token = 0; token < vocab; ++token) {
        const double wanted = share[token] / kept * static_cast<double>(draws);
        expect(std::fabs(found[token] - wanted) <= 1.01, "share of a token", found[token], wanted);
    }
}

// Greedy rows with penalties and edits: what becomes of the logits, and which token is largest.
void check_penalties(ThreadPool& pool) {
    const int64_t vocab = pick({5, 64, 100, 1000}), num_rows = 5;
    const std::vector<float> given = normal(num_rows * vocab, 2.0F);
    std::vector<float> logits = given;
    std::vector<std::vector<int32_t>> counts, histories;
    std::vector<std::vector<int64_t>> edit_ids;
    std::vector<std::vector<float>> edit_addends;
    std::vector<SampleRow> rows;
    for (int64_t i = 0; i < num_rows; ++i) {
        counts.emplace_back(static_cast<size_t>(vocab));
        histories.emplace_back();
        for (int64_t j = between(0, 20); j > 0; --j) {
            histories[i].push_back(static_cast<int32_t>(between(0, vocab - 1)));
            ++counts[i][histories[i].back()];
        }
        const bool scoped = flip();
        // Tokens of the prompt, and some that are produced, too: in scope once or several times.
        for (int64_t j = scoped ? between(0, 20) : 0; j > 0; --j) {
            histories[i].push_back(static_cast<int32_t>(between(0, vocab - 1)));
            counts[i][histories[i].back()] += kRepeated;
        }
        edit_ids.push_back({between(0, vocab - 1), vocab - 1});
        edit_addends.push_back({3.5F, -std::numeric_limits<float>::infinity()});
        SampleRow row{};
        row.logits_row = i;
        row.inverse_temperature = 1.0F;
        row.top_p = row.top_k = std::numeric_limits<double>::infinity();
        row.log_min_p = -std::numeric_limits<float>::infinity();
        row.frequency_penalty = 0.3F;
        row.presence_penalty = -0.7F;
        row.repetition_penalty = 1.25F;
        row.num_history = flip() ? -1 : static_cast<int32_t>(histories[i].size());
        row.history = histories[i].data();
        row.counts = counts[i].data();
        row.scoped = scoped ? 1 : 0;
        row.num_edits = 2;
        row.edit_ids = edit_ids[i].data();
        row.edit_addends = edit_addends[i].data();
        rows.push_back(row);
    }
    const std::vector<std::vector<int32_t>> counts_before = counts;
    const int64_t broken = between(0, num_rows);  // `num_rows`: none
    if (broken < num_rows) logits[broken * vocab + between(0, vocab - 2)] = NAN;
    std::vector<int64_t> tokens(static_cast<size_t>(num_rows));
    std::vector<uint8_t> finite(static_cast<size_t>(num_rows));
    Aligned<unsigned char> scratch(static_cast<int64_t>(sample_scratch_bytes(vocab, pool.num_threads())));
    SampleCall call{logits.data(), vocab, vocab, rows.data(), num_rows, tokens.data(), finite.data(), scratch.data()};
    pool.run([&](int thread, int count) { kernels().sampling.sample(call, thread, count, thread); });
    for (int64_t i = 0; i < num_rows; ++i) {
        expect(counts[i] == counts_before[i], "counts", 0, 1);
        expect(tokens[i] >= 0 && tokens[i] < vocab, "valid token", static_cast<double>(tokens[i]), 0);
        expect(finite[i] == (i != broken), "finite row", finite[i], i != broken);
        if (i == broken) continue;
        double best = -1e300;
        for (int64_t token = 0; token < vocab; ++token) {
            const bool scoped = rows[i].scoped != 0;
            const int32_t times = counts[i][token] % kRepeated;
            const bool repeated = scoped ? counts[i][token] >= kRepeated : times > 0;
            double wanted = given[i * vocab + token];
            if (!scoped && times > 0) wanted -= 0.3 * times - 0.7;
            if (repeated) wanted = wanted > 0 ? wanted / 1.25 : wanted * 1.25;
            if (scoped && times > 0) wanted -= 0.3 * times - 0.7;
            if (token == edit_ids[i][0]) wanted += 3.5;
            if (token == vocab - 1) {
                expect(logits[i * vocab + token] == -INFINITY, "banned token", logits[i * vocab + token], -INFINITY);
                continue;
            }
            expect_near(logits[i * vocab + token], wanted, 1e-5, "logit with penalties");
            best = std::max(best, wanted);
        }
        expect_near(logits[i * vocab + tokens[i]], best, 1e-5, "largest logit");
    }
}

}  // namespace

void check_sampling(ThreadPool& pool) {
    check_draws(pool);
    check_penalties(pool);
}

}  // namespace check
