from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.cli_commands.terminal_markdown import BOLD, CODE, DIM, ITALIC, PLAIN, UNDERLINED, MarkdownStream, harmless


def shown(*pieces: str) -> str:
    stream = MarkdownStream()
    return "".join(map(stream.feed, pieces)) + stream.end()


FOUR = f"{DIM}````{PLAIN}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("an **important** word", f"an {BOLD}important{PLAIN} word"),
        ("an *odd* and _even_ one", f"an {ITALIC}odd{PLAIN} and {ITALIC}even{PLAIN} one"),
        ("***both***", f"{BOLD}{ITALIC}both{PLAIN}"),
        ("**a *b* c**", f"{BOLD}a {ITALIC}b{PLAIN}{BOLD} c{PLAIN}"),
        ("run `a*b*c` now", f"run {CODE}a*b*c{PLAIN} now"),
        ("# Oaks\ngrow", f"{BOLD}Oaks{PLAIN}\ngrow"),
        ("## An *old* oak", f"{BOLD}An {ITALIC}old{PLAIN}{BOLD} oak{PLAIN}"),
        ("- one\n  * two", "• one\n  • two"),
        ("> said\nno more", f"{DIM}│ said{PLAIN}\nno more"),
        ("```python\na = *b\n\n```\nend", f"{DIM}```python{PLAIN}\n{CODE}a = *b{PLAIN}\n\n{DIM}```{PLAIN}\nend"),
        ("``x`a``", f"{CODE}x`a{PLAIN}"),
        ("````\n```\n~~~~\n````\n*b*", f"{FOUR}\n{CODE}```{PLAIN}\n{CODE}~~~~{PLAIN}\n{FOUR}\n{ITALIC}b{PLAIN}"),
        ("~~~ a`b`\n~~~ c\n  ~~~~ \nd", f"{DIM}~~~ a`b`{PLAIN}\n{CODE}~~~ c{PLAIN}\n{DIM}  ~~~~ {PLAIN}\nd"),
        ("```\r\n```\r\na", f"{DIM}```\\r{PLAIN}\n{DIM}```\\r{PLAIN}\na"),
        (r"a \*b\* *c \* d* \\*e*", f"a *b* {ITALIC}c * d{PLAIN} \\{ITALIC}e{PLAIN}"),
        (r"**a\*** \_b_ `a\`", rf"{BOLD}a*{PLAIN} _b_ {CODE}a\{PLAIN}"),
        ("\\# a\n\\- b \\(c\\)", "# a\n- b \\(c\\)"),
        ("```a``` b\n*c*", f"{CODE}a{PLAIN} b\n{ITALIC}c{PLAIN}"),
    ],
)
def test_markup_is_shown(text, expected):
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4",
        "2*3*4",
        "snake_case_name",
        "a *b",
        "an **open\none**",
        "#hashtag",
        "-5",
        "``",
        "*",
        "5 > 3",
        "_" * 9,
        r"C:\new",
        "\\",
    ],
)
def test_what_is_no_markup_stays(text):
    assert shown(text) == text


def test_text_is_shown_as_soon_as_it_is_known_what_it_is():
    stream = MarkdownStream()
    assert stream.feed("The ") == "The "
    assert stream.feed("**tall") == ""
    assert stream.feed("** oak *") == f"{BOLD}tall{PLAIN} oak "
    assert stream.feed(" is") == "* is"
    assert stream.feed("*" + "x" * 200) == "*" + "x" * 200
    assert stream.end() == ""


markdown = st.text(st.sampled_from("ab \n*_`#->~1é\x1b\\"), max_size=60) | st.text(max_size=30)


@given(markdown, st.lists(st.integers(0, 60), max_size=8))
def test_the_pieces_that_a_text_comes_in_change_nothing(text, cuts):
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    assert shown(*pieces) == shown(text) == shown(*text)


@pytest.mark.parametrize("alphabet", ["`ab", "`~a\n ", "*`_a\n", "*\\a_", "\\*`\n", "` \n", "ab \n*_`#->~1.é"])
def test_pieces_change_nothing_where_marks_are_many(alphabet):
    chance = random.Random(alphabet)
    for _ in range(400):
        text = "".join(chance.choices(alphabet, k=chance.choice((12, 30, 400))))
        edges = [0, *sorted(chance.sample(range(1, len(text)), 9)), len(text)]
        pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
        assert shown(*pieces) == shown(text) == shown(*text), text


def test_a_run_of_marks_too_long_to_be_held_stays_one():
    assert shown("*" * 200, "*a* b") == shown("*" * 201 + "a* b") == "*" * 201 + "a* b"


@given(markdown)
def test_no_letter_is_lost_and_no_sequence_of_the_models_obeyed(text):
    result = re.sub(r"\x1b\[\d+m", "", shown(text))
    assert "\x1b" not in result
    marks = re.compile(r"[*_`#>│•\s\\+-]")
    assert marks.sub("", result) == marks.sub("", harmless(text))


def test_control_characters_are_spelled_out():
    assert harmless("a\x1b]0;owned\x07\tb\n\r\x9b\u202e") == "a\\x1b]0;owned\\x07\tb\n\\r\\x9b\\u202e"


@pytest.mark.parametrize(
    "text", ["```" * 60, "```" + "a" * 200 + "`", "```\n" + "`" * 157 + "   \na", "~" * 170 + "\na"]
)
def test_where_a_line_begins_no_more_is_held_than_elsewhere(text):
    assert shown(*text) == shown(text)
    stream = MarkdownStream()
    assert stream.feed("```" * 100) != ""


def test_without_colours_code_is_underlined():
    stream = MarkdownStream(in_colour=False)
    assert stream.feed("a `b` **c**\n") == f"a {UNDERLINED}b{PLAIN} {BOLD}c{PLAIN}\n"
