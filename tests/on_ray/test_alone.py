"""An engine that starts Ray itself, where none runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap

import psutil
import pytest

from tests.entrypoints.leftovers import eventually

pytest.importorskip("ray")

SCRIPT = textwrap.dedent(
    """
    import os, signal
    from bough import Engine

    handler = signal.getsignal(signal.SIGTERM)
    with Engine(tp_size=2, use_ray=True, dtype="float32", cpu_threads=1, max_total_tokens=4096) as engine:
        answer = engine.generate("The oak", {"max_new_tokens": 4})
        assert signal.getsignal(signal.SIGTERM) is handler
    import ray
    assert not ray.is_initialized()
    print(answer["meta_info"]["completion_tokens"])
    """
)
MARK = "BOUGH_TEST_OF_RAY_ALONE"


def marked() -> list[psutil.Process]:
    """Processes that have inherited the script's environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if MARK in process.environ():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_ray_starts_and_ends_with_the_engine() -> None:
    # In a directory of its own Ray remembers no earlier cluster.
    changes = {MARK: "1", "RAY_TMPDIR": tempfile.mkdtemp(dir=tempfile.gettempdir())}
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"} | changes
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "4"
    assert eventually(lambda: not marked(), 15.0), marked()
