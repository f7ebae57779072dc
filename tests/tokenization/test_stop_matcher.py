from __future__ import annotations

from typing import Any

import pytest
import re2
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bough.errors import BadRequest
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.stop_regex import MAX_MATCH_CHARS, compile_stop_regex
from tests.thoroughness import examples

Outcome = tuple[str, str | None]


def run(matcher: StopMatcher, pieces: list[str]) -> Outcome:
    """Push pieces as a server would: until something matches or there is no more."""
    out = []
    for piece in pieces:
        step = matcher.push(piece)
        out.append(step.text)
        if step.matched is not None:
            return "".join(out), step.matched
    out.append(matcher.flush())
    return "".join(out), matcher.matched


def expected(text: str, stop: list[str], patterns: list[str], keep: bool = False) -> Outcome:
    """The rule, looked up place by place in the whole text."""
    ahead = any(token in pattern for pattern in patterns for token in ("$", r"\b", r"\B", r"\z"))
    for seen in range(1, len(text) + 2):
        at_end = seen > len(text)
        found = []
        for string in stop:
            if not at_end and text[:seen].endswith(string):
                found.append((seen - len(string), seen, string))
        end = min(seen - ahead, len(text)) if not at_end else len(text)
        for pattern in patterns:
            data = text.encode()
            first = max(0, end - MAX_MATCH_CHARS)
            limit = len(text[:end].encode())
            known = data if at_end else text[:seen].encode()
            match = re2.compile(pattern).search(known, len(text[:first].encode()), limit)
            if match is not None:
                found.append((len(data[: match.start()].decode()), end, pattern))
        if found:
            start, end, matched = min(found, key=lambda item: item[0])
            return text[: end if keep else start], matched
    return text, None


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces, at, index = [], 0, 0
    while at < len(text):
        pieces.append(text[at : at + sizes[index % len(sizes)]])
        at += sizes[index % len(sizes)]
        index += 1
    return pieces


letters = st.text(alphabet="ab\n中", max_size=30)
cut_sizes = st.lists(st.integers(1, 7), min_size=1, max_size=6)
stop_strings = st.lists(st.text(alphabet="ab\n中", min_size=1, max_size=5), min_size=1, max_size=4)

atoms = st.sampled_from(
    ["a", "b", "中", ".", "[ab]", "[^a]", r"\n", r"\S", "(?i:A)", "(?s:.)", r"\Qb\E", "[]a]", "[[:alpha:]]", r"\x61"]
)
assertions = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\z", "(?m:^)", "(?m:$)"])


def patterns_over(leaves: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "{0,2}"])).map(
                lambda parts: f"({parts[0]}){parts[1]}"
            ),
        ),
        max_leaves=6,
    )


plain_patterns = patterns_over(atoms)
looking_patterns = patterns_over(st.one_of(atoms, atoms, assertions))


@settings(max_examples=examples(300))
@given(text=letters, stop=stop_strings, sizes=cut_sizes, keep=st.booleans())
def test_strings_in_pieces_as_in_the_whole_text(text: str, stop: list[str], sizes: list[int], keep: bool) -> None:
    outcome = run(StopMatcher(stop, (), keep), cut(text, sizes))
    assert outcome == expected(text, stop, [], keep)
    assert outcome == run(StopMatcher(stop, (), keep), [text])


def matcher_for(patterns: list[str], stop: list[str], keep: bool) -> StopMatcher:
    try:
        return StopMatcher(stop, patterns, keep)
    except BadRequest:
        assume(False)
        raise


@settings(max_examples=examples(400))
@given(
    text=letters,
    patterns=st.lists(plain_patterns, min_size=1, max_size=2),
    stop=st.one_of(st.just([]), stop_strings),
    sizes=cut_sizes,
    keep=st.booleans(),
)
def test_patterns_in_pieces_as_in_the_whole_text(
    text: str, patterns: list[str], stop: list[str], sizes: list[int], keep: bool
) -> None:
    outcome = run(matcher_for(patterns, stop, keep), cut(text, sizes))
    assert outcome == expected(text, stop, patterns, keep)
    assert outcome == run(StopMatcher(stop, patterns, keep), [text])


@settings(max_examples=examples(400))
@given(
    text=letters,
    patterns=st.lists(looking_patterns, min_size=1, max_size=2),
    stop=st.one_of(st.just([]), stop_strings),
    sizes=cut_sizes,
    keep=st.booleans(),
)
@example(text="ab", patterns=[r"a\b"], stop=[], sizes=[1], keep=False)
@example(text="a", patterns=[r"a$"], stop=[], sizes=[1], keep=False)
def test_patterns_that_look_around_in_pieces_as_in_the_whole_text(
    text: str, patterns: list[str], stop: list[str], sizes: list[int], keep: bool
) -> None:
    outcome = run(matcher_for(patterns, stop, keep), cut(text, sizes))
    assert outcome == expected(text, stop, patterns, keep)
    assert outcome == run(StopMatcher(stop, patterns, keep), [text])


def test_a_match_across_pieces_never_leaks() -> None:
    matcher = StopMatcher(["\n\nUser:"])
    assert matcher.push("fine.\n") == ("fine.", None)
    assert len(matcher._held) == 1
    assert matcher.push("\nUs") == ("", None)
    assert matcher.push("er: hello") == ("", "\n\nUser:")
    assert matcher.push("more") == ("", "\n\nUser:")
    assert matcher.flush() == ""


