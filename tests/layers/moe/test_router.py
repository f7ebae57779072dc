"""Every kind of routing chooses the experts that a plain loop over tokens chooses, with its weights."""

from __future__ import annotations

import math

import pytest
import torch

from bough.config.model_facts import RoutingFacts
from bough.errors import ConfigError
from bough.layers.linear_method import TORCH
from bough.layers.moe.experts import Experts
from bough.layers.moe.router import Routed, Router
from tests.tables import table

KINDS: dict[str, RoutingFacts] = {
    "softmax": RoutingFacts(num_experts=12, experts_per_token=3, scores="softmax", renormalised=False),
    "renormalised": RoutingFacts(num_experts=12, experts_per_token=3, scores="softmax", renormalised=True),
    "one": RoutingFacts(num_experts=5, experts_per_token=1, scores="sigmoid", renormalised=False),
    "all": RoutingFacts(num_experts=4, experts_per_token=4, scores="softmax", renormalised=True),
    "biased": RoutingFacts(num_experts=8, experts_per_token=2, scores="softmax", renormalised=True, bias=True),
    "corrected": RoutingFacts(
        num_experts=12, experts_per_token=4, scores="sigmoid", renormalised=True, scaling=2.5, is_corrected=True
    ),
    "grouped": RoutingFacts(
        num_experts=12, experts_per_token=4, scores="sigmoid", renormalised=True, scaling=1.5, is_corrected=True,
        num_groups=4, groups_per_token=2,
    ),
    "best-of-group": RoutingFacts(
        num_experts=12, experts_per_token=3, scores="softmax", renormalised=False, scaling=16.0,
        num_groups=3, groups_per_token=1, group_score="largest",
    ),
}  # fmt: skip


def make_router(facts: RoutingFacts, hidden_size: int = 20) -> Router:
    router = Router(hidden_size, facts, torch.float32, TORCH)
    for parameter in router.parameters():
        parameter.data.normal_(0.0, 0.4)
    return router


def chosen_slowly(products: list[float], facts: RoutingFacts, correction: list[float]) -> tuple[list[int], list[float]]:
    if facts.scores == "sigmoid":
        scores = [1 / (1 + math.exp(-x)) for x in products]
    else:
        total = sum(math.exp(x) for x in products)
        scores = [math.exp(x) / total for x in products]
    ranks = [score + added for score, added in zip(scores, correction, strict=True)]
    size = facts.num_experts // facts.num_groups
    groups = [range(start, start + size) for start in range(0, facts.num_experts, size)]

    def of_group(group: range) -> float:
        best = sorted((ranks[i] for i in group), reverse=True)
        return best[0] if facts.group_score == "largest" else sum(best[:2])

    kept = sorted(groups, key=of_group, reverse=True)[: facts.groups_per_token]
    candidates = sorted((i for group in kept for i in group), key=lambda i: ranks[i], reverse=True)
    experts = sorted(candidates[: facts.experts_per_token])
    total = sum(scores[i] for i in experts) if facts.renormalised else 1.0
    return experts, [scores[i] / total * facts.scaling for i in experts]


@table("kind", KINDS)
def test_experts_and_weights_are_those_of_a_loop(kind: str) -> None:
    torch.manual_seed(1)
    facts = KINDS[kind]
    router = make_router(facts)
    products = router(torch.randn(40, 20))
    routed = router.choose(products)
    correction = router.correction.tolist() if facts.is_corrected else [0.0] * facts.num_experts
    for row in range(40):
        experts, weights = chosen_slowly(products[row].tolist(), facts, correction)
        assert routed.experts[row].tolist() == experts
        torch.testing.assert_close(routed.weights[row], torch.tensor(weights))


def test_of_equal_scores_the_first_experts_are_chosen() -> None:
    router = make_router(KINDS["softmax"])
    assert router.choose(torch.zeros(2, 12)).experts.tolist() == [[0, 1, 2]] * 2


def test_products_are_float32_whatever_the_model_has() -> None:
    router = Router(16, KINDS["softmax"], torch.bfloat16, TORCH)
    router.weight.data.copy_(torch.randn(12, 16).bfloat16())
    x = torch.randn(3, 16).bfloat16()
    torch.testing.assert_close(router(x), x.float() @ router.weight.float().T, rtol=0, atol=1e-6)


@table("skew", ["even", "one", "none_of_some"])
def test_results_are_summed_by_token(skew: str) -> None:
    from bough.config.model_facts import ExpertFacts

    torch.manual_seed(2)
    facts = ExpertFacts(width=8, activation="silu", routing=KINDS["renormalised"])
    experts = Experts(10, facts, torch.float32, TORCH)
    for parameter in experts.parameters():
        parameter.data.normal_()
    x = torch.randn(9, 10)
    chosen = {
        "even": torch.stack([torch.randperm(12)[:3].sort().values for _ in x]),
        "one": torch.tensor([[2, 5, 7]]).expand(9, 3),
        "none_of_some": torch.stack([torch.randperm(4)[:3].sort().values for _ in x]),
    }[skew]
    routed = Routed(chosen, torch.rand(9, 3))
    expected = torch.stack(
        [
            sum(weight * experts[str(int(number))](row[None])[0] for number, weight in zip(*pair, strict=True))
            for row, pair in zip(x, zip(*routed, strict=True), strict=True)
        ]
    )
    torch.testing.assert_close(experts(x, routed), expected)


@pytest.mark.parametrize(
    "numbers",
    [
        {"num_experts": 4, "experts_per_token": 5},
        {"num_experts": 4, "experts_per_token": 0},
        {"num_experts": 2048, "experts_per_token": 1},
        {"num_experts": 6, "experts_per_token": 2, "num_groups": 4, "groups_per_token": 2},
        {"num_experts": 6, "experts_per_token": 3, "num_groups": 3, "groups_per_token": 1},
        {"num_experts": 6, "experts_per_token": 2, "num_groups": 2, "groups_per_token": 3},
    ],
)
def test_choices_that_nothing_can_make_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="cannot be chosen"):
        RoutingFacts(scores="softmax", renormalised=True, **numbers)
