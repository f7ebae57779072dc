from __future__ import annotations

import logging
import subprocess
import sys

SCRIPT = """
import logging
from bough.observability.logging import configure_logging
configure_logging({level!r}, label={label!r})
logging.getLogger("bough.scheduler.scheduler").info("a %s line", "plain")
logging.getLogger("bough.x").warning("look here")
logging.getLogger("bough.x").debug("detail")
logging.getLogger("uvicorn.error").info("chatter")
logging.getLogger("uvicorn.error").warning("uvicorn has a problem")
logging.getLogger("other").info("not ours")
"""


def run(level: str, label: str = "") -> list[str]:
    script = SCRIPT.format(level=level, label=label)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_lines_have_a_time_and_warnings_their_level():
    plain, warning, foreign = run("info")
    assert plain.startswith("[20")
    assert plain.endswith("] a plain line")
    assert warning.endswith("] WARNING: look here")
    assert foreign.endswith("] WARNING: uvicorn has a problem")


def test_ranks_are_told_apart():
    assert run("info", "TP1")[0].endswith(" TP1] a plain line")


def test_level_is_obeyed():
    assert [line.rpartition("] ")[2] for line in run("debug")] == [
        "a plain line",
        "WARNING: look here",
        "detail",
        "WARNING: uvicorn has a problem",
    ]
    assert run("error") == []


def test_importing_bough_configures_nothing():
    script = (
        "import logging, bough.entrypoints.engine; print(logging.getLogger('bough').handlers, logging.root.handlers)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[] []\n"
    assert logging.getLogger("bough").handlers == []
