"""A device that replays decode steps, while it has to be told every kernel of a step with a prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bough.scheduler.cost_model import CostModel, StepCost
from bough.step_plan import StepPlan
from bough_fake.runner import StepDuration
from tests.scheduler.harness import Harness, prompt_of


@dataclass(frozen=True)
class _Recorded(StepDuration):
    """Decode rows are recorded; others take ``launching`` seconds at least."""

    clock: str = "virtual"  # type: ignore[assignment]
    launching: float = 8e-3
    per_token: float = 4e-6

    def of(self, plan: StepPlan) -> float:
        if plan.num_decode_rows == plan.num_rows:
            return 3e-3 + 5e-6 * plan.num_rows
        return max(self.launching, self.per_token * plan.num_tokens)


def test_launching_is_not_charged_to_the_tokens_of_prompts() -> None:
    for prompt_len in [3000, 40_000]:
        for per_token in [2e-6, 4e-6]:
            harness = Harness(
                max_total_num_tokens=1_000_000,
                max_running_requests=80,
                context_len=60_000,
                verify=False,
                duration=_Recorded(per_token=per_token),
                device="cuda",
            )
            for seed in range(64):
                harness.submit(prompt_of(10, seed), max_new_tokens=5000)
            for _ in range(100):
                harness.step()
            harness.worker.steps.clear()
            for seed in range(480_000 // prompt_len):
                harness.submit(prompt_of(prompt_len, 100 + seed), max_new_tokens=1)
            while harness.scheduler.requests.num_waiting or harness.scheduler.requests.unfinished:
                harness.step()
                assert len(harness.worker.steps) < 2000, "prompts get on"
            with_prompts = [
                (plan, result) for plan, result in harness.worker.steps if plan.num_rows > plan.num_decode_rows
            ]
            tokens = np.array([plan.num_tokens - plan.num_decode_rows for plan, _ in with_prompts])
            assert tokens.mean() >= 1000
            # A tenth more: what so many tokens cost is extrapolated from fewer.
            assert max(result.seconds for _, result in with_prompts) <= 1.1 * 0.03


def test_prompts_cost_no_more_to_begin_with_where_nothing_is_recorded() -> None:
    model = CostModel.fit(
        [StepCost(n, n * n / 2, 2e-3 + 3e-5 * n, has_prompt=n > 8) for n in (1, 8, 16, 64, 256)], knows_prompts=True
    )
    assert model.prompt_base < 1e-4
    plain = CostModel(1e-3, 1e-5, 1e-9)
    for tokens in (1, 500) * 100:
        plain.observe(tokens, 0.0, 1e-3 + 1e-5 * tokens + (5e-3 if tokens > 1 else 0.0), tokens > 1)
    assert plain.prompt_base == 0.0, "it was not asked for"


def test_launching_that_becomes_slower_is_followed() -> None:
    for probed, least, most_per_token in [(5e-3, 8e-3, 8e-6), (0.0, 4e-3, 12e-6)]:
        model = CostModel(3e-3, 4e-6, 0.0, probed)
        rng = np.random.default_rng(0)
        for _ in range(400):
            model.observe(64, 0.0, 3e-3 + 64 * 4e-6)
            tokens = int(rng.integers(64, 2000))
            model.observe(tokens, 0.0, 13e-3 + tokens * 4e-6, True)
        assert least <= model.prompt_base <= 11e-3
        assert model.per_token <= most_per_token
        assert model.seconds(1000, 0.0, True) == pytest.approx(17e-3, rel=0.1)
