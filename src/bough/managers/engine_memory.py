"""Memory of an engine that is given back between two phases of a program, and what the server is meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bough.errors import BadRequest
from bough.ipc.messages import MEMORY_TAGS, ControlReply, MemoryTag, WeightsAsleep
from bough.managers.exclusive_changes import ExclusiveChanges
from bough.managers.health import HealthMonitor
from bough.managers.live_outputs import LiveOutputs
from bough.managers.scheduler_control import SchedulerControl, error_of, merged

SLEEP_TIMEOUT = 7200.0
"""Seconds after which weights that are put aside or read again are waited for no longer."""

_WAITING_TIMEOUT = 60.0
"""Seconds that the schedulers may take to be rid of requests that have ended."""

_LEVELS: dict[int, WeightsAsleep] = {1: "keep", 2: "drop"}


class EngineMemory:
    """Gives memory of all schedulers back, or of none.

    Attributes:
        asleep: what is given back now.
        num_missing: weights that were discarded and have not been sent since.
    """

    def __init__(
        self, control: SchedulerControl, outputs: LiveOutputs, changes: ExclusiveChanges, health: HealthMonitor
    ) -> None:
        self.asleep: frozenset[MemoryTag] = frozenset()
        self._control, self._outputs, self._changes, self._health = control, outputs, changes, health
        self.num_missing = 0

    @property
    def is_sleeping(self) -> bool:
        """True while anything is given back."""
        return bool(self.asleep)

    async def sleep(self, level: int = 1) -> None:
        """Give all memory back; with level 2 also that of weights that nothing restores, with level 1 weights that a
        trainer has sent stay, or go to the sleep directory.

        Raises:
            BadRequest: if requests are running, or there is no such level.
            BoughError: if it cannot be done. All is as before then.
        """
        await self._release(MEMORY_TAGS, weights_asleep(level))

    async def release(self, tags: Sequence[str] | None = None) -> None:
        """Give some memory back, by default all. Weights of a checkpoint are read from it again later; those that a
        trainer has sent are gone unless there is a sleep directory.

        Raises as :meth:`sleep`.
        """
        await self._release(checked_tags(tags), "reread")

    async def resume(self, tags: Sequence[str] | None = None) -> None:
        """Take some memory again, by default all that is given back; what is there stays.

        Requests are taken once all of it is there, and all weights that were discarded have been sent.

        Raises:
            BoughError: if it cannot be had. What was asleep stays so.
        """
        self._health.check_serving()
        wanted = checked_tags(tags)

        async def change(while_paused: bool) -> None:
            reply = await self._call("resume_memory_occupation", wanted, "reread")
            if not reply.success:
                # Some schedulers may have taken theirs.
                await self._call("release_memory_occupation", [tag for tag in wanted if tag in self.asleep], "keep")
                raise error_of(reply)
            self._take(reply)

        await self._changes.make(change)

    async def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again by vLLM's tags: ``kv_cache`` includes what is recorded over it.

        Raises as :meth:`resume`.
        """
        await self.resume(woken_tags(tags))

    async def _release(self, tags: Sequence[MemoryTag], what: WeightsAsleep) -> None:
        self._health.check_serving()
        if self._outputs.by_id and not self._health.computes_nothing:
            raise BadRequest("requests are running; wait for them, or pause generation first", code="not_idle")

        async def change(while_paused: bool) -> None:
            before = self.asleep
            # Requests that arrive while memory goes are refused.
            self._health.set_sleeping(True)
            try:
                reply = await self._call("release_memory_occupation", tags, what)
                if not reply.success:
                    await self._call("resume_memory_occupation", [tag for tag in tags if tag not in before], what)
                    raise error_of(reply)
                self._take(reply)
            finally:
                self._set_health()

        await self._changes.make(change)

    async def _call(self, method: str, tags: Sequence[MemoryTag], what: WeightsAsleep) -> ControlReply:
        params: dict[str, Any] = {"tags": list(tags), "what": what, "timeout": _WAITING_TIMEOUT}
        # They may share weights: all of them stop before the first gives anything back.
        return merged(await self._control.load(method, params, SLEEP_TIMEOUT))

    def _take(self, reply: ControlReply) -> None:
        """Know what the schedulers say is asleep and missing."""
        self.asleep = frozenset(reply.data["asleep"])
        self.set_missing(reply.data["num_missing"])

    def set_missing(self, count: int) -> None:
        """So many weights that were discarded have not been sent yet."""
        self.num_missing = count
        self._set_health()

    def _set_health(self) -> None:
        self._health.set_sleeping(self.is_sleeping or self.num_missing > 0)


def weights_asleep(level: int) -> WeightsAsleep:
    """Return what becomes of the weights in a sleep of this level; raises :class:`BadRequest` at another than 1 and
    2."""
    if level not in _LEVELS:
        raise BadRequest(f"level must be 1 or 2, got {level!r}", param="level")
    return _LEVELS[level]


def woken_tags(tags: Sequence[str] | None) -> list[MemoryTag]:
    """Return the tags that vLLM's stand for: ``kv_cache`` includes what is recorded over it. Raises as
    :func:`checked_tags`."""
    return checked_tags([*tags, "cuda_graph"] if tags and "kv_cache" in tags else tags)


def checked_tags(tags: Sequence[str] | None) -> list[MemoryTag]:
    """Return the tags in their order, all of them if none are given.

    Raises:
        BadRequest: at others than these.
    """
    if unknown := [tag for tag in tags or () if tag not in MEMORY_TAGS]:
        raise BadRequest(f"tags must be of {', '.join(MEMORY_TAGS)}, got {unknown[0]!r}", param="tags")
    return [tag for tag in MEMORY_TAGS if not tags or tag in tags]
