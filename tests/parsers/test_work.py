"""The work of reading is in proportion to the text, also where it seems to begin a call over and over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.parsers.base import Content, ToolCallStart
from bough.parsers.stream import MAX_HELD_CHARS, MAX_STEPS, Steps, Stream
from bough.parsers.tool_formats import TOOL_FORMATS
from tests.parsers.parsing import calls, content, dialect, merged, parser, run, without_controls
from tests.parsers.samples import KINDS, TWO_CALLS
from tests.parsers.test_all_formats import pieces_of
from tests.thoroughness import examples

CHARS = 16_000
MAX_WORK = 60
"""Characters that are read again or copied, for each character. A head of 512 that turns out to be none is read again
for every marker in it."""


class Meter:
    """Counts what :class:`Stream` reads in vain and copies."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.chars = 0
        reject, commit = Stream.reject, Stream.commit

        def count_reject(stream: Stream, *args: Any, **options: Any) -> None:
            self.chars += stream.pos - stream.begin
            reject(stream, *args, **options)

        def count_commit(stream: Stream) -> None:
            before = len(stream.text)
            commit(stream)
            if len(stream.text) != before:
                self.chars += len(stream.text)

        patch.setattr(Stream, "reject", count_reject)
        patch.setattr(Stream, "commit", count_commit)


def work(name: str, text: str, size: int) -> int:
    with pytest.MonkeyPatch.context() as patch:
        meter = Meter(patch)
        run(parser(dialect(name)), [text[at : at + size] for at in range(0, len(text), size)])
        return meter.chars


def test_beginnings_of_calls_one_after_the_other() -> None:
    for name in KINDS:
        for sample in TWO_CALLS[name]:
            for end in range(1, min(len(sample), 160), 11):
                unit = sample[:end]
                text = unit * (CHARS // len(unit))
                assert work(name, text, CHARS) < MAX_WORK * CHARS, unit
        for marker in (*TOOL_FORMATS[name].triggers, *TOOL_FORMATS[name].openers):
            text = marker * (CHARS // len(marker))
            assert work(name, text, 7) < MAX_WORK * CHARS, marker


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_garbage_over_and_over(name: str, data: st.DataObject) -> None:
    format_ = TOOL_FORMATS[name]
    bits = st.sampled_from([*pieces_of(TWO_CALLS[name]), "now(", "x=", "'''", '"""', "y='", 'z="', '{"arguments":"'])
    begin = data.draw(st.sampled_from(format_.triggers))
    unit = begin + "".join(data.draw(st.lists(bits, max_size=8)))
    text = unit * (CHARS // len(unit) + 1)
    assert work(name, text, data.draw(st.sampled_from([CHARS, 50]))) < MAX_WORK * len(text)


def test_what_is_too_long_to_be_held_back_is_no_call() -> None:
    cases = [
        ("pythonic", "<|python_start|>[now(x='"),
        ("hermes", '<tool_call>{"arguments": {"a": "'),
        ("hermes", "<tool_call>" + " " * MAX_HELD_CHARS),
        ("mistral", '[TOOL_CALLS][{"arguments": {"a": "'),
        ("llama3", '{"parameters": {"a": "'),
    ]
    for name, begin in cases:
        text = begin + "a" * MAX_HELD_CHARS
        made = parser(dialect(name))
        events = [event for at in range(0, len(text), 1000) for event in made.feed(text[at : at + 1000])]
        assert content(events).startswith(without_controls(name, begin)), "it is not held back until the end"
        whole = run(parser(dialect(name)), [text + text])
        assert whole == [Content(without_controls(name, text + text))]
        assert run(parser(dialect(name)), [text[:77], text[77:] + text[:5], text[5:]]) == whole


def test_a_call_may_be_longer_than_what_is_held_back() -> None:
    city = "a b" * MAX_HELD_CHARS
    for name, text in {
        "hermes": f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}</tool_call>',
        "glm45": f'<tool_call>get_weather<arg_key>tags</arg_key><arg_value>["{city}"]</arg_value></tool_call>',
    }.items():
        [(_, arguments)] = calls(run(parser(dialect(name)), [text]))
        assert list(arguments.values()) in ([city], [[city]])


def test_what_is_held_back_to_the_end_is_read_in_pieces() -> None:
    cases = [
        ("pythonic", '<|python_start|>[now(x="', "<|python_start|>[now(x='"),
        ("pythonic", '<|python_start|>[now(x="', "<|python_start|>[now()]"),
        ("pythonic", "<|python_start|>[now(x='''", "<|python_start|>[now(), now(), now(), now(), now()]"),
        ("hermes", '<tool_call>{"arguments": {"a": "', "<tool_call>"),
        ("kimi_k2", "<|tool_call_begin|>now", "<|tool_call_begin|>"),
    ]
    for name, begin, unit in cases:
        text = begin + unit * ((MAX_HELD_CHARS - 1000) // len(unit))
        made = parser(dialect(name))
        steps = Stream.step
        taken = [0]

        def count(stream: Stream) -> Steps[None]:
            taken[-1] += 1
            yield from steps(stream)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stream, "step", count)
            events = made.feed(text)
            taken = [0]
            for held in made.finish():
                events += held
                taken.append(0)
        assert max(taken) <= MAX_STEPS + 1
        assert merged(events) == run(parser(dialect(name)), [text[at : at + 50] for at in range(0, len(text), 50)])


def test_white_space_behind_a_call_is_not_held_back_without_end() -> None:
    made = parser(dialect("hermes"))
    events = made.feed('<tool_call>{"name": "now"}</tool_call>' + " " * (2 * MAX_HELD_CHARS))
    assert any(isinstance(event, ToolCallStart) for event in events)
    assert len(content(events)) > MAX_HELD_CHARS - 100


def test_raw_arguments_are_passed_on_when_they_grow_long() -> None:
    begin = '<tool_call>{"name": "now", "arguments": {a: '
    made = parser(dialect("hermes"))
    events = [*made.feed(begin), *made.feed("1" * (2 * MAX_HELD_CHARS))]
    assert any("1" * 100 in getattr(event, "fragment", "") for event in events)
