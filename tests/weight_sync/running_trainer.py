"""A trainer as a process of its own; see :mod:`tests.weight_sync.trainer`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.server import free_port

ROOT = Path(__file__).parents[2]
GROUP = "trainer"


class RunningTrainer:
    """Serves the store of the group ``GROUP`` at :attr:`port` and has a checkpoint's tensors, or some of them."""

    def __init__(self, model: Path, *only: str, world_size: int = 2) -> None:
        self.port = free_port()
        arguments = [str(self.port), str(world_size), GROUP, str(model), *only]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.weight_sync.trainer", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.heard() == "ready"

    def send(self) -> None:
        """Have it broadcast."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        """End it at once."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()
