"""What is particular to one format."""

from __future__ import annotations

import json
import re
from typing import Any

from bough.parsers.base import Content, ParsedEvent, Reasoning, ToolCallArguments, ToolCallStart, ToolSpec
from bough.parsers.json_scanner import JsonScanner
from bough.parsers.typed_values import typed_value
from tests.parsers.parsing import calls, content, dialect, finish, merged, parser, payload, reasoning, run


def parsed(name: str, text: str) -> list[ParsedEvent]:
    return run(parser(dialect(name)), [text])


def raw_events(name: str, text: str) -> list[ParsedEvent]:
    made = parser(dialect(name))
    return [*made.feed(text), *finish(made)]


def arguments(events: list[ParsedEvent]) -> str:
    return "".join(event.fragment for event in events if isinstance(event, ToolCallArguments))


def test_objects_are_read_generously() -> None:
    cases = [
        ('{"name": "now", "arguments": {"a": [1, {"b": "}</tool_call>"}]}}', {"a": [1, {"b": "}</tool_call>"}]}),
        ('{"arguments": {"a": 1}, "name": "now"}', {"a": 1}),
        ('{"name": "now", "parameters": {"a": 1}}', {"a": 1}),
        ('{"type": "function", "id": "x", "name": "now", "arguments": {"a": 1}}', {"a": 1}),
        ('{"name": "now"}', {}),
        ('{"name": "now", "arguments": null}', {}),
        ('{"name": "now", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"name": "now", "arguments": {"a": "line\nbreak"}}', {"a": "line\nbreak"}),
        ('{"name": "now", "arguments": {"a": 1}', {"a": 1}),
        ('{\n  "name" : "now" ,\n  "arguments" : { "a" : 1 }\n}', {"a": 1}),
    ]
    for inside, expected in cases:
        events = parsed("hermes", f"<tool_call>\n{inside}\n</tool_call>")
        assert calls(events) == [("now", expected)]
        assert content(events) == ""


def test_what_is_no_call_is_content() -> None:
    cases = [
        "now",
        "[]",
        "{}",
        '{"name": 5, "arguments": {}}',
        '{"name": "other", "arguments": {}}',
        '{"name": "now", "arguments": [1]}',
        '{"name": "now", "arguments": "no JSON"}',
        '{"name": "now", "args": {}}',
        '{"arguments": {"a": 01}, "name": "now"}',
        "{'name': 'now', 'arguments': {}}",
    ]
    for inside in cases:
        text = f"<tool_call>{inside}</tool_call> and more"
        assert parsed("hermes", text) == [Content(text)]


def test_numbers_that_are_not_finite_are_strings() -> None:
    inside = '{"a": 1e999, "b": [NaN, -Infinity, 2, -1e400], "c": "1e999"}'
    value = {"a": "1e999", "b": ["NaN", "-Infinity", 2, "-1e400"], "c": "1e999"}
    for name, text in {
        "hermes": f'<tool_call>{{"name": "now", "arguments": {inside}}}</tool_call>',
        "qwen25": f'<tool_call>{{"name": "now", "arguments": {json.dumps(inside)}}}</tool_call>',
        "llama3": f'{{"parameters": {inside}, "name": "now"}}',
        "mistral": f"[TOOL_CALLS]now[ARGS]{inside}",
        "deepseekv31": f"<｜tool▁call▁begin｜>now<｜tool▁sep｜>{inside}<｜tool▁call▁end｜>",
        "gpt-oss": f"<|channel|>commentary to=functions.now<|message|>{inside}<|call|>",
        "kimi_k2": f"<|tool_call_begin|>now<|tool_call_argument_begin|>{inside}<|tool_call_end|>",
    }.items():
        for at in range(len(text)):
            assert calls(run(parser(dialect(name)), [text[:at], text[at:]])) == [("now", value)], (name, at)
    events = run(parser(dialect("pythonic")), ["[now(a=1e999, b=[-1e999, float], c=nan)]"])
    assert calls(events) == []
    events = run(parser(dialect("pythonic")), ["[now(a=1e999, b=[-1e999, NaN], c=-1e999)]"])
    assert calls(events) == [("now", {"a": "1e999", "b": ["-Infinity", "NaN"], "c": "-1e999"})]


