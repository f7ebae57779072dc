"""Rows sorted by the expert that multiplies them, and the tiles that they make up.

How many rows each expert has is known on the device alone: a launch has as many programs as there could be tiles, and
those without one have nothing to do, so that it can be recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from bough.kernels.triton.launch import next_power_of_2

_TILE_ROWS = {8: 16, 32: 32}
"""Rows of a tile, by the average number of rows of an expert up to which it is for."""
_MOST_TILE_ROWS = 64
_FLOAT32_TILE_ROWS = 16


@dataclass(frozen=True)
class SortedRows:
    """Copies of tokens, one for each of their experts, sorted by expert: ``num_copies = num_tokens * per_token``."""

    order: torch.Tensor
    """int64 ``[num_copies]``, the copy at each place: ``token * per_token + index``"""
    starts: torch.Tensor
    """int32 ``[num_experts + 1]``, first place of each expert that is here, and the end of the last one's"""
    tile_ends: torch.Tensor
    """int32 ``[num_experts]``, tiles of the experts up to each one, itself included"""
    per_token: int
    tile_rows: int

    @classmethod
    def of(
        cls, experts: torch.Tensor, first: int, num_experts: int, dtype: torch.dtype, *, one_tile: bool
    ) -> SortedRows:
        """Sort copies of tokens, without waiting for the device.

        Args:
            experts: int64 ``[num_tokens, per_token]``
            first: the first expert that is here; copies for others are left out.
            num_experts: experts that are here.
            dtype: of the tokens.
            one_tile: tile rows alike however few there are, so that none depends on the others.
        """
        per_token = experts.shape[1]
        numbers, order = experts.flatten().sort(stable=True)
        borders = torch.arange(first, first + num_experts + 1, device=experts.device)
        starts = torch.searchsorted(numbers, borders, out_int32=True)
        tile_rows = _MOST_TILE_ROWS
        if dtype == torch.float32:
            tile_rows = _FLOAT32_TILE_ROWS
        elif not one_tile:
            average = experts.numel() // num_experts
            tile_rows = next((rows for most, rows in _TILE_ROWS.items() if average <= most), tile_rows)
        tiles = (starts.diff() + (tile_rows - 1)) // tile_rows
        return cls(order, starts, tiles.cumsum(0, dtype=torch.int32), per_token, tile_rows)

    @property
    def num_experts(self) -> int:
        """Experts that are here."""
        return len(self.tile_ends)

    @property
    def most_tiles(self) -> int:
        """Bound of the tiles of all experts."""
        num_copies = len(self.order)
        return -(-num_copies // self.tile_rows) + min(self.num_experts, num_copies)

    @property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Arguments of :func:`expert_tile` that lie on the device."""
        return self.order, self.starts, self.tile_ends

    @property
    def constants(self) -> dict[str, int]:
        """Arguments of it that kernels are compiled for."""
        block = next_power_of_2(self.num_experts)
        return {"NUM_EXPERTS": self.num_experts, "EXPERTS_BLOCK": block, "PER_TOKEN": self.per_token}


@triton.jit
def expert_tile(
    tile,
    order_ptr,
    starts_ptr,
    tile_ends_ptr,
    NUM_EXPERTS: tl.constexpr,
    EXPERTS_BLOCK: tl.constexpr,
    PER_TOKEN: tl.constexpr,
    FROM_TOKENS: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """The expert of a tile, ``NUM_EXPERTS`` if there is no such tile; the rows ``[BLOCK_M]`` that it reads and writes,
    int64, and which of them it has.

    It reads tokens and writes places, or the other way round.
    """
    experts = tl.arange(0, EXPERTS_BLOCK)
    ends = tl.load(tile_ends_ptr + experts, mask=experts < NUM_EXPERTS, other=2147483647)
    expert = tl.sum((ends <= tile).to(tl.int32))
    is_there = expert < NUM_EXPERTS
    first_tile = tl.max(tl.where(experts < expert, ends, 0))
    start = tl.load(starts_ptr + expert, mask=is_there, other=0)
    end = tl.load(starts_ptr + expert + 1, mask=is_there, other=0)
    places = (start + (tile - first_tile) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    in_rows = (places < end) & is_there
    copies = tl.load(order_ptr + places, mask=in_rows, other=0)
    if FROM_TOKENS:
        from_rows, to_rows = copies // PER_TOKEN, places
    else:
        from_rows, to_rows = places, copies
    return expert, from_rows, to_rows, in_rows
