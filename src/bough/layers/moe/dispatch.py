"""Exchange of tokens among the ranks that share the experts of a layer."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from bough.layers.collectives import Collectives
from bough.layers.moe.router import Routed


class ExpertDispatch(ABC):
    """Ways of tokens to the ranks that have their experts, and of the results back."""

    @abstractmethod
    def gather(self, x: torch.Tensor, routed: Routed) -> tuple[torch.Tensor, Routed]:
        """Return the tokens that experts of this rank may have to compute, ``[num_gathered, hidden_size]``.

        Args:
            x: ``[num_tokens, hidden_size]``, the tokens of this rank.
            routed: their experts, of all ranks.
        """

    @abstractmethod
    def scatter(self, sums: torch.Tensor) -> torch.Tensor:
        """Add up the results of all ranks, and return those of this rank's own tokens.

        Args:
            sums: float32 ``[num_gathered, hidden_size]``, the weighted results of this rank's experts; contiguous, may
                be overwritten.
        """


class SharedTokens(ExpertDispatch):
    """Every rank has all tokens, since its attention computes some heads of each: nothing has to be gathered, and all
    ranks get all sums.
    """

    def __init__(self, collectives: Collectives) -> None:
        self._collectives = collectives

    def gather(self, x: torch.Tensor, routed: Routed) -> tuple[torch.Tensor, Routed]:
        return x, routed

    def scatter(self, sums: torch.Tensor) -> torch.Tensor:
        return self._collectives.add_up(sums)
