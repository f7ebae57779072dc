from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bough.mem_cache.allocator import SlotAllocator
from tests.thoroughness import examples


def pages_of(slots: list[int], page_size: int) -> set[int]:
    return {slot // page_size for slot in slots}


def test_whole_pages_are_managed_and_page_0_is_reserved() -> None:
    allocator = SlotAllocator(num_tokens=39, page_size=16)
    assert allocator.total_size == allocator.available_size == 32
    assert allocator.num_slots == 48
    slots = allocator.alloc_extend(32, 0, -1)
    assert slots is not None
    assert slots.dtype == np.int32
    assert sorted(slots.tolist()) == list(range(16, 48))
    assert allocator.available_size == 0


def test_low_pages_come_first_so_that_a_fresh_sequence_is_contiguous() -> None:
    slots = SlotAllocator(64, 4).alloc_extend(10, 0, -1)
    assert slots is not None
    assert slots.tolist() == list(range(4, 14))


def test_page_size_must_be_a_power_of_two() -> None:
    for page_size in [0, -1, 3, 24]:
        with pytest.raises(ValueError, match="power of two"):
            SlotAllocator(64, page_size)


def test_a_pool_smaller_than_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="less than one page"):
        SlotAllocator(15, 16)


def test_extending_continues_the_partly_used_page() -> None:
    allocator = SlotAllocator(64, 8)
    first = allocator.alloc_extend(5, 0, -1)
    assert first is not None
    rest = allocator.alloc_extend(12, 5, int(first[-1]))
    assert rest is not None
    assert rest[:3].tolist() == [first[-1] + 1, first[-1] + 2, first[-1] + 3]
    assert pages_of(rest[3:].tolist(), 8).isdisjoint(pages_of(first.tolist(), 8))
    assert allocator.total_size - allocator.available_size == 24


def test_extending_within_a_page_takes_no_page() -> None:
    allocator = SlotAllocator(8, 8)
    first = allocator.alloc_extend(2, 0, -1)
    assert first is not None
    assert allocator.available_size == 0
    more = allocator.alloc_extend(6, 2, int(first[-1]))
    assert more is not None
    assert more.tolist() == list(range(10, 16))


def test_a_partly_used_page_without_its_last_slot_is_refused() -> None:
    with pytest.raises(ValueError, match="last slot"):
        SlotAllocator(64, 8).alloc_extend(1, 5, -1)


def test_negative_counts_are_refused() -> None:
    for num_new, seq_len in [(-1, 0), (1, -1)]:
        with pytest.raises(ValueError, match="cannot extend"):
            SlotAllocator(64, 8).alloc_extend(num_new, seq_len, -1)


def test_too_little_room_changes_nothing() -> None:
    for page_size in [1, 4]:
        allocator = SlotAllocator(16, page_size)
        assert allocator.alloc_extend(17, 0, -1) is None
        full = np.full(17, page_size, dtype=np.int32)
        assert allocator.alloc_decode(full, full) is None
        assert allocator.available_size == 16
        allocator.check_integrity()


def test_decode_takes_a_page_only_where_one_begins() -> None:
    allocator = SlotAllocator(64, 4)
    a = allocator.alloc_extend(4, 0, -1)
    b = allocator.alloc_extend(6, 0, -1)
    assert a is not None
    assert b is not None
    before = allocator.available_size
    seq_lens = np.array([4, 6, 0], dtype=np.int32)
    assert allocator.num_new_pages_decode(seq_lens) == 2
    slots = allocator.alloc_decode(seq_lens, np.array([a[-1], b[-1], -1], dtype=np.int32))
    assert slots is not None
    assert slots[1] == b[-1] + 1
    assert slots[0] % 4 == slots[2] % 4 == 0
    assert len(pages_of([*a.tolist(), *b.tolist(), int(slots[0]), int(slots[2])], 4)) == 5
    assert before - allocator.available_size == 8


def test_double_free_raises_and_changes_nothing() -> None:
    for page_size in [1, 16]:
        allocator = SlotAllocator(64, page_size)
        slots = allocator.alloc_extend(2 * page_size, 0, -1)
        assert slots is not None
        allocator.free(slots[:page_size])
        available = allocator.available_size
        with pytest.raises(RuntimeError, match="double free"):
            allocator.free(slots)
        assert allocator.available_size == available
        allocator.check_integrity()
        allocator.free(slots[page_size:])
        assert allocator.available_size == 64


def test_a_page_that_comes_twice_in_one_call_is_a_double_free() -> None:
    for page_size in [1, 16]:
        allocator = SlotAllocator(64, page_size)
        slots = allocator.alloc_extend(2 * page_size, 0, -1)
        assert slots is not None
        available = allocator.available_size
        with pytest.raises(RuntimeError, match="double free"):
            allocator.free(np.concatenate([slots, slots]))
        assert allocator.available_size == available
        allocator.check_integrity()


def test_slots_that_were_never_there_are_refused() -> None:
    for slot in [-1, 0, 15, 80, 1 << 30]:
        allocator = SlotAllocator(64, 16)
        slots = allocator.alloc_extend(16, 0, -1)
        assert slots is not None
        with pytest.raises(ValueError, match="not all within 16 to 79"):
            allocator.free(np.append(slots, np.int32(slot)))
        assert allocator.available_size == 48


def test_freeing_nothing_is_allowed() -> None:
    allocator = SlotAllocator(16, 1)
    allocator.free(np.zeros(0, dtype=np.int32))
    assert allocator.available_size == 16


