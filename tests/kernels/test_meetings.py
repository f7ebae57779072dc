"""Ranks meet where one reads what another has written, or overwrites what another reads, and nowhere else."""

from __future__ import annotations

import torch

from bough.kernels.buffers import Buffer, Buffers, Meeting
from bough.kernels.meetings import MeetingPlan


def test_what_other_ranks_have_written_is_waited_for_once() -> None:
    plan = MeetingPlan()
    assert not plan.add([], ["stream"], by_rows=False)
    assert plan.add(["stream"], ["normed"], by_rows=True)
    assert plan.add(["normed"], ["gated"], by_rows=False)
    assert not plan.add(["normed"], ["other"], by_rows=False)
    assert plan.add(["gated", "stream"], ["stream"], by_rows=False)


def test_a_rank_goes_on_with_the_rows_that_it_has_written() -> None:
    plan = MeetingPlan()
    assert not plan.add(["stream"], ["normed"], by_rows=True)
    assert not plan.add(["normed"], ["quantized"], by_rows=True)
    assert plan.add(["quantized"], ["heads"], by_rows=False)


def test_nothing_is_overwritten_that_another_rank_may_still_read() -> None:
    plan = MeetingPlan()
    assert not plan.add(["normed"], [], by_rows=False)
    assert plan.add(["stream"], ["normed"], by_rows=True)


def test_memory_of_a_rank_alone_needs_no_meeting() -> None:
    plan = MeetingPlan()
    assert not plan.add(["normed"], [], by_rows=False)
    assert not plan.add([], ["attended"], by_rows=False)
    assert plan.add(["attended"], ["stream"], by_rows=False)


def test_rows_that_each_rank_norms_itself_are_not_waited_for() -> None:
    buffers = Buffers(None)
    stream, normed, gated = (Buffer(torch.zeros(1, 1), 1, name) for name in ("stream", "normed", "gated"))
    buffers.have_to_meet([], [stream], by_rows=False, repeats_few=False)
    both, if_more = Meeting(if_few=True, if_more=True), Meeting(if_few=False, if_more=True)
    for _ in range(2):
        assert buffers.have_to_meet([stream], [normed], by_rows=True, repeats_few=True) == both
        assert buffers.have_to_meet([normed], [gated], by_rows=False, repeats_few=False) == if_more
        assert buffers.have_to_meet([gated, stream], [stream], by_rows=False, repeats_few=False) == both
    # What each rank adds to some of the rows, all have to wait for.
    assert not any(buffers.have_to_meet([], [], by_rows=True, repeats_few=False))
    buffers.have_to_meet([normed, stream], [stream], by_rows=True, repeats_few=False)
    assert buffers.have_to_meet([stream], [normed], by_rows=True, repeats_few=True).if_few
