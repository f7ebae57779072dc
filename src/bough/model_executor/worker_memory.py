"""Memory that a worker gives back to the system while the engine sleeps, and takes again when it wakes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import torch

from bough.errors import BadRequest, BoughError, RequestFailed
from bough.ipc.messages import MEMORY_TAGS, MemoryTag, WeightsAsleep
from bough.model_executor.machine import gib
from bough.model_executor.weight_memory import available_memory

if TYPE_CHECKING:
    from bough.model_executor.model_runner import ModelRunner
    from bough.weight_sync.weight_memory import WeightMemory


class WorkerMemory:
    """The memory of a worker, by tags; to be used while no step is in flight and no request has KV. Here it is that of
    the weights alone.

    On the host addresses stay, so that what is recorded stays valid.

    Attributes:
        asleep: what is given back now.
    """

    def __init__(self, weights: WeightMemory, device: torch.device) -> None:
        self.asleep: set[MemoryTag] = set()
        self._weights, self._device = weights, device

    def check_release(self, tags: Collection[MemoryTag]) -> None:
        """Raise :class:`BadRequest` at tags that :meth:`release` cannot give back now."""

    def check_resume(self, tags: Collection[MemoryTag]) -> None:
        """Raise :class:`BadRequest` at tags that :meth:`resume` cannot take now."""

    def release(self, tags: Collection[MemoryTag], what: WeightsAsleep) -> None:
        """Give memory back; what is asleep already stays so.

        Args:
            tags: which; ``cuda_graph`` comes and goes with ``kv_cache``.
            what: becomes of the weights, see :meth:`WeightMemory.release`.

        Raises:
            BadRequest: as :meth:`check_release`.
            RequestFailed: if the weights cannot be put aside. They are as before then.
        """
        self.check_release(tags)
        if "kv_cache" in tags and "kv_cache" not in self.asleep:
            self._give_pool()
            self.asleep.add("kv_cache")
        if "weights" in tags and "weights" not in self.asleep:
            self._weights.release(what)
            self.asleep.add("weights")
        self.asleep.update(set(tags) - {"weights"})

    def resume(self, tags: Collection[MemoryTag]) -> None:
        """Take memory again; what is awake already stays so.

        Raises:
            BadRequest: as :meth:`check_resume`.
            RequestFailed: if there is not so much memory, or the weights cannot be had. What could not be taken is as
                before then.
        """
        self.check_resume(tags)
        for tag in (each for each in MEMORY_TAGS if each in tags and each in self.asleep):
            if tag == "weights":
                self._check_room(self._weights.num_bytes)
                self._weights.resume()
            elif tag == "kv_cache":
                self._take_pool()
            self.asleep.discard(tag)

    def _give_pool(self) -> None:
        """Give the KV cache back, if there is one."""

    def _take_pool(self) -> None:
        """Take its memory again."""

    def _check_room(self, needed: int) -> None:
        """Refuse to take what the system would end this process for."""
        available, bound = available_memory(self._device)
        if needed > available:
            raise RequestFailed(
                f"waking needs {gib(needed)}, and {gib(available)} are available {bound}", status_code=503
            )


class RunnerMemory(WorkerMemory):
    """The memory of a runner: weights and KV cache.

    On a CUDA device addresses do not stay: there the KV pool goes with all that is recorded over it, which is made
    anew, and weights go only while it is gone.
    """

    def __init__(self, runner: ModelRunner) -> None:
        super().__init__(runner.weight_memory, runner.device)
        self._runner = runner
        self._make_tables: Callable[[], None] | None = None

    @property
    def _is_on_gpu(self) -> bool:
        return self._device.type == "cuda"

    def check_release(self, tags: Collection[MemoryTag]) -> None:
        if self._is_on_gpu and "weights" in tags and "kv_cache" not in {*tags, *self.asleep}:
            raise BadRequest(
                "tags: on a CUDA device weights are given back together with kv_cache, or after it: what is recorded "
                "over both holds their addresses",
                param="tags",
            )

    def check_resume(self, tags: Collection[MemoryTag]) -> None:
        if self._is_on_gpu and "kv_cache" in tags and "weights" in self.asleep - set(tags):
            raise BadRequest("tags: on a CUDA device weights are to be taken before kv_cache", param="tags")

    def _give_pool(self) -> None:
        if self._is_on_gpu:
            self._make_tables = self._runner.drop_tables()
            torch.cuda.empty_cache()
        else:
            self._runner.kv_pool.give_back()

    def _take_pool(self) -> None:
        if self._make_tables is None:
            self._check_room(self._runner.kv_pool.num_bytes)
            self._runner.kv_pool.touch()
            return
        try:
            self._make_tables()
        except BoughError as error:
            raise RequestFailed(f"the KV cache cannot be had again: {error.message}") from None
        self._make_tables = None
