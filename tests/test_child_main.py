from __future__ import annotations

from bough.child_main import ParentSilence
from bough.config.ranks import SCHEDULER
from bough.ipc.handshake import ChildConfig


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def silence_of(clock: Clock, limits: tuple[float, float] | None) -> ParentSilence:
    return ParentSilence(ChildConfig(SCHEDULER, 1, True, {}, parent_limits=limits), clock)


def pass_time(silence: ParentSilence, clock: Clock, seconds: int) -> bool:
    too_long = False
    for _ in range(seconds):
        clock.now += 1.0
        too_long = silence.is_too_long(beat=False)
    return too_long


def test_parent_may_be_silent_for_longer_until_its_first_beat() -> None:
    clock = Clock()
    silence = silence_of(clock, (100.0, 5.0))
    assert not pass_time(silence, clock, 100)
    assert pass_time(silence, clock, 1)
    assert not silence.is_too_long(beat=True)
    assert not pass_time(silence, clock, 5)
    assert pass_time(silence, clock, 1)
    assert silence.seconds == 6.0


def test_own_pause_is_not_the_parents_silence() -> None:
    clock = Clock()
    silence = silence_of(clock, (5.0, 5.0))
    clock.now += 3600.0
    assert not silence.is_too_long(beat=False)
    assert silence.seconds == 1.0


def test_host_of_an_engine_may_be_silent_for_ever() -> None:
    clock = Clock()
    assert not pass_time(silence_of(clock, None), clock, 10_000)
