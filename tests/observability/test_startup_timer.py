from __future__ import annotations

import subprocess
import sys
import time

import pytest

from bough.observability.startup_timer import StartupTimer, describe_phases, seconds_since_process_start


def test_phases_add_up_to_the_wall_time():
    begin = time.perf_counter()
    timer = StartupTimer(started_before_s=2.0)
    time.sleep(0.02)
    timer.end_phase("one")
    timer.end_phase("two")
    time.sleep(0.01)
    timer.end_phase("one")
    wall = time.perf_counter() - begin
    assert sum(timer.phases.values()) == pytest.approx(timer.total)
    assert timer.total == pytest.approx(2.0 + wall, abs=0.005)
    assert timer.phases["one"] == pytest.approx(timer.total, abs=0.005)


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
