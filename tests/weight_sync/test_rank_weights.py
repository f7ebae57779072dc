"""Calls that the first of several ranks has the others run."""

from __future__ import annotations

import pytest
import torch

from bough.config.ranks import ProcessKey
from bough.config.server_args import ServerArgs
from bough.errors import RequestFailed
from bough.ipc.rank_channels import RankCall
from bough.weight_sync.rank_weights import FollowerCalls
from bough.weight_sync.worker_weights import WorkerWeights


def failing(error: Exception) -> None:
    raise error


def test_only_a_commit_that_fails_ends_a_follower() -> None:
    weights = WorkerWeights(ServerArgs(model_path="model"), None, torch.device("cpu"))  # type: ignore[arg-type]
    errors = {"late": RequestFailed("too late", status_code=504), "broken": OSError("no such file")}
    others = {name: lambda error=error: failing(error) for name, error in errors.items()}
    calls = FollowerCalls(weights, ProcessKey("scheduler", tp=1), others)
    late, broken = (calls.run(RankCall(name, {})) for name in others)
    assert (late.error, late.status_code) == ("too late", 504)
    assert broken.error is not None
    assert "no such file" in broken.error
    assert broken.status_code == 500
    assert calls.run(RankCall("drop", {})).error is None
    with pytest.raises(AssertionError, match="prepared"):
        calls.run(RankCall("commit", {}))
