from __future__ import annotations

import json
import logging
import subprocess
import sys
from datetime import datetime

SCRIPT = """
import json
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


HOSTILE = """
import json
import logging
from bough.observability.logging import configure_logging
from bough.observability.request_context import CURRENT, RequestContext
configure_logging("info", log_format={log_format!r})
logger = logging.getLogger("bough.x")
bad = "a\\n[2026-01-01 00:00:00] ERROR: all is lost\\r\\x1b[2J\\u2028\\u202e\\ud800 \\u00e9"
logger.info("%s", bad)
try:
    raise ValueError(bad)
except ValueError:
    CURRENT.set(RequestContext("req-1"))
    logger.exception("it failed: %s", bad)
logger.info("%(count)d things", {{"count": 3, "text": bad}}, extra={{"event": "counted"}})
"""


def run_hostile(log_format: str) -> list[str]:
    script = HOSTILE.format(log_format=log_format)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stderr.split("\n")[:-1]


def test_nothing_that_is_logged_begins_a_line_of_its_own_or_moves_a_cursor() -> None:
    lines = run_hostile("text")
    assert all(line.isprintable() for line in lines)
    assert r"a\n[2026-01-01 00:00:00] ERROR: all is lost\r\x1b[2J\u2028\u202e\ud800 é" in lines[0]
    assert lines[1].endswith("(x-request-id req-1)")
    assert lines[-1].endswith("] 3 things")
    assert all(line.startswith("  ") for line in lines[2:-1])


def test_json_has_a_record_a_line_with_its_fields() -> None:
    first, failed, counted = map(json.loads, run_hostile("json"))
    assert first["level"] == "info"
    assert first["logger"] == "bough.x"
    assert "all is lost" in first["message"]
    assert datetime.fromisoformat(first["time"]).tzinfo is not None
    assert failed["request_id"] == "req-1"
    assert failed["exception"].startswith("Traceback")
    assert (counted["event"], counted["count"], counted["message"]) == ("counted", 3, "3 things")


def test_fields_never_replace_what_every_record_has() -> None:
    script = (
        "import logging; from bough.observability.logging import configure_logging as c; c('info', log_format='json');"
        "logging.getLogger('bough').info('x %(level)s', {'level': 'mine', 'time': 1, 'more': 2})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    record = json.loads(done.stderr)
    assert (record["level"], record["message"], record["more"]) == ("info", "x mine", 2)
