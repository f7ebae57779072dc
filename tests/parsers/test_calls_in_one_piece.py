"""The arguments of a call come right behind its start, so that APIs whose answers consist of blocks can tell it."""

from __future__ import annotations

from bough.parsers.base import Content, ToolCallArguments, ToolCallStart
from tests.parsers.parsing import dialect, finish, merged, parser, run

ARGUMENTS = {
    "qwen3_coder": "<function=get_weather>{}<parameter=city>\nWien\n</parameter>{}"
    "<parameter=days>\n2\n</parameter>{}</function>",
    "glm45": "<tool_call>get_weather{}<arg_key>city</arg_key><arg_value>Wien</arg_value>{}<arg_key>days</arg_key>"
    "<arg_value>2</arg_value>{}</tool_call>",
}


def test_text_between_the_tags_of_a_call_comes_behind_it() -> None:
    for name in ARGUMENTS:
        for size in [1, 7, 1000]:
            text = ARGUMENTS[name].format("", "So,", "!")
            events = run(parser(dialect(name)), [text[at : at + size] for at in range(0, len(text), size)])
            start = ToolCallStart(0, "", "get_weather")
            assert events == [start, ToolCallArguments(0, '{"city": "Wien", "days": 2}'), Content("So,!")]


def test_an_argument_that_is_repeated_comes_behind_the_call() -> None:
    again = "<parameter=days>2</parameter>"
    text = f"<function=get_weather><parameter=days>1</parameter>{again}<parameter=city>x</parameter></function>"
    assert run(parser(dialect("qwen3_coder")), [text])[1:] == [
        ToolCallArguments(0, '{"days": 1, "city": "x"}'),
        Content(again),
    ]


def test_text_in_a_call_that_never_ends_comes_last() -> None:
    made = parser(dialect("qwen3_coder"))
    begun = merged(made.feed("<function=now>\nWell, well"))
    assert begun == [ToolCallStart(0, "", "now")]
    assert merged(finish(made)) == [ToolCallArguments(0, "{}"), Content("Well, well")]
