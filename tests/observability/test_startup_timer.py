from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from bough.observability import startup_timer
from bough.observability.startup_timer import StartupTimer, describe_phases, seconds_since_process_start


def test_phases_add_up_to_the_wall_time(monkeypatch: pytest.MonkeyPatch):
    times = iter([100.0, 100.5, 100.75, 101.75])
    monkeypatch.setattr(startup_timer, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    timer = StartupTimer(started_before_s=2.0)
    timer.end_phase("one")
    timer.end_phase("two")
    timer.end_phase("one")
    assert timer.phases == {"one": 3.5, "two": 0.25}
    assert timer.total == 3.75


def test_description_leaves_out_what_rounds_to_nothing():
    assert describe_phases({"imports": 0.814, "nothing": 0.001, "weights": 1.2}) == "imports 0.81, weights 1.20"


def test_age_of_a_process_includes_the_start_of_the_interpreter():
    script = (
        "import time; time.sleep(0.3);"
        "from bough.observability.startup_timer import seconds_since_process_start as age; print(age())"
    )
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.3 < float(done.stdout) < time.perf_counter() - begin + 0.02
    assert seconds_since_process_start() > 0.3
