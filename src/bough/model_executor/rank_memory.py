"""Memory of ranks that share a model: all of them give theirs back, and take it again, together."""

from __future__ import annotations

from collections.abc import Callable, Collection

from bough.ipc.messages import MemoryTag, WeightsAsleep
from bough.model_executor.model_runner import ModelRunner
from bough.model_executor.worker_memory import RunnerMemory
from bough.weight_sync.rank_weights import AllRanks

_RELEASE, _RESUME = "release_memory", "resume_memory"


class LeaderMemory(RunnerMemory):
    """The memory of all ranks, as the first one has them give it back.

    Where one fails the others may have succeeded; the reverse call, which does nothing to what is as it should be,
    makes all of them equal again.
    """

    def __init__(self, runner: ModelRunner, ranks: AllRanks) -> None:
        super().__init__(runner)
        self._ranks = ranks

    def release(self, tags: Collection[MemoryTag], what: WeightsAsleep) -> None:
        own = super().release
        self._ranks.call(_RELEASE, {"tags": list(tags), "what": what}, lambda: own(tags, what))

    def resume(self, tags: Collection[MemoryTag]) -> None:
        own = super().resume
        self._ranks.call(_RESUME, {"tags": list(tags)}, lambda: own(tags))


def memory_calls(memory: RunnerMemory) -> dict[str, Callable[..., object]]:
    """Return what the first rank calls on another one, by name."""
    return {_RELEASE: memory.release, _RESUME: memory.resume}
