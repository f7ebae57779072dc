"""Attention over the paged pool against float64, on every instruction set, in every way that work is cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.kernels.library import Isa, best_isa, current_isa, set_isa
from bough.kernels.structures import DType
from bough.kernels.thread_pool import ThreadPool
from tests.kernels.attention_case import Case, Rows
from tests.kernels.memory import HALF_ULP
from tests.native import each_isa
from tests.tables import table
from tests.thoroughness import examples

DTYPES = (DType.F32, DType.BF16, DType.I8)
PAGE_SIZE = 16


@pytest.fixture(scope="module")
def pools() -> list[ThreadPool]:
    return [ThreadPool(threads) for threads in (1, 2, 3)]


SINGLE_SUMS = 1e-5
"""Largest error of sums in float32 of values that are about 1 in size."""


def multiplies_halves(dtype: DType) -> bool:
    """Whether bfloat16 is multiplied directly, so that queries and weights are rounded to it as well."""
    return dtype != DType.F32 and current_isa() >= Isa.AVX512BF16


def of_rounded_weights(case: Case) -> np.ndarray:
    """What rounding weights to bfloat16 changes each output by at most.

    Each of its terms changes by up to 2**-8 of itself, with a standard deviation of 0.42 times that, up or down
    whatever the others do. Three times the root of the sum of their squares is more than seven standard deviations, and
    more than all of up to nine keys together can make.
    """
    return 3 * HALF_ULP[DType.BF16] * case.size_of_terms()


@dataclass(frozen=True)
class Reference:
    """Outputs of a case in float64, which take far longer than those of the kernels: computed once for all of them."""

    case: Case

    @cached_property
    def exact(self) -> np.ndarray:
        return self.case.expected()

    @cached_property
    def of_halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Outputs where bfloat16 is multiplied directly, and the error of each that rounding explains."""
        return self.case.expected(halves=True), SINGLE_SUMS + of_rounded_weights(self.case)

    def check(self, output: np.ndarray) -> None:
        """Assert that the kernel in use has given the expected output, within the error that rounding explains."""
        expected, bound = self.of_halves if multiplies_halves(self.case.dtype) else (self.exact, SINGLE_SUMS)
        assert bool((np.abs(output - expected) <= bound).all())


