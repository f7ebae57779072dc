"""The workers of all ranks, as one: an engine of Bough's with its ranks as processes."""

from __future__ import annotations

from bough.errors import ConfigError
from vllm._calls import EngineCalls
from vllm.engine.arg_utils import EngineArgs


class ExecutorBase(EngineCalls):
    """Calls the workers of an engine, which it starts.

    Raises:
        ConfigError: if the arguments ask for another kind of executor.
    """

    backends: tuple[str | None, ...] = (None, "uni", "mp", "ray")
    """Values of ``distributed_executor_backend`` that this kind is for."""

    def __init__(self, args: EngineArgs) -> None:
        if args.distributed_executor_backend not in self.backends:
            raise ConfigError(
                f"{type(self).__name__} is not for distributed_executor_backend {args.distributed_executor_backend!r}",
                param="distributed_executor_backend",
            )
        super().__init__(args)

    @staticmethod
    def get_class(args: EngineArgs) -> type[ExecutorBase]:
        """Return the kind of executor that arguments ask for."""
        if args.distributed_executor_backend == "ray":
            return RayDistributedExecutor
        return UniProcExecutor if args.tensor_parallel_size * args.data_parallel_size == 1 else MultiprocExecutor

    def check_health(self) -> None:
        """Raise :class:`~bough.errors.BoughError` unless all workers answer."""
        self._core.check_health()

    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return how many pages the KV cache has on each rank, at least, and how many a swapped one: none."""
        found = self.collective_rpc("determine_num_available_blocks")
        return min(each[0] for each in found), min(each[1] for each in found)

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int = 0) -> None:
        """Confirm that the KV cache, which is made at the start, has so many pages."""
        self.collective_rpc("initialize_cache", args=(num_gpu_blocks, num_cpu_blocks))

    def save_sharded_state(self, path: str, pattern: str | None = None, max_size: int | None = None) -> None:
        """Write the weights of each rank into files below ``path``."""
        self._core.engine.save_sharded_state(path, pattern, max_size)

    @property
    def is_sleeping(self) -> bool:
        """True while any memory is given back."""
        return self._core.engine.is_sleeping()


class UniProcExecutor(ExecutorBase):
    """One rank, in a process of its own."""

    backends = (None, "uni", "mp")

    def __init__(self, args: EngineArgs) -> None:
        if args.tensor_parallel_size * args.data_parallel_size > 1:
            raise ConfigError("UniProcExecutor is for one rank; use MultiprocExecutor", param="tensor_parallel_size")
        super().__init__(args)


class MultiprocExecutor(ExecutorBase):
    """Any number of ranks, each in a process of its own."""

    backends = (None, "mp")


class RayDistributedExecutor(ExecutorBase):
    """Any number of ranks, each in an actor of Ray's."""

    backends = ("ray",)
