from __future__ import annotations

import numpy as np

from bough.sampling.random_stream import mix64, stream_key, uniforms
from tests.tables import table


def reference_splitmix64(state: int, count: int) -> list[int]:
    """The sequential generator of the paper, with Python's integers."""
    mask = (1 << 64) - 1
    numbers = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        x = state
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        numbers.append(x ^ (x >> 31))
    return numbers


def test_known_numbers_of_splitmix64() -> None:
    # The first outputs for state 0 that published implementations print.
    assert reference_splitmix64(0, 2) == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert stream_key(0) == 0xE220A8397B1DCDAF
    assert mix64(np.array([0x9E3779B97F4A7C15], dtype=np.uint64))[0] == 0xE220A8397B1DCDAF


@table("seed", [0, 1, -1, 2**63 - 1, -(2**63), 2**64 + 5])
def test_a_stream_is_splitmix64_started_at_the_mixed_seed(seed: int) -> None:
    key = stream_key(seed)
    numbers = reference_splitmix64(key, 100)
    got = uniforms(np.full(100, key, dtype=np.uint64), np.arange(100))
    assert got.tolist() == [(number >> 24) * 2.0**-40 for number in numbers]


def test_numbers_depend_on_seed_and_index_alone() -> None:
    keys = np.array([stream_key(seed) for seed in range(50)], dtype=np.uint64)
    indices = np.arange(50) * 3
    together = uniforms(keys, indices)
    alone = [uniforms(keys[i : i + 1], indices[i : i + 1])[0] for i in range(50)]
    assert together.tolist() == alone


@table("axis", ["seed", "index"])
def test_neighbouring_seeds_and_indices_give_uniform_unrelated_numbers(axis: str) -> None:
    count = 100_000
    if axis == "seed":
        keys = np.array([stream_key(seed) for seed in range(count)], dtype=np.uint64)
        numbers = uniforms(keys, np.zeros(count, dtype=np.int64))
    else:
        numbers = uniforms(np.full(count, stream_key(7), dtype=np.uint64), np.arange(count))
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    observed, _ = np.histogram(numbers, 100, (0.0, 1.0))
    chi_square = ((observed - count / 100) ** 2 / (count / 100)).sum()
    assert chi_square < 160.0  # 99 degrees of freedom: exceeded once in 10^4
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.015
