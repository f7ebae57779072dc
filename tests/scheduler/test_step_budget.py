from __future__ import annotations

import pytest

from bough.scheduler.cost_model import CostModel
from bough.scheduler.step_budget import StepLimits, budget_of_step
from tests.scheduler.harness import Harness

MICROSECONDS = 1e-6


def prompt_seconds(limits: StepLimits, *, step_seconds: float) -> float:
    """Time that a long prompt gets beside ten running requests whose step takes so long."""
    model = CostModel(step_seconds - 10 * MICROSECONDS, MICROSECONDS, 0.0, 0.0)
    budget = budget_of_step(limits, model, 10, 0.0, only_long=True)
    return budget.tokens_for(0, 1.0) * MICROSECONDS


def test_a_gpu_s_prompts_get_more_than_a_cpu_s() -> None:
    limits = {}
    for device in ("cpu", "cuda"):
        harness = Harness(device=device)
        limits[device] = harness.scheduler.planner.limits
    assert (limits["cpu"].target_seconds, limits["cpu"].unnoticed_seconds) == (0.15, 0.0)
    assert (limits["cuda"].target_seconds, limits["cuda"].unnoticed_seconds) == (0.03, 0.02)


def test_prompts_get_three_quarters_of_what_running_requests_take() -> None:
    for step_seconds in [0.002, 0.012, 0.02]:
        limits = StepLimits(target_seconds=0.15)
        assert prompt_seconds(limits, step_seconds=step_seconds) == pytest.approx(0.75 * step_seconds, rel=0.01)


def test_prompts_get_more_where_nobody_notices_but_keep_to_the_target() -> None:
    for step_seconds, expected in [(0.002, 0.01), (0.012, 0.01), (0.022, 0.008), (0.03, 0.0075)]:
        limits = StepLimits(target_seconds=0.03, unnoticed_seconds=0.01)
        assert prompt_seconds(limits, step_seconds=step_seconds) == pytest.approx(expected, rel=0.01)


def test_prompts_keep_their_share_where_running_requests_alone_take_longer_than_the_target() -> None:
    limits = StepLimits(target_seconds=0.006)
    for step_seconds, share in [(0.006, 0.25), (0.009, 0.5), (0.012, 0.75), (0.02, 0.75)]:
        assert prompt_seconds(limits, step_seconds=step_seconds) == pytest.approx(share * step_seconds, rel=0.01)
