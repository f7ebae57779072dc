from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.triton import cases
from tests.kernels.triton.test_attention import RANDOM_SHAPES


@given(
    rows=st.integers(1, 130),
    inputs=st.integers(1, 200),
    outputs=st.integers(1, 200),
    bias=st.booleans(),
    seed=st.integers(0, 99),
)
@RANDOM_SHAPES
def test_a_row_is_the_same_whatever_the_others_are(
    dtype: torch.dtype, device: torch.device, seed: int, **shape: int
) -> None:
    assert cases.linear(np.random.default_rng(seed), dtype, device, **shape) <= 1


@given(
    tokens=st.integers(1, 70),
    experts=st.integers(3, 9),
    per_token=st.integers(1, 3),
    inputs=st.integers(1, 200),
    outputs=st.integers(1, 130),
    bias=st.booleans(),
    one_tile=st.booleans(),
    seed=st.integers(0, 99),
)
@RANDOM_SHAPES
def test_products_with_the_matrices_of_experts(
    dtype: torch.dtype, device: torch.device, seed: int, **shape: int
) -> None:
    assert cases.grouped(np.random.default_rng(seed), dtype, device, **shape) <= 1
