"""Ranks of a model that native kernels compute, as threads of this process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bough.config.sharding import ShardSpec
from bough.distributed.rank_group import RankGroup
from bough.kernels.native_group import FollowEnd, NativeGroup
from bough.layers.collectives import ALONE
from bough.layers.linear_method import MethodChoice
from bough.layers.sharding import ShardedChoice
from tests.model_executor.plan_builder import RecordingRunner, make_runner


class ThreadRanks(RankGroup):
    """A group whose ranks are made one after the other, with options by which all of them choose the same sizes."""

    def __init__(self, spec: ShardSpec, descriptor: int) -> None:
        self.spec, self.native = spec, NativeGroup(descriptor, spec.rank, spec.world)

    def part_of(self, choice: MethodChoice) -> MethodChoice:
        return ShardedChoice(choice, self.spec, ALONE)


@contextlib.contextmanager
def first_of_ranks(
    path: Path | str, world: int, *, splits_experts: bool = True, **options: Any
) -> Iterator[RecordingRunner]:
    """The first rank of a checkpoint, while the others follow it."""
    descriptor = os.memfd_create("ranks")
    try:
        specs = (ShardSpec(rank, world, splits_experts=splits_experts) for rank in range(world))
        groups = [ThreadRanks(spec, descriptor) for spec in specs]
        first, *others = (make_runner(path, ranks=group, **options) for group in groups)
    finally:
        os.close(descriptor)
    threads = [threading.Thread(target=follow, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    try:
        yield first
    finally:
        assert groups[0].native is not None
        groups[0].native.call()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()


def follow(runner: RecordingRunner) -> None:
    """Follow until the first rank calls."""
    assert runner.decoder is not None
    while runner.decoder.follow(0.1) in (FollowEnd.TIMEOUT, FollowEnd.INTERRUPTED):
        pass
