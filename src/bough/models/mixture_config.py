"""Reader of what configurations say of mixtures of experts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from bough.config.model_facts import MOST_EXPERTS, ExpertFacts, FeedForwardFacts, RoutingFacts
from bough.models.family_reader import FamilyReader


class MixtureReader(FamilyReader):
    """Reads a family with experts in some layers. Families say which, and how tokens choose theirs."""

    width_key = "moe_intermediate_size"
    """Entry with the width of an expert."""
    gates_shared = False
    """Results of the network beside the experts are gated."""

    @abstractmethod
    def routing(self) -> RoutingFacts:
        """Choice of the experts of a token."""

    def has_experts(self, num_layers: int) -> Sequence[bool]:
        """Layers with experts; here, all."""
        return [True] * num_layers

    def shared_width(self) -> int:
        """Width of the network beside the experts; 0: none."""
        return 0

    def feed_forwards(self, hidden_size: int, num_layers: int) -> Sequence[FeedForwardFacts]:
        """Experts, or the family's dense network."""
        with_experts = self.has_experts(num_layers)
        experts = self.experts(hidden_size) if any(with_experts) else None
        dense = None if all(with_experts) else self.feed_forward(hidden_size)
        return [network for mixed in with_experts if (network := experts if mixed else dense) is not None]

    def experts(self, hidden_size: int) -> ExpertFacts:
        """The experts of all layers that have some."""
        values = self.values
        width, shared = values.integer(self.width_key), self.shared_width()
        self.check_matrix(self.width_key, max(width, shared), hidden_size)
        return ExpertFacts(
            width=width,
            activation=values.choice(self.activation_key, self.activations, self.activations[0]),
            routing=self.routing(),
            bias=self.mlp_bias(),
            shared_width=shared,
            gates_shared=self.gates_shared and shared > 0,
        )

    def expert_counts(self, *keys: str, default: int | None = None) -> tuple[int, int]:
        """Return the number of experts, which the first of the entries ``keys`` has, and of those of a token."""
        key = next((key for key in keys if self.values.get(key) is not None), keys[0])
        count = self.values.integer(key, default, maximum=MOST_EXPERTS)
        return count, self.values.integer("num_experts_per_tok", maximum=count)