def random_case(seed: int, dtype: DType, *, window: int = 0) -> Case:
    """Rows of all kinds: decoding and extending, short and longer than a block of keys."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 6))
    prefix_lens = rng.choice([0, 1, 5, 255, 256, 257, 300, 700, 1100], count).tolist()
    extend_lens = rng.choice([1, 1, 1, 2, 17, 40, 300], count).tolist()
    page_size = int(rng.choice([1, 4, 16, 32]))
    num_kv_heads = int(rng.integers(1, 4))
    return Case.random(
        rng,
        Rows.random(rng, prefix_lens, extend_lens, page_size),
        heads=(num_kv_heads * int(rng.choice([1, 2, 4, 7, 13])), num_kv_heads),
        head_dim=int(rng.choice([64, 80, 96, 128, 37, 8, 1, 33])),
        dtype=dtype,
        window=window,
        sinks=bool(seed % 2),
    )


@table("dtype", DTYPES)
@table("window", [0, 1, 100, 300])
def test_output_is_that_of_float64(pools: list[ThreadPool], dtype: DType, window: int) -> None:
    for seed in range(2):
        case = random_case(10 * window + seed, dtype, window=window)
        reference = Reference(case)
        for _ in each_isa():
            reference.check(case.run(pools[1]))


@table("dtype", [DType.BF16, DType.I8])
@table("length", [1, 17, 300, 1100])
def test_a_key_that_is_left_out_shows_in_spite_of_rounding(dtype: DType, length: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = Rows.random(rng, [length], [1], PAGE_SIZE)
        case = Case.random(rng, rows, heads=(4, 1), head_dim=64, dtype=dtype)
        without_the_first = replace(case, window=length)
        error = np.abs(without_the_first.expected(halves=True) - case.expected(halves=True))
        assert bool((error > SINGLE_SUMS + of_rounded_weights(case)).any())


@table("dtype", DTYPES)
def test_bits_depend_on_neither_threads_nor_chunks(isa: Isa, pools: list[ThreadPool], dtype: DType) -> None:
    for seed in range(6):
        case = random_case(seed, dtype, window=(0, 0, 200)[seed % 3])
        whole = case.run(pools[0])
        for pool in pools[1:]:
            np.testing.assert_array_equal(case.run(pool), whole)
        rng = np.random.default_rng(seed)
        later, tokens = case.later(rng.integers(0, case.rows.extend_lens))
        np.testing.assert_array_equal(later.run(pools[1]), whole[tokens])


@table("head_dim", [64, 80])
def test_blocks_of_one_long_row_are_spread_over_threads(isa: Isa, pools: list[ThreadPool], head_dim: int) -> None:
    rng = np.random.default_rng(7)
    rows = Rows.random(rng, [5000], [1], PAGE_SIZE)
    case = Case.random(rng, rows, heads=(3, 3), head_dim=head_dim, dtype=DType.BF16)
    alone, spread = case.run(pools[0]), case.run(pools[1])
    np.testing.assert_array_equal(spread, alone)
    Reference(case).check(alone)


def test_sinks_far_above_all_scores_leave_nothing_to_values(isa: Isa, pools: list[ThreadPool]) -> None:
    case = random_case(1, DType.F32)
    assert case.sinks is not None
    case.sinks[:] = 1e38
    assert np.abs(case.run(pools[1])).max() < 1e-37
    case.sinks[:] = -1e38
    np.testing.assert_array_equal(case.run(pools[1]), replace(case, sinks=None).run(pools[1]))


def test_output_is_rounded_to_bfloat16(isa: Isa, pools: list[ThreadPool]) -> None:
    case = random_case(3, DType.F32)
    exact = case.run(pools[1])
    np.testing.assert_allclose(case.run(pools[1], DType.BF16), exact, rtol=2.0**-8, atol=1e-30)


def test_large_scores_neither_overflow_nor_vanish(isa: Isa, pools: list[ThreadPool]) -> None:
    case = random_case(5, DType.F32)
    case.queries[:] *= 1e4
    output = case.run(pools[1])
    assert np.isfinite(output).all()
    np.testing.assert_allclose(output, case.expected(), rtol=0, atol=2e-2)


def test_not_a_number_stays_with_its_row(isa: Isa, pools: list[ThreadPool]) -> None:
    rng = np.random.default_rng(0)
    rows = Rows.random(rng, [20, 30, 300], [1, 5, 1], PAGE_SIZE)
    case = Case.random(rng, rows, heads=(4, 2), head_dim=64, dtype=DType.F32)
    clean = case.run(pools[1])
    case.keys[rows.slots(1)[3]] = np.nan
    broken = case.run(pools[1])
    assert np.isnan(broken[1:6]).all()
    np.testing.assert_array_equal(broken[[0, 6]], clean[[0, 6]])


def test_more_heads_than_an_item_has_rows(isa: Isa, pools: list[ThreadPool]) -> None:
    rng = np.random.default_rng(1)
    rows = Rows.random(rng, [10, 300], [1, 3], PAGE_SIZE)
    case = Case.random(rng, rows, heads=(300, 1), head_dim=16, dtype=DType.F32)
    np.testing.assert_allclose(case.run(pools[1]), case.expected(), rtol=0, atol=1e-5)


@settings(max_examples=examples(25))
@given(
    lengths=st.lists(st.tuples(st.integers(0, 600), st.integers(1, 90)), min_size=1, max_size=8),
    heads=st.sampled_from([(1, 1), (6, 2), (7, 1), (5, 5)]),
    head_dim=st.integers(1, 130),
    window=st.integers(0, 300),
    threads=st.integers(1, 7),
    which=st.integers(0, 11),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_step_is_planned_and_computed(
    lengths: list[tuple[int, int]],
    heads: tuple[int, int],
    head_dim: int,
    window: int,
    threads: int,
    which: int,
    seed: int,
) -> None:
    here = [isa for isa in Isa if set_isa(isa)]
    set_isa(here[which % len(here)])
    try:
        rng = np.random.default_rng(seed)
        rows = Rows.random(rng, [prefix for prefix, _ in lengths], [extend for _, extend in lengths], PAGE_SIZE)
        case = Case.random(rng, rows, heads=heads, head_dim=head_dim, dtype=DType.F32, window=window)
        np.testing.assert_allclose(case.run(ThreadPool(threads)), case.expected(), rtol=0, atol=2e-5)
    finally:
        set_isa(best_isa())
