"""What holds for every format, whatever the model writes and wherever its text is cut."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.parsers.base import ParsedEvent, ToolCallArguments, ToolCallStart
from bough.parsers.dialect import Dialect
from bough.parsers.reasoning import REASONING_FORMATS
from bough.parsers.tool_formats import TOOL_FORMATS
from tests.parsers.parsing import (
    FIRST,
    SECOND,
    calls,
    content,
    dialect,
    finish,
    parser,
    payload,
    reasoning,
    run,
    without_controls,
)
from tests.parsers.samples import KINDS, STARTS_ANSWER, TWO_CALLS

JSON_ARRAY = json.dumps([{"name": "get_weather", "parameters": FIRST}, {"name": "now", "parameters": SECOND}])
SAMPLES = [(name, text) for name in KINDS for text in TWO_CALLS[name]]
THINKING = {"gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant")}


def thinking_marks(name: str) -> tuple[str, str]:
    known = REASONING_FORMATS[name]
    return THINKING.get(name) or (known.start, known.end)


def test_every_format_has_samples() -> None:
    assert TWO_CALLS.keys() == TOOL_FORMATS.keys()


def test_calls_are_found() -> None:
    for name, text in SAMPLES:
        events = run(parser(dialect(name)), [text])
        assert calls(events) == [("get_weather", FIRST), ("now", SECOND)]
        assert content(events) == ""


def test_text_around_calls_is_content() -> None:
    for name, text in SAMPLES:
        if name in STARTS_ANSWER and text == TWO_CALLS[name][0]:
            continue
        before = (
            "Let me look."
            if name != "gpt-oss"
            else "<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant"
        )
        events = run(parser(dialect(name)), [f"{before}\n\n{text}" if name != "gpt-oss" else before + text])
        assert calls(events) == [("get_weather", FIRST), ("now", SECOND)]
        assert content(events) == "Let me look."


def test_cut_at_every_place_the_events_are_the_same() -> None:
    for name, text in SAMPLES:
        text = f"{text}\nand < [more] text"
        for thinking in (True, False):
            made = dialect(name, "gpt-oss" if name == "gpt-oss" else "qwen3")
            shown = f"Hm.\n</think>\n\n{text}" if thinking else text
            whole = run(parser(made, thinking=thinking), [shown])
            assert run(parser(made, thinking=thinking), shown) == whole
            for at in range(1, len(shown), 3 if thinking else 1):
                assert run(parser(made, thinking=thinking), [shown[:at], shown[at:]]) == whole


def test_an_answer_that_is_cut_off_loses_nothing() -> None:
    for name, text in SAMPLES:
        whole = payload(run(parser(dialect(name)), [text]))
        for at in range(0, len(text), 3):
            made = parser(dialect(name))
            passed = [event for character in text[:at] for event in made.feed(character)]
            assert whole.startswith(payload(passed)), "what was passed on does not depend on how it goes on"
            held = finish(made)
            if not any(isinstance(event, ToolCallStart) for event in passed):
                shown = without_controls(name, payload([*passed, *held]))
                assert name == "gpt-oss" or shown.strip() == without_controls(name, text[:at]).strip()
            made = parser(dialect(name))
            events = [*made.feed(text[:at] + "Zq7"), *finish(made)]
            ids = [event.id for event in events if isinstance(event, ToolCallStart)]
            assert "Zq7" in payload(events) + "".join(ids), "the last that came is shown, whatever was held back"


def test_a_call_that_is_cut_off_leaves_no_marker_in_the_content() -> None:
    for name, text in [*SAMPLES, ("none", JSON_ARRAY)]:
        for forced in [True, False]:
            if name == "none" and not forced:
                continue
            made = dialect(name)
            whole = run(parser(made, forced=forced), [text])
            raw = _arguments(whole)
            begins = ("[",) if name == "none" else (*TOOL_FORMATS[name].triggers, *TOOL_FORMATS[name].openers)
            for at in range(forced, len(text), 2):
                events = run(parser(made, forced=forced), [text[:at]], cut=True)
                if at % 5 == 0:
                    assert run(parser(made, forced=forced), text[:at], cut=True) == events
                found = _arguments(events)
                assert [called for called, _ in found] == [called for called, _ in raw[: len(found)]]
                for (_, arguments), (_, complete) in zip(found, raw, strict=False):
                    assert "<" not in arguments
                    assert name in ("qwen3_coder", "seed_oss", "glm", "glm45", "glm47") or complete.startswith(
                        arguments
                    )
                left = content(events)
                # What only begins an answer like a call is one when it names a function.
                is_unnamed = name in STARTS_ANSWER and left == text[:at] and re.search(r'get_weather["(]', left) is None
                is_shown = not forced and (is_unnamed or any(begin.startswith(left.strip()) for begin in begins))
                assert not left or is_shown


def _arguments(events: list[ParsedEvent]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            found.append((event.name, ""))
        elif isinstance(event, ToolCallArguments):
            found[-1] = (found[-1][0], found[-1][1] + event.fragment)
    return found


def test_text_that_is_cut_off_loses_nothing_but_the_beginning_of_a_call() -> None:
    for name in TOOL_FORMATS:
        final = "<|channel|>final<|message|>" if name == "gpt-oss" else ""
        for text in (
            "Is 1 <",
            "a <table",
            "An [x",
            "{",
            '{"name": "x',
            "[",
            "[1, 2",
            "1 <tool_call and on",
            "<tool_call>so</tool_call> and so",
        ):
            shown = content(run(parser(dialect(name)), [final + text], cut=True))
            assert shown == text, text


def test_calls_of_unknown_functions_are_content() -> None:
    for name, text in SAMPLES:
        text = text.replace("get_weather", "get_money").replace("now", "later")
        events = run(parser(dialect(name)), text)
        assert calls(events) == []
        if name != "gpt-oss":
            assert content(events) == without_controls(name, text)
            assert not any(control in content(events) for control in TOOL_FORMATS[name].controls)


def test_thoughts_are_told_apart() -> None:
    for name in REASONING_FORMATS:
        for tools in [None, "hermes"]:
            start, end = thinking_marks(name)
            final = "<|channel|>final<|message|>" if name == "gpt-oss" else "\n\n"
            text = f"{start}\nOne <b>\n two.\n{end}{final}The <i>answer</i>. "
            made = dialect("gpt-oss" if name == "gpt-oss" else tools or "none", name)
            for pieces in ([text], text):
                events = run(parser(made), pieces)
                assert reasoning(events).strip() == "One <b>\n two."
                assert content(events).strip() == "The <i>answer</i>."


GARBAGE = [
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ":",
    ",",
    "\\",
    "\n",
    " ",
    "(",
    ")",
    "=",
    "1",
    "x",
    "null",
    "é",
    "<",
    ">",
    "|",
    ";",
    r"\ud83d",
    r"\ude00",
    r"\U0001F600",
]


def pieces_of(samples: list[str]) -> list[str]:
    """Bits that the samples are made of, which garbage is made of, too."""
    draw = random.Random(7)
    bits = set(GARBAGE)
    for text in samples:
        cuts = sorted(draw.sample(range(len(text)), 24))
        bits |= {text[start:end] for start, end in pairwise(cuts)}
        for known in (
            "get_weather",
            "now",
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "[TOOL_CALLS]",
            "[ARGS]",
        ):
            if known in text:
                bits.add(known)
    return sorted(bits)


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_garbage_is_read_without_errors_and_alike_however_it_is_cut(name: str, data: st.DataObject) -> None:
    samples = TWO_CALLS[name]
    bits = st.sampled_from(pieces_of(samples))
    if data.draw(st.booleans()):
        text = "".join(data.draw(st.lists(bits, max_size=30)))
    else:
        text = data.draw(st.sampled_from(samples))
        for _ in range(data.draw(st.integers(1, 3))):
            begin = data.draw(st.integers(0, len(text)))
            end = data.draw(st.integers(begin, min(len(text), begin + 12)))
            text = text[:begin] + data.draw(bits | st.just("")) + text[end:]
    made = dialect(name, data.draw(st.sampled_from(["none", "gpt-oss" if name == "gpt-oss" else "qwen3"])))
    options = {key: data.draw(st.booleans()) for key in ("separate_reasoning", "thinking")}
    sizes = data.draw(st.lists(st.integers(1, 9), max_size=80))
    whole = run(parser(made, **options), [text])
    assert run(parser(made, **options), cut(text, sizes)) == whole
    payload(whole).encode()
    has_calls = any(isinstance(event, ToolCallStart) for event in whole)
    if not has_calls and made.reasoning_format is None and name != "gpt-oss":
        assert without_controls(name, content(whole)).rstrip() == without_controls(name, text).rstrip()


def test_a_word_put_anywhere_is_found_again() -> None:
    for name, text in SAMPLES:
        for at in range(len(text) + 1):
            if name == "gpt-oss" and text[:at].count("<|message|>") <= text[:at].count("<|call|>"):
                continue  # headers are never shown
            made = parser(dialect(name))
            events = [*made.feed(text[:at] + "Zq7" + text[at:]), *finish(made)]
            ids = [event.id for event in events if isinstance(event, ToolCallStart)]
            assert "Zq7" in payload(events) + "".join(ids)


def test_white_space_without_end_is_not_held_back() -> None:
    for name in TWO_CALLS:
        made = parser(dialect(name))
        passed = "".join(payload(made.feed(" ")) for _ in range(1000))
        assert len(passed) >= 900 or name in STARTS_ANSWER or name == "gpt-oss"
        assert passed + payload(finish(made)) == " " * 1000


def test_without_formats_there_is_no_parser() -> None:
    assert Dialect().parser((), parse_tools=True, separate_reasoning=True, thinking=False) is None
