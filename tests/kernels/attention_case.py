"""A step's attention: its rows over a paged pool, the native result, and the same in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bough.kernels.library import load_library
from bough.kernels.structures import AttentionCall, AttentionShape, DType, KVLayer, StepRows
from bough.kernels.thread_pool import ThreadPool
from tests.kernels.memory import address, encode, from_bf16, to_bf16

LOG2_E = float.fromhex("0x1.715476p0")
"""As the kernels have it, in float32."""


@dataclass(frozen=True)
class Rows:
    """Rows of a step; ``table[req_slots[r], p]`` is the slot of position ``p``."""

    prefix_lens: np.ndarray
    extend_lens: np.ndarray
    req_slots: np.ndarray
    table: np.ndarray
    num_slots: int

    @classmethod
    def random(cls, rng: np.random.Generator, prefix_lens: list[int], extend_lens: list[int], page_size: int) -> Rows:
        """Rows whose pages lie anywhere in the pool."""
        lengths = np.array(prefix_lens) + np.array(extend_lens)
        pages = -(-lengths // page_size)
        numbers = rng.permutation(pages.sum()) + 1
        table = np.zeros((len(lengths) + 2, int(pages.max()) * page_size), dtype=np.int32)
        req_slots = rng.permutation(len(table))[: len(lengths)].astype(np.int32)
        for req_slot, own in zip(req_slots, np.split(numbers, np.cumsum(pages)[:-1]), strict=True):
            slots = (own[:, None] * page_size + np.arange(page_size)).reshape(-1)
            table[req_slot, : len(slots)] = slots
        return cls(
            np.array(prefix_lens, dtype=np.int32),
            np.array(extend_lens, dtype=np.int32),
            req_slots,
            table,
            int(pages.sum() + 1) * page_size,
        )

    @property
    def first_tokens(self) -> np.ndarray:
        return (np.cumsum(self.extend_lens) - self.extend_lens).astype(np.int32)

    @property
    def num_tokens(self) -> int:
        return int(self.extend_lens.sum())

    @property
    def lengths(self) -> np.ndarray:
        return self.prefix_lens + self.extend_lens

    def positions(self, row: int) -> np.ndarray:
        """Of the row's new tokens."""
        return np.arange(self.prefix_lens[row], self.lengths[row])

    def slots(self, row: int) -> np.ndarray:
        return self.table[self.req_slots[row], : self.lengths[row]]

    def tails(self, cuts: np.ndarray) -> tuple[Rows, np.ndarray]:
        """The step that remains when the first ``cuts[r]`` new tokens of each row were computed before, and which
        tokens of this step its tokens are."""
        kept = [
            np.arange(first + cut, first + length)
            for first, cut, length in zip(self.first_tokens, cuts, self.extend_lens, strict=True)
        ]
        later = replace(
            self,
            prefix_lens=(self.prefix_lens + cuts).astype(np.int32),
            extend_lens=(self.extend_lens - cuts).astype(np.int32),
        )
        return later, np.concatenate(kept)