def test_text_that_only_looked_like_a_match_comes_out() -> None:
    matcher = StopMatcher(["STOP"])
    assert matcher.push("a ST") == ("a ", None)
    assert matcher.push("ART") == ("START", None)
    assert matcher.push(" S") == (" ", None)
    assert matcher.flush() == "S"
    assert matcher.matched is None


def test_the_string_that_is_complete_first_ends_the_output() -> None:
    assert run(StopMatcher(["abcd", "bc"]), ["xabcd"]) == ("xa", "bc")
    assert run(StopMatcher(["ab", "abc"]), ["xabc"]) == ("x", "ab")


def test_of_two_complete_at_one_place_the_longer_counts() -> None:
    assert run(StopMatcher(["b", "ab"]), ["xab"]) == ("x", "ab")


def test_no_stop_trim_keeps_the_match_and_nothing_behind_it() -> None:
    assert run(StopMatcher(["END"], (), True), ["the EN", "D is near"]) == ("the END", "END")
    assert run(StopMatcher((), [r"E\w+D"], True), ["the EN", "D is near"]) == ("the END", r"E\w+D")


def test_a_pattern_is_named_as_the_request_wrote_it() -> None:
    assert run(StopMatcher((), [r"x\d", r"(?i)end\s"]), ["The eND of"]) == ("The ", r"(?i)end\s")


def test_only_text_that_may_begin_a_match_is_held() -> None:
    matcher = StopMatcher((), [r"\n\n(?:User|Human):"])
    assert matcher.push("a line\n") == ("a line", None)
    assert matcher.push("another\n\nHum") == ("\nanother", None)
    assert matcher.push("ility") == ("\n\nHumility", None)
    assert len(matcher._held) == 0


def test_a_word_border_is_judged_by_what_follows() -> None:
    assert run(StopMatcher((), [r"\bEND\b"]), list("ENDING, the END.")) == ("ENDING, the ", r"\bEND\b")
    assert run(StopMatcher((), [r"\bEND\b"]), list("THE END")) == ("THE ", r"\bEND\b")


def test_a_pattern_without_bound_holds_back_a_bounded_text() -> None:
    matcher = StopMatcher((), [r"<tag>[\s\S]*</tag>"])
    text = "before <tag>" + "x" * 5000
    out = "".join(matcher.push(text[i : i + 7]).text for i in range(0, len(text), 7))
    assert out.startswith("before <tag>xxx")
    assert len(text) - len(out) == len(matcher._held) < MAX_MATCH_CHARS
    assert out + matcher.flush() == text


def test_the_longest_match_that_counts_does_not_depend_on_the_pieces() -> None:
    for size in [1, 100, MAX_MATCH_CHARS, 10**6]:
        pattern = "<[^>]*>"
        for inner, found in ((MAX_MATCH_CHARS - 2, True), (MAX_MATCH_CHARS - 1, False)):
            text = "abc" * 300 + "<" + "中" * inner + "> and so on"
            assert run(StopMatcher((), [pattern]), cut(text, [size])) == (
                ("abc" * 300, pattern) if found else (text, None)
            )


class CountedStop(str):
    """A stop string that counts the places where it is tried."""

    tried = 0

    def startswith(self, *args: Any) -> bool:
        CountedStop.tried += 1
        return super().startswith(*args)


def test_long_stop_strings_are_tried_at_few_places_in_the_worst_case(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = ["a" + "b" * i + "c" * (1022 - i) for i in range(31)] + ["a" * 1023 + "b"]
    matcher = StopMatcher(list(map(CountedStop, stops)))
    matcher.push("a" * 1022)
    monkeypatch.setattr(CountedStop, "tried", 0)
    for _ in range(1000):
        assert matcher.push("a").matched is None
    assert 1000 <= CountedStop.tried <= 2000, "of a thousand places and 32 strings each time"


def test_a_bad_pattern_is_refused_naming_the_field_and_the_reason() -> None:
    cases = [
        ("a(b", "missing"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        (r"\pL{500}", "too large"),
        ("a*", "empty text"),
        (r"\b", "empty text"),
        ("(|a)", "empty text"),
        (r"a\C", r"\\C"),
        ("\ud800", "surrogates"),
        ("(?:[a-z][0-9]){400}x", "too complex"),
    ]
    for pattern, reason in cases:
        with pytest.raises(BadRequest, match=reason) as error:
            compile_stop_regex((pattern,), "stop_regex")
        assert error.value.param == "stop_regex"
        assert "stop_regex" in error.value.message


def test_patterns_of_one_request_share_a_bound() -> None:
    with pytest.raises(BadRequest, match="too complex"):
        StopMatcher((), [rf"(a|b)*a(a|b){{{i}}}c" for i in range(10, 42)])


def test_each_push_searches_a_bounded_text_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = StopMatcher((), [r"(a|b)*a(a|b){100}c"])
    regex = matcher._regex
    assert regex is not None
    searched: list[int] = []

    class Counted:
        def __init__(self, pattern: Any) -> None:
            self._pattern = pattern

        def search(self, data: bytes, start: int = 0, end: int | None = None) -> Any:
            searched.append((len(data) if end is None else end) - start)
            return self._pattern.search(data, start, len(data) if end is None else end)

    for name in ("_any", "_beginning"):
        monkeypatch.setattr(regex, name, Counted(getattr(regex, name)))
    for i in range(200):
        assert matcher.push("ab"[i * i % 7 % 2] * 4).matched is None
    assert len(searched) == 2 * 200
    assert MAX_MATCH_CHARS <= max(searched) <= MAX_MATCH_CHARS + 4
