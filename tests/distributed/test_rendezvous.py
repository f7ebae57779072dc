"""Ranks that meet, or do not."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path

import pytest
import torch

from bough.config.network import listen
from bough.config.port_args import MeetingAddress
from bough.config.sharding import ShardSpec
from bough.distributed.rank_group import ProcessRanks
from bough.distributed.rendezvous import meet
from bough.errors import StartupError


def test_ranks_that_do_not_come_are_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"^TP1, TP2, TP3 did not come"):
        meet(tmp_path / "ranks", 0, 4, 0.2)
    with pytest.raises(StartupError, match=r"^TP1, TP3 did not come"):
        meet(tmp_path / "ranks", 2, 4, 0.2)


def test_a_rank_may_be_alone_in_its_group(tmp_path: Path) -> None:
    ranks = ProcessRanks(ShardSpec(0, 1, "reduce"), tmp_path / "ranks", torch.device("cpu"), 5.0)
    assert ranks.smallest(3) == ranks.largest(3) == 3
    ranks.close()


def test_ranks_of_several_machines_meet_at_a_socket() -> None:
    with listen("127.0.0.1") as listener, concurrent.futures.ThreadPoolExecutor() as others:
        host, port = listener.getsockname()
        second = others.submit(meet, MeetingAddress(host, port, None, host), 1, 2, 20.0)
        store = meet(MeetingAddress(host, port, listener.detach(), host), 0, 2, 20.0)
        store.set("question", "oak")
        assert second.result().get("question") == b"oak"
    with listen("127.0.0.1") as listener:
        host, port = listener.getsockname()
        with pytest.raises(StartupError, match=r"^TP1 did not come"):
            meet(MeetingAddress(host, port, listener.detach(), host), 0, 2, 0.5)