@dataclass(frozen=True)
class Case:
    """Random queries and a pool, in which everything that no row may look at is NaN."""

    rows: Rows
    num_heads: int
    num_kv_heads: int
    head_dim: int
    window: int
    scale: float
    dtype: DType
    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    key_scales: np.ndarray | None
    value_scales: np.ndarray | None
    sinks: np.ndarray | None = None

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        rows: Rows,
        *,
        heads: tuple[int, int],
        head_dim: int,
        dtype: DType,
        window: int = 0,
        sinks: bool = False,
    ) -> Case:
        num_heads, num_kv_heads = heads
        pool = rng.standard_normal((2, rows.num_slots, num_kv_heads, head_dim)).astype(np.float32)
        scales = None
        if dtype == DType.I8:
            scales = (np.abs(pool).max(-1) / 127).astype(np.float32)
            stored = np.rint(pool / scales[..., None]).astype(np.int8)
        else:
            stored = encode(pool, dtype)
            unused = np.ones(rows.num_slots, dtype=np.bool_)
            for row in range(len(rows.req_slots)):
                unused[rows.slots(row)] = False
            stored[:, unused] = 0x7FC0 if dtype == DType.BF16 else np.nan
        return cls(
            rows=rows,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            window=window,
            scale=head_dim**-0.5,
            dtype=dtype,
            queries=rng.standard_normal((rows.num_tokens, num_heads * head_dim + 3)).astype(np.float32),
            keys=stored[0].copy(),
            values=stored[1].copy(),
            key_scales=None if scales is None else scales[0].copy(),
            value_scales=None if scales is None else scales[1].copy(),
            # Far below the scores of keys, like them, and far above.
            sinks=np.linspace(-6.0, 9.0, num_heads, dtype=np.float32) if sinks else None,
        )

    def later(self, cuts: np.ndarray) -> tuple[Case, np.ndarray]:
        """See :meth:`Rows.tails`."""
        rows, tokens = self.rows.tails(cuts)
        return replace(self, rows=rows, queries=np.ascontiguousarray(self.queries[tokens])), tokens

    def run(self, threads: ThreadPool, output_dtype: DType = DType.F32) -> np.ndarray:
        """``[num_tokens, num_heads * head_dim]``"""
        rows = self.rows
        storage = np.uint16 if output_dtype == DType.BF16 else np.float32
        output = np.zeros((rows.num_tokens, self.num_heads * self.head_dim), dtype=storage)
        first_tokens = rows.first_tokens
        call = AttentionCall(
            shape=AttentionShape(self.num_heads, self.num_kv_heads, self.head_dim, self.window, self.scale),
            rows=StepRows(
                len(rows.req_slots),
                *map(address, (rows.req_slots, rows.prefix_lens, rows.extend_lens, first_tokens, rows.table)),
                rows.table.shape[1],
            ),
            kv=KVLayer(*map(address, (self.keys, self.values, self.key_scales, self.value_scales)), self.dtype),
            queries=address(self.queries),
            query_stride=self.queries.shape[1],
            output=address(output),
            output_stride=output.shape[1],
            output_dtype=output_dtype,
            sinks=address(self.sinks),
        )
        library = load_library()
        library.bough_attention(threads.handle, ctypes.byref(call), rows.num_tokens, int(rows.lengths.max()))
        return from_bf16(output) if output_dtype == DType.BF16 else output

    def expected(self, *, halves: bool = False) -> np.ndarray:
        """The same in float64, from what is stored; with ``halves`` of queries that are rounded to bfloat16."""
        return self._each_row(halves, lambda weights, values: np.einsum("hqk,khd->qhd", weights, values))

    def size_of_terms(self) -> np.ndarray:
        """Of each output: the root of the sum of squares of what is added up, each key's weight times its value."""
        return self._each_row(False, lambda weights, values: np.sqrt(np.einsum("hqk,khd->qhd", weights**2, values**2)))

    def _each_row(self, halves: bool, combine: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """``[num_tokens, num_heads * head_dim]``; each row has weights ``[heads, queries, keys]`` and values
        ``[keys, heads, head_dim]``."""
        group = self.num_heads // self.num_kv_heads
        outputs = []
        for row, first in enumerate(self.rows.first_tokens):
            slots = self.rows.slots(row)
            keys, values = (self._plain(stored, scales)[slots] for stored, scales in self._pools())
            positions = self.rows.positions(row)
            queries = self.queries[first : first + len(positions), : self.num_heads * self.head_dim]
            if halves:  # as the kernels have them: scores are logarithms to base 2
                scale = np.float32(self.scale) * np.float32(LOG2_E)
                queries = from_bf16(to_bf16(queries * scale)) / (self.scale * LOG2_E)
            heads = queries.astype(np.float64).reshape(len(positions), self.num_heads, self.head_dim)
            distance = positions[:, None] - np.arange(len(slots))
            visible = (distance >= 0) & ((self.window == 0) | (distance < self.window))
            scores = np.einsum("qhd,khd->hqk", heads, np.repeat(keys, group, axis=1)) * self.scale
            scores = np.where(visible, scores, -np.inf)
            sinks = np.full(self.num_heads, -np.inf) if self.sinks is None else self.sinks.astype(np.float64)
            largest = np.maximum(scores.max(-1, keepdims=True), sinks[:, None, None])
            weights = np.exp(scores - largest)
            weights /= weights.sum(-1, keepdims=True) + np.exp(sinks[:, None, None] - largest)
            outputs.append(combine(weights, np.repeat(values, group, axis=1)))
        return np.concatenate(outputs).reshape(self.rows.num_tokens, -1)

    def _pools(self) -> tuple[tuple[np.ndarray, np.ndarray | None], ...]:
        return (self.keys, self.key_scales), (self.values, self.value_scales)

    def _plain(self, stored: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
        if self.dtype == DType.BF16:
            return from_bf16(stored).astype(np.float64)
        return stored.astype(np.float64) * (1.0 if scales is None else scales[..., None].astype(np.float64))
