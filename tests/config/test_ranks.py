"""Identities of processes, and their places."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bough.config.ranks import DETOKENIZER, SCHEDULER, WHOLE_MACHINE, MachineShare, ParallelLayout, ProcessKey
from bough.errors import ConfigError
from tests.tables import table


def names(keys: tuple[ProcessKey, ...]) -> list[str]:
    return list(map(str, keys))


def test_the_only_scheduler_has_no_ranks() -> None:
    layout = ParallelLayout.of(SimpleNamespace(cpu_threads=3))
    assert layout == ParallelLayout()
    assert layout.schedulers == layout.leaders == layout.local_schedulers == (SCHEDULER,)
    assert str(SCHEDULER) == "scheduler"
    assert SCHEDULER.ranks == ""
    assert layout.share_of(SCHEDULER) == WHOLE_MACHINE


def test_keys_name_the_dimensions_that_are_divided() -> None:
    layout = ParallelLayout.of(SimpleNamespace(dp_size=2, tp_size=2, port=30000))
    assert names(layout.schedulers) == [f"scheduler DP{dp} TP{tp}" for dp in (0, 1) for tp in (0, 1)]
    assert names(layout.leaders) == ["scheduler DP0 TP0", "scheduler DP1 TP0"]
    assert sorted([*reversed(layout.schedulers), DETOKENIZER]) == [DETOKENIZER, *layout.schedulers]
    assert len({*layout.schedulers, SCHEDULER}) == 5
    assert names(ParallelLayout(pp_size=2).schedulers) == ["scheduler PP0", "scheduler PP1"]


def test_nodes_have_their_schedulers_each_with_a_share() -> None:
    layout = ParallelLayout(dp_size=2, tp_size=2, nnodes=2, node_rank=1)
    assert names(layout.local_schedulers) == ["scheduler DP1 TP0", "scheduler DP1 TP1"]
    assert [layout.node_of(key) for key in layout.schedulers] == [0, 0, 1, 1]
    assert [layout.share_of(key).index for key in layout.schedulers] == [0, 1, 0, 1]


@table("amount, count", [(8, 3), (7, 7), (2, 5), (0, 4), (10, 1)])
def test_shares_add_up(amount: int, count: int) -> None:
    shares = [MachineShare(index, count).of(amount) for index in range(count)]
    assert sum(shares) == amount
    assert max(shares) - min(shares) <= 1


def test_memory_is_shared_before_any_scheduler_takes_it() -> None:
    share = MachineShare(1, 2, memory=101)
    assert share.memory_left(available=90, taken=20) == 30
    assert share.memory_left(available=10, taken=20) == 10
    assert share.memory_left(available=90, taken=60) == 0
    assert WHOLE_MACHINE.memory_left(available=90, taken=60) == 90


@table(
    "sizes, param",
    [
        ({"dp_size": 0}, "dp_size"),
        ({"tp_size": -1}, "tp_size"),
        ({"tp_size": 4, "ep_size": 2}, "ep_size"),
        ({"ep_size": 2}, "ep_size"),
        ({"dp_size": 3, "nnodes": 2}, "nnodes"),
        ({"nnodes": 2, "dp_size": 2, "node_rank": 2}, "node_rank"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(sizes: dict[str, int], param: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ParallelLayout(**sizes)
    assert caught.value.param == param
