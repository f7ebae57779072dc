"""Experts of a layer that Triton's kernels compute all together."""

from __future__ import annotations

import torch

from bough.config.sharding import Span
from bough.layers.activation import Gate, gate_and_mul
from bough.layers.moe.router import Routed
from bough.layers.stacked_matrices import StackedMatrices


class GroupedExperts:
    """Experts with their matrices in two stacks.

    Args:
        gate_ups: gates and values of each.
        downs: results of each.
        gate: function of the gates.
        held: numbers of the experts in them.
        width: of an expert.
        one_tile: whether no token may depend on the others.
    """

    def __init__(
        self,
        gate_ups: StackedMatrices,
        downs: StackedMatrices,
        gate: Gate,
        held: Span,
        *,
        width: int,
        one_tile: bool,
    ) -> None:
        self._gate_ups, self._downs, self._gate = gate_ups, downs, gate
        self._held, self._width, self._one_tile = held, width, one_tile

    def compute(self, x: torch.Tensor, routed: Routed) -> torch.Tensor:
        """Return the weighted sum of each token's experts that are here, in ascending order of their numbers.

        Args:
            x: ``[num_tokens, hidden_size]``, rows dense.
            routed: their experts.

        Returns:
            float32 ``[num_tokens, hidden_size]``
        """
        from bough.kernels.triton.grouped_gemm import sum_copies  # where there is Triton
        from bough.kernels.triton.sorted_rows import SortedRows

        held, num_copies = self._held, routed.experts.numel()
        rows = SortedRows.of(routed.experts, held.start, held.size, x.dtype, one_tile=self._one_tile)
        gate_up = x.new_empty(num_copies, 2 * self._width)
        self._gate_ups.multiply(x, rows, from_tokens=True, out=gate_up)
        results = x.new_empty(num_copies, x.shape[1])
        if not held.is_whole:
            results.zero_()  # those of experts that are elsewhere
        self._downs.multiply(gate_and_mul(gate_up, self._gate), rows, from_tokens=False, out=results)
        return sum_copies(results, routed.weights.contiguous(), torch.float32)
