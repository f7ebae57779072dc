"""Refusals of packed weights, as kernels read and write where they are told to; codes of all instruction sets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from bough.errors import ModelError
from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.thread_pool import ThreadPool
from tests.native import each_isa
from tests.tables import table

OUTPUTS, INPUTS = 40, 70
GROUPS = 3

FORMATS: tuple[WeightFormat, ...] = ("native", "int8", "int4", "uint4")


def weights_of(stored: WeightFormat = "native") -> PackedWeights:
    weights = PackedWeights(ThreadPool(1), OUTPUTS, INPUTS, torch.float32, bias=True, gated=False, stored=stored)
    weights.write(0, torch.arange(OUTPUTS * INPUTS, dtype=torch.float32).view(OUTPUTS, INPUTS))
    weights.write_bias(0, torch.arange(OUTPUTS, dtype=torch.float32))
    return weights


def codes(rows: int, inputs: int = INPUTS, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    return torch.zeros(rows, inputs).to(dtype)


@table("stored", FORMATS)
@table("ids", [[-1], [OUTPUTS], [0, 2**32, 1]])
def test_ids_of_no_row_are_refused(stored: WeightFormat, ids: list[int]) -> None:
    with pytest.raises(IndexError, match=f"of a table of {OUTPUTS} rows"):
        weights_of(stored).embed(torch.tensor(ids))


@table("ids", [torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2), torch.zeros(2, dtype=torch.bool)])
def test_ids_that_are_no_line_of_whole_numbers_are_refused(ids: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="ids must be int32 or int64"):
        weights_of().embed(ids)


def test_the_first_and_the_last_row_and_none_can_be_looked_up() -> None:
    weights = weights_of()
    assert torch.equal(weights.embed(torch.tensor([OUTPUTS - 1, 0])), weights.read(0, OUTPUTS)[[-1, 0]])
    assert weights.embed(torch.zeros(0, dtype=torch.int64)).shape == (0, INPUTS)


@table("stored", FORMATS)
@table(
    "access",
    [
        lambda weights: weights.write(OUTPUTS, torch.zeros(1, INPUTS)),
        lambda weights: weights.write(OUTPUTS - 1, torch.zeros(2, INPUTS)),
        lambda weights: weights.write(-1, torch.zeros(2, INPUTS)),
        lambda weights: weights.read(OUTPUTS - 1, 2),
        lambda weights: weights.read(-1, 1),
        lambda weights: weights.read(3, -1),
        lambda weights: weights.write_bias(OUTPUTS - 1, torch.zeros(2)),
        lambda weights: weights.write_bias(-1, torch.zeros(1)),
        lambda weights: weights.read_bias(OUTPUTS, 1),
    ],
)
def test_rows_that_do_not_exist_are_refused(stored: WeightFormat, access: Callable[[PackedWeights], object]) -> None:
    weights = weights_of(stored)
    before = weights.panels.clone()
    with pytest.raises(IndexError, match=f"of a matrix of {OUTPUTS}"):
        access(weights)
    assert torch.equal(weights.panels, before)


@table("shape", [(3, INPUTS - 1), (3, INPUTS + 1), (3, 1), (INPUTS,), (1, 3, INPUTS)])
def test_rows_of_another_width_are_refused(shape: tuple[int, ...]) -> None:
    weights = weights_of()
    before = weights.panels.clone()
    for take in (lambda rows: weights.write(0, rows), lambda rows: weights.multiply(rows, torch.float32)):
        with pytest.raises(ValueError, match=rf"must be \[n, {INPUTS}\]"):
            take(torch.zeros(shape))
    assert torch.equal(weights.panels, before)


def test_floating_point_of_4_bits_is_written_as_codes_alone() -> None:
    weights = PackedWeights(ThreadPool(1), OUTPUTS, INPUTS, torch.float32, bias=False, gated=False, stored="mxfp4")
    with pytest.raises(ValueError, match="no other numbers than codes"):
        weights.write(0, torch.zeros(1, INPUTS))
    with pytest.raises(ModelError):
        weights.check_rows(1.0, [torch.zeros(1, INPUTS)])


@table(
    "stored, codes, scales, minimums, message",
    [
        ("native", codes(2), torch.ones(2, GROUPS), None, "takes no such codes"),
        ("int4", codes(2), torch.ones(2, GROUPS), torch.ones(2, GROUPS), "takes no such codes"),
        ("int8", codes(2, INPUTS - 1), torch.ones(2, GROUPS), None, rf"codes must be \[n, {INPUTS}\]"),
        ("int8", codes(2, dtype=torch.int16), torch.ones(2, GROUPS), None, "codes must be int8 or uint8"),
        ("int8", codes(2, dtype=torch.float8_e4m3fn), torch.ones(2, GROUPS), None, "codes must be int8 or uint8"),
        ("int8", codes(2), torch.ones(1, GROUPS), None, rf"scales must be float32 \[2, {GROUPS}\]"),
        ("int8", codes(2), torch.ones(2, GROUPS - 1), None, "scales must be float32"),
        ("int8", codes(2), torch.ones(2, GROUPS).half(), None, "scales must be float32"),
        ("uint4", codes(2), torch.ones(2, GROUPS), torch.ones(2, 1), "minimums must be float32"),
    ],
)
def test_codes_that_do_not_fit_are_refused(
    stored: WeightFormat, codes: torch.Tensor, scales: torch.Tensor, minimums: torch.Tensor | None, message: str
) -> None:
    weights = weights_of(stored)
    before = weights.panels.clone()
    with pytest.raises(ValueError, match=message):
        weights.write_codes(0, codes, scales, minimums)
    assert torch.equal(weights.panels, before)


def test_codes_of_rows_that_do_not_exist_are_refused() -> None:
    with pytest.raises(IndexError, match=f"of a matrix of {OUTPUTS}"):
        weights_of("int8").write_codes(OUTPUTS - 1, codes(2), torch.ones(2, GROUPS), None)


def test_a_bad_scale_is_a_fault_of_the_model_and_not_of_the_call() -> None:
    with pytest.raises(ModelError, match="scales that are not finite"):
        weights_of("int8").check_scales(torch.full((2, GROUPS), torch.inf), None)


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("stored", ["int8", "int4", "uint4"])
def test_all_instruction_sets_find_the_same_codes(stored: WeightFormat, gated: bool) -> None:
    threads, rows, inputs = ThreadPool(3), 78, 1000
    numbers = torch.randn(rows, inputs, generator=torch.Generator().manual_seed(0)) * torch.logspace(-9, 2, inputs)
    numbers[:, ::5] = numbers[:, ::5].bfloat16().float()  # ties
    numbers[3, 40:170] = 0.0
    numbers[20, 5] = torch.inf
    numbers[75, 999] = torch.nan

    def packed(dtype: torch.dtype, *, first: int, count: int) -> torch.Tensor:
        weights = PackedWeights(threads, rows, inputs, torch.float32, bias=False, gated=gated, stored=stored)
        weights.write(first, numbers[:count].to(dtype))
        return weights.panels

    for first, count in ((0, rows), (37, 9), (0, 1)):
        expected = packed(torch.float32, first=first, count=count)
        for _ in each_isa():
            assert torch.equal(packed(torch.float32, first=first, count=count), expected)
    rounded = numbers.bfloat16()
    for _ in each_isa():
        weights = PackedWeights(threads, rows, inputs, torch.float32, bias=False, gated=gated, stored=stored)
        weights.write(0, rounded.float())
        assert torch.equal(packed(torch.bfloat16, first=0, count=rows), weights.panels)


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("stored", ["int8", "int4", "uint4"])
def test_rows_written_in_parts_are_those_written_at_once(stored: WeightFormat, gated: bool) -> None:
    threads = ThreadPool(2)
    numbers = torch.randn(OUTPUTS, INPUTS, generator=torch.Generator().manual_seed(1))

    def packed(*parts: slice) -> torch.Tensor:
        weights = PackedWeights(threads, OUTPUTS, INPUTS, torch.float32, bias=False, gated=gated, stored=stored)
        for part in parts:
            weights.write(part.start, numbers[part])
        return weights.panels

    whole = packed(slice(0, OUTPUTS))
    for _ in each_isa():
        assert torch.equal(packed(slice(17, 31), slice(31, OUTPUTS), slice(0, 17)), whole)


@table("dtype", [torch.float32, torch.bfloat16])
@table("gated", [False, True])
@table("num_threads", [1, 3])
def test_rows_come_back_wherever_they_were_cut(dtype: torch.dtype, gated: bool, num_threads: int) -> None:
    rows = torch.randn(104, 77, generator=torch.Generator().manual_seed(0)).to(dtype)
    weights = PackedWeights(ThreadPool(num_threads), *rows.shape, dtype, bias=False, gated=gated)
    for start, end in ((0, 3), (3, 36), (36, 40), (40, 104)):
        weights.write(start, rows[start:end])
    assert torch.equal(weights.read(0, len(rows)), rows)


@table("dtype", [torch.float32, torch.bfloat16, torch.float16])
@table("num_threads", [1, 3])
def test_the_largest_magnitude_is_found_wherever_it_is(dtype: torch.dtype, num_threads: int) -> None:
    weights = PackedWeights(ThreadPool(num_threads), 1, 1, torch.float32, bias=False, gated=False)
    whole = torch.randn(40, 90, generator=torch.Generator().manual_seed(0)).to(dtype)
    views = (lambda x: x, lambda x: x[5:], lambda x: x[:, 7:80], lambda x: x[1::3], lambda x: x.T, lambda x: x[:, 3:].T)
    for view in views:
        rows = view(whole.clone())
        found = weights.largest_magnitude(rows)
        assert found is not None
        assert found.item() == rows.abs().max().item()
        for value in (torch.inf, -torch.inf, torch.nan):
            for place in ((0, 0), (len(rows) - 1, rows.shape[1] - 1), (len(rows) // 2, 1)):
                spoiled = view(whole.clone())
                spoiled[place] = value
                found = weights.largest_magnitude(spoiled)
                assert found is not None
                assert not found.isfinite()
    assert weights.largest_magnitude(whole[:0]) == 0
    assert weights.largest_magnitude(whole[::2, ::2]) is None
    assert weights.largest_magnitude(whole.double()) is None
