"""The router of a mixture of experts: which of them compute a token, and how much each counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from bough.config.model_facts import RoutingFacts
from bough.layers.checkpoint_weight import CheckpointWeight, TensorWeight
from bough.layers.linear import MergedLinear
from bough.layers.linear_method import MethodChoice

LEAST_SUM = 1e-20
"""Added to the sum that weights are divided by."""


class Routed(NamedTuple):
    """Experts of each token, in ascending order of their numbers."""

    experts: torch.Tensor
    """int64 ``[num_tokens, experts_per_token]``"""
    weights: torch.Tensor
    """float32, alike"""


class PreciseLinear(MergedLinear):
    """A small matrix that is never quantised, and whose products are float32."""

    is_precise = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Products ``[num_tokens, out_features]``, float32, of ``x`` ``[num_tokens, in_features]``."""
        return self.method.compute_logits(self, x.to(self.get_parameter("weight").dtype))


class Router(PreciseLinear):
    """A row of weights for each expert. Products are float32, since their order decides.

    Attributes:
        facts: the kind of routing.
        correction: float32 ``[num_experts]``, or ``None``: what is added to scores where experts are chosen.
    """

    def __init__(
        self, in_features: int, facts: RoutingFacts, dtype: torch.dtype, method: MethodChoice, name: str = "gate"
    ) -> None:
        """Take memory for the checkpoint's projection ``name``."""
        super().__init__(in_features, {name: facts.num_experts}, bias=facts.bias, dtype=dtype, method=method)
        self.facts = facts
        correction = nn.Parameter(torch.empty(facts.num_experts, dtype=torch.float32), requires_grad=False)
        self.register_parameter("correction", correction if facts.is_corrected else None)

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Yield names within the parent module, and what each fills."""
        yield from super().checkpoint_weights()
        if self.facts.is_corrected:
            yield "gate.e_score_correction_bias", TensorWeight(self.get_parameter("correction").data)

    def choose(self, products: torch.Tensor) -> Routed:
        """Choose the experts of each token by its products ``[num_tokens, num_experts]``, float32."""
        facts = self.facts
        scores = products.softmax(-1) if facts.scores == "softmax" else products.sigmoid()
        ranks = scores + self.get_parameter("correction") if facts.is_corrected else scores
        if facts.groups_per_token < facts.num_groups:
            ranks = _without_other_groups(ranks, facts)
        # Of equal scores the first: that is what the native kernel takes.
        chosen = ranks.sort(dim=-1, descending=True, stable=True).indices[:, : facts.experts_per_token].sort(-1).values
        weights = scores.gather(-1, chosen)
        if facts.renormalised:
            weights = weights / (weights.sum(-1, keepdim=True) + LEAST_SUM)
        return Routed(chosen, weights * facts.scaling)


def _without_other_groups(ranks: torch.Tensor, facts: RoutingFacts) -> torch.Tensor:
    """Set the ranks of experts that are in none of a token's best groups to minus infinity."""
    grouped = ranks.view(len(ranks), facts.num_groups, -1)  # [num_tokens, num_groups, experts of a group]
    best = min(1 if facts.group_score == "largest" else 2, grouped.shape[-1])
    group_scores = grouped.topk(best, -1).values.sum(-1)
    groups = group_scores.sort(dim=-1, descending=True, stable=True).indices[:, : facts.groups_per_token]
    kept = torch.zeros_like(group_scores, dtype=torch.bool).scatter_(-1, groups, True)
    return grouped.masked_fill(~kept[..., None], -torch.inf).flatten(-2)
