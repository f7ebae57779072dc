"""The table of statistics, from which all that shows them is made."""

from __future__ import annotations

import msgspec
import pytest

from bough.config.ranks import ProcessKey
from bough.ipc.messages import Heartbeat
from bough.observability.stats import STATS, SchedulerStats

NUMBERS = {name: at for at, name in enumerate(STATS, 1) if name not in ("paused", "new_token_ratio")}


def test_statistics_survive_a_heartbeat() -> None:
    stats = SchedulerStats(**NUMBERS, paused=True, new_token_ratio=0.5)
    heartbeat = msgspec.msgpack.encode(Heartbeat(ProcessKey("scheduler", 1), stats))
    assert msgspec.msgpack.decode(heartbeat, type=Heartbeat).stats == stats


def test_numbers_of_a_process_with_another_table_are_refused() -> None:
    fingerprint, *numbers = msgspec.to_builtins(SchedulerStats())
    assert len(numbers) == len(STATS)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert([fingerprint + 1, *numbers], SchedulerStats)


def test_statistics_of_ranks_are_merged_by_their_rules() -> None:
    ranks = [
        SchedulerStats(**NUMBERS, paused=False, new_token_ratio=0.5),
        SchedulerStats(**NUMBERS, paused=True, new_token_ratio=0.2),
    ]
    together = SchedulerStats.merged(ranks)
    factors = {"sum": 2, "max": 1}
    expected = {name: factors[STATS[name].merge] * each for name, each in NUMBERS.items()}
    assert {name: getattr(together, name) for name in NUMBERS} == expected
    assert (together.paused, together.new_token_ratio) == (True, 0.5)
    assert SchedulerStats.merged([]) == SchedulerStats()


def test_no_name_is_shown_twice_in_a_place() -> None:
    for where in ("metric", "load", "page"):
        names = [getattr(stat, where) for stat in STATS.values() if getattr(stat, where)]
        assert len(set(names)) == len(names)
