from __future__ import annotations

import faulthandler
import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.e2e import server

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
settings.register_profile("untimed", deadline=None, max_examples=25)
settings.load_profile("untimed")
# make fuzz: as long as one has patience for.
settings.register_profile("thorough", deadline=None, max_examples=400)

LONG = (
    "tests/e2e/",
    "tests/conformance/",
    "tests/faults/",
    "tests/soak/",
    "tests/weight_sync/",
    "tests/test_examples.py",
)
"""Folders and files that start many servers or run for a minute."""

EXIT_SECONDS = 120
"""In which an interpreter that has nothing left to test has to end."""


def pytest_configure(config: pytest.Config) -> None:
    server.num_replicas = config.getoption("dp_size")


def pytest_unconfigure() -> None:
    """What keeps the interpreter from ending is shown, and not waited for. A worker waits for the slowest one, and is
    ended by the process that started it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    faulthandler.dump_traceback_later(EXIT_SECONDS, exit=True, file=sys.__stderr__)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of one scheduler where servers have several, and sort the tests for processes that share them:
    the longest come first.

    Raises:
        pytest.UsageError: for two tests of one name: processes that share tests know them by their names.
    """
    if config.getoption("dp_size") > 1:
        for item in items:
            if item.get_closest_marker("one_scheduler") is not None:
                item.add_marker(pytest.mark.skip(reason="assumes that one scheduler has all requests"))
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    names = Counter(item.nodeid for item in items)
    if len(names) < len(items):
        raise pytest.UsageError(f"several tests are called {names.most_common(1)[0][0]}: run them in one process")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out files, or groups of files, so that each process starts the servers of its own files only."""
    from tests.units_of_work import UnitsOfWork

    return UnitsOfWork(config, log)


def pytest_collection_finish() -> None:
    """What the tests have imported is no garbage: tests that look for garbage need not walk through it each time."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server-python", help="Python that has the server, if the tests' own has only its clients")
    parser.addoption("--dp-size", type=int, default=1, help="replicas of the servers that e2e and conformance start")
    parser.addoption("--screenshots", help="directory for pictures of the playground in both themes")


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A directory for what tests and their processes leave behind, with a short path: the sockets in it need room."""
    tmp_path_factory.getbasetemp()  # pytest's own directory must outlive this one
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", directory)
        patch.setattr(tempfile, "tempdir", directory)
        yield
