"""Shares of a model's matrices and heads that each of several processes has (tensor parallelism). No torch here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from bough.errors import ConfigError

ShardStyle = Literal["gather", "reduce"]
"""Split of the matrices that write to the residual stream: by outputs, which are then all in shared memory; or by
inputs, with products that are added up over all ranks (Shoeybi et al. 2019, "Megatron-LM", section 3)."""

UNIT = 32
"""Rows of a matrix that are not divided: native kernels write shares of a shared buffer in such pieces."""

GROUP_UNIT = 128
"""The same where shares are inputs of the next matrix: its quantised weights have scales for groups up to so large."""

SMALL_UNIT = 8
"""The same where torch multiplies matrices that are too small for larger ones."""

LARGEST_WORLD = 64
"""Most processes that share a layer."""


@dataclass(frozen=True, slots=True)
class Span:
    """Neighbours among ``total`` rows, columns or heads."""

    start: int
    size: int
    total: int
    is_copy: bool = False
    """True if a rank before this one has the same."""

    @classmethod
    def whole(cls, total: int) -> Span:
        """All of them."""
        return cls(0, total, total)

    @property
    def stop(self) -> int:
        """End of the span, which is not part of it."""
        return self.start + self.size

    @property
    def is_whole(self) -> bool:
        """True if none is left out."""
        return self.size == self.total

    def times(self, width: int) -> Span:
        """Return the rows of these heads, each of so many."""
        return Span(self.start * width, self.size * width, self.total * width, self.is_copy)


class HeadShare(NamedTuple):
    """Heads of a rank. Its queries read no other keys than its own."""

    queries: Span
    keys: Span
    """Those of values, too; where there are fewer than ranks, neighbours have the same."""


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """Place of one rank among those that share each layer.

    Ascending ranks have ascending rows. Shares need not be equal.
    """

    rank: int = 0
    world: int = 1
    style: ShardStyle = "gather"
    splits_experts: bool = True
    """A rank has a part of every expert of a mixture; ``False``: some experts whole (expert parallelism)."""

    @property
    def division(self) -> str:
        """Return, in words, how ranks divide a model: a rank's weights fit no other division."""
        matrices = "outputs (native kernels)" if self.style == "gather" else "inputs (torch)"
        return f"matrices by {matrices}, experts {'in parts' if self.splits_experts else 'whole'}"

    def experts(self, total: int) -> Span:
        """Return the experts of a layer that this rank has, in whole or in part.

        Raises:
            ConfigError: if a rank would have none.
        """
        if self.splits_experts:
            return Span.whole(total)
        if total < self.world:
            raise ConfigError(f"--ep-size {self.world} cannot divide {total} experts", param="ep_size")
        start, stop = (rank * total // self.world for rank in (self.rank, self.rank + 1))
        return Span(start, stop - start, total)

    def rows(self, total: int) -> Span:
        """Return this rank's share of ``total`` rows, which is cut at multiples of one of the units.

        Raises:
            ConfigError: if a rank would have none.
        """
        if self.world == 1:
            return Span.whole(total)
        unit = self._unit(total)
        units = -(-total // unit)
        if units < self.world:
            raise ConfigError(f"--tp-size {self.world} cannot divide {total} rows in pieces of {unit}", param="tp_size")
        start, stop = (min(rank * units // self.world * unit, total) for rank in (self.rank, self.rank + 1))
        return Span(start, stop - start, total)

    def _unit(self, total: int) -> int:
        if self.style == "gather":
            return UNIT
        if total < UNIT * self.world:
            return SMALL_UNIT
        is_even = total % (GROUP_UNIT * self.world) == 0 or total >= 8 * GROUP_UNIT * self.world
        return GROUP_UNIT if is_even else UNIT

    def rows_of_all(self, total: int) -> tuple[Span, ...]:
        """Return the shares of all ranks; raises as :meth:`rows`."""
        return tuple(replace(self, rank=rank).rows(total) for rank in range(self.world))

    def heads(self, num_heads: int, num_kv_heads: int) -> HeadShare:
        """Return this rank's heads: whole groups of queries with their keys, or some queries of one group.

        Raises:
            ConfigError: if a rank would have none.
        """
        group, rank, world = num_heads // num_kv_heads, self.rank, self.world
        if num_kv_heads >= world:
            first, last = (each * num_kv_heads // world for each in (rank, rank + 1))
            keys = Span(first, last - first, num_kv_heads)
            return HeadShare(keys.times(group), keys)
        key = rank * num_kv_heads // world
        # Ranks begin, and end, that have this head of keys.
        begin, end = (-(-each * world // num_kv_heads) for each in (key, key + 1))
        first, last = (key * group + (each - begin) * group // (end - begin) for each in (rank, rank + 1))
        if end - begin > group:
            raise ConfigError(
                f"--tp-size {world} cannot divide {num_heads} heads, {group} for each of keys", param="tp_size"
            )
        return HeadShare(Span(first, last - first, num_heads), Span(key, 1, num_kv_heads, is_copy=rank > begin))

    def to_stream(self, inputs: Span, num_outputs: int) -> tuple[Span, Span]:
        """Return the inputs and the outputs that this rank has of a matrix that writes to the residual stream.

        Args:
            inputs: what the matrix before it has computed here.
            num_outputs: width of the stream.
        """
        if self.style == "reduce":
            return inputs, Span.whole(num_outputs)
        return Span.whole(inputs.total), self.rows(num_outputs)


WHOLE = ShardSpec()
"""One process has all of a model."""
