from __future__ import annotations

import pytest

from bough.config.ranks import DETOKENIZER, SCHEDULER, ParallelLayout, ProcessKey
from bough.ipc.messages import Heartbeat
from bough.managers.health import HealthMonitor, ServerState
from bough.observability.stats import SchedulerStats


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> HealthMonitor:
    monitor = HealthMonitor(max_silence=5.0, max_queued_requests=2, clock=clock)
    monitor.set_ready()
    return monitor


def live(health: HealthMonitor, clock: Clock, seconds: float, *, beats: tuple[ProcessKey, ...]) -> None:
    for _ in range(int(seconds * 2)):
        clock.now += 0.5
        health.tick()
        for process in beats:
            health.on_heartbeat(Heartbeat(process))


def test_before_the_start_it_is_alive_but_not_ready(clock: Clock) -> None:
    monitor = HealthMonitor(max_silence=5.0, clock=clock)
    clock.now += 1000
    assert monitor.why_not_alive() is None
    assert monitor.why_not_ready() == "the server is starting"
    monitor.set_ready()
    assert monitor.why_not_ready() is None


def test_part_that_falls_silent_is_named(health: HealthMonitor, clock: Clock) -> None:
    live(health, clock, 20, beats=(SCHEDULER, DETOKENIZER))
    assert health.why_not_alive() is None
    live(health, clock, 4, beats=(SCHEDULER,))
    assert health.why_not_alive() is None
    live(health, clock, 2, beats=(SCHEDULER,))
    assert "detokenizer" in str(health.why_not_alive())
    live(health, clock, 1, beats=(SCHEDULER, DETOKENIZER))
    assert health.why_not_alive() is None


def test_what_is_known_to_take_long_is_no_hang_before_that_time_is_up(health: HealthMonitor, clock: Clock) -> None:
    health.on_heartbeat(Heartbeat(SCHEDULER, expected_silence=30.0))
    live(health, clock, 34, beats=(DETOKENIZER,))
    assert health.why_not_alive() is None
    live(health, clock, 2, beats=(DETOKENIZER,))
    assert "scheduler" in str(health.why_not_alive())
    health.on_heartbeat(Heartbeat(SCHEDULER))
    live(health, clock, 6, beats=(DETOKENIZER,))
    assert "scheduler" in str(health.why_not_alive()), "it counts once"


def test_silence_is_told_before_it_is_too_long(health: HealthMonitor, clock: Clock) -> None:
    live(health, clock, 3, beats=(SCHEDULER,))
    assert health.silent_for(4.0) == {}
    assert health.silent_for(2.0) == {DETOKENIZER: 3.0}
    starting = HealthMonitor(max_silence=5.0, clock=clock)
    clock.now += 0.9
    assert starting.silent_for(0.5) == {}


def test_signs_of_life_of_parts_that_do_not_exist_mean_nothing(health: HealthMonitor, clock: Clock) -> None:
    assert not health.on_heartbeat(Heartbeat(ProcessKey("scheduler", 7), SchedulerStats(num_queue_reqs=100)))
    live(health, clock, 20, beats=(SCHEDULER, DETOKENIZER))
    assert health.why_not_ready() is None


def test_own_pause_is_nobody_elses_silence(health: HealthMonitor, clock: Clock) -> None:
    live(health, clock, 10, beats=(SCHEDULER, DETOKENIZER))
    clock.now += 3600  # this process was stopped, and continued
    assert health.why_not_alive() is None


def test_death_is_final(health: HealthMonitor, clock: Clock) -> None:
    health.set_dead("the scheduler has died")
    health.set_dead("and something else")
    health.start_draining()
    health.set_ready()
    live(health, clock, 2, beats=(SCHEDULER, DETOKENIZER))
    assert health.state is ServerState.DEAD
    assert health.why_not_alive() == health.why_not_ready() == "the scheduler has died"


def test_draining_is_alive_but_not_ready(health: HealthMonitor) -> None:
    health.start_draining()
    health.set_ready()
    assert health.why_not_alive() is None
    assert health.why_not_ready() == "the server is shutting down"


def test_full_queue_is_not_ready(health: HealthMonitor) -> None:
    health.on_heartbeat(Heartbeat(SCHEDULER, SchedulerStats(num_queue_reqs=2)))
    assert "queue is full" in str(health.why_not_ready())
    health.on_heartbeat(Heartbeat(SCHEDULER, SchedulerStats(num_queue_reqs=1)))
    assert health.why_not_ready() is None


def test_queues_of_several_schedulers_count_together(health: HealthMonitor) -> None:
    health = HealthMonitor(processes=ParallelLayout(dp_size=2).leaders, max_silence=5.0, max_queued_requests=2)
    health.set_ready()
    for key, length in ((ProcessKey("scheduler", 0), 1), (ProcessKey("scheduler", 1), 0)):
        health.on_heartbeat(Heartbeat(key, SchedulerStats(num_queue_reqs=length)))
        assert health.why_not_ready() is None
    health.on_heartbeat(Heartbeat(ProcessKey("scheduler", 1), SchedulerStats(num_queue_reqs=1)))
    assert health.why_not_ready() == "the queue is full (2 requests)"


def test_a_pause_is_what_the_schedulers_say(health: HealthMonitor, clock: Clock) -> None:
    def say(*, paused: bool, key: ProcessKey = SCHEDULER) -> None:
        health.on_heartbeat(Heartbeat(key, SchedulerStats(paused=paused)))

    say(paused=False)
    assert not health.was_paused_since(0.0)
    say(paused=True)
    say(paused=True, key=ProcessKey("scheduler", 7))  # none of this server's
    begin = clock.now
    assert health.why_not_ready() == "generation is paused"
    clock.now += 1
    assert health.was_paused_since(clock.now)
    say(paused=False)
    assert health.why_not_ready() is None
    assert health.was_paused_since(begin)
    assert not health.was_paused_since(clock.now + 1)