def test_arguments_that_are_no_json_are_passed_on_as_they_stand() -> None:
    for name, text in (
        ("hermes", '<tool_call>{"name": "now", "arguments": {\'a\': 1}}\n</tool_call>ok'),
        ("phi4_mini", '<|tool_call|>[{"name": "now", "arguments": {\'a\': 1}}]<|/tool_call|>ok'),
    ):
        events = parsed(name, text)
        assert events == [ToolCallStart(0, "", "now"), ToolCallArguments(0, "{'a': 1}"), Content("ok")]


def test_arguments_come_as_they_are_written() -> None:
    made = parser(dialect("hermes"))
    pieces = ['<tool_call>{"name": "now", "arg', 'uments": {"a"', ': "b', " c", '"}}', "</tool_call>"]
    fragments = [arguments(made.feed(piece)) for piece in pieces]
    assert fragments == ["", '{"a"', ': "b', " c", '"}', ""]


def test_content_is_held_back_only_while_it_may_be_a_marker() -> None:
    made = parser(dialect("hermes"))
    shown = [content(made.feed(piece)) for piece in ["a", " <", "tool", "s>", " b\n", "<tool_call", "s"]]
    assert shown == ["a", "", "", " <tools>", " b", "", "\n<tool_calls"]


def test_an_answer_in_json_is_no_call_if_it_names_none() -> None:
    for text in ('{"city": "Wien"}', '{"name": "Anna", "age": 5}', "{ not JSON", "{"):
        assert parsed("llama3", text) == [Content(text)]
    assert content(parsed("llama3", 'See: {"name": "now", "parameters": {}}')).startswith("See: {")


def test_mistral_ids_have_nine_letters_or_digits() -> None:
    for text in ('[TOOL_CALLS] [{"name": "now", "arguments": {}, "id": "x"}]', "[TOOL_CALLS]now[ARGS]{}"):
        [start] = [event for event in raw_events("mistral", text) if isinstance(event, ToolCallStart)]
        assert re.fullmatch(r"[A-Za-z0-9]{9}", start.id)
        assert content(parsed("mistral", text)) == ""
    [start] = [
        event
        for event in raw_events("mistral", "[TOOL_CALLS]now[CALL_ID]aB3456789[ARGS]{}")
        if isinstance(event, ToolCallStart)
    ]
    assert start.id == "aB3456789"


def test_other_ids_look_like_openais() -> None:
    [start, _] = raw_events("hermes", '<tool_call>{"name": "now"}</tool_call>')
    assert isinstance(start, ToolCallStart)
    assert re.fullmatch(r"call_[0-9a-f]{24}", start.id)


def test_kimi_ids_are_what_the_model_writes() -> None:
    for call_id in ["functions.now:0", "now:3", "now"]:
        text = f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
        [start, _] = raw_events("kimi_k2", text)
        assert start == ToolCallStart(0, call_id, "now")


def ids_of(name: str, text: str) -> list[str]:
    return [event.id for event in raw_events(name, text) if isinstance(event, ToolCallStart)]


def test_every_call_of_an_answer_has_an_id_of_its_own() -> None:
    cases = [
        ("hermes", '<tool_call>{"id": "c1", "name": "now", "arguments": {}}</tool_call>', "c1"),
        ("kimi_k2", "<|tool_call_begin|>now:0<|tool_call_argument_begin|>{}<|tool_call_end|>", "now:0"),
        ("mistral", "[TOOL_CALLS]now[CALL_ID]aB3456789[ARGS]{}", "aB3456789"),
    ]
    for name, call, call_id in cases:
        found = ids_of(name, call * 3)
        assert found[0] == call_id
        assert len(set(found)) == 3


def test_ids_have_bounds() -> None:
    call = '<tool_call>{{"id": "{}", "name": "now", "arguments": {{}}}}</tool_call>'
    assert ids_of("hermes", call.format("c" * 512)) == ["c" * 512]
    [found] = ids_of("hermes", call.format("c" * 513))
    assert re.fullmatch(r"call_[0-9a-f]{24}", found)


def glm(key: str, value: str) -> Any:
    text = f"<tool_call>get_weather\n<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n</tool_call>"
    [(_, found)] = calls(parsed("glm45", text))
    return found[key]


