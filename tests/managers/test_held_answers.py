from __future__ import annotations

import pytest

from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers import held_answers
from bough.managers.held_answers import SMALL_ANSWER_BYTES, HeldAnswer, HeldAnswers, logprob_bytes

MEGA = 2**20


def test_one_answer_may_be_larger_than_all_may_be_together() -> None:
    answers = HeldAnswers(8 * MEGA)
    answer = HeldAnswer(answers)
    assert answer.hold(100 * MEGA) is None
    answer.release()
    answer.release()
    assert answers.num_bytes == 0


def test_the_largest_that_grows_is_given_up_and_small_ones_are_not() -> None:
    answers = HeldAnswers(8 * MEGA)
    small, middle, large = (HeldAnswer(answers) for _ in range(3))
    assert large.hold(6 * MEGA) is None
    assert small.hold(SMALL_ANSWER_BYTES) is None
    assert middle.hold(2 * MEGA) is None
    assert middle.hold(MEGA) is None, "it is not the largest"
    assert large.failure is not None
    assert large.hold(MEGA) is large.failure
    assert answers.num_bytes == 3 * MEGA
    other = HeldAnswer(answers)
    assert other.hold(7 * MEGA) is not None
    assert (small.failure, middle.failure) == (None, None)
    for each in (small, middle, large, other):
        each.release()
    assert answers.num_bytes == 0


def test_what_is_taken_counts_no_more() -> None:
    answers = HeldAnswers(4 * MEGA)
    stream, other = HeldAnswer(answers), HeldAnswer(answers)
    for _ in range(100):
        assert stream.hold(3 * MEGA) is None
        assert stream.hold(-3 * MEGA) is None
    assert other.hold(3 * MEGA) is None
    assert answers.num_bytes == 3 * MEGA


def test_slow_readers_make_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = HeldAnswers(8 * MEGA)
    cut: list[str] = []
    reading, new = HeldAnswer(answers), HeldAnswer(answers)
    reading.hold(30 * MEGA)
    assert reading.read(6 * MEGA, lambda: cut.append("reading")) is None
    assert new.hold(4 * MEGA) is not None, "who reads has some time"
    assert cut == []
    monkeypatch.setattr(held_answers, "PATIENCE", -1.0)
    third = HeldAnswer(answers)
    assert third.hold(4 * MEGA) is None
    assert cut == ["reading"]
    assert answers.num_bytes == 4 * MEGA


def test_all_logprobs_of_a_delta_count() -> None:
    pair = (-0.5, 7)
    entry = PositionLogprobs(-0.5, 7, top=[pair] * 3, chosen=[pair] * 2)
    one = logprob_bytes(OutputDelta("r", [7], logprobs=[PositionLogprobs(-0.5, 7)]))
    assert logprob_bytes(OutputDelta("r", [7], logprobs=[entry], input_logprobs=[entry, entry])) == 18 * one
    assert logprob_bytes(OutputDelta("r", [7])) == 0
