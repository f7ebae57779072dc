"""The questions from outside, and how their answers are judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from outside import Answer, Question, by_words, chosen_by_words, is_right, questions

CALL = {"name": "set_alarm", "arguments": {"time": "7:30"}}


@pytest.mark.parametrize(
    ("answer", "expect", "right"),
    [
        (Answer("27 + 8 = 35."), {"number": 35}, True),
        (Answer("35 = 27 + 8"), {"number": 35}, False),
        (Answer("35", [CALL]), {"number": 35}, False),
        (Answer('{"city": "rome", "age": "30"}'), {"json": {"age": 30, "city": "Rome"}}, True),
        (Answer('{"city": "Rome"}'), {"json": {"age": 30, "city": "Rome"}}, False),
        (Answer('Here: {"city": "Rome"}'), {"json": {"city": "Rome"}}, False),
        (Answer('{"city": "Rome"}'), {"json_any": [{"city": "old Rome"}, {"city": "Rome"}]}, True),
        (Answer('{"done": 1}'), {"json": {"done": True}}, False),
        (Answer("", [CALL]), {"call": {"name": "set_alarm", "arguments": {"time": "7:30"}}}, True),
        (Answer("", [CALL]), {"call": {"name": "set_alarm", "arguments": {"time": "8:30"}}}, False),
        (Answer("", [CALL, CALL]), {"call": CALL}, False),
        (Answer("No tool fits."), {"no_call": True}, True),
        (Answer("", [CALL]), {"no_call": True}, False),
        (Answer("In the Big oak, 5 o'clock"), {"contains_all": ["big oak", "5"]}, True),
        (Answer("In the big oak, 15 o'clock"), {"contains_all": ["big oak", "5"]}, False),
        (Answer("That is not said."), {"contains_any": [" not ", "unknown"], "contains_none": ["green"]}, True),
        (Answer("It is not green."), {"contains_any": [" not ", "unknown"], "contains_none": ["green"]}, False),
    ],
)
def test_an_answer_is_right_if_it_is_what_was_expected(answer: Answer, expect: Mapping[str, Any], right: bool) -> None:
    assert is_right(answer, expect) is right


@pytest.mark.parametrize("expect", [{}, {"contain": ["x"]}])
def test_nothing_is_right_where_nothing_known_is_expected(expect: Mapping[str, Any]) -> None:
    with pytest.raises(ValueError, match="nothing known"):
        is_right(Answer("x"), expect)


def test_every_question_can_be_answered_rightly() -> None:
    asked = questions()
    assert len(asked) == 366
    for question in asked:
        assert is_right(_right_answer(question), question.expect), question
        assert not is_right(Answer("", [{"name": "nothing", "arguments": {}}]), question.expect)


def _right_answer(question: Question) -> Answer:
    expect = question.expect
    if "call" in expect:
        offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in question.tools}
        assert expect["call"]["arguments"].keys() <= offered[expect["call"]["name"]].get("properties", {}).keys()
        return Answer("", [expect["call"]])
    if "number" in expect:
        return Answer(str(expect["number"]))
    if "json" in expect or "json_any" in expect:
        return Answer(json.dumps(expect.get("json", (expect.get("json_any") or [None])[0])))
    parts = [*expect.get("contains_all", ()), *expect.get("contains_any", ())[:1]]
    return Answer(" ".join(parts))


def test_words_alone_choose_the_tool_that_shares_most_of_them() -> None:
    tools = [
        {"type": "function", "function": {"name": name, "description": description, "parameters": {}}}
        for name, description in (("get_time", "Tells the time"), ("get_weather", "The weather of a city"))
    ]
    asked = Question("tools", [{"role": "user", "content": "What's the weather in Oslo?"}], {}, tools)
    assert chosen_by_words(asked) == "get_weather"
    words = by_words()
    assert 0 < words.right < words.cases == 60