def test_values_between_tags_have_the_type_of_the_schema() -> None:
    cases = [
        ("city", "5", "5"),
        ("city", "null", "null"),
        ("city", ' a\n"b" ', ' a\n"b" '),
        ("days", "5", 5),
        ("days", " 5\n", 5),
        ("days", "5.0", 5.0),
        ("days", "many", "many"),
        ("days", "NaN", "NaN"),
        ("exact", "true", True),
        ("exact", "False", False),
        ("extra", '{"a": [1]}', {"a": [1]}),
        ("extra", "{'a': None}", {"a": None}),
        ("tags", "('x', 'y')", ["x", "y"]),
        ("tags", "[__import__('os')]", "[__import__('os')]"),
        ("tags", "[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
        ("unheard", "5", 5),
        ("unheard", "five", "five"),
    ]
    for key, value, expected in cases:
        if value.startswith("[[["):
            assert str(glm(key, value)).count("[") == 500  # a list so deep, or its text
            continue
        assert glm(key, value) == expected
        assert type(glm(key, value)) is type(expected)


TYPED = ToolSpec(
    "send",
    None,
    {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "zip": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "house": {"type": ["string", "null"]},
            "floor": {"type": ["string", "null"]},
            "flag": {"enum": ["1", "true"]},
            "count": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "on": {"type": "boolean"},
            "ids": {"type": "array"},
            "any": {},
        },
    },
    False,
)
EXPECTED = {
    "code": "01067",
    "zip": "01067",
    "house": "42",
    "floor": None,
    "flag": "1",
    "count": 42,
    "price": 2.5,
    "on": True,
    "ids": [1, "2"],
    "any": 7,
}


def written(name: str, values: dict[str, str]) -> str:
    if name == "qwen3_coder":
        tags = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
        return f"<tool_call>\n<function=send>\n{tags}</function>\n</tool_call>"
    if name.startswith("glm"):
        tags = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items())
        return f"<tool_call>send{tags}</tool_call>"
    return f"[send({', '.join(f'{key}={value}' for key, value in values.items())})]"


def test_arguments_have_the_types_of_the_schema_whatever_they_look_like() -> None:
    for name in ["glm", "glm45", "glm47", "qwen3_coder", "pythonic", "llama4"]:
        for quoted in [False, True]:
            shown = {name: value if isinstance(value, str) else str(value) for name, value in EXPECTED.items()}
            shown["ids"] = '[1, "2"]'
            if quoted:
                if name not in ("pythonic", "llama4"):
                    continue
                shown = {key: value if value == "None" else repr(value) for key, value in shown.items()}
            made = dialect(name).parser((TYPED,), parse_tools=True, separate_reasoning=True, thinking=False)
            assert made is not None
            [(called, found)] = calls(run(made, [written(name, shown)]))
            assert called == "send"
            assert found == {**EXPECTED, "any": "7" if quoted else 7}


def test_python_values_that_do_not_fit_stay_what_they_are() -> None:
    cases = [
        ("None", "string", None),
        ("True", "string", "True"),
        ("[1]", "string", [1]),
        ("'a b'", "integer", "a b"),
        ("'1.5'", "integer", "1.5"),
        ("'2.0'", "integer", 2.0),
        ("7", "integer", 7),
    ]
    for literal, kind, expected in cases:
        value = typed_value(literal, frozenset({kind}))
        assert (type(value), value) == (type(expected), expected)


def test_strings_between_tags_are_streamed() -> None:
    made = parser(dialect("qwen3_coder"))
    made.feed("<tool_call>\n<function=get_weather>\n<parameter=city>\n")
    assert arguments(made.feed('Wien\n"alt"')) == 'Wien\\n\\"alt\\"'
    assert arguments(made.feed("\n")) == ""
    assert arguments(made.feed("\n</parameter>\n</function>\n</tool_call>")) == '\\n"}'
    assert finish(made) == []


def test_text_between_arguments_is_content_and_the_call_goes_on() -> None:
    text = (
        "<tool_call>\n<function=get_weather>\nWell, <parameter=city>\nWien\n</parameter>\nso\n"
        "<parameter=days>\n2\n</parameter></function></tool_call>done"
    )
    events = parsed("qwen3_coder", text)
    assert calls(events) == [("get_weather", {"city": "Wien", "days": 2})]
    assert content(events) == "Well,sodone"


