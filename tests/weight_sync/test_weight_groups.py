"""A trainer that stops in the middle is left, and comes back under the same name."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from bough.errors import RequestFailed
from bough.weight_sync.weight_groups import WeightGroups
from tests.weight_sync.running_trainer import GROUP, RunningTrainer

TENSORS = {"a": torch.arange(4.0), "b": torch.full((3,), 2.0)}
CALL = (list(TENSORS), ["float32"] * 2, [list(tensor.shape) for tensor in TENSORS.values()])


@pytest.fixture
def groups() -> WeightGroups:
    return WeightGroups(torch.device("cpu"), timeout=6.0)


@pytest.fixture
def start_trainer(tmp_path: Path) -> Iterator[Callable[..., RunningTrainer]]:
    save_file(TENSORS, tmp_path / "model.safetensors")
    with contextlib.ExitStack() as stack:

        def start(*only: str) -> RunningTrainer:
            trainer = RunningTrainer(tmp_path, *only)
            stack.callback(trainer.close)
            return trainer

        yield start


def join(groups: WeightGroups, trainer: RunningTrainer) -> None:
    groups.begin_to_join(GROUP, address="127.0.0.1", port=trainer.port, rank=1, world_size=2, backend="gloo")
    while groups.is_joining(GROUP):
        time.sleep(0.01)
    groups.finish_joining(GROUP)
    assert trainer.heard() == "joined"


def test_a_trainer_that_stopped_in_the_middle_comes_back(
    groups: WeightGroups, start_trainer: Callable[..., RunningTrainer]
) -> None:
    stopping, talking = start_trainer("a"), start_trainer()
    join(groups, stopping)
    threading.Timer(3.0, stopping.send).start()
    with pytest.raises(RequestFailed, match=r"the trainer's weights did not come: .* 6 s") as raised:
        groups.receive(GROUP, *CALL)
    assert raised.value.status_code == 504
    begun = time.monotonic()
    groups.leave(GROUP)
    assert time.monotonic() - begun < 1.5, "gloo waits for the second tensor for 3 s more, but nobody for gloo"
    join(groups, talking)
    talking.send()
    received = dict(groups.receive(GROUP, *CALL))
    assert received.keys() == TENSORS.keys()
    assert all(torch.equal(received[name], tensor) for name, tensor in TENSORS.items())
    groups.leave(GROUP)


def test_a_group_that_others_failed_to_join_is_forgotten(
    groups: WeightGroups, start_trainer: Callable[..., RunningTrainer]
) -> None:
    first, second, third = start_trainer(), start_trainer(), start_trainer()
    groups.forget(GROUP)
    groups.begin_to_join(GROUP, address="127.0.0.1", port=first.port, rank=1, world_size=2, backend="gloo")
    groups.forget(GROUP)
    join(groups, second)
    groups.forget(GROUP)
    join(groups, third)
    groups.leave(GROUP)


def test_tensors_without_room_are_told(
    groups: WeightGroups, start_trainer: Callable[..., RunningTrainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> list[torch.Tensor]:
        raise torch.OutOfMemoryError("no room")

    join(groups, start_trainer("a"))
    monkeypatch.setattr("bough.weight_sync.weight_groups.empty_tensors", full)
    with pytest.raises(RequestFailed, match="send them in several calls"):
        groups.receive(GROUP, *CALL)
    groups.leave(GROUP)
