"""Experts of a mixture: many small feed-forward networks, of which each token is computed by a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import nn

from bough.config.model_facts import ExpertFacts
from bough.config.sharding import Span
from bough.kernels.triton.available import kernels_for
from bough.layers.activation import Gate, gate_named
from bough.layers.checkpoint_weight import CheckpointWeight
from bough.layers.collectives import Collectives
from bough.layers.linear import GatedLinear, Linear
from bough.layers.linear_method import MethodChoice, TorchMethod
from bough.layers.moe.dispatch import ExpertDispatch, SharedTokens
from bough.layers.moe.grouped import GroupedExperts
from bough.layers.moe.router import Routed
from bough.layers.sharding import ShardedWeight, WeightElsewhere


class Expert(nn.Module):
    """Gated feed-forward network of a mixture."""

    def __init__(
        self,
        hidden_size: int,
        width: int,
        gate: Gate,
        *,
        bias: bool,
        dtype: torch.dtype,
        method: MethodChoice,
        adds_up: bool = True,
    ) -> None:
        """Take memory for this rank's share; results are added up over ranks here if ``adds_up``, else elsewhere."""
        super().__init__()
        share = method.shard.rows(width)
        inputs, outputs = method.shard.to_stream(share, hidden_size)
        parts = {"gate_proj": share, "up_proj": share}
        self.gate_up_proj = GatedLinear(hidden_size, parts, bias=bias, dtype=dtype, method=method, gate=gate)
        self.down_proj = Linear("down_proj", inputs, outputs, bias=bias, dtype=dtype, method=method, adds_up=adds_up)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, hidden_size]`` to ``[n, hidden_size]``."""
        output: torch.Tensor = self.down_proj(self.gate_up_proj(x))
        return output


class Experts(nn.ModuleDict):
    """The experts of a layer that are on this rank, by number: all of them, or a share of each, or some whole ones.

    Attributes:
        held: numbers of those that are here.
        gate: function of their gates.
        loads: int64 ``[num_experts]``, tokens that each expert of the layer has computed; on the device if that
            computes all of them together, else on the host.
        grouped: what computes all of them together; ``None``: one is computed after the other.
        kept: int16 ``[num_slots, experts of a token]``, experts of each token by its KV slot; ``None``: not kept.
    """

    def __init__(self, hidden_size: int, facts: ExpertFacts, dtype: torch.dtype, method: MethodChoice) -> None:
        gate, below = gate_named(facts.activation), method.below("experts")
        held = method.shard.experts(facts.routing.num_experts)
        # Kernels multiply all of a layer at once.
        alike = (below if held.is_whole else below.unsplit).alike([str(number) for number in range(held.total)])
        options: Any = {"bias": facts.bias, "dtype": dtype, "method": alike, "adds_up": False}
        super().__init__(
            {str(number): Expert(hidden_size, facts.width, gate, **options) for number in range(held.start, held.stop)}
        )
        self.held = held
        self.gate: Gate = gate
        self.loads = torch.zeros(held.total, dtype=torch.int64, device="cpu")
        self.kept: torch.Tensor | None = None
        self.grouped: GroupedExperts | None = None
        if kernels_for(self.first.down_proj.get_parameter("weight"), "grouped_gemm") is not None:
            self.put_together()
        self._collectives = method.collectives
        self._dispatch: ExpertDispatch = SharedTokens(method.collectives)

    def put_together(self) -> None:
        """Have Triton's kernels compute all experts together, which are not loaded yet, if they can."""
        first = self.first
        gate_ups = first.gate_up_proj.method.stack([expert.gate_up_proj for _, expert in self.each()])
        downs = first.down_proj.method.stack([expert.down_proj for _, expert in self.each()])
        if gate_ups is None or downs is None:
            return
        method = first.down_proj.method
        one_tile = isinstance(method, TorchMethod) and method.batch_invariant
        width = first.down_proj.inputs.size
        self.grouped = GroupedExperts(gate_ups, downs, self.gate, self.held, width=width, one_tile=one_tile)
        self.loads = self.loads.to(first.down_proj.get_parameter("weight").device)

    def each(self) -> Iterator[tuple[int, Expert]]:
        """Yield those that are here, with their numbers."""
        for number, expert in zip(range(self.held.start, self.held.stop), self.values(), strict=True):
            yield number, cast(Expert, expert)

    @property
    def first(self) -> Expert:
        """One of them; all have the same shape."""
        return next(self.each())[1]

    def checkpoint_weights(self) -> Iterator[tuple[str, CheckpointWeight]]:
        """Yield names within this module, ``17.up_proj.weight``, and what they fill, of the experts of all ranks."""
        own = dict(self.each())
        for number in range(self.held.total):
            for name, weight in _weights_of(own.get(number, self.first)):
                if self.held.is_whole:
                    yield f"{number}.{name}", weight
                else:
                    yield f"{number}.{name}", _one_ranks(weight, number, self._collectives, is_here=number in own)

    def take_note(self, routed: Routed, slots: torch.Tensor) -> None:
        """Count the tokens of each expert, and keep the experts of tokens, at KV ``slots`` ``[num_tokens]``, if they
        are to be kept.
        """
        is_token = (slots > 0).to(self.loads)[:, None].expand(routed.experts.shape)  # others fill up recorded steps
        self.loads.index_add_(0, routed.experts.flatten().to(self.loads), is_token.flatten())
        if self.kept is not None:
            self.kept[slots] = routed.experts.to(torch.int16)

    def forward(self, x: torch.Tensor, routed: Routed) -> torch.Tensor:
        """Sum of the results of each token's experts, times their weights, in ascending order of the experts.

        Args:
            x: ``[num_tokens, hidden_size]``
            routed: the experts of each token.

        Returns:
            The same shape and dtype; sums are float32.
        """
        x, routed = self._dispatch.gather(x, routed)
        sums = self._one_by_one(x, routed) if self.grouped is None else self.grouped.compute(x, routed)
        return self._dispatch.scatter(sums).to(x.dtype)

    def _one_by_one(self, x: torch.Tensor, routed: Routed) -> torch.Tensor:
        """Return the weighted sums of the experts that are here, float32 ``[num_tokens, hidden_size]``."""
        per_token = routed.experts.shape[1]
        # Copies of tokens, sorted by expert: each expert computes all of its tokens at once, and they are neighbours.
        numbers, order = routed.experts.flatten().sort(stable=True)
        copies = x[order // per_token]  # [num_tokens * per_token, hidden_size]
        results = torch.zeros_like(copies)
        counts = numbers.bincount(minlength=self.held.total).cpu()
        ends = counts.cumsum(0).tolist()
        for number, expert in self.each():
            start, end = ends[number] - int(counts[number]), ends[number]
            if start < end:
                results[order[start:end]] = expert(copies[start:end])
        shares = results.view(len(x), per_token, -1).float() * routed.weights[..., None]
        total = shares[:, 0]
        for share in shares.unbind(1)[1:]:
            total = total + share
        return total.contiguous()


def _weights_of(expert: Expert) -> Iterator[tuple[str, CheckpointWeight]]:
    yield from expert.gate_up_proj.checkpoint_weights()
    yield from expert.down_proj.checkpoint_weights()


def _one_ranks(weight: CheckpointWeight, number: int, collectives: Collectives, *, is_here: bool) -> CheckpointWeight:
    """Return a weight that one rank has: this one, or of an expert elsewhere, like a ``weight`` that is here."""
    if not is_here:
        return WeightElsewhere(weight.shape, weight.dtype, (*weight.key, number), collectives)
    rows, *columns = map(Span.whole, weight.shape)
    return ShardedWeight(weight, rows, columns[0] if columns else None, collectives)