def test_a_call_of_which_an_argument_is_lost_has_the_others() -> None:
    cases = [
        ("qwen3_coder", "<function=get_weather>", "<parameter={}>\n{}\n</parameter>"),
        ("glm45", "<tool_call>get_weather\n", "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>"),
    ]
    for name, begin, argument in cases:
        tag = argument.partition("{")[0]
        lost = tag + "a" * 600
        for before, expected in (("", {}), (argument.format("days", 1), {"days": 1})):
            events = parsed(name, begin + before + lost + "!")
            assert calls(events) == [("get_weather", expected)]
            assert content(events) == lost + "!"
        cut_off = parsed(name, begin + argument.format("days", 1) + tag + "ci")
        assert arguments(cut_off) == '{"days": 1', "the end of the answer does not complete a call"


def test_glm_arguments_without_a_value_are_lost() -> None:
    events = parsed("glm45", "<tool_call>now<arg_key>a</arg_key>b</tool_call>")
    assert calls(events) == [("now", {})]
    assert content(events) == "<arg_key>a</arg_key>b</tool_call>"


def test_of_an_argument_that_is_repeated_the_first_counts() -> None:
    text = "<parameter=days>1</parameter><parameter=days>2</parameter><parameter=city>x</parameter>"
    events = parsed("qwen3_coder", f"<function=get_weather>{text}</function>")
    assert arguments(events) == '{"days": 1, "city": "x"}'
    assert content(events) == "<parameter=days>2</parameter>"


def test_python_that_is_more_than_literals_is_content() -> None:
    cases = [
        "[now(x=__import__('os').system('true'))]",
        "[now(x=open('f'))]",
        "[now(x=[i for i in range(9)])]",
        "[now(x=1 + 1)]",
        "[now(x=f'{1}')]",
        "[now(x=b'a')]",
        "[now(**{'x': 1})]",
        "[now(1)]",
        "[now(x=" + "[" * 100 + "]" * 100 + ")]",
        "[now(x=" + "-" * 5000 + "1)]",
        "[now(x=" + "9" * 5000 + ")]",
        "[now]",
        "[now(]",
        "[link](https://example.org)",
        "[1, 2]",
    ]
    for text in cases:
        assert parsed("pythonic", text) == [Content(text)]


def test_python_literals_become_json() -> None:
    text = r"""[now(a='it\'s', b="q\"", c='''x'y''', d=-1.5, e=true, f=null, g=(), h={'k': [None]}, i='\d')]"""
    [(_, found)] = calls(parsed("pythonic", text))
    expected = {"a": "it's", "b": 'q"', "c": "x'y", "d": -1.5, "e": True, "f": None, "g": [], "h": {"k": [None]}}
    assert found == {**expected, "i": r"\d"}


def test_escapes_never_make_half_a_character() -> None:
    cases = [
        ("pythonic", r"""[now(a="\ud83d\ude00 \ud83d", b={"\ude00": 1})]""", {"a": "😀 \ufffd", "b": {"\ufffd": 1}}),
        ("hermes", r"""<tool_call>{"arguments": "{\"a\": \"\ud83d\"}", "name": "now"}</tool_call>""", {"a": "\ufffd"}),
        ("hermes", r"""<tool_call>{"id": "\ude00", "name": "now", "arguments": {"a": 1}}</tool_call>""", {"a": 1}),
        (
            "qwen3_coder",
            r"<tool_call><function=now><parameter=a>['\ud83d\ude00', '\ud83d']</parameter></function></tool_call>",
            r"['\ud83d\ude00', '\ud83d']",
        ),
        (
            "qwen3_coder",
            r"<function=get_weather><parameter=tags>['\ud83d\ude00', '\ud83d']</parameter></function>",
            {"tags": ["😀", "\ufffd"]},
        ),
    ]
    for name, text, expected in cases:
        made = parser(dialect(name))
        events = [*made.feed(text), *finish(made)]
        [start] = [event for event in events if isinstance(event, ToolCallStart)]
        (start.id + payload(events)).encode()
        [(_, found)] = calls(events)
        assert found == (expected if isinstance(expected, dict) else {"a": expected})


def test_python_names_and_keywords_that_are_none_of_pythons() -> None:
    tool = ToolSpec("get-weather/now", None, {"type": "object"}, False)
    made = dialect("pythonic").parser([tool], parse_tools=True, separate_reasoning=True, thinking=False)
    assert made is not None
    events = run(made, [r"[get-weather/now(from='a', for-2=r'\d', x=(1,), y=[], z={},)]"])
    expected = {"from": "a", "for-2": r"\d", "x": [1], "y": [], "z": {}}
    assert calls(events) == [("get-weather/now", expected)]


