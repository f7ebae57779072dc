"""A check that updates reach every weight: what was there before is noted, overwritten, sent again and compared."""

from __future__ import annotations

import hashlib

import torch

from bough.errors import BadRequest, EngineDead
from bough.ipc.messages import CheckAction
from bough.weight_sync.live_weights import LiveWeights

_NAMES_SHOWN = 5
_DEVIATION = 0.02
"""Standard deviation of the random numbers."""


class WeightCheck:
    """Compares the memory of the weights :attr:`live`, byte for byte and by digests, so that it takes none itself."""

    def __init__(self, live: LiveWeights) -> None:
        self._live = live
        self._noted: dict[str, bytes] | None = None

    def run(self, action: CheckAction) -> int:
        """Do one step of the check; nothing may be computed meanwhile. Returns how many pieces of memory it has
        overwritten, 0 of those that another scheduler writes.

        Raises:
            BadRequest: if weights are not those that were noted, or none were; or while they are asleep.
            EngineDead: if only some could be overwritten.
        """
        self._live.check_awake()
        if action == "reset_tensors":
            return self._overwrite()
        if self._live.is_mapped:
            return 0
        now = {name: _digest(parameter) for name, parameter in self._live.model.named_parameters()}
        if action == "snapshot":
            self._noted = now
        elif self._noted is None:
            raise BadRequest("action: nothing was noted to compare with; send snapshot first", param="action")
        elif others := [name for name, digest in now.items() if digest != self._noted[name]]:
            shown = ", ".join(others[:_NAMES_SHOWN]) + (", …" if len(others) > _NAMES_SHOWN else "")
            raise BadRequest(f"{len(others)} of {len(now)} weights are others than those noted: {shown}", code="differ")
        return 0

    def _overwrite(self) -> int:
        model, generator = self._live.model, torch.Generator().manual_seed(0)
        filled = 0
        try:
            for name in sorted(model.required_names):  # one after the other: a copy of all might not fit
                weight = model.checkpoint_weights[name]
                numbers = torch.empty(weight.shape).normal_(0.0, _DEVIATION, generator=generator)
                filled += self._live.update_weights([(name, numbers.to(weight.dtype))])
        except Exception as error:
            if not filled:
                raise
            raise EngineDead(f"weights could be overwritten in part only: {error}") from error
        return filled


def _digest(parameter: torch.Tensor) -> bytes:
    flat = parameter.detach().cpu().contiguous().view(-1).view(torch.uint8)
    return hashlib.blake2b(flat.numpy().data, digest_size=16).digest()
