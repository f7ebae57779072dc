"""A check that updates reach every weight: what was there before is noted, overwritten, sent again and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import torch

from bough.errors import BadRequest, ModelError
from bough.ipc.messages import CheckAction
from bough.weight_sync.change import Change
from bough.weight_sync.live_weights import LiveWeights

_NAMES_SHOWN = 5
_DEVIATION = 0.02
"""Standard deviation of the random numbers."""


class WeightCheck:
    """Compares the memory of the weights :attr:`live`, byte for byte and by digests, so that it takes none itself."""

    def __init__(self, live: LiveWeights) -> None:
        self._live = live
        self._noted: dict[str, bytes] | None = None

    def prepare(self, action: CheckAction) -> Change:
        """Do all of a step of the check that may fail, and return the rest; nothing may be computed meanwhile.

        Raises:
            BadRequest: if weights are not those that were noted, or none were; if a matrix has no room for random
                numbers; or while they are asleep.
        """
        live = self._live
        live.check_awake()
        if action == "reset_tensors":
            self._check_random()
            return Change(lambda: sum(live.update_weights([each]) for each in self._random_weights()))
        # Another scheduler compares what it writes.
        now = {} if live.is_mapped else {name: _digest(each) for name, each in live.model.named_parameters()}
        if action == "snapshot":
            return Change(lambda: self._note(now))
        self._compare(now)
        return Change(lambda: 0)

    def _note(self, digests: dict[str, bytes]) -> int:
        self._noted = digests
        return 0

    def _compare(self, now: dict[str, bytes]) -> None:
        noted = self._noted
        if noted is None:
            raise BadRequest("action: nothing was noted to compare with; send snapshot first", param="action")
        if others := [name for name, digest in now.items() if digest != noted[name]]:
            shown = ", ".join(others[:_NAMES_SHOWN]) + (", …" if len(others) > _NAMES_SHOWN else "")
            raise BadRequest(f"{len(others)} of {len(now)} weights are others than those noted: {shown}", code="differ")

    def _check_random(self) -> None:
        for each in self._random_weights():
            try:
                self._live.prepare_update([each]).drop()
            except ModelError as error:
                message = f"action: random numbers do not fit this model: {error.message}"
                raise BadRequest(message, param="action", code="unsupported_by_model") from None

    def _random_weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield numbers for each weight, the same each time, one after the other: a copy of all might not fit."""
        model, generator = self._live.model, torch.Generator().manual_seed(0)
        for name in sorted(model.required_names):
            weight = model.checkpoint_weights[name]
            numbers = torch.empty(weight.shape).normal_(0.0, _DEVIATION, generator=generator)
            yield name, numbers.to(weight.dtype)


def _digest(parameter: torch.Tensor) -> bytes:
    flat = parameter.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.blake2b(flat.numpy().data, digest_size=16).digest()
