from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bough.kernels.triton import attention
from bough.kernels.triton.available import SPLIT_KEYS
from bough.layers.attention.tiles import decode_pieces, extend_tiles, row_groups
from tests.kernels.triton import cases
from tests.triton_interpreter import same_bits_in_every_row  # noqa: F401 (a fixture)

RANDOM_SHAPES = settings(
    max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

shapes = st.fixed_dictionaries(
    {
        "kv_heads": st.integers(1, 2),
        "group": st.sampled_from([1, 3, 4]),
        "head_dim": st.sampled_from([64, 80, 128, 256]),
        "window": st.sampled_from([None, None, 1, 50, 300]),
        "cap": st.sampled_from([0.0, 2.0]),
        "sinks": st.booleans(),
    }
)


@given(shape=shapes, lens=st.lists(st.integers(0, 300), min_size=1, max_size=3).filter(any), seed=st.integers(0, 99))
@RANDOM_SHAPES
def test_decode_rows_attend_to_their_sequences(
    dtype: torch.dtype, device: torch.device, shape: dict[str, int], lens: list[int], seed: int
) -> None:
    assert cases.decode(np.random.default_rng(seed), dtype, device, lens=lens, **shape) <= 1


@given(
    shape=shapes,
    rows=st.lists(st.tuples(st.integers(0, 100), st.integers(1, 50)), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
@RANDOM_SHAPES
def test_prompts_attend_to_what_is_cached_and_to_themselves(
    dtype: torch.dtype, device: torch.device, shape: dict[str, int], rows: list[tuple[int, int]], seed: int
) -> None:
    prefix_lens, extend_lens = map(list, zip(*rows, strict=True))
    rng = np.random.default_rng(seed)
    assert cases.extend(rng, dtype, device, prefix_lens=prefix_lens, extend_lens=extend_lens, **shape) <= 1


def test_a_sequence_of_several_pieces_is_merged(dtype: torch.dtype, device: torch.device) -> None:
    rng = np.random.default_rng(0)
    assert cases.decode(rng, dtype, device, lens=[3 * SPLIT_KEYS + 5, 0, 2 * SPLIT_KEYS]) <= 1


def test_sinks_take_a_share_of_the_weight_of_their_heads(dtype: torch.dtype, device: torch.device) -> None:
    rng = np.random.default_rng(0)
    for cap in (0.0, 2.0):
        assert cases.decode(rng, dtype, device, lens=[SPLIT_KEYS + 5, 0, 7], group=4, sinks=True, cap=cap) <= 1
        rows = {"prefix_lens": [20, 0], "extend_lens": [9, 33]}
        assert cases.extend(rng, dtype, device, **rows, group=4, sinks=True, window=17, cap=cap) <= 1


def test_prompts_may_have_more_tiles_than_there_are_programs_in_any_dimension_but_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grids: list[tuple[int, ...]] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
            grids.append(grid)
            return lambda *args, **options: None

    monkeypatch.setattr(attention, "_extend_tiles", Kernel())
    q, keys, tiles = torch.zeros(1, 2, 64), torch.zeros(1, 1, 64), torch.zeros(70_000, 4, dtype=torch.int32)
    attention.extend_attention(q, keys, keys, tiles, tiles, scale=1.0)
    assert grids == [(140_000,)]


FLOAT8 = pytest.mark.parametrize("stored_as", [torch.float8_e4m3fn, torch.float8_e5m2], ids=["e4m3", "e5m2"])


@FLOAT8
def test_keys_and_values_of_8_bits_are_read_as_what_they_stand_for(
    dtype: torch.dtype, device: torch.device, stored_as: torch.dtype
) -> None:
    rng = np.random.default_rng(0)
    assert cases.decode(rng, dtype, device, lens=[SPLIT_KEYS + 5, 0, 7], stored_as=stored_as, cap=2.0) <= 1
    assert cases.extend(rng, dtype, device, prefix_lens=[20, 0], extend_lens=[9, 33], stored_as=stored_as) <= 1


@FLOAT8
def test_keys_and_values_are_stored_in_8_bits_as_the_nearest_numbers(
    dtype: torch.dtype, device: torch.device, stored_as: torch.dtype
) -> None:
    assert cases.store_float8(np.random.default_rng(0), dtype, device, tokens=9, head_dim=64, stored_as=stored_as) == 0


def attend_from(
    paged: cases.Paged, q: torch.Tensor, prefix_lens: list[int], extend_lens: list[int], device: torch.device
) -> torch.Tensor:
    """Queries of request 0, in pieces."""
    size = attention.extend_blocks(64, q.dtype).queries
    slots = np.repeat(paged.req_slots, len(prefix_lens))
    tiles = extend_tiles(slots, np.array(prefix_lens, np.int32), np.array(extend_lens, np.int32), size)
    return attention.extend_attention(
        q, paged.keys, paged.values, paged.table, torch.from_numpy(tiles).to(device), scale=0.125, window=70
    )


@pytest.mark.usefixtures("same_bits_in_every_row")
def test_a_prompt_cut_anywhere_gets_the_same_bits(dtype: torch.dtype, device: torch.device) -> None:
    rng = np.random.default_rng(0)
    paged = cases.Paged(rng, [200], kv_heads=1, head_dim=64, dtype=dtype, device=device)
    q = cases.normal(rng, (200, 2, 64), dtype, device)
    whole = attend_from(paged, q, [0], [200], device)
    assert torch.equal(whole, attend_from(paged, q, [0, 37, 101], [37, 64, 99], device))


def test_pieces_are_anchored_at_the_beginning_of_the_sequence() -> None:
    plan = decode_pieces(np.array([0, 1, 8, 9, 20], dtype=np.int32), None, 8)
    assert plan.pieces.tolist() == [[1, 0], [2, 0], [3, 0], [3, 8], [4, 0], [4, 8], [4, 16]]
    assert plan.first_piece.tolist() == [0, 0, 1, 2, 4, 7]
    assert plan.num_pieces.tolist() == [7]


def test_pieces_before_the_window_are_left_out() -> None:
    plan = decode_pieces(np.array([20, 4], dtype=np.int32), 5, 8)
    assert plan.pieces.tolist() == [[0, 8], [0, 16], [1, 0]]
    assert plan.first_piece.tolist() == [0, 2, 3]


def test_tiles_cover_every_new_token_once_and_the_longest_come_first() -> None:
    tiles = extend_tiles(
        np.array([7, 3], dtype=np.int32), np.array([100, 0], dtype=np.int32), np.array([5, 9], dtype=np.int32), 4
    )
    assert tiles.tolist() == [[7, 4, 1, 104], [7, 0, 4, 100], [3, 13, 1, 8], [3, 9, 4, 4], [3, 5, 4, 0]]


def test_wider_heads_are_refused() -> None:
    with pytest.raises(ValueError, match="heads of 257"):
        attention.extend_blocks(257, torch.float16)


def test_rows_are_grouped_so_that_their_pieces_fit() -> None:
    lens = np.array([8, 9, 1, 24, 16, 0], dtype=np.int32)  # 1, 2, 1, 3, 2 and 0 pieces
    assert row_groups(lens, 3, 8) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 6)]
    assert row_groups(lens, 9, 8) == [slice(0, 6)]
    assert row_groups(lens[:0], 9, 8) == []
    with pytest.raises(ValueError, match="24 tokens has more than 2 pieces"):
        row_groups(lens, 2, 8)
