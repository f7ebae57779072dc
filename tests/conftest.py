from __future__ import annotations

import faulthandler
import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

if not Path("/dev/nvidiactl").exists():
    # Before anything imports Triton: without a GPU its kernels are interpreted.
    os.environ.setdefault("TRITON_INTERPRET", "1")

# Before anything imports torch. Several processes test at once, and threads that wait for others of their own would
# take the time of those.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# For processes that tests start; pytest itself has it from pyproject.toml.
_FAKE_MODEL = str(Path(__file__).parent / "fake_model")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_FAKE_MODEL, os.environ.get("PYTHONPATH"))))

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None, max_examples=40)
settings.load_profile("untimed")
# make fuzz: as long as one has patience for.
settings.register_profile("thorough", deadline=None, max_examples=400)

EXIT_SECONDS = 120
"""In which an interpreter that has nothing left to test has to end."""


def pytest_unconfigure() -> None:
    """What keeps the interpreter from ending is shown, and not waited for."""
    faulthandler.dump_traceback_later(EXIT_SECONDS, exit=True, file=sys.__stderr__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses tests of one name where processes share the tests: they know them by their names, and run each once."""
    names = Counter(item.nodeid for item in items)
    if "PYTEST_XDIST_WORKER" in os.environ and len(names) < len(items):
        raise pytest.UsageError(f"several tests are called {names.most_common(1)[0][0]}: run them in one process")


def pytest_collection_finish() -> None:
    """What the tests have imported is no garbage: tests that look for garbage need not walk through it each time."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server-python", help="Python that has the server, if the tests' own has only its clients")
    parser.addoption("--screenshots", help="directory for pictures of the playground in both themes")
