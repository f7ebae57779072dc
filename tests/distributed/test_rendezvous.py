"""Ranks that meet, or do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

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
