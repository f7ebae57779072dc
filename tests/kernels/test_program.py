"""Products side by side in a recorded program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.program import NormWeight, Program
from bough.kernels.structures import ProgramLimits, Step
from bough.kernels.thread_pool import ThreadPool
from tests.native import needs_native
from tests.tables import table

pytestmark = needs_native

INPUTS, VOCAB, TOKENS = 200, 20, 7

Stored = tuple[WeightFormat, int]
"""A format, and how many outputs a matrix has that is held so."""


@pytest.fixture(scope="module")
def threads() -> ThreadPool:
    return ThreadPool(3)


def packed(threads: ThreadPool, stored: Stored, seed: int) -> PackedWeights:
    generator = torch.Generator().manual_seed(seed)
    form, rows = stored
    weights = PackedWeights(threads, rows, INPUTS, torch.float32, bias=False, gated=False, stored=form)
    weights.write(0, torch.randn(rows, INPUTS, generator=generator))
    return weights


def products(threads: ThreadPool, weights: Sequence[PackedWeights], rows: int) -> torch.Tensor:
    """What a program computes of ``rows`` tokens, normed."""
    limits = ProgramLimits(max_tokens=TOKENS, max_rows=1, max_context=TOKENS, vocab_size=VOCAB, num_slots=TOKENS)
    program = Program(threads, limits, torch.float32)
    table = torch.randn(VOCAB, INPUTS, generator=torch.Generator().manual_seed(0))
    norm = NormWeight(torch.ones(INPUTS), 1e-6)
    residual = program.embed(table)
    output = program.linear(program.rms_norm(residual, norm), [each.matrix for each in weights])
    program.finish(residual, norm, None)
    ids, slots = np.arange(rows, dtype=np.int32), np.arange(rows, dtype=np.int32)
    zero, count, wanted = np.zeros(1, np.int32), np.full(1, rows, np.int32), np.zeros(1, np.uint8)
    req_to_token, last_tokens = np.zeros((1, TOKENS), np.int32), np.zeros(1, np.int64)
    next_tokens, finite = np.zeros(1, np.int32), np.ones(1, np.uint8)
    step = Step(
        num_rows=1,
        req_slots=zero.ctypes.data,
        prefix_lens=zero.ctypes.data,
        extend_lens=count.ctypes.data,
        input_ids=ids.ctypes.data,
        out_slots=slots.ctypes.data,
        wanted=wanted.ctypes.data,
        req_to_token=req_to_token.ctypes.data,
        table_stride=TOKENS,
        last_tokens=last_tokens.ctypes.data,
        next_tokens=next_tokens.ctypes.data,
        finite=finite.ctypes.data,
    )
    program.run(step)
    return output.memory[:rows, : output.columns].clone()


@table("rows", [1, TOKENS])
@table(
    "stored",
    [
        [("int4", 40), ("int8", 8)],
        [("int4", 33), ("uint4", 31), ("int4", 70)],
        [("uint4", 5), ("int8", 3), ("uint4", 1)],
        [("native", 33), ("native", 31)],
    ],
)
def test_products_side_by_side_have_the_bits_of_those_alone(
    threads: ThreadPool, stored: list[Stored], rows: int
) -> None:
    weights = [packed(threads, each, seed) for seed, each in enumerate(stored)]
    alone = torch.cat([products(threads, [each], rows) for each in weights], dim=1)
    assert alone.abs().min() > 0
    for _ in range(20):  # threads meet differently each time
        assert torch.equal(products(threads, weights, rows), alone)
