"""Ranks of a native program, here threads, compute the bits of one: each has some columns of every matrix."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bough.config.sharding import ShardSpec, Span
from bough.errors import StartupError
from bough.kernels.buffers import Columns
from bough.kernels.native_group import FollowEnd, NativeGroup, RankLost, SharedChunks
from bough.kernels.packed_weights import PackedWeights, WeightFormat
from bough.kernels.program import NormWeight, Program
from bough.kernels.structures import ProgramLimits, Step
from bough.kernels.thread_pool import ThreadPool
from tests.native import needs_native
from tests.tables import table

pytestmark = needs_native

HIDDEN, WIDTH, VOCAB, TOKENS, ROWS = 80, 112, 301, 7, 2
LIMITS = ProgramLimits(max_tokens=TOKENS, max_rows=ROWS, max_context=20, vocab_size=VOCAB, num_slots=40)


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = os.memfd_create("test")
    yield made
    os.close(made)


@dataclass
class Rank:
    program: Program
    logits: torch.Tensor
    req_to_token: torch.Tensor
    group: NativeGroup | None
    kept: object
    """Memory that the program has addresses of"""

    def run(self, ids: list[int]) -> torch.Tensor:
        """The logits of one row."""
        tokens, slots = np.array(ids, np.int32), np.arange(len(ids), dtype=np.int32)
        zero, count, wanted = np.zeros(1, np.int32), np.full(1, len(ids), np.int32), np.full(1, 2, np.uint8)
        last, chosen, finite = np.zeros(ROWS, np.int64), np.zeros(1, np.int32), np.ones(1, np.uint8)
        step = Step(
            num_rows=1,
            req_slots=zero.ctypes.data,
            prefix_lens=zero.ctypes.data,
            extend_lens=count.ctypes.data,
            input_ids=tokens.ctypes.data,
            out_slots=slots.ctypes.data,
            wanted=wanted.ctypes.data,
            req_to_token=self.req_to_token.data_ptr(),
            table_stride=self.req_to_token.stride(0),
            last_tokens=last.ctypes.data,
            next_tokens=chosen.ctypes.data,
            finite=finite.ctypes.data,
            logits=self.logits.data_ptr(),
        )
        self.program.run(step)
        return self.logits[0].clone()


def columns(span: Span) -> Columns:
    return Columns(span.start, span.size, span.total)


def make_rank(spec: ShardSpec, stored: WeightFormat, descriptor: int | None) -> Rank:
    """A model of one feed-forward layer and one matrix, without attention."""
    threads = ThreadPool(1 + spec.rank % 2)
    generator = torch.Generator().manual_seed(0)

    def packed(rows: torch.Tensor, *, gated: bool = False) -> PackedWeights:
        weights = PackedWeights(
            threads, len(rows), rows.shape[1], torch.float32, bias=False, gated=gated, stored=stored
        )
        weights.write(0, rows)
        kept.append(weights)
        return weights

    kept: list[PackedWeights] = []
    group = None if descriptor is None else NativeGroup(descriptor, spec.rank, spec.world)
    program = Program(threads, LIMITS, torch.float32, group)
    numbers = {
        name: torch.randn(*shape, generator=generator)
        for name, shape in {
            "table": (VOCAB, HIDDEN),
            "gate": (WIDTH, HIDDEN),
            "up": (WIDTH, HIDDEN),
            "down": (HIDDEN, WIDTH),
            "last": (HIDDEN, HIDDEN),
        }.items()
    }
    vocab, width, hidden = (spec.rows(size) for size in (VOCAB, WIDTH, HIDDEN))
    norm = NormWeight(torch.ones(HIDDEN), 1e-6)
    head = packed(numbers["table"][vocab.start : vocab.stop])
    rows = numbers["table"][vocab.start : vocab.stop].contiguous()
    stream = program.embed(rows, first_token=vocab.start)
    own = slice(width.start, width.stop)
    gates = packed(torch.cat([numbers["gate"][own], numbers["up"][own]]), gated=True)
    gated = program.linear_gated(program.rms_norm(stream, norm), gates.matrix, outputs=columns(width))
    down = packed(numbers["down"][hidden.start : hidden.stop])
    program.linear_add(gated, down.matrix, stream, columns(hidden))
    last = packed(numbers["last"][hidden.start : hidden.stop])
    program.rms_norm_add(program.linear(program.rms_norm(stream, norm), [last.matrix], columns(hidden)), norm, stream)
    program.finish(stream, norm, head.matrix, vocab.start)
    memory = torch.zeros if group is None else group.arena.tensor
    logits, req_to_token = memory(ROWS, VOCAB, dtype=torch.float32), memory(ROWS, 20, dtype=torch.int32)
    rank = Rank(program, logits, req_to_token, group, (kept, norm, rows))
    if group is not None:
        group.settle()
        group.check()
    return rank


def follow(rank: Rank) -> tuple[threading.Thread, list[FollowEnd]]:
    ends: list[FollowEnd] = []

    def run() -> None:
        while not ends or ends[-1] in (FollowEnd.TIMEOUT, FollowEnd.INTERRUPTED):
            ends.append(rank.program.follow(rank.req_to_token, rank.logits, 0.05))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ends


@table("world", [2, 3])
@table("stored", ["native", "int8", "int4", "uint4"])
def test_ranks_compute_the_bits_of_one(stored: WeightFormat, world: int) -> None:
    descriptor = os.memfd_create("test")
    alone = make_rank(ShardSpec(), stored, None)
    first, *others = (make_rank(ShardSpec(rank, world), stored, descriptor) for rank in range(world))
    following = [follow(other) for other in others]
    for ids in ([5], [300, 0, 1], [17, 150, 299, 31, 32, 33, 64, 5, 9]):  # the last in two pieces
        assert torch.equal(first.run(ids), alone.run(ids))
    assert first.group is not None
    first.group.call()
    for thread, ends in following:
        thread.join(10)
        assert ends[-1] == FollowEnd.CALLED
    times = [first.group.host_time(rank) for rank in range(world)]
    assert [time.num_pieces for time in times] == [0, *[4] * (world - 1)]
    assert all(0 < time.seconds < 10 for time in times[1:])
    os.close(descriptor)


def test_a_group_that_has_failed_computes_nothing(descriptor: int) -> None:
    first, second = (make_rank(ShardSpec(rank, 2), "native", descriptor) for rank in range(2))
    thread, ends = follow(second)
    first.run([1])
    assert second.group is not None
    second.group.fail()
    thread.join(10)
    assert ends[-1] == FollowEnd.FAILED
    with pytest.raises(RankLost):
        first.run([1])


def test_ranks_with_other_memory_are_refused(descriptor: int) -> None:
    first, second = (NativeGroup(descriptor, rank, 2) for rank in range(2))
    first.arena.zeros(10)
    first.settle()
    second.arena.zeros(11)
    with pytest.raises(StartupError):
        second.check()


def test_ranks_get_the_same_pieces(descriptor: int) -> None:
    first, second = SharedChunks(descriptor), SharedChunks(descriptor)
    for size in (5, 2**24, 1, 2**22):
        written, read = first.zeros(size), second.zeros(size)
        assert not written.any()
        written.fill_(size % 251)
        assert torch.equal(written, read)
        assert written.data_ptr() % 128 == 0
