"""Operations of the ranks that share each layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch


class Collectives(ABC):
    """Operations that all ranks which share a layer call at the same time, in the same order."""

    @abstractmethod
    def add_up(self, x: torch.Tensor) -> torch.Tensor:
        """Replace ``x``, contiguous, by its sum over all ranks; return it."""

    @abstractmethod
    def join_columns(self, x: torch.Tensor, widths: Sequence[int], out: torch.Tensor | None = None) -> torch.Tensor:
        """Put the columns of all ranks side by side, those of the first rank first.

        Args:
            x: ``[num_rows, width of this rank]``
            widths: of all ranks.
            out: result, contiguous; by default a new tensor.

        Returns:
            ``[num_rows, sum of widths]``
        """


class Alone(Collectives):
    """The only rank."""

    def add_up(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def join_columns(self, x: torch.Tensor, widths: Sequence[int], out: torch.Tensor | None = None) -> torch.Tensor:
        return x if out is None else out.copy_(x)


ALONE = Alone()
