"""Where values end that stand between tags, whatever is in them, and what is forgotten behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.parsers.base import ParsedEvent, ToolCallArguments, ToolSpec
from bough.parsers.stream import MAX_HELD_CHARS
from bough.parsers.typed_values import typed_json
from tests.constrained.following import allows
from tests.parsers.parsing import calls, content, dialect, finish, payload, run
from tests.parsers.test_argument_schemas import MARKS, grammar_of, parsed, written
from tests.parsers.test_work import Meter

LISTS = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}, "s": {"type": "string"}}}
NUMBERS = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}, "x": {}}}


def events_of(
    name: str, schema: dict[str, Any], text: str, *, cut: bool = False, size: int = 1 << 20
) -> list[ParsedEvent]:
    made = dialect(name).parser(
        (ToolSpec("f", None, schema, False),), parse_tools=True, separate_reasoning=True, thinking=False
    )
    assert made is not None
    return run(made, [text[at : at + size] for at in range(0, len(text), size)], cut=cut)


def arguments(events: list[ParsedEvent]) -> str:
    return "".join(event.fragment for event in events if isinstance(event, ToolCallArguments))


def test_marks_in_strings_of_json_are_part_of_it() -> None:
    for name in MARKS:
        for shape in ['["x{}y"]', '[ "{}", "\\"{}" ]', '["{}{}"]', '["", "{}"]\n']:
            value = shape.replace("{}", MARKS[name])
            text = written(name, {"a": value, "s": "z"})
            assert parsed(name, LISTS, text) == {"a": json.loads(value), "s": "z"}
            if not value.endswith("\n") and not value.startswith("[ "):
                assert allows(grammar_of(name, LISTS, strict=True), text)
            for size in (1, 3):
                assert events_of(name, LISTS, text, size=size) == events_of(name, LISTS, text)


def test_the_first_mark_ends_a_value_that_is_no_json() -> None:
    for name in MARKS:
        for value in ['["x', '["x\n', '["x"] y', "['x", '{"x', '"', '"x" "', '["\\', "[1, "]:
            text = written(name, {"a": value, "s": "z"})
            for size in (1 << 20, 1, 3):
                events = events_of(name, LISTS, text, size=size)
                assert calls(events) == [("f", {"a": value, "s": "z"})]
                assert content(events) == ""


def test_a_value_of_json_that_never_ends_ends_at_its_first_mark() -> None:
    for name in MARKS:
        begin = written(name, {"a": '["x'}).partition(MARKS[name])[0] + MARKS[name]
        for size in (1 << 20, 1):
            events = events_of(name, LISTS, f"{begin} and more {MARKS[name]}", size=size)
            assert calls(events) == [("f", {"a": '["x'})]
            assert content(events) == f"and more {MARKS[name]}"


def test_a_value_with_a_mark_in_it_may_be_longer_than_what_is_held_back() -> None:
    for name in MARKS:
        value = [f"x{MARKS[name]}{'y' * (2 * MAX_HELD_CHARS)}"]
        text = written(name, {"a": value, "s": "z"})
        for size in (1 << 20, 777):
            assert calls(events_of(name, LISTS, text, size=size)) == [("f", {"a": value, "s": "z"})]


@pytest.mark.parametrize("name", MARKS)
@given(data=st.data())
def test_values_are_the_same_however_they_are_cut(name: str, data: st.DataObject) -> None:
    call = written(name, {"a": '["x"]', "s": "z"})
    tags = [MARKS[name], call.partition('["x"]')[0], call.partition('["x"]')[2], "</function>", "\n</function>\n"]
    bits = [*tags, '"', "[", "]", ", ", "\\", "\n", " ", "x", "1", '["', '"]', "</", "</tool_call>", "<parameter=s>"]
    text = "".join(data.draw(st.lists(st.sampled_from(bits), max_size=20)))
    text, is_cut = tags[1] + text, data.draw(st.booleans())
    whole = events_of(name, LISTS, text, cut=is_cut)
    assert events_of(name, LISTS, text, cut=is_cut, size=data.draw(st.integers(1, 9))) == whole


def test_the_work_of_turning_back_is_in_proportion() -> None:
    for name in MARKS:
        call = written(name, {"a": '["'})
        unit = call.partition('["')[0] + '["' + MARKS[name]
        for bit in ("", '","', '", "', '\\"', '"]'):
            text = (unit + bit) * (16_000 // len(unit))
            with pytest.MonkeyPatch.context() as patch:
                meter = Meter(patch)
                events_of(name, LISTS, text, size=50)
            assert meter.chars < 60 * len(text)


FORGOTTEN = {
    "the last": "<parameter=n>\n1\n</function>\n</tool_call>",
    "in the middle": "<parameter=n>\n1\n<parameter=s>\nz\n</parameter>\n</function>\n</tool_call>",
    "the function, too": "<parameter=n>\n1\n</tool_call>",
    "of nothing": "<parameter=n>\n</function>\n</tool_call>",
}


def test_an_argument_that_is_no_text_ends_where_the_next_line_goes_on_with_the_call() -> None:
    for case in FORGOTTEN:
        for behind in ["", "\nwell", "\n<tool_call>\n<function=f>\n</function>\n</tool_call>"]:
            text = f"<tool_call>\n<function=f>\n{FORGOTTEN[case]}{behind}"
            for size in (1 << 20, 1):
                events = events_of("qwen3_coder", NUMBERS, text, size=size)
                n = "" if case == "of nothing" else 1
                first, *others = calls(events)
                assert first == ("f", {"n": n, "s": "z"} if case == "in the middle" else {"n": n})
                assert len(others) == behind.count("<tool_call>")
                assert content(events) == ("well" if behind == "\nwell" else "")


def test_a_text_whose_tag_is_not_closed_ends_with_the_answer() -> None:
    for key in ["s", "x"]:
        for end in ["\n</function>", "\n</function>\n</tool_call>", "\n</function></tool_call>\n"]:
            for text in (
                "a\nb",
                "see </function>\n</tool_call>",
                "see\n</function>\n</tool_call>\nabove",
                "\n</function",
            ):
                answer = f"<tool_call>\n<function=f>\n<parameter={key}>\n{text}{end}"
                for size in (1 << 20, 1):
                    assert calls(events_of("qwen3_coder", NUMBERS, answer, size=size)) == [("f", {key: text})]
                    assert not arguments(events_of("qwen3_coder", NUMBERS, answer, size=size, cut=True)).endswith("}")


def test_a_text_that_speaks_of_calls_is_not_torn() -> None:
    for key in ["s", "x"]:
        text = "Write\n<parameter=n>\n</function>\n</tool_call>\nand so on.\n</function>"
        answer = written("qwen3_coder", {key: text, "n": 1}) if key == "s" else written("qwen3_coder", {key: text})
        for size in (1 << 20, 1):
            assert calls(events_of("qwen3_coder", NUMBERS, answer, size=size))[0][1][key] == text


def test_a_text_that_may_be_null_is_not_torn_either() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    text = "Write calls like\n<parameter=city>\nUlm\n</function>\nthat is all"
    for size in (1 << 20, 1):
        for value, expected in (
            *((each, each) for each in (text, f"[{text}", f"{{{text}", "[1]", "")),
            ("null", None),
            ('"a"', "a"),
        ):
            answer = written("qwen3_coder", {"a": value})
            assert calls(events_of("qwen3_coder", schema, answer, size=size)) == [("f", {"a": expected})]


def test_json_behind_white_space_may_hold_the_mark() -> None:
    for name in MARKS:
        schema = {"type": "object", "properties": {"a": {"type": ["string", "object"]}}}
        value = {"b": f"c{MARKS[name]}d"}
        for size in (1 << 20, 1):
            answer = written(name, {"a": f"\n  {json.dumps(value)}"})
            assert calls(events_of(name, schema, answer, size=size)) == [("f", {"a": value})]


def test_a_call_whose_end_the_model_leaves_out_is_complete() -> None:
    for name in MARKS:
        whole = written(name, {"s": "z"})
        end = whole.index(MARKS[name]) + len(MARKS[name])
        for text in (whole[:end], f"{whole[:end]}\n", f"{whole[:end]} so"):
            for size in (1 << 20, 1):
                assert calls(events_of(name, NUMBERS, text, size=size)) == [("f", {"s": "z"})]
                assert arguments(events_of(name, NUMBERS, text, size=size, cut=True)) == '{"s": "z"'
        assert arguments(events_of(name, NUMBERS, whole[: end - len(MARKS[name])].rstrip("\n"))) == '{"s": "z'


def test_text_is_passed_on_while_it_comes_also_where_it_speaks_of_calls() -> None:
    made = dialect("qwen3_coder").parser(
        (ToolSpec("f", None, NUMBERS, False),), parse_tools=True, separate_reasoning=True, thinking=False
    )
    assert made is not None
    made.feed("<tool_call>\n<function=f>\n<parameter=s>\n")
    pieces = ["a", "\n</function>", "\n", "</tool", "_call>", "\nb", "c"]
    assert [payload(made.feed(piece)) for piece in pieces] == [
        "a",
        "",
        "",
        "",
        "",
        "\\n</function>\\n</tool_call>\\nb",
        "c",
    ]
    finish(made)


def test_a_mark_in_an_unfinished_value_does_not_swallow_the_next_argument() -> None:
    mark = MARKS["glm47"]
    text = f'<tool_call>f<arg_key>a</arg_key><arg_value>["x{mark}<arg_key>s</arg_key><arg_value>"{mark}</tool_call>'
    for size in (1 << 20, 1, 3):
        assert calls(events_of("glm47", LISTS, text, size=size)) == [("f", {"a": '["x', "s": '"'})]


def test_a_key_that_is_too_long_leaves_a_call_whole_however_it_comes() -> None:
    again = "<arg_key></arg_key><arg_value>"
    text = f"<tool_call>f{again}x</arg_value>{again * 110}<arg_key>{'x' * 560}"
    assert events_of("glm47", NUMBERS, text, size=7) == events_of("glm47", NUMBERS, text)


def test_where_a_string_is_allowed_only_lists_and_dictionaries_are_read_as_python() -> None:
    cases = [
        ("string null", '"exact phrase" "other"', '"exact phrase" "other"'),
        ("string null", "'it' # x", "'it' # x"),
        ("string null", "None", None),
        ("string null", '"it"', "it"),
        ("string integer", "+4912345", "+4912345"),
        ("string integer", "(555)", "(555)"),
        ("string integer", "0x1F", "0x1F"),
        ("string integer", "31", 31),
        ("array string", "1, 2", "1, 2"),
        ("array string", "['a', 'b']", ["a", "b"]),
        ("array string", "[1] + [2]", "[1] + [2]"),
        ("integer", "0x1F", 31),
        ("array", "1, 2", [1, 2]),
        ("", "{'a': 1}", "{'a': 1}"),
    ]
    for kinds, text, value in cases:
        assert json.loads(typed_json(text, frozenset(kinds.split()))) == value


def test_numbers_that_are_not_finite_are_strings() -> None:
    cases = [
        ("1e999", "number", "1e999"),
        ("-1E+400", "integer", "-1E+400"),
        ("NaN", "number", "NaN"),
        ("1e999", "", "1e999"),
        ("1e99", "number", 1e99),
        ("[1, 1e999, -1e400, NaN, -Infinity]", "array", [1, "1e999", "-1e400", "NaN", "-Infinity"]),
        ('{"a": {"b": 1e999, "c": "1e999"}}', "object", {"a": {"b": "1e999", "c": "1e999"}}),
        ("[1e999,]", "array", ["Infinity"]),
        ("{'a': -1e999}", "object", {"a": "-Infinity"}),
        ("0x" + "f" * 4000, "integer", "0x" + "f" * 4000),
    ]
    for name in MARKS:
        for text, kind, value in cases:
            schema = {"type": "object", "properties": {"a": {"type": kind} if kind else {}}}
            for size in (1 << 20, 1):
                assert calls(events_of(name, schema, written(name, {"a": text}), size=size)) == [("f", {"a": value})]
            assert json.loads(typed_json(text, frozenset({kind} if kind else ()))) == value


UNCLOSED = {
    "qwen3_coder": (
        "<tool_call>\n<function=f>\n{}</function>\n</tool_call>",
        "<parameter={}>\n{}\n",
        "</parameter>\n",
    ),
    "qwen3_coder in a line": ("<tool_call><function=f>{}</function></tool_call>", "<parameter={}>{}", "</parameter>"),
    "glm45": ("<tool_call>f\n{}</tool_call>", "<arg_key>{}</arg_key>\n<arg_value>{}", "</arg_value>\n"),
    "glm47": ("<tool_call>f{}</tool_call>", "<arg_key>{}</arg_key><arg_value>{}", "</arg_value>"),
}


def test_a_value_without_its_end_ends_at_the_next_declared_one() -> None:
    for form in UNCLOSED:
        for unclosed in ["city", "state", "days", "city state", "city state days", "tags state"]:
            name = form.split()[0]
            call, begin, end = UNCLOSED[form]
            values = {
                "city": "Dallas <b>",
                "state": "TX\n<parameter=other>",
                "days": 3,
                "tags": ["a", "<b>"],
                "last": "z",
            }
            kinds = {"city": "string", "state": "string", "days": "integer", "tags": "array", "last": "string"}
            schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in kinds.items()}}
            inside = ""
            for key, value in values.items():
                text = value if isinstance(value, str) else json.dumps(value)
                inside += begin.format(key, text) + ("" if key in unclosed.split() else end)
            text = call.format(inside)
            expected = [("f", values)]
            for at in range(len(text)):
                events = run(
                    dialect(name).parser(  # type: ignore[arg-type]
                        (ToolSpec("f", None, schema, False),), parse_tools=True, separate_reasoning=True, thinking=False
                    ),
                    [text[:at], text[at:]],
                )
                assert calls(events) == expected, at
                assert content(events) == ""


def test_a_tag_that_is_not_of_another_declared_argument_is_text() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "state": {"type": "string"}}}
    for value in ("a\n<parameter=other>\nb", "a\n<parameter=city>\nb", "a <parameter=state> b", "\n<parameter=state"):
        for name in MARKS:
            text = written(name, {"city": value})
            for size in (1 << 20, 1):
                assert calls(events_of(name, schema, text, size=size)) == [("f", {"city": value})]


def test_types_may_have_the_names_of_other_languages() -> None:
    for name in MARKS:
        for kinds, text, value in (
            ("float double Float num", "2.5", 2.5),
            ("int long int32 uint64 Integer", "7", 7),
            ("dict Dict[str,int] map", '{"a": 1}', {"a": 1}),
            ("dict object", "{'a': None}", {"a": None}),
            ("list List[int] tuple arr", "[1, 2]", [1, 2]),
            ("bool Boolean", "True", True),
            ("str text varchar String", "12", "12"),
            ("NoneType", "None", None),
        ):
            for kind in kinds.split():
                schema = {"type": "object", "properties": {"a": {"type": kind}}}
                assert calls(events_of(name, schema, written(name, {"a": text}))) == [("f", {"a": value})], kind
