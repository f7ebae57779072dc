from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.kernels.triton import quantized_gemm
from tests.kernels.triton import cases
from tests.kernels.triton.test_attention import RANDOM_SHAPES

SHAPES = {
    "rows": st.sampled_from([1, 5, 16, 17, 70]),
    "inputs": st.sampled_from([30, 64, 128, 200, 256]),
    "outputs": st.integers(1, 100),
    "bias": st.booleans(),
    "seed": st.integers(0, 99),
}


@pytest.mark.parametrize("bits", [4, 8])
@given(span=st.sampled_from([32, 64, 128]), offsets=st.booleans(), **SHAPES)
@RANDOM_SHAPES
def test_whole_numbers_are_multiplied_without_rounding(
    dtype: torch.dtype, device: torch.device, bits: int, seed: int, **shape: int
) -> None:
    assert cases.integer_linear(np.random.default_rng(seed), dtype, device, bits=bits, **shape) <= 1


@pytest.mark.parametrize(("inputs", "rows"), [(288, 17), (1049, 1)], ids=["9 groups", "33 groups"])
def test_an_inner_dimension_that_is_divided_is_added_up_once(
    dtype: torch.dtype, device: torch.device, inputs: int, rows: int
) -> None:
    shape = {"rows": rows, "inputs": inputs, "outputs": 70, "bias": True}
    assert quantized_gemm._num_parts(rows, 70, -(-inputs // 32), 64) > 1
    assert cases.integer_linear(np.random.default_rng(0), dtype, device, bits=4, span=32, offsets=True, **shape) <= 1
    assert cases.integer_linear(np.random.default_rng(0), dtype, device, bits=8, span=32, **shape) <= 1


@given(span=st.sampled_from([None, 64, 128]), **SHAPES)
@RANDOM_SHAPES
def test_8_bit_floating_point_beside_inputs_of_the_same_kind(
    dtype: torch.dtype, device: torch.device, seed: int, **shape: int
) -> None:
    assert cases.float8_linear(np.random.default_rng(seed), dtype, device, **shape) <= 1


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_inputs_are_rounded_as_torch_rounds_them(device: torch.device, size: float) -> None:
    x = cases.normal(np.random.default_rng(0), (3, 700), torch.float32, device, size)
    x[1, 5] = 40 * size  # makes the others small, down to steps that are all alike
    codes, scales = quantized_gemm.quantize_rows(x)
    expected = (x / scales).to(torch.float8_e4m3fn)
    same = codes.view(torch.uint8) == expected.view(torch.uint8)
    # Division may be off by a last bit on a device, which matters on the border between two codes only.
    assert bool(same.all()) if device.type == "cpu" else float(same.float().mean()) > 0.999


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_is_not_finite_becomes_the_largest_number(device: torch.device) -> None:
    x = torch.tensor([[1.0, float("inf"), 2.0, -3.0]], device=device)
    codes, _ = quantized_gemm.quantize_rows(x)
    assert bool(codes.float().isfinite().all())


def test_no_rows_are_no_work(device: torch.device) -> None:
    codes = torch.zeros(8, 64, dtype=torch.int8, device=device)
    out = quantized_gemm.integer_linear(
        torch.zeros(0, 64, device=device), codes, torch.ones(1, 8, device=device), span=64
    )
    assert out.shape == (0, 8)
