from __future__ import annotations

import itertools

import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bough.tokenization.regex_prefixes import parse
from tests.thoroughness import examples
from tests.tokenization.test_stop_matcher import looking_patterns, plain_patterns

TEXTS = ["".join(chars) for size in range(6) for chars in itertools.product("ab", repeat=size)]


def full(pattern: str, text: str) -> bool:
    return re2.fullmatch(pattern, text) is not None


def test_the_pattern_itself_is_kept() -> None:
    cases = [
        "abc",
        "a|b|",
        "(a)(?:b)(?P<name>a)(?<other>b)",
        r"\Qa.b",
        r"\Qab\E+",
        "a{,2}",
        "a{",
        "x{2}{",
        "(?i)a(?-i)B|A",
        "((?i)a|B)b",
        "(?i:a(?s-i:.)b)",
        "[]a]+",
        "[^]a]+",
        r"[\]a]+",
        "[[:alpha:]b]a",
        "[[:a]b",
        r"[a-\x62]*",
        r"\x{61}\141\07?",
        r"\pL\p{Lu}?\PN\p{^Greek}",
        "(?m)^a$",
        "(?U)a+b",
        "a*?b+?c??d{1,2}?",
        "^*ab",
        "()a",
        "(?i)()a",
        ")(".join(("(a", "b)")),
    ]
    for pattern in cases:
        tree = parse(pattern)
        extra = ["a.b", "a{,2}", "a{", "xx{", "A", "Ab", "aB", "a\nb", "]", "[:b", ":b", "aabc", "é1", "aaé"]
        for text in [*TEXTS, *extra]:
            assert full(tree.whole, text) == full(pattern, text), text


@settings(max_examples=examples(200))
@given(pattern=looking_patterns, text=st.text(alphabet="abA\n中", max_size=8))
def test_random_patterns_are_kept(pattern: str, text: str) -> None:
    try:
        expected = re2.search(pattern, text)
    except re2.error:
        assume(False)
    found = re2.search(parse(pattern).whole, text)
    # Where a match ends may differ, since greediness is left out.
    assert (found and found.start()) == (expected and expected.start())


@settings(max_examples=examples(200))
@given(pattern=plain_patterns)
def test_beginnings_are_those_of_the_matches(pattern: str) -> None:
    tree = parse(pattern)
    matches = [text for text in TEXTS if full(tree.whole, text)]
    beginnings = {text[:size] for text in matches for size in range(len(text) + 1)}
    for text in beginnings:
        assert full(tree.beginnings, text), text
    assert tree.can_be_empty == full(tree.whole, "")


def test_nothing_else_counts_as_a_beginning() -> None:
    cases = [
        ("abc", ["b", "ac", "abcd"]),
        ("(?:ab|cd)+x", ["abd", "abx1", "cdcb"]),
        ("a{2,3}b", ["ab", "aaaa", "ba"]),
        ("(ab){2}c", ["abc", "ababa"]),
        (r"\n\n\w+:", ["\na", "\n\n :"]),
    ]
    for pattern, dead in cases:
        assert not any(full(parse(pattern).beginnings, text) for text in dead)


def test_looking_ahead_is_noticed() -> None:
    for pattern, looks in [("a$", True), (r"\bab", True), (r"^a\A", False), (r"[$]\$\Q$\E", False), ("(?m)a$", True)]:
        assert parse(pattern).looks_ahead is looks
