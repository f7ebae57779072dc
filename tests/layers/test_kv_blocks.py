from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.layers.attention.kv_blocks import BLOCK_TOKENS, plan_decode, plan_extend
from tests.thoroughness import examples

page_sizes = st.sampled_from([1, 4, 16, 64])
windows = st.one_of(st.none(), st.integers(1, 1500))


def lengths(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32)


@settings(max_examples=examples(200))
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=40), windows, page_sizes, st.integers(16, 6000))
def test_decode_blocks_cover_exactly_what_each_row_sees(
    seq_lens: list[int], window: int | None, page_size: int, max_group_tokens: int
) -> None:
    plan = plan_decode(lengths(seq_lens), window, page_size, max_group_tokens)
    blocks = [
        (int(row), int(start), int(first), int(end), group)
        for group in plan.groups
        for row, start, first, end in zip(group.rows, group.starts, group.firsts, group.ends, strict=True)
    ]
    assert len(blocks) == len(plan.order) == plan.counts.sum()
    in_order = [blocks[index] for index in plan.order]
    seen: dict[int, list[int]] = {row: [] for row in range(len(seq_lens))}
    for row, start, first, end, group in in_order:
        assert start % page_size == 0
        assert start <= first < end <= start + group.width
        assert group.width % page_size == 0
        seen[row].extend(range(first, end))
    for row, length in enumerate(seq_lens):
        assert seen[row] == list(range(0 if window is None else max(length - window, 0), length))
    assert [row for row, *_ in in_order] == sorted(row for row, *_ in in_order)
    for group in plan.groups:
        assert len(group.rows) == 1 or len(group.rows) * group.width <= max_group_tokens


@given(st.integers(1, 5000), page_sizes)
def test_decode_splits_lie_at_the_same_positions_whatever_the_batch(length: int, page_size: int) -> None:
    alone = plan_decode(lengths([length]), None, page_size, 4096)
    crowded = plan_decode(lengths([17, length, 4000, 3]), None, page_size, 4096)

    def splits(plan: object, row: int) -> set[tuple[int, int]]:
        return {
            (int(start), int(end))
            for group in plan.groups  # type: ignore[attr-defined]
            for owner, start, end in zip(group.rows, group.starts, group.ends, strict=True)
            if owner == row
        }

    assert splits(alone, 0) == splits(crowded, 1)
    assert all(start % BLOCK_TOKENS == 0 for start, _ in splits(alone, 0))


def test_rows_of_similar_length_share_a_group() -> None:
    plan = plan_decode(lengths([500, 490, 480, 470] * 4), None, 1, 10**6)
    assert len(plan.groups) == 1


def test_padding_of_a_large_group_is_bounded() -> None:
    plan = plan_decode(lengths([512] * 20 + [20] * 500), None, 1, 10**6)
    padded = sum(len(group.rows) * group.width for group in plan.groups)
    assert padded < 1.4 * (512 * 20 + 20 * 500)


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 2500)), min_size=1, max_size=6),
    windows,
    page_sizes,
    st.sampled_from([1024, 2048]),
)
def test_extend_segments_show_each_query_what_it_may_see(
    rows: list[tuple[int, int]], window: int | None, page_size: int, max_segment_tokens: int
) -> None:
    prefix_lens, extend_lens = lengths([p for p, _ in rows]), lengths([e for _, e in rows])
    tiles = plan_extend(prefix_lens, extend_lens, window, page_size, max_segment_tokens)
    next_token = 0
    for tile in tiles:
        assert tile.first_token == next_token
        next_token += tile.num_queries
        last = tile.first_position + tile.num_queries - 1
        if not tile.segments:
            assert tile.first_position == 0
            assert window is None or tile.num_queries <= window
            continue
        edge = 0
        for segment in tile.segments:
            assert segment.start % page_size == 0
            if window is None:
                assert segment.start == edge, "segments must touch"
            if not segment.masked:
                assert segment.end - 1 <= tile.first_position, "an unmasked key must be visible to every query"
                assert window is None or segment.start > last - window
            edge = segment.end
        assert edge == last + 1
        first_visible = 0 if window is None else max(tile.first_position - window + 1, 0)
        assert tile.segments[0].start <= first_visible
    assert next_token == sum(extend for _, extend in rows)
