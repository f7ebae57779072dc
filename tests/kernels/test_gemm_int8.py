"""Products of int8 weights and activations: exact against what was quantised, near to what was meant."""

from __future__ import annotations

import pytest
import torch

from bough.kernels.library import Isa
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.thread_pool import ThreadPool

GROUP = 32
SHAPES = [
    *((1, 1, 1), (32, 64, 1), (33, 65, 7), (31, 2, 6), (160, 48, 13)),
    *((96, 1301, 25), (70, 5000, 37), (200, 896, 131)),
]
"""Outputs, inputs, rows."""


def random_matrix(rows: int, columns: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def packed(threads: ThreadPool, weight: torch.Tensor, *, gated: bool = False) -> PackedWeights:
    weights = PackedWeights(threads, *weight.shape, torch.float32, bias=False, gated=gated, stored="int8")
    weights.write(0, weight)
    return weights


def quantized(x: torch.Tensor) -> torch.Tensor:
    """What activations become, in float64: each 32 with a scale of their largest magnitude / 127."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[1] % GROUP)).view(len(x), -1, GROUP)
    most = padded.abs().amax(-1, keepdim=True)
    # Divided as it stands: torch makes 127 / x a product with the reciprocal, which rounds twice.
    steps = torch.round(padded * torch.full_like(most, 127.0).div(most.clamp_min(1e-30)))
    return (steps.double() * (most / 127).double()).view(len(x), -1)[:, : x.shape[1]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product_is_that_of_the_quantised_numbers(isa: Isa, shape: tuple[int, int, int], threads: int) -> None:
    outputs, inputs, rows = shape
    weights = packed(ThreadPool(threads), random_matrix(outputs, inputs, 1))
    x = random_matrix(rows, inputs, 2)
    held = weights.read(0, outputs).double()
    product = weights.multiply(x, torch.float32).double()
    tolerance = quantized(x).abs() @ held.abs().T * 2e-6 + 1e-9
    assert bool(((product - quantized(x) @ held.T).abs() <= tolerance).all())


def test_largest_magnitudes_do_not_saturate(isa: Isa) -> None:
    for sign in (1.0, -1.0):
        weight, x = torch.full((40, 640), 127.0), torch.full((7, 640), 127.0 * sign)
        product = packed(ThreadPool(2), weight).multiply(x, torch.float32)
        assert torch.equal(product, torch.full((7, 40), 127.0 * 127.0 * 640 * sign))


def test_the_least_code_does_not_saturate(isa: Isa) -> None:
    codes, scales = torch.full((40, 640), -128, dtype=torch.int8), torch.ones(40, 20)
    weights = PackedWeights(ThreadPool(2), 40, 640, torch.float32, bias=False, gated=False, stored="int8")
    weights.write_codes(0, codes, scales, None)
    for sign in (1.0, -1.0):
        product = weights.multiply(torch.full((7, 640), 127.0 * sign), torch.float32)
        assert torch.equal(product, torch.full((7, 40), -128.0 * 127.0 * 640 * sign))


def test_weights_are_held_as_whole_numbers_and_a_scale_in_half_precision() -> None:
    weight = random_matrix(50, 100, 1)
    weight[:, 7] *= 100.0
    weights = packed(ThreadPool(1), weight)
    groups = torch.nn.functional.pad(weight, (0, 28)).view(50, 4, GROUP)
    most = groups.abs().amax(-1, keepdim=True)
    steps = torch.round(groups * torch.full_like(most, 127.0).div(most))
    held = steps * ((most / 127 * 1024).half().float() / 1024)
    torch.testing.assert_close(weights.read(0, 50), held.view(50, -1)[:, :100], rtol=2.0**-11, atol=0)
    assert float((weights.read(0, 50) - held.view(50, -1)[:, :100]).norm()) <= 1e-4 * float(held.norm())
    assert torch.equal(weights.embed(torch.tensor([3, 49])), weights.read(0, 50)[[3, 49]])


def test_channels_far_larger_than_others_cost_only_their_group(isa: Isa) -> None:
    weight, x = random_matrix(64, 896, 1), random_matrix(20, 896, 2)
    x[:, [5, 300, 301, 700]] *= 100.0
    weight[:, [5, 300, 301, 700]] *= 0.01
    product = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    exact = x.double() @ weight.double().T
    assert float((product - exact).norm() / exact.norm()) < 0.1


def test_an_element_depends_on_its_row_and_column_alone(isa: Isa) -> None:
    weight, x = random_matrix(161, 5000, 1), random_matrix(67, 5000, 2)
    whole = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    for count in (1, 2, 3):
        weights = packed(ThreadPool(count), weight)
        assert torch.equal(weights.multiply(x, torch.float32), whole)
        for start, end in ((0, 1), (1, 6), (6, 19), (19, 43), (43, 67)):
            assert torch.equal(weights.multiply(x[start:end], torch.float32), whole[start:end])


def test_gated_product(isa: Isa) -> None:
    weight, x = random_matrix(192, 700, 1) * 0.05, random_matrix(40, 700, 2)
    weights = packed(ThreadPool(2), weight, gated=True)
    gate, value = (quantized(x) @ weights.read(0, 192).double().T).chunk(2, dim=-1)
    expected = torch.nn.functional.silu(gate) * value
    torch.testing.assert_close(weights.multiply(x, torch.float32).double(), expected, atol=0.02, rtol=0.02)


def test_not_a_number_stays_in_its_row(isa: Isa) -> None:
    x = random_matrix(30, 50, 2)
    x[7, 3] = float("nan")
    x[9, 40] = float("inf")
    product = packed(ThreadPool(2), random_matrix(64, 50, 1)).multiply(x, torch.float32)
    assert product.isfinite().all(-1).tolist() == [row not in (7, 9) for row in range(30)]


def test_weights_that_are_not_finite_or_far_too_large_are_not_hidden(isa: Isa) -> None:
    weight = random_matrix(64, 100, 1)
    weight[5, 40] = float("nan")
    weight[9, 99] = float("-inf")
    weight[20, 3] = 1e5  # larger than scales can say
    product = packed(ThreadPool(1), weight).multiply(random_matrix(3, 100, 2), torch.float32)
    assert product.isfinite().all(0).tolist() == [column not in (5, 9, 20) for column in range(64)]


def test_numbers_too_small_for_a_scale_count_as_zeros(isa: Isa) -> None:
    weight, x = random_matrix(40, 64, 1), random_matrix(3, 64, 2)
    weight[7] *= 1e-40
    x[1] *= 1e-40
    product = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    assert bool(product.isfinite().all())
    assert not product[:, 7].any()
    assert not product[1].any()