def test_part_of_a_page_frees_the_page() -> None:
    allocator = SlotAllocator(64, 16)
    slots = allocator.alloc_extend(19, 0, -1)
    assert slots is not None
    assert not allocator.is_free(slots).any()
    allocator.free(slots[16:])
    assert allocator.is_free(slots).tolist() == [False] * 16 + [True] * 3
    assert allocator.available_size == 48


def test_reset_takes_everything_back() -> None:
    allocator = SlotAllocator(64, 4)
    assert allocator.alloc_extend(50, 0, -1) is not None
    allocator.reset()
    assert allocator.available_size == 64
    allocator.check_integrity()


def test_integrity_check_notices_a_lost_page() -> None:
    allocator = SlotAllocator(64, 4)
    allocator._num_free -= 1
    with pytest.raises(RuntimeError, match="15 pages in the free stack, 16"):
        allocator.check_integrity()


class Allocations(RuleBasedStateMachine):
    """Sequences that grow, shrink and end, against plain lists of the slots they were given."""

    @initialize(page_size=st.sampled_from([1, 2, 4, 16]), num_pages=st.integers(1, 12))
    def build(self, page_size: int, num_pages: int) -> None:
        self.page_size = page_size
        self.allocator = SlotAllocator(num_pages * page_size, page_size)
        self.sequences: list[list[int]] = []

    def page_count(self, length: int) -> int:
        return -(-length // self.page_size)

    def used_pages(self) -> int:
        return sum(self.page_count(len(sequence)) for sequence in self.sequences)

    @rule(num_new=st.integers(0, 40), pick=st.integers(0, 10))
    def extend(self, num_new: int, pick: int) -> None:
        if pick >= len(self.sequences):
            self.sequences.append([])
        sequence = self.sequences[min(pick, len(self.sequences) - 1)]
        needed = self.page_count(len(sequence) + num_new) - self.page_count(len(sequence))
        assert self.allocator.num_new_pages_extend(num_new, len(sequence)) == needed
        available = self.allocator.available_size
        slots = self.allocator.alloc_extend(num_new, len(sequence), sequence[-1] if sequence else -1)
        assert (slots is None) == (needed * self.page_size > available)
        if slots is not None:
            assert len(slots) == num_new
            sequence.extend(slots.tolist())

    @precondition(lambda self: self.sequences)
    @rule()
    def decode(self) -> None:
        seq_lens = np.array([len(sequence) for sequence in self.sequences], dtype=np.int32)
        last_slots = np.array([s[-1] if s else -1 for s in self.sequences], dtype=np.int32)
        needed = sum(length % self.page_size == 0 for length in seq_lens.tolist())
        assert self.allocator.num_new_pages_decode(seq_lens) == needed
        available = self.allocator.available_size
        slots = self.allocator.alloc_decode(seq_lens, last_slots)
        assert (slots is None) == (needed * self.page_size > available)
        if slots is not None:
            for sequence, slot in zip(self.sequences, slots.tolist(), strict=True):
                sequence.append(slot)

    @precondition(lambda self: self.sequences)
    @rule(num_steps=st.integers(1, 40))
    def decode_steps(self, num_steps: int) -> None:
        seq_lens = np.array([len(sequence) for sequence in self.sequences], dtype=np.int32)
        last_slots = np.array([s[-1] if s else -1 for s in self.sequences], dtype=np.int32)
        needed = sum(self.page_count(length + num_steps) - self.page_count(length) for length in seq_lens.tolist())
        assert self.allocator.num_new_pages_steps(num_steps, seq_lens)[-1] == needed
        available = self.allocator.available_size
        slots = self.allocator.alloc_steps(num_steps, seq_lens, last_slots)
        assert (slots is None) == (needed * self.page_size > available)
        if slots is not None:
            assert (slots.shape, slots.dtype) == ((num_steps, len(self.sequences)), np.int32)
            for sequence, added in zip(self.sequences, slots.T.tolist(), strict=True):
                sequence.extend(added)

    @precondition(lambda self: self.sequences)
    @rule(pick=st.integers(0, 10), keep=st.integers(0, 12))
    def cut(self, pick: int, keep: int) -> None:
        """Give back what lies behind the first ``keep`` pages."""
        sequence = self.sequences[pick % len(self.sequences)]
        start = keep * self.page_size
        self.allocator.free(np.array(sequence[start:], dtype=np.int32))
        del sequence[start:]
        if not sequence:
            self.sequences.remove(sequence)

    @rule()
    def end_all(self) -> None:
        slots = [slot for sequence in self.sequences for slot in sequence]
        self.allocator.free(np.array(slots, dtype=np.int32))
        self.sequences.clear()
        assert self.allocator.available_size == self.allocator.total_size

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        if not hasattr(self, "allocator"):
            return
        slots = [slot for sequence in self.sequences for slot in sequence]
        assert len(set(slots)) == len(slots)
        assert all(self.page_size <= slot < self.allocator.num_slots for slot in slots)
        for sequence in self.sequences:
            assert all(slot % self.page_size == i % self.page_size for i, slot in enumerate(sequence))
        assert self.allocator.available_size == self.allocator.total_size - self.used_pages() * self.page_size
        assert not self.allocator.is_free(np.array(slots, dtype=np.int32)).any()
        self.allocator.check_integrity()


Allocations.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestAllocations = Allocations.TestCase
