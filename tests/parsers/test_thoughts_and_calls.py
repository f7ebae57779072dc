"""A call ends the thoughts, whatever marks either; what is no call leaves them as they are."""

from __future__ import annotations

import itertools

import pytest

from bough.parsers.base import Content, Reasoning
from bough.parsers.reasoning import REASONING_FORMATS
from bough.parsers.tool_formats import TOOL_FORMATS
from tests.parsers.parsing import FIRST, calls, content, dialect, parser, reasoning, run
from tests.parsers.samples import KINDS, TWO_CALLS

MARKS = {(known.start, known.end): name for name, known in sorted(REASONING_FORMATS.items(), reverse=True)}
PAIRS = [
    *((tools, "gpt-oss" if tools == "gpt-oss" else "qwen3") for tools in KINDS),
    *((tools, thoughts) for thoughts in MARKS.values() if thoughts != "gpt-oss" for tools in ("hermes", "mistral")),
]
"""Every format of calls, and every pair of marks with two of them."""

BOTH = [("get_weather", FIRST), ("now", {})]


def triggered(tools: str) -> list[str]:
    """The samples that begin with a trigger, which calls in the midst of a text do."""
    return [text for text in TWO_CALLS[tools] if text.startswith(TOOL_FORMATS[tools].triggers)]


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 12])
def test_a_call_ends_the_thoughts(stride: int) -> None:
    """With a ``stride``, each text is cut at other places than the one before: all kinds of places are tried."""
    offsets = itertools.cycle(range(1, stride + 1))
    for tools, thoughts in PAIRS:
        for begun in [True, False]:
            made, marks = dialect(tools, thoughts), REASONING_FORMATS[thoughts]
            if begun and made.on_channels:
                continue
            start = "" if begun else marks.start
            for call in triggered(tools):
                call = call if made.on_channels else f"{call}\n"
                for end in ("", marks.end, f"{marks.end}{marks.end}"):
                    if made.on_channels and end:
                        continue
                    text = f"{start}Need the <b>weather.\n{call}{end}So."
                    whole = run(parser(made, thinking=begun), [text])
                    assert reasoning(whole).strip() == "Need the <b>weather."
                    assert calls(whole) == BOTH
                    assert content(whole) == "So."
                    for at in range(next(offsets), len(text), stride):
                        assert run(parser(made, thinking=begun), [text[:at], text[at:]]) == whole, at
                    assert run(parser(made, thinking=begun), text) == whole


def test_thoughts_that_speak_of_calls_go_on() -> None:
    for tools, thoughts in PAIRS:
        made, marks = dialect(tools, thoughts), REASONING_FORMATS[thoughts]
        if made.on_channels:
            continue
        format_ = TOOL_FORMATS[tools]
        for trigger in format_.triggers:
            shown = "" if trigger in format_.controls else trigger
            text = f"{marks.start}First {trigger} then.{marks.end}Yes."
            for at in range(1, len(text)):
                events = run(parser(made), [text[:at], text[at:]])
                assert events == [Reasoning(f"First {shown} then."), Content("Yes.")], at


def test_without_tools_nothing_but_their_mark_ends_thoughts() -> None:
    for tools, thoughts in PAIRS:
        made, marks = dialect(tools, thoughts), REASONING_FORMATS[thoughts]
        if made.on_channels:
            continue
        for call in triggered(tools):
            events = run(parser(made, parse_tools=False, thinking=True), [f"Hm.{call}{marks.end}Yes."])
            assert reasoning(events).startswith("Hm.")
            assert content(events) == "Yes."
            assert calls(events) == []


def test_doubled_marks_are_not_shown() -> None:
    for thoughts in REASONING_FORMATS:
        made, marks = dialect("none", thoughts), REASONING_FORMATS[thoughts]
        if made.on_channels:
            continue
        begin, end = marks.start, marks.end
        for text in (
            f"{begin}{begin}Hm{end}Hi",
            f"{begin}\n{begin} Hm\n{end}\n{end}\n\nHi",
            f"{begin}Hm{end}{end}{end}Hi",
        ):
            for at in range(1, len(text)):
                assert run(parser(made), [text[:at], text[at:]]) == [Reasoning("Hm"), Content("Hi")]
        assert run(parser(made), [f"{end}\n\nHi"]) == [Content("Hi")]


def test_special_tokens_of_calls_are_never_shown() -> None:
    for name in TOOL_FORMATS:
        made = dialect(name)
        for control in TOOL_FORMATS[name].controls:
            for text in (f"All {control}done.", f"All done.{control}", f"{control}All done."):
                for parse_tools in (True, False):
                    if not parse_tools and not made.on_channels:
                        continue  # then the text has no special tokens
                    for at in range(len(text)):
                        events = run(parser(made, parse_tools=parse_tools), [text[:at], text[at:]])
                        assert content(events).replace(" ", "") == "Alldone.", (text, at)
