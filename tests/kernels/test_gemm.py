"""Matrix products against float64, on every instruction set, in every way that work is cut."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.kernels.library import Isa, best_isa, machine_isa, set_isa
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.structures import Activation
from bough.kernels.thread_pool import ThreadPool
from tests.kernels.test_gemm_int8 import ACTIVATIONS, VALUES
from tests.tables import table
from tests.thoroughness import examples

DTYPES = [torch.float32, torch.bfloat16]

SHAPES = [
    (1, 1, 1),
    (32, 64, 1),
    (33, 65, 7),
    (31, 2, 12),
    (160, 48, 13),
    (96, 1301, 25),
    (300, 1301, 25),
    (70, 2433, 37),
    (200, 896, 131),
]
"""Outputs, inputs, rows: odd ones, more inputs than a block has, more panels than sums are kept of."""


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda threads: f"threads{threads}")
def threads(request: pytest.FixtureRequest) -> ThreadPool:
    return ThreadPool(request.param)


def random_matrix(rows: int, columns: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator).to(dtype)


def packed(
    threads: ThreadPool, weight: torch.Tensor, bias: torch.Tensor | None = None, *, gated: bool = False
) -> PackedWeights:
    weights = PackedWeights(threads, *weight.shape, weight.dtype, bias=bias is not None, gated=gated)
    weights.write(0, weight)
    if bias is not None:
        weights.write_bias(0, bias)
    return weights


def bound(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Largest error that summing in float32 in some order may cause, per element, with room for a few roundings."""
    terms = x.double().abs() @ weight.double().abs().T
    return terms * (2.0**-23) * (4 + x.shape[1] ** 0.5) + 1e-12


