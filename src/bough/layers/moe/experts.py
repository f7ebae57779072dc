"""Experts of a mixture: many small feed-forward networks, of which each token is computed by a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import nn

from bough.config.model_facts import ExpertFacts
from bough.layers.activation import Gate, gate_named
from bough.layers.linear import GatedLinear, Linear
from bough.layers.linear_method import MethodChoice
from bough.layers.moe.router import Routed


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


class Experts(nn.ModuleList):
    """All experts of a layer, by number.

    Attributes:
        gate: function of their gates.
        loads: int64 ``[num_experts]`` on the host, how many tokens each has computed.
    """

    def __init__(self, hidden_size: int, facts: ExpertFacts, dtype: torch.dtype, method: MethodChoice) -> None:
        gate, method = gate_named(facts.activation), method.below("experts")
        super().__init__(
            Expert(
                hidden_size,
                facts.width,
                gate,
                bias=facts.bias,
                dtype=dtype,
                method=method.below(str(number)),
                adds_up=False,
            )
            for number in range(facts.routing.num_experts)
        )
        self._collectives = method.collectives
        self.gate: Gate = gate
        self.loads = torch.zeros(facts.routing.num_experts, dtype=torch.int64, device="cpu")

    def each(self) -> Iterator[Expert]:
        """Yield all of them."""
        return cast(Iterator[Expert], iter(self))

    def forward(self, x: torch.Tensor, routed: Routed) -> torch.Tensor:
        """Sum of the results of each token's experts, times their weights, in ascending order of the experts.

        Args:
            x: ``[num_tokens, hidden_size]``
            routed: the experts of each token.

        Returns:
            The same shape and dtype; sums are float32.
        """
        per_token = routed.experts.shape[1]
        # Copies of tokens, sorted by expert: each expert computes all of its tokens at once, and they are neighbours.
        numbers, order = routed.experts.flatten().sort(stable=True)
        copies = x[order // per_token]  # [num_tokens * per_token, hidden_size]
        results = torch.empty_like(copies)
        counts = numbers.bincount(minlength=len(self)).cpu()
        self.loads += counts
        start = 0
        for number, count in enumerate(counts.tolist()):
            if count:
                results[order[start : start + count]] = self[number](copies[start : start + count])
                start += count
        shares = results.view(len(x), per_token, -1).float() * routed.weights[..., None]
        total = shares[:, 0]
        for share in shares.unbind(1)[1:]:
            total = total + share
        return self._collectives.add_up(total.contiguous()).to(x.dtype)
