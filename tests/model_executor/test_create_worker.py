"""Choosing a worker: what this does to the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bough
from tests.tables import table

CHOOSE = """
import os, sys
from bough.config.model_config import ModelConfig
from bough.model_executor.create_worker import worker_factory
config = ModelConfig.from_path(sys.argv[1])
assert "torch" not in sys.modules
worker_factory(config)
assert "torch" in sys.modules
print(os.environ.get("OMP_WAIT_POLICY"))
"""


@table("policy, spins", [(None, False), ("ACTIVE", True)])
def test_threads_of_torch_wait_as_the_environment_says_or_without_spinning(policy: str | None, spins: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    environment |= {"OMP_DISPLAY_ENV": "VERBOSE"} | ({} if policy is None else {"OMP_WAIT_POLICY": policy})
    model = Path(bough.__file__).parent / "assets" / "sapling"
    done = subprocess.run(
        [sys.executable, "-c", CHOOSE, str(model)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(policy)], "the environment is as it was"
    shown = [line.rpartition("=")[2].strip() for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
    if not shown:
        pytest.skip("torch's OpenMP is not GNU's, which tells how often its threads spin")
    assert [each != "'0'" for each in shown] == [spins] * len(shown)
