"""The process of one of several ranks, which a test can hold while it writes weights, or have refuse them."""

from __future__ import annotations

import os
import sys

from bough.child_main import run_child
from bough.errors import BadRequest
from bough.scheduler.process import run_scheduler_process
from bough.weight_sync.live_weights import LiveWeights
from tests.faults.injection import armed, before, hold_writing


def refuse() -> None:
    if armed(str(os.getpid()), "refuse"):
        raise BadRequest("injected: they do not fit here")


if __name__ == "__main__":
    before(LiveWeights, "prepare_replacement", refuse)
    before(LiveWeights, "_fill", hold_writing)
    sys.exit(run_child(run_scheduler_process, sys.argv[1:]))
