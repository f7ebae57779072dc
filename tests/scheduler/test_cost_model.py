"""The cost model follows what steps take."""

from __future__ import annotations

import random

from bough.scheduler.cost_model import CostModel, StepCost

SHARE = 1 / 16
"""Of the experts, what a token chooses."""


def seconds_of(tokens: int) -> float:
    """A step of a mixture of experts: reading all experts takes 100 ms, a token 0.2 ms, the rest 10 ms."""
    return 0.01 + 0.0002 * tokens + 0.1 * (1 - (1 - SHARE) ** tokens)


def test_steps_of_a_mixture_take_as_long_as_reading_the_experts_that_they_chose() -> None:
    probes = [StepCost(tokens, 0.0, seconds_of(tokens), tokens >= 64) for tokens in (1, 8, 16, 32, 64, 256)]
    model = CostModel.fit(probes, expert_share=SHARE)
    for tokens in (1, 3, 20, 120, 500):
        assert abs(model.seconds(tokens, 0.0) / seconds_of(tokens) - 1) < 0.05
    # A prompt reads what decode rows beside it have left.
    assert model.prompt_seconds(0) > 0.095
    assert 0.06 > model.prompt_seconds(16) > model.prompt_seconds(64)
    without = CostModel.fit(probes)
    assert without.prompt_seconds(0) == 0.0


def test_a_mixture_on_a_machine_that_became_slower_is_followed() -> None:
    probes = [StepCost(tokens, 0.0, seconds_of(tokens)) for tokens in (1, 8, 16, 32, 64, 256)]
    model = CostModel.fit(probes, expert_share=SHARE)
    rng = random.Random(1)
    for _ in range(400):
        tokens = rng.choice([1, 2, 4, 8, 16, 64, 256])
        model.observe(tokens, 0.0, 2 * seconds_of(tokens))
    for tokens in (1, 4, 12, 100):
        assert abs(model.seconds(tokens, 0.0) / (2 * seconds_of(tokens)) - 1) < 0.1
