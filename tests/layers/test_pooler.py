"""Pooling a sequence in pieces gives what pooling it at once gives."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.config.pooling import PoolingMethod
from bough.layers.pooler import ChunkPooler, pool, shorten
from tests.thoroughness import examples

METHODS: list[PoolingMethod] = ["cls", "mean", "max", "last"]


@pytest.mark.parametrize("method", METHODS)
@given(
    chunks=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
)
@settings(max_examples=examples(40))
def test_chunks(method: PoolingMethod, chunks: list[list[int]], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    sequences = [torch.randn(sum(pieces), 3, generator=generator) for pieces in chunks]
    pooler = ChunkPooler(method, len(sequences) + 2, 3, torch.device("cpu"))
    pooler.state.fill_(1e6)  # of whoever had the slots before
    done = [0] * len(sequences)
    results: dict[int, torch.Tensor] = {}
    for turn in range(max(map(len, chunks))):
        rows = [row for row, pieces in enumerate(chunks) if turn < len(pieces)]
        lengths = [chunks[row][turn] for row in rows]
        states = torch.cat([sequences[row][done[row] : done[row] + chunks[row][turn]] for row in rows])
        pooled = pooler.add(
            states, torch.tensor(lengths), torch.tensor(rows) + 1, torch.tensor([done[row] for row in rows])
        )
        for index, row in enumerate(rows):
            done[row] += lengths[index]
            results[row] = pooled[index]
    for row, sequence in enumerate(sequences):
        whole = pool(method, sequence, torch.tensor([len(sequence)]))[0]
        torch.testing.assert_close(results[row], whole, atol=1e-5, rtol=1e-4)


def test_the_pools() -> None:
    states = torch.tensor([[1.0, 8.0], [3.0, 2.0], [9.0, 9.0], [7.0, 5.0]])
    lengths = torch.tensor([2, 2])
    assert pool("cls", states, lengths).tolist() == [[1, 8], [9, 9]]
    assert pool("last", states, lengths).tolist() == [[3, 2], [7, 5]]
    assert pool("mean", states, lengths).tolist() == [[2, 5], [8, 7]]
    assert pool("max", states, lengths).tolist() == [[3, 8], [9, 9]]
    assert pool("mean", states.bfloat16(), lengths).dtype == torch.float32


def test_a_shortened_vector_is_scaled_after_it_was_cut() -> None:
    vectors = torch.tensor([[3.0, 4.0, 12.0]])
    assert shorten(vectors, None, normalize=False) is vectors
    torch.testing.assert_close(shorten(vectors, 2, normalize=True), torch.tensor([[0.6, 0.8]]))
    torch.testing.assert_close(shorten(vectors, None, normalize=True), vectors / 13)
