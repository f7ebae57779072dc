"""Weights that have come and wait to be written together with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from bough.errors import RequestFailed
from bough.weight_sync.live_weights import LiveWeights

_UNCHECKED_BYTES = 2**26
"""Bytes that may wait without a look at the memory that is left, which takes a fraction of a millisecond."""


class StagedWeights:
    """Copies of weights for a model, the last of each name.

    Args:
        live: the weights that they are for.
        available: returns the bytes of memory that can be taken now.

    Attributes:
        call: id of the last call that has added some, for :meth:`undo`.
    """

    def __init__(self, live: LiveWeights, available: Callable[[], int]) -> None:
        self._live = live
        self._available = available
        self._tensors: dict[str, torch.Tensor] = {}
        self._before: dict[str, torch.Tensor | None] = {}
        """Those that the last addition has replaced."""
        self.call = ""

    def __len__(self) -> int:
        """Number of weights that wait."""
        return len(self._tensors)

    def check_room(self, num_bytes: int) -> None:
        """Raise :class:`RequestFailed` (503) if there is no memory for copies of so many bytes."""
        waiting = sum(each.nbytes for each in self._tensors.values())
        if waiting + num_bytes > _UNCHECKED_BYTES and num_bytes > (available := self._available()):
            raise RequestFailed(
                f"there is no memory for a copy of {num_bytes} bytes of new weights: {available} are available",
                status_code=503,
            )

    def check(self, weights: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Refuse weights that do not fit the model, or have no room.

        Raises:
            BoughError: as :meth:`LiveWeights.check`, and :meth:`check_room`.
        """
        self._live.check(weights)
        self.check_room(sum(tensor.nbytes for _, tensor in weights))

    def add(self, weights: Sequence[tuple[str, torch.Tensor]]) -> int:
        """Keep copies of weights that were checked, since their memory may be used for others; return their number.

        Weights that another scheduler writes are kept as shapes alone.
        """
        self._before = {name: self._tensors.get(name) for name, _ in weights}
        for name, tensor in weights:
            self._tensors[name] = tensor.detach().to("meta") if self._live.is_mapped else tensor.detach().clone()
        return len(weights)

    def undo(self) -> None:
        """Forget what was added last, since others could not add it."""
        for name, before in self._before.items():
            if before is None:
                del self._tensors[name]
            else:
                self._tensors[name] = before
        self._before = {}

    def take(self) -> list[tuple[str, torch.Tensor]]:
        """Return what waits, in the order in which it came first, and forget it."""
        taken = list(self._tensors.items())
        self.clear()
        return taken

    def clear(self) -> None:
        """Forget what waits."""
        self._tensors.clear()
        self._before = {}
