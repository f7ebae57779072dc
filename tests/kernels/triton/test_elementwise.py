from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bough.kernels.triton import elementwise
from tests.kernels.triton import cases
from tests.kernels.triton.test_attention import RANDOM_SHAPES


@given(rows=st.integers(0, 5), width=st.integers(1, 700), delta=st.booleans(), seed=st.integers(0, 99))
@RANDOM_SHAPES
def test_norm_after_adding(
    dtype: torch.dtype, device: torch.device, rows: int, width: int, delta: bool, seed: int
) -> None:
    if rows:
        assert cases.rms_norm(np.random.default_rng(seed), dtype, device, rows=rows, width=width, delta=delta) <= 1


@given(
    tokens=st.integers(1, 4),
    heads=st.sampled_from([1, 4]),
    kv_heads=st.integers(1, 2),
    head_dim=st.sampled_from([64, 80, 128, 256]),
    norm=st.booleans(),
    seed=st.integers(0, 99),
)
@RANDOM_SHAPES
def test_rotated_heads_and_what_the_pool_holds_then(
    dtype: torch.dtype, device: torch.device, seed: int, **shape: int
) -> None:
    assert cases.rotate_and_store(np.random.default_rng(seed), dtype, device, **shape) <= 1


def test_keys_and_values_are_stored_as_they_are(dtype: torch.dtype, device: torch.device) -> None:
    assert cases.store(np.random.default_rng(0), dtype, device, tokens=5, kv_heads=2, head_dim=48) == 0


@pytest.mark.parametrize("gate", ["silu", "gelu", "gelu_tanh", "clamped_swish"])
@given(rows=st.integers(1, 3), width=st.integers(1, 1500), seed=st.integers(0, 99))
@RANDOM_SHAPES
def test_gates(
    dtype: torch.dtype, device: torch.device, gate: elementwise.Gate, rows: int, width: int, seed: int
) -> None:
    assert cases.gate_and_mul(np.random.default_rng(seed), dtype, device, rows=rows, width=width, gate=gate) <= 1


def test_gates_hide_nothing_that_is_not_a_number(dtype: torch.dtype, device: torch.device) -> None:
    gates: tuple[elementwise.Gate, ...] = ("silu", "gelu", "gelu_tanh", "clamped_swish")
    x = torch.ones(1, 8, dtype=dtype, device=device)
    x[0, 1] = x[0, 6] = torch.nan
    for gate in gates:
        assert elementwise.gate_and_mul(x, gate).isnan().tolist() == [[False, True, True, False]], gate


@given(rows=st.integers(1, 4), width=st.integers(1, 1500), vocab_size=st.integers(1, 50), seed=st.integers(0, 99))
@RANDOM_SHAPES
def test_rows_are_looked_up(
    dtype: torch.dtype, device: torch.device, rows: int, width: int, vocab_size: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    assert cases.gather_rows(rng, dtype, device, rows=rows, width=width, vocab_size=vocab_size) == 0


def test_decode_rows_enter_their_slots_and_find_their_tokens(device: torch.device) -> None:
    def int64(*values: int) -> torch.Tensor:
        return torch.tensor(values, device=device)

    table = torch.zeros(3, 4, dtype=torch.int32, device=device)
    input_ids = int64(9, 9, 9)
    elementwise.enter_decode_rows(int64(2, 0, 0), int64(1, 3, 0), int64(70, 71, -1), int64(5, 6, 7), table, input_ids)
    assert input_ids.tolist() == [7, 5, 0]
    assert table.tolist() == [[0, 0, 0, 71], [0, 0, 0, 0], [0, 70, 0, 0]]
