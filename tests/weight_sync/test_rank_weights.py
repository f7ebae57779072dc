"""Calls that the first of several ranks has the others run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from bough.config.ranks import ProcessKey
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, RequestFailed
from bough.ipc.rank_channels import RankCall, RankReply
from bough.weight_sync.live_weights import LiveWeights
from bough.weight_sync.rank_weights import AllRanks, FollowerCalls, LeaderWeights
from bough.weight_sync.worker_weights import WorkerWeights
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native
from tests.weight_sync.test_live_weights import coded, live_of, memory_of

SECOND = ProcessKey("scheduler", tp=1)


def failing(error: Exception) -> None:
    raise error


def test_only_a_commit_that_fails_ends_a_follower() -> None:
    weights = WorkerWeights(ServerArgs(model_path="model"), None, torch.device("cpu"))  # type: ignore[arg-type]
    errors = {"late": RequestFailed("too late", status_code=504), "broken": OSError("no such file")}
    others = {name: lambda error=error: failing(error) for name, error in errors.items()}
    calls = FollowerCalls(weights, SECOND, others)
    late, broken = (calls.run(RankCall(name, {})) for name in others)
    assert (late.error, late.status_code) == ("too late", 504)
    assert broken.error is not None
    assert "no such file" in broken.error
    assert broken.status_code == 500
    assert calls.run(RankCall("drop", {})).error is None
    with pytest.raises(AssertionError, match="prepared"):
        calls.run(RankCall("commit", {}))


class Channel:
    """Runs the calls of the second rank in this process."""

    def __init__(self, follower: FollowerCalls) -> None:
        self._follower = follower
        self._replies: list[RankReply] = []

    def send_call(self, call: RankCall) -> None:
        self._replies = [self._follower.run(call)]

    def take_replies(self) -> list[RankReply]:
        return self._replies


def weights_of_two(first: LiveWeights, second: LiveWeights) -> LeaderWeights:
    args, cpu = ServerArgs(model_path="model"), torch.device("cpu")
    channel = Channel(FollowerCalls(WorkerWeights(args, second, cpu), SECOND))
    return LeaderWeights(args, first, cpu, AllRanks(channel), lambda device: sys.maxsize)  # type: ignore[arg-type]


@needs_native
def test_weights_that_one_rank_has_no_room_for_are_overwritten_on_none(tmp_path: Path) -> None:
    second = coded(tmp_path / "model")
    first = live_of(tmp_path / "model", tmp_path / "model", packed=False).weights
    ranks, before = weights_of_two(first, second), [memory_of(first.model), memory_of(second.model)]
    with pytest.raises(BadRequest) as refused:
        ranks.prepare_check("reset_tensors")
    assert refused.value.param == "action"
    assert [memory_of(first.model), memory_of(second.model)] == before


def test_all_ranks_note_and_overwrite_their_weights(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / "model", "Qwen2").path
    first, second = (live_of(path, path, packed=False).weights for _ in range(2))
    ranks, before = weights_of_two(first, second), memory_of(second.model)
    assert ranks.prepare_check("snapshot").write() == 0
    assert ranks.prepare_check("compare").write() == 0
    reset = ranks.prepare_check("reset_tensors")
    assert memory_of(second.model) == before
    assert reset.write() == len(first.model.required_names)
    assert memory_of(second.model) != before
    first.replace(first.config, "auto")
    with pytest.raises(BadRequest):  # by the second
        ranks.prepare_check("compare")
