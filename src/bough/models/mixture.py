"""Feed-forward networks of families with mixtures of experts."""

from __future__ import annotations

from typing import ClassVar

from bough.config.model_config import ModelConfig
from bough.config.model_facts import ExpertFacts
from bough.layers.activation import gate_named
from bough.layers.linear_method import MethodChoice
from bough.layers.moe.experts import Expert, Experts
from bough.layers.moe.router import PreciseLinear, Router
from bough.layers.ops import Ops, Stream, Value
from bough.models.base import torch_dtype
from bough.models.llama import FeedForward, LlamaMLP


class MixtureMLP(FeedForward):
    """Experts of which each token is computed by a few, and a network beside them that computes all if there is one."""

    router_name: ClassVar[str] = "gate"
    """Name of the router in checkpoints"""
    shared_name: ClassVar[str] = "shared_experts"
    """Name of that network in checkpoints"""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__()
        dtype, size, facts = torch_dtype(config), config.hidden_size, config.layers[layer_id].feed_forward
        assert isinstance(facts, ExpertFacts)
        method = method.below("mlp")
        self.router = Router(size, facts.routing, dtype, method, self.router_name)
        self.experts = Experts(size, facts, dtype, method)
        if facts.shared_width > 0:
            gate, below = gate_named(facts.activation), method.below(self.shared_name)
            shared = Expert(size, facts.shared_width, gate, bias=facts.bias, dtype=dtype, method=below)
            self.add_module(self.shared_name, shared)
        if facts.gates_shared:
            self.shared_gate = PreciseLinear(
                size, {f"{self.shared_name}_gate": 1}, bias=False, dtype=dtype, method=method
            )
        self.facts = facts

    def run(self, ops: Ops[Value], x: Value, stream: Stream[Value]) -> None:
        beside: tuple[Value, Value] | None = None
        if self.facts.shared_width > 0:
            shared = self.get_submodule(self.shared_name)
            assert isinstance(shared, Expert)
            gated = ops.gated(shared.gate_up_proj, x)
            if self.facts.gates_shared:
                beside = ops.linear(shared.down_proj, gated), ops.linear(self.shared_gate, x)
            else:
                ops.add_linear(stream, shared.down_proj, gated)
        ops.add_experts(stream, self.router, self.experts, x, beside)


def make_mlp(
    config: ModelConfig, layer_id: int, method: MethodChoice, mixture: type[MixtureMLP] = MixtureMLP
) -> FeedForward:
    """Make the feed-forward network of a layer as its facts say: dense, or the family's mixture."""
    if isinstance(config.layers[layer_id].feed_forward, ExpertFacts):
        return mixture(config, layer_id, method)
    return LlamaMLP(config, layer_id, method)
