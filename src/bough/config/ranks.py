"""Identity of every process of an engine, and the machine, device, cores and memory that each scheduler gets."""

from __future__ import annotations

from itertools import product
from typing import Literal

import msgspec

from bough.config.sharding import ShardSpec, ShardStyle
from bough.errors import ConfigError

ProcessKind = Literal["scheduler", "controller", "detokenizer", "server"]


class ProcessKey(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """Identity of a process: its kind, and its rank in each dimension that the layout divides.

    ``None`` is the rank in a dimension that is not divided. Keys of one layout are ordered.
    """

    kind: ProcessKind
    dp: int | None = None
    """Replica (data parallelism)."""
    pp: int | None = None
    """Stage (pipeline parallelism)."""
    tp: int | None = None
    """Part of each matrix (tensor parallelism)."""

    @property
    def ranks(self) -> str:
        """The ranks as logs show them, ``DP1 TP0``; empty for the only process of its kind."""
        named = {"DP": self.dp, "PP": self.pp, "TP": self.tp}
        return " ".join(f"{name}{rank}" for name, rank in named.items() if rank is not None)

    def __str__(self) -> str:
        return f"{self.kind} {self.ranks}".rstrip()


SERVER = ProcessKey("server")
"""The main process."""
SCHEDULER = ProcessKey("scheduler")
"""The scheduler of an engine that has one."""
DETOKENIZER = ProcessKey("detokenizer")
CONTROLLER = ProcessKey("controller")
"""The process that hands requests to replicas, where there are several."""


class MachineShare(msgspec.Struct, frozen=True):
    """Part of a machine that one of its schedulers may use, the ``index``-th of ``count``.

    The index is also that of its device, where it computes on one of several, unless it has a ``device``.
    """

    index: int = 0
    count: int = 1
    memory: int | None = None
    """Bytes that all of them may take together; ``None``: whatever is available when one asks."""
    weights: int | None = None
    """Descriptor of memory in which all of them have the same weights, which the first loads; ``None``: each has its
    own."""
    group: int | None = None
    """Descriptor of memory that the ranks of its replica compute in together; ``None``: they share none."""

    device: int | None = None
    """Number of its CUDA device, of those that it sees."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that a process with this share inherits."""
        return tuple(each for each in (self.weights, self.group) if each is not None)

    def of(self, amount: int) -> int:
        """Return this share of so many cores, bytes or tokens; the first schedulers get what cannot be divided."""
        return amount // self.count + (self.index < amount % self.count)

    def memory_left(self, available: int, taken: int) -> int:
        """Return the bytes that this scheduler may still take, of those ``available``, after it has ``taken`` some.

        The others may not have taken theirs yet.
        """
        return available if self.memory is None else max(min(available, self.of(self.memory) - taken), 0)


WHOLE_MACHINE = MachineShare()


class WeightRank(msgspec.Struct, frozen=True):
    """Part of a model's weights that one process holds, the ``index``-th of ``count``."""

    index: int = 0
    count: int = 1
    division: str = ""
    """Division of matrices and experts among the processes, in words; empty if it is not known."""


ALL_WEIGHTS = WeightRank()


class ParallelLayout(msgspec.Struct, frozen=True):
    """Sizes of all dimensions in which an engine is divided, and the place of each scheduler.

    Schedulers are counted replica by replica, in it stage by stage, and each node has as many of them.

    Raises:
        ConfigError: if a size is less than 1, or does not divide what it has to.
    """

    dp_size: int = 1
    """Replicas."""
    pp_size: int = 1
    """Stages of the layers."""
    tp_size: int = 1
    """Processes that share each layer."""
    ep_size: int = 1
    """Processes of a layer that have different experts: one, so that each has a part of all experts, or all of them."""
    nnodes: int = 1
    """Machines."""
    node_rank: int = 0
    """This machine."""

    @classmethod
    def of(cls, args: object) -> ParallelLayout:
        """Return the layout that options ask for by the names of these sizes; a size that is no option is 1."""
        names = (name for name in cls.__struct_fields__ if hasattr(args, name))
        return cls(**{name: getattr(args, name) for name in names})

    def __post_init__(self) -> None:
        for name in ("dp_size", "pp_size", "tp_size", "ep_size", "nnodes"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}", param=name)
        if not 0 <= self.node_rank < self.nnodes:
            raise ConfigError(f"node_rank must be in [0, {self.nnodes}), got {self.node_rank}", param="node_rank")
        if self.ep_size not in (1, self.tp_size):
            raise ConfigError(f"ep_size {self.ep_size} must be 1 or tp_size {self.tp_size}", param="ep_size")
        if self.num_schedulers % self.nnodes:
            counts = f"{self.num_schedulers} schedulers (dp_size x pp_size x tp_size)"
            raise ConfigError(f"nnodes {self.nnodes} does not divide {counts}", param="nnodes")

    def shard_spec(self, style: ShardStyle, rank: int = 0) -> ShardSpec:
        """Return the share of each layer that one of its processes has."""
        return ShardSpec(rank, self.tp_size, style, splits_experts=self.ep_size == 1)

    @property
    def num_schedulers(self) -> int:
        """Number of schedulers on all machines."""
        return self.dp_size * self.pp_size * self.tp_size

    @property
    def schedulers(self) -> tuple[ProcessKey, ...]:
        """Keys of the schedulers of all machines, in order."""
        dimensions = (range(size) if size > 1 else (None,) for size in (self.dp_size, self.pp_size, self.tp_size))
        return tuple(ProcessKey("scheduler", *ranks) for ranks in product(*dimensions))

    @property
    def leaders(self) -> tuple[ProcessKey, ...]:
        """Keys of the schedulers that requests and control calls are sent to, one for each replica."""
        return tuple(key for key in self.schedulers if not key.pp and not key.tp)

    @property
    def has_equal_schedulers(self) -> bool:
        """True if there are several schedulers on this machine, all with the same weights."""
        return self._num_per_node > 1 and self.pp_size == self.tp_size == 1

    @property
    def controllers(self) -> tuple[ProcessKey, ...]:
        """The process that stands between the front end and the leaders, if there is one."""
        return (CONTROLLER,) if self.dp_size > 1 else ()

    @property
    def local_schedulers(self) -> tuple[ProcessKey, ...]:
        """Keys of the schedulers on this machine, in order."""
        return tuple(key for key in self.schedulers if self.node_of(key) == self.node_rank)

    def followers_of(self, leader: ProcessKey) -> tuple[ProcessKey, ...]:
        """Return the keys of the schedulers that run the plans of a leader."""
        return tuple(key for key in self.schedulers if key.dp == leader.dp and key not in self.leaders)

    def node_of(self, key: ProcessKey) -> int:
        """Return the machine of a scheduler."""
        return self.schedulers.index(key) // self._num_per_node

    def share_of(self, key: ProcessKey) -> MachineShare:
        """Return the share of its machine that a scheduler gets."""
        return MachineShare(self.schedulers.index(key) % self._num_per_node, self._num_per_node)

    @property
    def _num_per_node(self) -> int:
        return self.num_schedulers // self.nnodes


ONE_SCHEDULER = ParallelLayout()
