"""Counting the tokens of reasoning, however the output was cut."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from bough.parsers.base import Content, Reasoning
from bough.parsers.dialect import make_dialect
from bough.parsers.reasoning_tokens import ReasoningCounter


def counted(name: str, pieces: list[str], cut: int, *, thinking: bool = False) -> tuple[int, int | None, list[str]]:
    """Tokens of reasoning, those before the first content, and what was read; one token a piece, ``cut`` a delta."""
    dialect = make_dialect(None, reasoning_parser=name, tool_call_parser="none")
    assert dialect.reasoning_format is not None
    counter = ReasoningCounter(
        lambda token: len(pieces[token].encode()), dialect.reasoning_format, begins_inside=thinking
    )
    parser = dialect.parser((), parse_tools=False, separate_reasoning=True, thinking=thinking)
    assert parser is not None
    before: int | None = None
    read: list[str] = []
    for start in range(0, len(pieces), cut):
        ids = list(range(start, min(start + cut, len(pieces))))
        text = "".join(pieces[token] for token in ids)
        events = parser.feed(text)
        if ids[-1] == len(pieces) - 1:
            events += [event for held in parser.finish() for event in held]
        begins = counter.add(ids, text, events)
        for event, begin in zip(events, begins, strict=True):
            assert isinstance(event, (Content, Reasoning))
            if isinstance(event, Content):
                before = begin if before is None else before
            else:
                read.append(event.text)
    return counter.total, before, read


def test_a_piece_is_not_taken_for_a_part_of_the_marker() -> None:
    cases = [
        (["<think>", "h", "i", "</think>", "ok"], False, 2, 4),
        (["<", "th", "ink", ">", "hi", "n", "k", "</think>", "think"], False, 3, 8),
        (["<think>", "<", "b", "</think>", "<", "/th"], False, 2, 4),
        (["hi", "</think>", "\n\n", "hi"], True, 1, 3),
        (["<think>\nhi", " there\n</", "think>\n\nok"], False, 2, 2),
        (["ok", " <think>", "no", "</think>"], False, 0, 0),
        (["<think>", "so", " so"], False, 2, None),
    ]
    for pieces, thinking, total, before in cases:
        for cut in [1, 2, 3, 100]:
            assert counted("qwen3", pieces, cut, thinking=thinking)[:2] == (total, before)


def test_channels_may_come_again() -> None:
    for cut in [1, 2, 7, 100]:
        marks = ["<|channel|>", "analysis", "<|message|>", "Hm", ".", "<|end|>", "<|start|>", "assistant"]
        pieces = [*marks, *marks, "<|channel|>", "final", "<|message|>", "Hm", "!"]
        assert counted("gpt-oss", pieces, cut)[:2] == (4, 19)


@given(
    st.sampled_from(["<think>", " <think>\n", "", "\n"]),
    st.text(alphabet="<>/think \n🌳h", max_size=12),
    st.sampled_from(["</think>", "\n</think>\n\n", ""]),
    st.text(alphabet="<>/think ", max_size=8),
    st.booleans(),
    st.randoms(),
)
def test_the_number_does_not_depend_on_the_cut(
    start: str, thoughts: str, end: str, answer: str, inside: bool, rng: random.Random
) -> None:
    text = start + thoughts + end + answer + "."
    pieces = []
    while text:
        size = rng.randint(1, 6)
        pieces.append(text[:size])
        text = text[size:]
    whole = counted("qwen3", pieces, len(pieces), thinking=inside)
    for cut in (1, 2, 5):
        got = counted("qwen3", pieces, cut, thinking=inside)
        assert (got[0], got[1], "".join(got[2])) == (whole[0], whole[1], "".join(whole[2]))


def test_long_thoughts_cost_no_more_than_short_ones() -> None:
    dialect = make_dialect(None, reasoning_parser="qwen3", tool_call_parser="none")
    assert dialect.reasoning_format is not None
    counter = ReasoningCounter(lambda token: 4, dialect.reasoning_format)
    counter.add([1, 1], "<think>\n", [])
    for _ in range(1000):
        counter.add([1], "abcd", [Reasoning("abcd")])
    assert counter.total == 1000
    assert counter._text == ""
    assert counter._ids == []
