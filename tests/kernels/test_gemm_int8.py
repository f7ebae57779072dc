"""Products of int8 weights and activations: exact against what was quantised, near to what was meant."""

from __future__ import annotations

from functools import cache, partial

import torch
from torch.nn import functional

from bough.kernels.library import Isa
from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.structures import Activation
from bough.kernels.thread_pool import ThreadPool
from tests.common_formats import q8_0
from tests.tables import table

GROUP = 32
ACTIVATIONS = {
    Activation.SILU: functional.silu,
    Activation.GELU_TANH: partial(functional.gelu, approximate="tanh"),
    Activation.CLAMPED_SWISH: lambda x: x.clamp(max=7) * torch.sigmoid(1.702 * x.clamp(max=7)),
}
VALUES = {Activation.CLAMPED_SWISH: lambda x: x.clamp(-7, 7) + 1}
"""What becomes of the values that are gated, where they do not stay as they are."""
SHAPES = [
    *((1, 1, 1), (32, 64, 1), (33, 65, 7), (31, 2, 6), (160, 48, 13)),
    *((96, 1301, 25), (300, 1301, 25), (70, 5000, 37), (200, 896, 131)),
]
"""Outputs, inputs, rows."""


def random_matrix(rows: int, columns: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def packed(
    threads: ThreadPool, weight: torch.Tensor, *, gated: bool = False, stored: WeightFormat = "int8"
) -> PackedWeights:
    weights = PackedWeights(threads, *weight.shape, torch.float32, bias=False, gated=gated, stored=stored)
    weights.write(0, weight)
    return weights


def grouped(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(x, (0, -x.shape[1] % GROUP)).view(len(x), -1, GROUP)


def quantized(x: torch.Tensor) -> torch.Tensor:
    """What activations without outliers become, in float64: each 32 with the least scale that is a factor of the row
    times a sum or difference of two powers of two and with which the largest magnitude becomes at least -128 and the
    others at most 127. The factor has sixteenths and is that with which squares of scales are least, but for those of
    groups far above the mean, which are likely outliers."""
    groups = grouped(x)
    high, low = groups.amax(-1, keepdim=True).clamp_min(0), (-groups).amax(-1, keepdim=True).clamp_min(0)
    wanted = (high.maximum(low) * (1 / 128.5)).maximum(high.minimum(low) * (1 / 127.5)).clamp_min(2.0**-60)
    bits = wanted.view(torch.int32).long()
    counts = bits <= bits.sum(1, keepdim=True) // bits.shape[1] + (3 << 23)
    fractions = torch.tensor([8, 8.5, 9, 10, 12, 14, 15, 15.5, 16]) / 16
    scale, least = torch.empty_like(wanted), torch.full((len(x), 1, 1), torch.inf)
    for sixteenths in range(16):
        factor = 1 + sixteenths / 16
        fraction, power = torch.frexp(wanted * (1 / torch.tensor(factor)))
        rounded = torch.ldexp(fractions[torch.searchsorted(fractions, fraction)], power) * factor
        noise = (rounded.square() * counts).sum(1, keepdim=True)
        is_best = noise < least
        scale, least = rounded.where(is_best, scale), noise.where(is_best, least)
    scale = scale * torch.where(high > low, -1.0, 1.0)
    steps = torch.round(groups * (1 / scale)).clamp(-128, 127)
    return (steps.double() * scale.double()).view(len(x), -1)[:, : x.shape[1]]


def of_sums(x: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
    """Largest error of products of quantised ``x`` with ``held``, whose groups are summed up in float32."""
    return x.abs() @ held.abs().T * 2e-6 + 1e-9


def check_gated(
    output: torch.Tensor, products: torch.Tensor, tolerance: torch.Tensor, activation: Activation = Activation.SILU
) -> None:
    """Check ``activation(gate) * value`` of ``products``, gates and values, each within its ``tolerance``."""
    gate, value = products.chunk(2, dim=-1)
    of_gate, of_value = tolerance.chunk(2, dim=-1)
    activated, value = ACTIVATIONS[activation](gate), VALUES.get(activation, torch.clone)(value)
    # The slope of either is 1.13 at most; the exponential, the quotient and the products are each rounded.
    most = 1.13 * of_gate * (value.abs() + of_value) + activated.abs() * of_value + 1e-6 * (activated * value).abs()
    assert bool(((output - activated * value).abs() <= most).all())


@cache
def inputs_of(rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and what they are quantised to: the same for all threads and instructions."""
    x = random_matrix(rows, columns, 2)
    return x, quantized(x)


@table("threads", [1, 3])
@table("shape", SHAPES)
def test_product_is_that_of_the_quantised_numbers(isa: Isa, shape: tuple[int, int, int], threads: int) -> None:
    outputs, inputs, rows = shape
    weights = packed(ThreadPool(threads), random_matrix(outputs, inputs, 1))
    x, codes = inputs_of(rows, inputs)
    held = weights.read(0, outputs).double()
    product = weights.multiply(x, torch.float32).double()
    assert bool(((product - codes @ held.T).abs() <= of_sums(codes, held)).all())


@table("code", [-128, 127])
def test_extremes_do_not_saturate(isa: Isa, code: int) -> None:
    codes, scales = torch.full((40, 640), code, dtype=torch.int8), torch.ones(40, 20)
    weights = PackedWeights(ThreadPool(2), 40, 640, torch.float32, bias=False, gated=False, stored="int8")
    weights.write_codes(0, codes, scales, None)
    for x in (torch.full((7, 640), 127.0), torch.full((7, 640), -127.0), torch.full((7, 640), 128.0)):
        expected = (quantized(x) * code * 640)[:, :40]
        assert bool(((weights.multiply(x, torch.float32) - expected).abs() <= 1e-6 * expected.abs()).all())


def test_weights_are_nearer_than_with_the_largest_at_127() -> None:
    weight = random_matrix(50, 100, 1)
    weight[:, 7] *= 100.0
    weights = packed(ThreadPool(1), weight)
    held = weights.read(0, 50)
    squares = [grouped(each - weight).square().sum(-1) for each in (held, q8_0(weight))]
    assert bool((squares[0] <= squares[1] * 1.01).all())
    assert float(squares[0][:, 1:].sum()) < 0.85 * float(squares[1][:, 1:].sum())
    assert torch.equal(weights.embed(torch.tensor([3, 49])), held[[3, 49]])


def with_outliers(rows: int, columns: int, seed: int) -> torch.Tensor:
    """Weights of about 0.5, but one in each row is 50 or -50, each time in another place."""
    weight, row = random_matrix(rows, columns, seed) / 2, torch.arange(rows)
    weight[row, row * 37 % columns] = 50.0 - 100.0 * (row % 2)
    return weight


def check_groups(held: torch.Tensor, weight: torch.Tensor, *most: torch.Tensor) -> None:
    """That in no group the error is larger, as root of the sum of squares, than several causes make it together, which
    are ``most`` of each number."""
    error, causes = grouped(held - weight), [each.expand_as(grouped(held)).norm(dim=-1) for each in most]
    assert bool((error.norm(dim=-1) <= sum(causes)).all())


def test_an_outlier_among_weights_costs_its_own_group_alone(isa: Isa) -> None:
    weight, x = with_outliers(70, 896, 1), random_matrix(9, 896, 2)
    weights = packed(ThreadPool(2), weight)
    held = weights.read(0, 70)
    # No candidate is taken that is worse than the first: half a step from 127 of which the largest number is made.
    check_groups(held, weight, grouped(weight).abs().amax(-1, keepdim=True) / 127 / 2, grouped(held) / 2048)
    held = held.double()
    product = weights.multiply(x, torch.float32).double()
    assert bool(((product - quantized(x) @ held.T).abs() <= of_sums(quantized(x), held)).all())


@table("factor", [20.0, 100.0])
@table("stored", ["int8", "int4", "uint4"])
def test_few_channels_far_larger_than_others_cost_nothing(isa: Isa, stored: WeightFormat, factor: float) -> None:
    weight, x = random_matrix(64, 896, 1), random_matrix(20, 896, 2)
    x[:, [5, 300, 301, 700]] *= factor
    weight[:, [5, 300, 301, 700]] /= factor
    weights = packed(ThreadPool(1), weight, stored=stored)
    exact = x.double() @ weights.read(0, 64).double().T
    assert float((weights.multiply(x, torch.float32) - exact).norm() / exact.norm()) < (
        0.008 if stored == "int8" else 0.02
    )


def test_an_element_depends_on_its_row_and_column_alone(isa: Isa) -> None:
    weight, x = random_matrix(161, 5000, 1), random_matrix(67, 5000, 2)
    x[::5, 4711] *= 300.0  # an outlier
    whole = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    for count in (1, 2, 3):
        weights = packed(ThreadPool(count), weight)
        assert torch.equal(weights.multiply(x, torch.float32), whole)
        for start, end in ((0, 1), (1, 6), (6, 19), (19, 43), (43, 67)):
            assert torch.equal(weights.multiply(x[start:end], torch.float32), whole[start:end])


@table("activation", list(Activation))
def test_gated_product(isa: Isa, activation: Activation) -> None:
    weight, x = random_matrix(192, 700, 1) * 0.05, random_matrix(40, 700, 2)
    weights = packed(ThreadPool(2), weight, gated=True)
    held = weights.read(0, 192).double()
    output = weights.multiply(x, torch.float32, activation).double()
    check_gated(output, quantized(x) @ held.T, of_sums(quantized(x), held), activation)


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
