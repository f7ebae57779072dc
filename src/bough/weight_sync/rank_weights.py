"""New weights for ranks that share a model: all of them look at their parts first, and only then does any write."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch

from bough.config.engine_args import LoadFormat
from bough.config.packed_manifest import SavedForm
from bough.config.ranks import ProcessKey
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, BoughError, EngineDead, RequestFailed
from bough.ipc.messages import CheckAction
from bough.ipc.rank_channels import LeaderChannel, RankCall, RankReply
from bough.weight_sync.change import Change
from bough.weight_sync.live_weights import LiveWeights
from bough.weight_sync.weight_groups import WeightGroups
from bough.weight_sync.worker_weights import WorkerWeights

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

_COMMIT, _DROP = "commit", "drop"


class AllRanks:
    """All ranks of a replica, as the first one makes them do something.

    Args:
        channel: to the others.
        interrupt: has the others look for messages, if they wait for something else.
    """

    def __init__(self, channel: LeaderChannel, interrupt: Callable[[], None] = lambda: None) -> None:
        self._channel, self._interrupt = channel, interrupt

    def call(self, method: str, params: dict[str, Any], own: Callable[[], Result]) -> Result:
        """Do something on all ranks at the same time; ``own`` is this rank's part, and returns the result.

        Raises:
            Exception: what this rank raises, or else the first of the others that fails.
        """
        return self._call(method, params, own)[0]

    def call_each(self, method: str, params: dict[str, Any], own: Callable[[], bytes]) -> list[bytes]:
        """Do something on all ranks as :meth:`call`, and raise as it; returns the result of each, in their order."""
        result, replies = self._call(method, params, own)
        return [result, *(reply.result for reply in sorted(replies, key=lambda reply: reply.process))]

    def _call(
        self, method: str, params: dict[str, Any], own: Callable[[], Result]
    ) -> tuple[Result, Sequence[RankReply]]:
        self._interrupt()
        self._channel.send_call(RankCall(method, params))
        try:
            result = own()
        finally:
            replies = self._channel.take_replies()
        for reply in replies:
            if reply.error is not None:
                message = f"{reply.process}: {reply.error}"
                if reply.status_code == BadRequest.status_code:
                    raise BadRequest(message, param=reply.param)
                raise RequestFailed(message, status_code=reply.status_code)
        return result, replies


class LeaderWeights(WorkerWeights):
    """The weights of all ranks, as the first one changes them."""

    def __init__(
        self,
        server_args: ServerArgs,
        live: LiveWeights,
        device: torch.device,
        ranks: AllRanks,
        available: Callable[[torch.device], int],
    ) -> None:
        super().__init__(server_args, live, device, available=available)
        self._ranks = ranks
        self.groups = LeaderGroups(device, ranks)

    def prepare_disk(self, model_path: str, load_format: LoadFormat) -> Change:
        params = {"model_path": model_path, "load_format": load_format}
        return self._prepare("prepare_disk", params, super().prepare_disk)

    def prepare_file(self, path: str) -> Change:
        return self._prepare("prepare_file", {"path": path}, super().prepare_file)

    def prepare_group(
        self, group: str, names: Sequence[str], dtypes: Sequence[str], shapes: Sequence[Sequence[int]]
    ) -> Change:
        params = {
            "group": group,
            "names": list(names),
            "dtypes": list(dtypes),
            "shapes": [list(each) for each in shapes],
        }
        return self._prepare("prepare_group", params, super().prepare_group)

    def prepare_loaded(self) -> Change:
        return self._prepare("prepare_loaded", {}, super().prepare_loaded)

    def prepare_check(self, action: CheckAction) -> Change:
        return self._prepare("prepare_check", {"action": action}, super().prepare_check)

    def begin_update(self) -> None:
        self.check_not_begun()
        try:
            self._ranks.call("begin_update", {}, super().begin_update)
        except BoughError:
            self.abandon_update()
            raise

    def prepare_end(self) -> Change:
        return self._prepare("prepare_end", {}, super().prepare_end)

    def undo_staged(self) -> None:
        self._ranks.call("undo_staged", {}, super().undo_staged)

    def abandon_update(self) -> None:
        self._ranks.call("abandon_update", {}, super().abandon_update)

    def drop_loaded(self) -> None:
        self._ranks.call("drop_loaded", {}, super().drop_loaded)

    def rows(self, name: str, count: int) -> Any:
        """Join what ranks have of some rows."""
        return self._ranks.call(
            "rows", {"name": name, "count": count}, lambda: super(LeaderWeights, self).rows(name, count)
        )

    def save(self, form: SavedForm, directory: str, *, pattern: str | None, max_bytes: int | None) -> None:
        """Have each rank write its own files; raises as :meth:`save_part`."""
        params = {"form": form, "directory": directory, "pattern": pattern, "max_bytes": max_bytes}
        own = self.save_part
        self._ranks.call("save_part", params, lambda: own(form, directory, pattern=pattern, max_bytes=max_bytes))

    def _prepare(self, method: str, params: dict[str, Any], own: Callable[..., Change]) -> Change:
        try:
            change = self._ranks.call(method, params, lambda: own(**params))
        except Exception:
            self._ranks.call(_DROP, {}, lambda: None)
            raise

        def commit() -> int:
            try:
                return self._ranks.call(_COMMIT, {}, change.write)
            except Exception as error:
                raise EngineDead(f"new weights did not reach all ranks: {error}") from error

        return Change(commit, lambda: self._ranks.call(_DROP, {}, change.drop))


class LeaderGroups(WeightGroups):
    """The groups that all ranks belong to, each with a rank of its own that follows the one before."""

    def __init__(self, device: torch.device, ranks: AllRanks) -> None:
        super().__init__(device)
        self._ranks = ranks

    def begin_to_join(self, name: str, *, address: str, port: int, rank: int, world_size: int, backend: str) -> None:
        membership = {"address": address, "port": port, "rank": rank, "world_size": world_size, "backend": backend}
        own = super().begin_to_join
        self.check_free(name)  # first, since a group that is used must survive
        with self._forgetting(name):
            self._ranks.call("begin_to_join", {"name": name, **membership}, lambda: own(name, **membership))  # type: ignore

    def finish_joining(self, name: str) -> None:
        with self._forgetting(name):
            self._call("finish_joining", name, super().finish_joining)

    def leave(self, name: str) -> None:
        self._call("leave", name, super().leave)

    def spoil(self, name: str) -> None:
        self._call("spoil", name, super().spoil)

    @contextlib.contextmanager
    def _forgetting(self, name: str) -> Iterator[None]:
        """Forget a group on all ranks if some fail to join it, so that its name is free again."""
        try:
            yield
        except BoughError:
            self._call("forget", name, super().forget)
            raise

    def _call(self, method: str, name: str, own: Callable[[str], None]) -> None:
        self._ranks.call(method, {"name": name}, lambda: own(name))


class FollowerCalls:
    """Does what the first rank wants done with the weights of another one.

    Args:
        weights: of this rank.
        key: of this rank.
        others: further methods, by name.
    """

    def __init__(
        self, weights: WorkerWeights, key: ProcessKey, others: Mapping[str, Callable[..., object]] | None = None
    ) -> None:
        self._weights, self._key, self._others = weights, key, others or {}
        self._prepared: Change | None = None

    def run(self, call: RankCall) -> RankReply:
        """Run a call and return its result; only a commit that fails ends this process."""
        try:
            result = self._methods[call.method](**call.params)
        except BoughError as error:
            return RankReply(self._key, error.message, error.param, error.status_code)
        except Exception as error:
            if call.method == _COMMIT:
                raise
            logger.exception("The call %s has failed", call.method)
            return RankReply(self._key, f"internal error: {type(error).__name__}: {error}", status_code=500)
        return RankReply(self._key, result=result if isinstance(result, bytes) else b"")

    @property
    def _methods(self) -> dict[str, Callable[..., object]]:
        weights, groups = self._weights, self._weights.groups
        preparing = (
            *(weights.prepare_disk, weights.prepare_file, weights.prepare_group),
            *(weights.prepare_loaded, weights.prepare_end, weights.prepare_check),
        )
        prepare: dict[str, Callable[..., Change]] = {each.__name__: each for each in preparing}
        return {
            **self._others,
            **{name: self._preparing(method) for name, method in prepare.items()},
            **{each.__name__: each for each in (groups.finish_joining, groups.forget, groups.leave, groups.spoil)},
            **{each.__name__: each for each in (weights.rows, weights.save_part, weights.drop_loaded)},
            **{each.__name__: each for each in (weights.begin_update, weights.undo_staged, weights.abandon_update)},
            "begin_to_join": self._begin_to_join,
            _COMMIT: self._commit,
            _DROP: self._drop,
        }

    def _preparing(self, method: Callable[..., Change]) -> Callable[..., None]:
        def prepare(**params: Any) -> None:
            self._prepared = method(**params)

        return prepare

    def _commit(self) -> None:
        prepared, self._prepared = self._prepared, None
        assert prepared is not None, "it was prepared"
        prepared.write()

    def _drop(self) -> None:
        self._prepared = None

    def _begin_to_join(self, name: str, rank: int, **membership: Any) -> None:
        self._weights.groups.begin_to_join(name, rank=rank + (self._key.tp or 0), **membership)