HARMONY = (
    "<|channel|>analysis<|message|>Hm.<|end|>"
    "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
    "<|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>"
)


def test_harmony_channels() -> None:
    events = parsed("gpt-oss", HARMONY)
    assert events == [
        Reasoning("Hm."),
        Content("Let me look."),
        ToolCallStart(0, "", "now"),
        ToolCallArguments(0, "{}"),
    ]
    final = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|> Yes. <|return|>"
    assert parsed("gpt-oss", final) == [Reasoning("Hm."), Content(" Yes. ")]


def test_harmony_recipients_come_before_or_behind_the_channel() -> None:
    for text in (" to=functions.now<|channel|>commentary<|message|>{}", "<|channel|>analysis to=now code<|message|>{}"):
        assert calls(parsed("gpt-oss", text)) == [("now", {})]


def test_harmony_arguments_that_are_no_object_end_with_their_message() -> None:
    call = "<|channel|>commentary to=functions.now<|message|>"
    final = "<|start|>assistant<|channel|>final<|message|>Hi"
    for end in ("<|end|>", "<|call|>", "<|return|>", ""):
        for raw in ("now please", '{"when": now}'):
            text = call + raw + end + final
            expected = [ToolCallStart(0, "", "now"), ToolCallArguments(0, raw), Content("Hi")]
            for at in range(len(text)):
                assert run(parser(dialect("gpt-oss")), [text[:at], text[at:]]) == expected, text


def test_harmony_calls_are_content_if_nothing_may_be_called() -> None:
    made = dialect("gpt-oss").parser((), parse_tools=False, separate_reasoning=True, thinking=False)
    assert made is not None
    events = merged([*made.feed(HARMONY), *finish(made)])
    assert reasoning(events) == "Hm."
    assert content(events) == "Let me look.{}"


def test_harmony_thoughts_that_are_not_separated_stay_with_their_marks() -> None:
    made = parser(dialect("gpt-oss"), separate_reasoning=False)
    events = run(made, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.")
    assert events == [Content("<|channel|>analysis<|message|>Hm.<|end|>Yes.")]


def test_harmony_without_marks_is_content() -> None:
    for text in ("Yes.", "to=nobody"):
        assert payload(parsed("gpt-oss", text)) == text


def test_harmony_headers_are_never_shown() -> None:
    for text, shown in {
        "<|channel|>odd<|message|>x": [Content("x")],
        "<|start|>user<|message|>x": [Content("x")],
        "<|channel|>analysis to=python code<|message|>x<|call|>": [Reasoning("x")],
        "<|channel|>commentary to=functions.later <|constrain|>json<|message|>{}<|call|>": [Content("{}")],
        "<|message|>x<|end|>": [Content("x")],
        "<|channel|>analysis<|message|>Hm<|message|>.<|end|><|start|>assistant": [Reasoning("Hm.")],
        "<|channel|>final<|message|>x<|return|><|start|>assistant<|channel|>final": [Content("x")],
        "<|channel|>final<|channel|>final<|message|>x": [Content("x")],
        "<|channel|>final\nx y" + " z" * 400: [Content("x y" + " z" * 400)],
    }.items():
        for at in range(len(text)):
            assert run(parser(dialect("gpt-oss")), [text[:at], text[at:]]) == shown, (text, at)


def test_json_ends_where_it_is_complete_or_wrong() -> None:
    cases = [
        ('{"a": [1, -2.5e3, true, null, "\\u00e9\\n"]} x', 42, True),
        ("12,", 2, True),
        ("12", 2, False),
        ('"a', 2, False),
        ("tru", 3, False),
        ("trie", 2, False),
        ("01 ", 2, False),
        ('{"a" 1}', 5, False),
        ('{"a": 1,}', 8, False),
        ("[1,]", 3, False),
        ("[1}", 2, False),
        ('"\\x"', 2, False),
        ('"\\u12g"', 5, False),
        ("[" * 100_000 + "]" * 100_000, 200_000, True),
        ("1" * 5000, 1025, False),
    ]
    for text, end, done in cases:
        whole = JsonScanner()
        assert whole.scan(text, 0) == end
        assert whole.done is done
        assert whole.output == text[:end]
        if len(text) < 1000:
            pieces, stopped = JsonScanner(), 0
            for character in text:
                passed = pieces.scan(character, 0)
                stopped += passed
                if not passed:
                    break
            assert stopped == end
            assert pieces.done is done