@cache
def product_of(shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Weight, inputs, bias, product in float64 and its largest error: the same for all threads and instructions."""
    outputs, inputs, rows = shape
    weight, x = random_matrix(outputs, inputs, dtype, 1), random_matrix(rows, inputs, dtype, 2)
    bias = random_matrix(1, outputs, dtype, 3)[0]
    return weight, x, bias, x.double() @ weight.double().T + bias.double(), bound(x, weight) + bias.abs() * 2.0**-22


@table("dtype", DTYPES)
@table("shape", SHAPES)
def test_product_is_that_of_float64(
    isa: Isa, threads: ThreadPool, shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    weight, x, bias, expected, error = product_of(shape, dtype)
    product = packed(threads, weight, bias).multiply(x, torch.float32)
    assert bool(((product.double() - expected).abs() <= error).all())


@table("dtype", DTYPES)
@table("shape", [(2, 3, 1), (32, 64, 5), (70, 33, 14), (192, 700, 40)])
@table("activation", list(Activation))
def test_gated_product(
    isa: Isa, threads: ThreadPool, shape: tuple[int, int, int], dtype: torch.dtype, activation: Activation
) -> None:
    outputs, inputs, rows = shape
    weight, x = random_matrix(outputs, inputs, dtype, 1), random_matrix(rows, inputs, dtype, 2)
    bias = random_matrix(1, outputs, dtype, 3)[0]
    weight[0] *= 40.0  # gates far out of the exponential's range
    product = packed(threads, weight, bias, gated=True).multiply(x, torch.float32, activation)
    gate, value = (x.double() @ weight.double().T + bias.double()).chunk(2, dim=-1)
    value = VALUES.get(activation, torch.clone)(value)
    expected = ACTIVATIONS[activation](gate) * value
    scale = (bound(x, weight) + 1e-6).chunk(2, dim=-1)
    tolerance = 2 * scale[0] * value.abs() + 2 * scale[1] * gate.abs() + 1e-6 * expected.abs() + 1e-6
    assert bool(((product.double() - expected).abs() <= tolerance).all())


@table("dtype", DTYPES)
def test_nothing_is_read_beside_an_odd_number_of_inputs(isa: Isa, threads: ThreadPool, dtype: torch.dtype) -> None:
    weight, beside = random_matrix(70, 33, dtype, 1), torch.full((5, 34), torch.nan, dtype=dtype)
    beside[:, :33] = random_matrix(5, 33, dtype, 2)
    weights = packed(threads, weight)
    product = weights.multiply(beside[:, :33], torch.float32)
    assert torch.equal(product, weights.multiply(beside[:, :33].contiguous(), torch.float32))
    assert bool(product.isfinite().all())


@table("dtype", DTYPES)
def test_an_element_depends_on_its_row_and_column_alone(isa: Isa, dtype: torch.dtype) -> None:
    weight, x = random_matrix(161, 1301, dtype, 1), random_matrix(67, 1301, dtype, 2)
    whole = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    for count in (1, 2, 3):
        weights = packed(ThreadPool(count), weight)
        assert torch.equal(weights.multiply(x, torch.float32), whole)
        for start, end in ((0, 1), (1, 6), (6, 19), (19, 43), (43, 67)):
            assert torch.equal(weights.multiply(x[start:end], torch.float32), whole[start:end])


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(data=st.data())
@settings(max_examples=examples(30))
def test_rows_written_in_any_order_read_back(dtype: torch.dtype, gated: bool, data: st.DataObject) -> None:
    outputs = 2 * data.draw(st.integers(1, 50))
    inputs = data.draw(st.integers(1, 40))
    weight, bias = random_matrix(outputs, inputs, dtype, 1), random_matrix(1, outputs, dtype, 2)[0]
    weights = PackedWeights(ThreadPool(1), outputs, inputs, dtype, bias=True, gated=gated)
    cuts = sorted({0, outputs, *data.draw(st.lists(st.integers(0, outputs), max_size=4))})
    pieces = data.draw(st.permutations(list(itertools.pairwise(cuts))))
    address = weights.panels.data_ptr()
    for start, end in pieces:
        weights.write(start, weight[start:end])
        weights.write_bias(start, bias[start:end])
    assert weights.panels.data_ptr() == address
    for start, end in pieces:
        assert torch.equal(weights.read(start, end - start), weight[start:end])
        assert torch.equal(weights.read_bias(start, end - start), bias[start:end])
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, outputs, 9))
    assert torch.equal(weights.embed(ids), weight[ids])


def test_other_precision_is_rounded_while_packing() -> None:
    weight = random_matrix(40, 17, torch.float32, 1)
    weights = PackedWeights(ThreadPool(1), 40, 17, torch.bfloat16, bias=False, gated=False)
    weights.write(0, weight)
    assert torch.equal(weights.read(0, 40), weight.bfloat16())


def test_not_a_number_stays_in_its_row(isa: Isa) -> None:
    for dtype in DTYPES:
        weight, x = random_matrix(64, 50, dtype, 1), random_matrix(30, 50, dtype, 2)
        x[7, 3] = float("nan")
        x[9, 0] = float("inf")
        product = packed(ThreadPool(2), weight).multiply(x, torch.bfloat16 if dtype is torch.bfloat16 else dtype)
        finite = product.isfinite().all(-1)
        assert finite.tolist() == [row not in (7, 9) for row in range(30)]
        assert bool(product[7].isnan().all())


def test_instruction_set_that_the_machine_lacks_is_refused() -> None:
    best = best_isa()
    had = [isa for isa in Isa if set_isa(isa)]
    assert had[0] is Isa.PORTABLE
    assert had[-1] is best
    # Each includes those before it, but for one.
    assert {isa for isa in Isa if isa < best} - set(had) <= {Isa.AVX2VNNI}
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and Isa.AVX2 in had:
        flags = set(re.findall(r"\w+", next(line for line in cpu.open() if line.startswith("flags"))))
        assert Isa.AVX2VNNI not in had or "avx_vnni" in flags
        assert machine_isa() >= Isa.AVX2VNNI or "avx_vnni" not in flags
    set_isa(best)
