"""Place of a scheduler among the ranks of its replica. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bough.config.port_args import PortArgs
from bough.config.ranks import ParallelLayout, ProcessKey
from bough.config.sharding import ShardSpec, ShardStyle

Backend = Literal["gloo", "nccl"]


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Place of a scheduler in a layout where several share each layer."""

    key: ProcessKey
    layout: ParallelLayout
    port_args: PortArgs
    backend: Backend | None = None
    """Collectives; ``None`` for what suits the device. Ranks that share a CUDA device need gloo."""

    @classmethod
    def of(cls, key: ProcessKey, layout: ParallelLayout, port_args: PortArgs) -> RankPlace | None:
        """Return the place of a scheduler; ``None`` if it shares its layers with no other."""
        return None if layout.tp_size == 1 else cls(key, layout, port_args)

    @property
    def is_follower(self) -> bool:
        """True unless it is the first rank."""
        return self.key != self.leader

    @property
    def leader(self) -> ProcessKey:
        """The first rank of the replica."""
        return next(each for each in self.layout.leaders if each.dp == self.key.dp)

    @property
    def followers(self) -> tuple[ProcessKey, ...]:
        """The other ranks of the replica."""
        return self.layout.followers_of(self.leader)

    @property
    def index(self) -> int:
        """Number among the schedulers of all replicas and machines, from 0."""
        return self.layout.schedulers.index(self.key)

    def spec(self, style: ShardStyle) -> ShardSpec:
        """Return the share of each layer, which depends on what computes it."""
        return self.layout.shard_spec(style, self.key.tp or 0)
