"""Nobody starves: neither short prompts, nor long ones, nor running requests."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from types import FrameType

import numpy as np
import pytest

from bough.scheduler.cost_model import CostModel
from bough.scheduler.prefill_planner import MAX_UNFINISHED_PROMPTS
from bough.scheduler.waiting_queue import WaitingQueue
from tests.scheduler.harness import Harness, prompt_of

POLICIES = ["lpm", "fcfs", "dfs-weight", "lof", "random", "priority"]


def slow_prefill(harness: Harness, per_token: float = 1e-3) -> None:
    """Make the planner believe that a prompt token costs a millisecond and a step next to nothing."""
    harness.scheduler.planner.cost_model = CostModel(1e-4, per_token, 0.0)
    harness.scheduler.planner.cost_model.observe = lambda *_: None  # type: ignore[method-assign]


def test_short_prompt_behind_a_100k_one_is_answered_within_4_steps() -> None:
    for policy in POLICIES:
        for long_prompts in [1, 3]:
            harness = Harness(max_total_num_tokens=450_000, context_len=120_000, schedule_policy=policy, verify=False)
            slow_prefill(harness, 1e-4)
            for seed in range(long_prompts):
                harness.submit(prompt_of(100_000, seed), max_new_tokens=1, rid=f"long{seed}")
            harness.step()
            (short,) = harness.submit(prompt_of(100, 99), max_new_tokens=4)
            for _ in range(4):
                harness.step()
            assert harness.outputs[short].token_ids, "no token after 4 steps"
            harness.run()
            for seed in range(long_prompts):
                assert harness.outputs[f"long{seed}"].token_ids == harness.expected(prompt_of(100_000, seed), 1)


MORE_THAN_SLOTS, MORE_THAN_ARE_LOOKED_AT = 10, 60
FRESH, AGED = 0.0, 6.0
USUAL = {
    *((policy, MORE_THAN_SLOTS, AGED, True) for policy in POLICIES),
    *((policy, MORE_THAN_ARE_LOOKED_AT, FRESH, False) for policy in ("lpm", "priority")),
}


@pytest.mark.parametrize(
    ("policy", "long_prompts", "waited", "decodes"),
    [
        pytest.param(*case, marks=() if case in USUAL else pytest.mark.slow)
        for case in itertools.product(
            POLICIES, (MORE_THAN_SLOTS, MORE_THAN_ARE_LOOKED_AT), (FRESH, AGED), (False, True)
        )
    ],
)
def test_long_prompts_leave_slots_to_short_ones(policy: str, long_prompts: int, waited: float, decodes: bool) -> None:
    harness = Harness(
        max_total_num_tokens=600_000, context_len=8000, max_running_requests=8, schedule_policy=policy, verify=False
    )
    slow_prefill(harness)
    if decodes:
        harness.submit(prompt_of(10), max_new_tokens=5000, rid="decodes")
        harness.step()
    for seed in range(long_prompts):
        harness.submit(prompt_of(5000, seed), max_new_tokens=1, rid=f"long{seed}")
        (req,) = harness.scheduler.requests.find(f"long{seed}", exact=True)
        req.arrival_time -= waited
    most = 0
    for _ in range(20):
        harness.step()
        most = max(most, len(harness.scheduler.requests.unfinished))
    assert most == MAX_UNFINISHED_PROMPTS
    (short,) = harness.submit(prompt_of(100, 99), max_new_tokens=4)
    for _ in range(4):
        harness.step()
    assert harness.outputs[short].token_ids, "no token after 4 steps"
    harness.abort("decodes")
    harness.run()
    for seed in range(long_prompts):
        assert harness.outputs[f"long{seed}"].token_ids == harness.expected(prompt_of(5000, seed), 1)


def test_a_long_prompt_of_a_higher_priority_does_not_wait_for_long_ones_of_lower() -> None:
    harness = Harness(
        max_total_num_tokens=100_000, context_len=8000, max_running_requests=8, schedule_policy="priority", verify=False
    )
    slow_prefill(harness)
    for seed in range(4):
        harness.submit(prompt_of(5000, seed), max_new_tokens=1, rid=f"low{seed}")
    for _ in range(4):
        harness.step()
    (high,) = harness.submit(prompt_of(5000, 9), max_new_tokens=1, priority=1)
    for _ in range(2):
        harness.step()
    unfinished = [req.rid for req in harness.scheduler.requests.unfinished]
    assert unfinished == ["low0", "low1", high]


def test_running_request_gets_a_token_every_step_under_a_flood_of_prompts() -> None:
    for policy in POLICIES:
        harness = Harness(
            max_total_num_tokens=50_000, context_len=4000, max_running_requests=16, schedule_policy=policy
        )
        slow_prefill(harness)
        (running,) = harness.submit(prompt_of(10), max_new_tokens=100, rid="running")
        harness.step()
        for seed in range(60):
            harness.submit(prompt_of(700, seed + 1), max_new_tokens=2)
        before = len(harness.outputs[running].token_ids)
        for _ in range(50):
            harness.step()
        assert len(harness.outputs[running].token_ids) == before + 50


def test_step_stays_within_its_budget_of_time() -> None:
    harness = Harness(max_total_num_tokens=50_000, context_len=4000, max_running_requests=16)
    slow_prefill(harness)
    for seed in range(40):
        harness.submit(prompt_of(50 + 60 * seed, seed), max_new_tokens=5)
    harness.run()
    target = harness.scheduler.planner.limits.target_seconds
    longest = max(plan.num_tokens for plan, _ in harness.worker.steps) * 1e-3
    assert longest <= target * 1.25
    assert longest >= target * 0.5, "the budget was never used"


def test_chunked_prefill_size_bounds_the_prompt_tokens_of_a_step() -> None:
    for chunk in [16, 100]:
        harness = Harness(max_total_num_tokens=20_000, context_len=2000, chunked_prefill_size=chunk)
        for seed in range(10):
            harness.submit(prompt_of(30 * (seed + 1), seed), max_new_tokens=5)
        harness.run()
        sizes = [plan.num_tokens - plan.num_decode_rows for plan, _ in harness.worker.steps]
        assert max(sizes) == chunk


def test_no_prompt_takes_more_than_half_of_a_step_while_others_wait() -> None:
    harness = Harness(max_total_num_tokens=20_000, context_len=4000, chunked_prefill_size=100)
    harness.submit(prompt_of(1000, 1), max_new_tokens=1)
    harness.submit(prompt_of(1000, 2), max_new_tokens=1)
    harness.step()
    plan, _ = harness.worker.steps[0]
    assert sorted(plan.extend_lens.tolist()) == [50, 50]


def test_lpm_does_not_overtake_a_request_that_has_waited_long() -> None:
    harness = Harness(max_running_requests=1, max_total_num_tokens=2000, schedule_policy="lpm")
    shared = prompt_of(200)
    harness.submit(shared, max_new_tokens=20)
    harness.step()
    (unlucky,) = harness.submit(prompt_of(50, 5), max_new_tokens=2, rid="unlucky")
    (lucky,) = harness.submit([*shared, 1], max_new_tokens=2, rid="lucky")
    order = [req.rid for req, _ in harness.scheduler.requests.waiting_queue.ordered(_now(harness, 0.0), 10)]
    assert order == ["lucky", "unlucky"], "the policy favours what is cached"
    order = [req.rid for req, _ in harness.scheduler.requests.waiting_queue.ordered(_now(harness, 6.0), 10)]
    assert order == ["unlucky", "lucky"], "age beats the policy"
    harness.run()
    assert harness.outputs[unlucky].token_ids == harness.expected(prompt_of(50, 5), 2)
    assert harness.outputs[lucky].cached_tokens == 200


def test_prompts_that_have_begun_and_waited_long_are_not_overtaken_by_shorter_ones() -> None:
    for policy in POLICIES:
        harness = Harness(
            max_total_num_tokens=100_000, max_running_requests=64, chunked_prefill_size=64, schedule_policy=policy
        )
        aged = [harness.submit(prompt_of(400, seed), max_new_tokens=1, rid=f"aged{seed}")[0] for seed in range(3)]
        for rid in aged:
            (req,) = harness.scheduler.requests.find(rid, exact=True)
            req.arrival_time -= 6.0
        for step in range(3 * 400 // 64 + 5):
            for seed in range(6):
                harness.submit(prompt_of(20, 100 + 6 * step + seed), max_new_tokens=1)
            harness.step()
        assert all(harness.outputs[rid].token_ids for rid in aged)
        harness.run()


def _now(harness: Harness, later: float) -> float:
    return max(req.arrival_time for req in harness.scheduler.requests.waiting_queue) + later


def test_free_slots_are_filled_in_the_next_step() -> None:
    harness = Harness(max_running_requests=4)
    for seed in range(12):
        harness.submit(prompt_of(8, seed), max_new_tokens=3 + seed % 5)
    requests, num_refilled = harness.scheduler.requests, 0
    while requests.num_waiting:
        held, waiting = requests.num_holding, requests.num_waiting
        harness.step()
        plan, _ = harness.worker.steps[-1]
        assert plan.num_rows == min(4, held + waiting)
        num_refilled += 0 < held < 4
    assert num_refilled > 1
    harness.run()


# With all slots taken nobody asks who is next; with slots but no memory, everybody is asked in every step.
def test_ten_thousand_waiting_requests_do_not_add_python_calls_to_a_step() -> None:
    for slots in [4, 64]:
        for policy in ["lpm", "priority", "lof"]:

            def calls_per_step(waiting: int) -> int:
                harness = Harness(
                    max_running_requests=slots,
                    max_total_num_tokens=1100,
                    schedule_policy=policy,
                    disable_radix_cache=True,
                )
                harness.scheduler.planner.cost_model.observe = lambda *_: None  # type: ignore[method-assign]  # slow steps cost more
                for seed in range(4):
                    harness.submit(prompt_of(8, seed), max_new_tokens=200)
                for seed in range(waiting):
                    harness.submit([seed % 1000] * 500, max_new_tokens=100)
                for _ in range(5):
                    harness.step()
                assert harness.scheduler.requests.num_holding == 4
                count, asked = 0, 0

                def profile(frame: FrameType, event: str, arg: object) -> None:
                    nonlocal count, asked
                    count += event in ("call", "c_call")
                    asked += event == "call" and frame.f_code is WaitingQueue.ordered.__code__

                sys.setprofile(profile)
                harness.step()
                sys.setprofile(None)
                assert asked == (slots > 4)
                return count

            few, many = calls_per_step(200), calls_per_step(10_000)
            assert many <= few * 1.1 + 5


def test_priorities_go_first_under_any_policy() -> None:
    harness = Harness(max_running_requests=1, enable_priority_scheduling=True, schedule_policy="fcfs")
    harness.submit(prompt_of(8), max_new_tokens=5)
    harness.step()
    low = harness.submit(prompt_of(8, 1), max_new_tokens=1, priority=1)[0]
    high = harness.submit(prompt_of(8, 2), max_new_tokens=1, priority=5)[0]
    harness.run()
    finished = list(harness.outputs)
    assert finished.index(high) < finished.index(low)


def test_age_counts_within_a_priority() -> None:
    harness = Harness(max_running_requests=1, schedule_policy="lof", enable_priority_scheduling=True)
    harness.submit(prompt_of(8), max_new_tokens=5)
    harness.step()
    for rid, priority, tokens in (("low", -9, 1), ("first", 0, 1), ("second", 0, 9), ("high", 9, 1)):
        harness.submit(prompt_of(8, len(rid)), max_new_tokens=tokens, rid=rid, priority=priority)
    queue = harness.scheduler.requests.waiting_queue
    assert [req.rid for req, _ in queue.ordered(_now(harness, 0.0), 10)] == ["high", "second", "first", "low"]
    old = queue.ordered(_now(harness, 6.0), 10)
    assert old == [(req, True) for req, _ in old]
    assert [req.rid for req, _ in old] == ["high", "first", "second", "low"]
    assert queue.ordered(_now(harness, 6.0), 2) == old[:2]
    harness.run()


def test_lof_starts_the_longest_output_first() -> None:
    harness = Harness(max_running_requests=1, schedule_policy="lof")
    harness.submit(prompt_of(8), max_new_tokens=5)
    harness.step()
    short = harness.submit(prompt_of(8, 1), max_new_tokens=2)[0]
    long = harness.submit(prompt_of(8, 2), max_new_tokens=9)[0]
    harness.run()
    finished = list(harness.outputs)
    assert finished.index(long) < finished.index(short)


def test_dfs_weight_keeps_branches_together_heaviest_first() -> None:
    harness = Harness(max_running_requests=1, max_total_num_tokens=4096, schedule_policy="dfs-weight")
    a, b = prompt_of(64, 1), prompt_of(64, 2)
    for base in (a, b):
        harness.submit(base, max_new_tokens=1)
        harness.run()
    harness.submit(prompt_of(8, 3), max_new_tokens=30)
    harness.step()
    rids = [
        harness.submit([*base, tail], max_new_tokens=1, rid=f"{name}{tail}")[0]
        for tail, (name, base) in enumerate([("a", a), ("b", b), ("b", b), ("a", a), ("b", b)])
    ]
    order = [req.rid for req, _ in harness.scheduler.requests.waiting_queue.ordered(_now(harness, 0.0), 10)]
    assert order == ["b1", "b2", "b4", "a0", "a3"]
    harness.run()
    assert all(len(harness.outputs[rid].token_ids) == 1 for rid in rids)


def test_one_prompt_needs_no_more_steps_than_its_budget_requires() -> None:
    harness = Harness(max_total_num_tokens=20_000, context_len=4000, chunked_prefill_size=100)
    harness.submit(prompt_of(1000, 1), max_new_tokens=1)
    assert harness.run() == 10


def test_cost_model_recovers_its_coefficients() -> None:
    from bough.scheduler.cost_model import StepCost

    true = CostModel(2e-3, 3e-5, 4e-9)
    points = [(16, 128.0), (64, 2048.0), (256, 32768.0), (256, 3e5), (8, 512.0), (1024, 1e6)]
    fitted = CostModel.fit([StepCost(tokens, context, true.seconds(tokens, context)) for tokens, context in points])
    np.testing.assert_allclose([fitted.base, fitted.per_token, fitted.per_token_context], [2e-3, 3e-5, 4e-9], rtol=1e-6)
    tokens = fitted.tokens_within(0.1, context=1000)
    added = fitted.seconds(tokens, tokens * (1000 + tokens / 2)) - fitted.base
    assert added <= 0.1 < fitted.seconds(tokens + 1, (tokens + 1) * (1000 + (tokens + 1) / 2))


def test_cost_model_never_has_negative_coefficients() -> None:
    from bough.scheduler.cost_model import StepCost

    fitted = CostModel.fit([StepCost(10, 50.0, 0.01), StepCost(20, 200.0, 0.011), StepCost(1, 0.5, 0.02)])
    assert min(fitted.base, fitted.per_token, fitted.per_token_context) >= 0.0


def test_cost_model_follows_a_machine_that_slows_down() -> None:
    model = CostModel(1e-3, 1e-5, 1e-9)
    rng = np.random.default_rng(0)
    for _ in range(600):
        tokens = int(rng.integers(1, 500))
        context = float(tokens * rng.integers(1, 2000))
        model.observe(tokens, context, 2 * (1e-3 + 1e-5 * tokens + 1e-9 * context) * rng.uniform(0.9, 1.1))
    for tokens, context in [(1, 1e3), (100, 1e4), (400, 4e5)]:
        truth = 2 * (1e-3 + 1e-5 * tokens + 1e-9 * context)
        assert abs(model.seconds(tokens, context) / truth - 1) < 0.2


def test_steady_decoding_does_not_make_prompts_look_free() -> None:
    model = CostModel(1e-3, 1e-4, 1e-8)
    for _ in range(2000):
        model.observe(8, 8 * 100.0, 1.8e-3)
    assert 0.5e-4 <= model.per_token <= 2e-4


def test_hours_of_decoding_do_not_make_prompts_look_free() -> None:
    model = CostModel(0.02, 1e-3, 1e-7)
    rng = np.random.default_rng(0)
    for _ in range(20_000):
        rows = int(rng.integers(1, 33))
        model.observe(rows, rows * 200.0, 0.05)
    assert model.tokens_within(0.15, 0) <= 4 * 150, "a step would take more than four times its target"
    assert model.per_token_context > 0


def slow_base(harness: Harness, base: float) -> None:
    """Make the planner believe that a step costs ``base`` seconds whatever it does."""
    harness.scheduler.planner.cost_model = CostModel(base, 3e-3, 1e-9)
    harness.scheduler.planner.cost_model.observe = lambda *_: None  # type: ignore[method-assign]


def test_a_machine_slower_than_the_target_still_serves() -> None:
    for base in [0.1, 0.15, 3.0]:
        harness = Harness()
        slow_base(harness, base)
        (rid,) = harness.submit(prompt_of(20))
        harness.run(max_steps=30)
        assert harness.outputs[rid].token_ids == harness.expected(prompt_of(20), 8)


# Where a step takes as long as one token, doubling it leaves room for one token, every second one the short prompt's.
def test_short_prompt_behind_two_long_ones_starts_soon_while_others_decode() -> None:
    for base, most_steps in [(1e-4, 202), (0.1, 16), (0.2, 16)]:
        for policy in POLICIES:
            harness = Harness(max_total_num_tokens=150_000, context_len=60_000, schedule_policy=policy, verify=False)
            slow_base(harness, base)
            harness.submit(prompt_of(10), max_new_tokens=5000)
            harness.step()
            for seed in (1, 2):
                harness.submit(prompt_of(30_000, seed), max_new_tokens=1)
            for _ in range(3):
                harness.step()
            (short,) = harness.submit(prompt_of(100, 3), max_new_tokens=4)
            steps = 0
            while short not in harness.outputs:
                harness.step()
                steps += 1
                assert steps <= most_steps, f"no token after {most_steps} steps"


def test_a_long_prompt_does_not_double_the_gaps_of_others() -> None:
    for base, per_token in [(5e-4, 4e-5), (3e-3, 1.2e-4), (0.022, 1e-3), (0.05, 2.8e-3), (0.35, 0.017)]:
        harness = Harness(max_total_num_tokens=20_000, context_len=10_000, verify=False)
        model = CostModel(base, per_token, per_token * 1e-3)
        harness.scheduler.planner.cost_model = model
        ratios: list[float] = []

        def observe(tokens: int, context: float, *_: object) -> None:
            ratios.append(model.seconds(tokens, context) / model.seconds(1, 10 + len(ratios)))

        model.observe = observe  # type: ignore[method-assign]
        harness.submit(prompt_of(10), max_new_tokens=5000)
        for _ in range(20):
            harness.step()
        (long,) = harness.submit(prompt_of(4_000, 1), max_new_tokens=1)
        while long not in harness.outputs:
            harness.step()
            assert len(ratios) < 4000, "the prompt gets on"
        assert max(ratios[20:]) < 2


def test_tiny_chunks_starve_nobody() -> None:
    for chunk in [1, 8]:
        harness = Harness(chunked_prefill_size=chunk, max_total_num_tokens=8192)
        (running,) = harness.submit(prompt_of(4), max_new_tokens=400)
        rids = [harness.submit(prompt_of(40, seed), max_new_tokens=2)[0] for seed in range(1, 4)]
        harness.run()
        assert max(plan.num_tokens - plan.num_decode_rows for plan, _ in harness.worker.steps) == chunk
        for seed, rid in enumerate(rids, 1):
            assert harness.outputs[rid].token_ids == harness.expected(prompt_of(40, seed), 2)
        assert len(harness.outputs[running].token_ids) == 400


def test_higher_priority_keeps_its_memory() -> None:
    harness = Harness(
        max_total_num_tokens=128, max_running_requests=2, schedule_policy="priority", schedule_conservativeness=0.05
    )
    (low,) = harness.submit(prompt_of(16), max_new_tokens=80, priority=-5)
    harness.step()
    (high,) = harness.submit(prompt_of(16, 1), max_new_tokens=80, priority=9)
    harness.run()
    assert harness.outputs[high].deltas[-1].num_retractions == 0
    assert harness.outputs[low].deltas[-1].num_retractions > 0


def test_as_many_tokens_as_fit_whatever_their_context_costs() -> None:
    for per_context in [0.0, 1e-30, 8.56e-27, 1e-18, 1e-12, 1e-8, 1e-4]:
        for per_token in [0.0, 9.77e-8, 1e-4]:
            for context in [0, 1000]:
                """The cost of n tokens, in exact numbers, is within the time, and that of one more is not."""
                model, seconds = CostModel(1e-4, per_token, per_context), Fraction(3, 40_000)
                tokens = model.tokens_within(float(seconds), context)

                def cost(count: int) -> Fraction:
                    each = Fraction(per_token) + Fraction(per_context) * context
                    return count * each + Fraction(per_context) * count**2 / 2

                assert tokens == 2**30 or cost(tokens + 1) > seconds * Fraction(999_999, 1_000_000)
                assert cost(tokens) <= seconds * Fraction(1_000_001, 1_000_000)


def test_prompts_get_their_share_of_a_machine_that_has_become_slow() -> None:
    """A machine busy with other things takes two seconds for any step, however few its tokens."""
    harness = Harness(max_running_requests=64, max_total_num_tokens=40_000, verify=False)
    harness.scheduler.planner.cost_model = CostModel(2.0, 1e-2, 0.0)
    harness.scheduler.planner.cost_model.observe = lambda *_: None  # type: ignore[method-assign]
    for seed in range(70):
        harness.submit(prompt_of(100, seed), max_new_tokens=40)
    most = 0
    for _ in range(45):
        harness.step()
        most = max(most, harness.scheduler.requests.num_holding)
    assert most >= 32
