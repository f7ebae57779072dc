"""Weights that have come and wait to be written together with others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import torch

from bough.errors import RequestFailed
from bough.weight_sync.live_weights import LiveWeights

_UNCHECKED_BYTES = 2**26
"""Bytes that may wait without a look at the memory that is left, which takes a fraction of a millisecond."""


class StagedWeights:
    """Copies of weights for a model, the last of each name.

    Args:
        live: the weights that they are for.
        available: returns the bytes of memory of a device that can be taken now.

    Attributes:
        call: id of the last call that has added some, for :meth:`undo`.
    """

    def __init__(self, live: LiveWeights, available: Callable[[torch.device], int]) -> None:
        self._live = live
        self._available = available
        self._tensors: dict[str, torch.Tensor] = {}
        self._before: dict[str, torch.Tensor | None] = {}
        """Those that the last addition has replaced."""
        self._unchecked = 0
        """Bytes that were copied since the last look at the memory that is left."""
        self.call = ""

    def __len__(self) -> int:
        """Number of weights that wait."""
        return len(self._tensors)

    def check_room(self, num_bytes: int, device: torch.device) -> None:
        """Raise :class:`RequestFailed` (503) if a device has no memory for copies of so many bytes."""
        if num_bytes > _UNCHECKED_BYTES and num_bytes > (available := self._available(device)):
            raise RequestFailed(
                f"there is no memory for a copy of {num_bytes} bytes of new weights: {available} are available on "
                f"{device}",
                status_code=503,
            )

    def copies(self, weights: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
        """Return copies of weights on their devices, since their memory may be used for others.

        Weights that another scheduler writes are kept as shapes alone.

        Raises:
            RequestFailed: (503) if there is no memory for them.
        """
        copies: list[tuple[str, torch.Tensor]] = []
        for name, tensor in weights:
            if self._live.is_mapped:
                copies.append((name, tensor.detach().to("meta")))
                continue
            self._unchecked += tensor.nbytes
            if self._unchecked > _UNCHECKED_BYTES:
                self.check_room(self._unchecked, tensor.device)
                self._unchecked = 0
            try:
                copies.append((name, tensor.detach().clone()))
            except RuntimeError as error:
                message = f"there is no memory for copies of new weights: {error}"
                raise RequestFailed(message, status_code=503) from None
        return copies

    def add(self, copies: Sequence[tuple[str, torch.Tensor]]) -> int:
        """Keep copies of weights that fit the model; return their number."""
        self._before = {name: self._tensors.get(name) for name, _ in copies}
        self._tensors.update(copies)
        return len(copies)

    def digest(self) -> str:
        """Return a digest of the names, dtypes and shapes of what waits, in whatever order it came."""
        waiting = sorted((name, str(each.dtype), list(each.shape)) for name, each in self._tensors.items())
        return hashlib.sha256(repr(waiting).encode()).hexdigest()

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
