"""Threads beside other processes that want their cores."""

from __future__ import annotations

import os

import torch
from benchmarks.busy import busy_loops, fair_share

from bough.kernels.thread_pool import ThreadPool
from tests.kernels.test_gemm import packed, random_matrix


def test_bits_are_the_same_beside_busy_loops_and_with_more_threads_than_cores() -> None:
    weight, x = random_matrix(2000, 512, torch.bfloat16, 1), random_matrix(40, 512, torch.bfloat16, 2)
    alone = packed(ThreadPool(1), weight).multiply(x, torch.float32)
    cores = len(os.sched_getaffinity(0))
    pool = ThreadPool(2 * cores)
    weights = packed(pool, weight)
    with busy_loops(cores):
        for _ in range(40):
            assert torch.equal(weights.multiply(x, torch.float32), alone)
    counts = pool.counts()
    assert counts.runs >= 40
    assert 0 <= counts.joined <= counts.runs * (pool.num_threads - 1)


def test_a_pool_of_one_shares_nothing() -> None:
    pool = ThreadPool(1)
    packed(pool, random_matrix(64, 32, torch.float32, 1)).multiply(
        random_matrix(3, 32, torch.float32, 2), torch.float32
    )
    assert not any(pool.counts())


def test_fair_share_is_all_of_the_machine_where_cores_are_left() -> None:
    assert fair_share(2, 1, 2) == 2 / 3
    assert fair_share(2, 4, 2) == 1 / 3
    assert fair_share(1, 1, 2) == 1.0
    assert fair_share(2, 2, 8) == 1.0
