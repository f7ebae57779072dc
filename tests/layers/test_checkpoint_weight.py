"""Numbers that a weight of a model refuses before it is written."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from bough.errors import ModelError
from bough.kernels.thread_pool import ThreadPool
from bough.layers.checkpoint_weight import CheckpointWeight, TensorWeight
from bough.layers.linear import MergedLinear
from bough.layers.packed_method import PackedMethod
from bough.layers.quantized_rows import QuantizedRows
from tests.native import needs_native
from tests.tables import table

pytestmark = needs_native

BELOW, ABOVE = 0.999999, 1.000001


def plain(dtype: torch.dtype) -> CheckpointWeight:
    return TensorWeight(torch.zeros(4, 8, dtype=dtype))


def packed(dtype: torch.dtype) -> CheckpointWeight:
    layer = MergedLinear(8, {"a": 4}, bias=False, dtype=dtype, method=PackedMethod(ThreadPool(1)))
    ((_, weight),) = layer.checkpoint_weights()
    return weight


@table("make, held", [(plain, torch.float16), (plain, torch.bfloat16), (packed, torch.bfloat16)])
def test_numbers_that_rounding_would_make_infinite_are_refused(
    make: Callable[[torch.dtype], CheckpointWeight], held: torch.dtype
) -> None:
    largest = torch.finfo(held).max
    most = (largest + 2.0 ** math.ceil(math.log2(largest))) / 2
    for sign in (-1, 1):
        numbers = torch.zeros(4, 8, dtype=torch.float64)
        numbers[3, 7] = sign * most * BELOW
        make(held).check(numbers.float())
        make(held).check(numbers)
        numbers[3, 7] = sign * most * ABOVE
        for given in (numbers, numbers.float()):
            with pytest.raises(ModelError, match="not finite"):
                make(held).check(given)


@table("make", [plain, packed])
@table("given", [torch.float32, torch.bfloat16, torch.float16])
def test_what_is_not_finite_is_refused_whatever_its_type(
    make: Callable[[torch.dtype], CheckpointWeight], given: torch.dtype
) -> None:
    weight = make(torch.float32)
    numbers = torch.full((4, 8), -float(torch.finfo(given).max), dtype=given)
    weight.check(numbers)
    for value in (torch.nan, torch.inf, -torch.inf):
        numbers[1, 2] = value
        spread = torch.zeros(8, 16, dtype=given)[::2, ::2]
        for view in (numbers, numbers.T.contiguous().T, spread.copy_(numbers)):
            with pytest.raises(ModelError, match="not finite"):
                weight.check(view)


@table("codes, scale, held", [(448.0, 146.0, True), (448.0, 147.0, False), (1.0, 200.0, True)])
def test_codes_that_stand_for_too_large_numbers_are_refused(codes: float, scale: float, held: bool) -> None:
    codes_of = torch.zeros(4, 8).fill_(codes).to(torch.float8_e4m3fn)
    rows = QuantizedRows(8, 8, codes_of, torch.full((4, 1), scale))
    plain(torch.bfloat16).check(rows)
    if held:
        plain(torch.float16).check(rows)
        return
    with pytest.raises(ModelError, match="not finite"):
        plain(torch.float16).check(rows)
