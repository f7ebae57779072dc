"""Faults for the processes of a server, from the outside of the package.

The entry modules beside this one wrap what a process turns in its loop. A test arms a fault by a file in a directory
that it names in the environment; the process strikes when it next comes by, and says when.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import Any

DIRECTORY_VARIABLE = "FAULTS_OF_TEST"
SCHEDULER_VARIABLE = "SCHEDULER_OF_TEST"
"""Module of the schedulers, where it is another one than that of the fake model."""
STEP_SECONDS = 0.02
"""How long a step takes, so that a test can catch a request in the middle of its prompt."""


def directory() -> Path:
    return Path(os.environ[DIRECTORY_VARIABLE])


def armed(process: str, *kinds: str) -> str | None:
    """The fault that waits for ``process``, if it is one of ``kinds``."""
    file = directory() / process
    if not file.exists():
        return None
    kind = file.read_text()
    return kind if kind in kinds else None


def struck(process: str) -> None:
    file = directory() / f"{process}.struck"
    if not file.exists():
        file.write_text(repr(time.time()))


def once(process: str) -> None:
    (directory() / process).unlink()


def strike(process: str) -> None:
    """Do to this process what is armed for it, if it concerns its loop."""
    kind = armed(process, "exit", "exception", "stuck")
    if kind is None:
        return
    struck(process)
    if kind == "exit":
        os._exit(1)
    if kind == "exception":
        raise RuntimeError("injected into the loop")
    ctypes.PyDLL(None).sleep(3600)  # holds the GIL: no thread of this process runs any more


def run_out_of_memory(process: str) -> None:
    """Raise where work for a request is done; once."""
    if armed(process, "out_of_memory"):
        once(process)
        struck(process)
        raise MemoryError("injected")


def hold_start(process: str) -> None:
    """Stay in the middle of the start for as long as the test wants."""
    while (directory() / "hold").exists():
        strike(process)
        run_out_of_memory(process)
        time.sleep(0.02)


def hold_writing() -> None:
    """Stay in the middle of an update of weights for as long as the test wants, and say so."""
    while (directory() / "hold_writing").exists():
        struck("writing")
        time.sleep(0.02)


def before(owner: Any, name: str, action: Any) -> None:
    """From now on, ``action()`` comes before the method ``name`` of the class ``owner``."""
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        action()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)
