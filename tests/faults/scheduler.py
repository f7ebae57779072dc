"""The scheduler process, with faults."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from bough.child_main import run_child
from bough.scheduler.process import run_scheduler_process
from bough.scheduler.scheduler import Scheduler
from bough_fake.worker import FakeWeights, FakeWorker
from tests.faults.injection import (
    STEP_SECONDS,
    armed,
    before,
    hold_start,
    hold_writing,
    run_out_of_memory,
    strike,
    struck,
)


def compute() -> None:
    time.sleep(STEP_SECONDS)
    run_out_of_memory("scheduler")
    if armed("scheduler", "device_error"):
        struck("scheduler")
        raise RuntimeError("injected: the device does not answer")


def write(self: FakeWeights, shift: int, original: Callable[..., int] = FakeWeights.write) -> int:
    if self.is_writer:
        hold_writing()
    return original(self, shift)


if __name__ == "__main__":
    FakeWeights.write = write  # type: ignore[method-assign]
    before(Scheduler, "__init__", lambda: hold_start("scheduler"))
    before(Scheduler, "recv_requests", lambda: strike("scheduler"))
    before(FakeWorker, "forward_batch_generation", compute)
    before(FakeWorker, "forward_further", compute)
    sys.exit(run_child(run_scheduler_process, sys.argv[1:]))
