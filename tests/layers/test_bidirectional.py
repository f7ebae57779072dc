"""Attention within sequences of any lengths equals attention of each sequence by itself."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.layers.attention.bidirectional import bidirectional_attention, group_by_length
from tests.thoroughness import examples

CPU = torch.device("cpu")


def alone(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.einsum("qhd,khd->hqk", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1)


@given(lengths=st.lists(st.integers(1, 70), min_size=1, max_size=30).map(sorted), seed=st.integers(0, 1000))
@settings(max_examples=examples(60))
def test_every_sequence_is_by_itself(lengths: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, sum(lengths), 2, 6, generator=generator)
    output = bidirectional_attention(q, k, v, group_by_length(lengths, CPU))
    parts = zip(q.split(lengths), k.split(lengths), v.split(lengths), strict=True)
    torch.testing.assert_close(output, torch.cat([alone(*part) for part in parts]), atol=1e-5, rtol=1e-4)


@given(lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=200).map(sorted))
def test_groups_cover_all_tokens_and_waste_little(lengths: list[int]) -> None:
    groups = group_by_length(lengths, CPU)
    assert [group.start for group in groups] == [0, *(group.stop for group in groups[:-1])]
    assert groups[-1].stop == sum(lengths)
    assert sum(group.num_rows for group in groups) == len(lengths)
    assert len(groups) <= 40, "the number of blocks grows with the logarithm of the length only"
    for group in groups:
        shortest_possible = min(group.width / 1.25, group.width - 4)
        assert group.stop - group.start >= group.num_rows * shortest_possible


def test_equal_lengths_need_no_padding() -> None:
    (group,) = group_by_length([5, 5, 5], CPU)
    assert group.padded is group.places is group.mask is None
