"""Norms, embeddings and rotation against float64, on every instruction set, at odd sizes."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from bough.kernels.library import Isa, load_library
from bough.kernels.structures import (
    DType,
    EmbeddingCall,
    FiniteCall,
    KVLayer,
    NormCall,
    RotaryStoreCall,
    RotaryTableCall,
)
from bough.kernels.thread_pool import ThreadPool
from tests.kernels.memory import HALF_ULP, STORAGE, address, decode, encode
from tests.tables import table

SIZES = (1, 7, 16, 33, 64, 100, 896, 1023)
DTYPES = (DType.F32, DType.BF16)


@pytest.fixture(scope="module", params=[1, 3], ids=lambda threads: f"threads{threads}")
def threads(request: pytest.FixtureRequest) -> ThreadPool:
    return ThreadPool(request.param)


def run(threads: ThreadPool, kernel: str, call: ctypes.Structure) -> None:
    getattr(load_library(), f"bough_{kernel}")(threads.handle, ctypes.byref(call))


def normalised(x: np.ndarray, eps: float) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


@table("size", SIZES)
@table("output_dtype", DTYPES)
@table("weight_dtype", DTYPES)
@table("offset, adds", [(0.0, False), (1.0, False), (1.0, True)])
def test_rms_norm(
    isa: Isa, threads: ThreadPool, size: int, output_dtype: DType, weight_dtype: DType, offset: float, adds: bool
) -> None:
    if adds and output_dtype != DType.F32:
        return
    rng = np.random.default_rng(size)
    x = (rng.standard_normal((9, size + 3)) * 3).astype(np.float32)
    row_ids = rng.permutation(9)[:5].astype(np.int32)
    weight = encode(rng.standard_normal(size), weight_dtype)
    output = np.zeros((5, size + 2), dtype=STORAGE[output_dtype])
    output[:, :size] = 2 * adds
    call = NormCall(
        input=address(x),
        input_stride=x.shape[1],
        row_ids=address(row_ids),
        weight=address(weight),
        weight_dtype=weight_dtype,
        eps=1e-6,
        output=address(output),
        output_stride=output.shape[1],
        output_dtype=output_dtype,
        num_rows=5,
        size=size,
        weight_offset=offset,
        adds=adds,
    )
    run(threads, "rms_norm", call)
    factors = decode(weight, weight_dtype).astype(np.float64) + offset
    expected = normalised(x[row_ids, :size], 1e-6) * factors + 2 * adds
    tolerance = HALF_ULP[output_dtype] + 1e-6
    np.testing.assert_allclose(
        decode(output, output_dtype)[:, :size], expected, rtol=tolerance, atol=1e-6 if adds else 1e-7
    )
    assert not output[:, size:].any()


@table("size", SIZES)
@table("dtype", DTYPES)
def test_embedding(isa: Isa, threads: ThreadPool, size: int, dtype: DType) -> None:
    rng = np.random.default_rng(size)
    table = encode(rng.standard_normal((11, size)), dtype)
    ids = rng.integers(0, 11, 6).astype(np.int32)
    output = np.zeros((6, size + 1), dtype=np.float32)
    call = EmbeddingCall(
        num_ids=len(table),
        table=address(table),
        table_dtype=dtype,
        size=size,
        ids=address(ids),
        num_tokens=6,
        output=address(output),
        output_stride=size + 1,
        scale=1.5,
    )
    run(threads, "embedding", call)
    np.testing.assert_array_equal(output[:, :size], decode(table, dtype)[ids] * np.float32(1.5))


@table("bad", [np.nan, np.inf, -np.inf])
@table("size", [1, 17, 64])
def test_rows_that_are_not_finite_are_found(isa: Isa, threads: ThreadPool, size: int, bad: float) -> None:
    for place in range(size):
        x = np.full((4, size), 1e38, dtype=np.float32)
        x[2, place] = bad
        row_ids = np.array([3, 2, 0], dtype=np.int32)
        finite = np.zeros(3, dtype=np.uint8)
        run(threads, "rows_finite", FiniteCall(address(x), size, address(row_ids), address(finite), 3, size))
        assert finite.tolist() == [1, 0, 1]


@table("half_dim", [1, 16, 33, 64])
def test_cosines_and_sines_are_exact_far_into_a_context(isa: Isa, threads: ThreadPool, half_dim: int) -> None:
    inv_freq = (1e4 ** (-np.arange(half_dim) / half_dim)).astype(np.float32)
    positions = np.array([0, 1, 77, 4096, 131071, 10_000_000], dtype=np.int32)
    output = np.zeros((len(positions), 2, half_dim), dtype=np.float32)
    call = RotaryTableCall(address(inv_freq), half_dim, 1.5, address(positions), len(positions), address(output))
    run(threads, "rotary_table", call)
    angles = (positions.astype(np.float32)[:, None] * inv_freq).astype(np.float64)
    expected = 1.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.testing.assert_allclose(output, expected, rtol=0, atol=2e-7)


@table("dtype", [DType.F32, DType.BF16, DType.I8])
@table("head_dim, half_dim", [(8, 4), (64, 32), (80, 40), (96, 24), (34, 17), (128, 64), (64, 0)])
@table("with_norms", [False, True])
@table("beta", [0.0, 0.1])
def test_queries_are_rotated_and_keys_and_values_stored(
    isa: Isa, threads: ThreadPool, dtype: DType, head_dim: int, half_dim: int, with_norms: bool, beta: float
) -> None:
    rng = np.random.default_rng(head_dim)
    num_tokens, num_heads, kv_heads = 5, 4, 2
    heads = num_heads + 2 * kv_heads
    given = rng.standard_normal((num_tokens, heads * head_dim + 3)).astype(np.float32)
    qkv = given.copy()
    angles = rng.random((num_tokens, half_dim)) * 6
    cos_sin = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    q_norm, k_norm = (encode(rng.standard_normal(head_dim), DType.BF16) for _ in range(2))
    slots = rng.permutation(20)[:num_tokens].astype(np.int32)
    pool = np.zeros((2, 20, kv_heads, head_dim), dtype=STORAGE[dtype])
    scales = np.zeros((2, 20, kv_heads), dtype=np.float32)
    positions = np.array([0, 15, 16, 100, 5000], dtype=np.int32)
    call = RotaryStoreCall(
        qkv=address(qkv),
        qkv_stride=qkv.shape[1],
        num_tokens=num_tokens,
        num_heads=num_heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        half_dim=half_dim,
        cos_sin=address(cos_sin),
        q_norm=address(q_norm) if with_norms else None,
        k_norm=address(k_norm) if with_norms else None,
        norm_dtype=DType.BF16,
        eps=1e-6,
        out_slots=address(slots),
        norm_offset=1.0,
        query_beta=beta,
        query_period=16,
        positions=address(positions),
        kv=KVLayer(address(pool[0]), address(pool[1]), address(scales[0]), address(scales[1]), dtype),
    )
    run(threads, "rotary_store", call)

    expected = given[:, : heads * head_dim].astype(np.float64).reshape(num_tokens, heads, head_dim)
    rotated = expected[:, : num_heads + kv_heads]
    if with_norms:
        rotated[:] = normalised(rotated, 1e-6)
        rotated[:, :num_heads] *= decode(q_norm, DType.BF16) + 1.0
        rotated[:, num_heads:] *= decode(k_norm, DType.BF16) + 1.0
    cosines, sines = (cos_sin[:, None, i].astype(np.float64) for i in range(2))
    first, second = rotated[..., :half_dim].copy(), rotated[..., half_dim : 2 * half_dim].copy()
    rotated[..., :half_dim] = first * cosines - second * sines
    rotated[..., half_dim : 2 * half_dim] = second * cosines + first * sines

    rotated[:, :num_heads] *= (1 + beta * np.log1p(positions // 16))[:, None, None]

    queries = qkv[:, : num_heads * head_dim].reshape(num_tokens, num_heads, head_dim)
    np.testing.assert_allclose(queries, expected[:, :num_heads], rtol=0, atol=4e-6)
    for part in range(2):
        want = expected[:, num_heads + part * kv_heads :][:, :kv_heads]
        if dtype == DType.I8:
            found = pool[part, slots] * scales[part, slots][..., None]
            assert (np.abs(found - want) <= 0.501 * np.abs(want).max(-1, keepdims=True) / 127).all()
        else:
            found = decode(pool[part, slots], dtype)
            np.testing.assert_allclose(found, want, rtol=HALF_ULP[dtype], atol=4e-6)
    untouched = np.setdiff1d(np.arange(20), slots)
    assert not pool[:, untouched].any()


def test_keys_that_are_not_numbers_stay_so_as_integers(isa: Isa, threads: ThreadPool) -> None:
    qkv = np.ones((1, 3 * 16), dtype=np.float32)
    qkv[0, 20] = np.nan
    cos_sin = np.ones((1, 2, 8), dtype=np.float32)
    pool = np.zeros((2, 1, 1, 16), dtype=np.int8)
    scales = np.zeros((2, 1, 1), dtype=np.float32)
    call = RotaryStoreCall(
        qkv=address(qkv),
        qkv_stride=48,
        num_tokens=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=16,
        half_dim=8,
        cos_sin=address(cos_sin),
        out_slots=address(np.zeros(1, dtype=np.int32)),
        kv=KVLayer(address(pool[0]), address(pool[1]), address(scales[0]), address(scales[1]), DType.I8),
    )
    run(threads, "rotary_store", call)
    assert np.isnan(scales[0]).all()
    assert np.isfinite(scales[1]).all()
