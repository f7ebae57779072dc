from __future__ import annotations

from typing import Any

import pytest

from bough.constrained.base import GrammarError
from bough.constrained.structural_tag import MAX_PARTS, StructuralTagWriter
from bough.sampling.sampling_params import LENIENTLY
from tests.constrained.following import spec_of
from tests.constrained.special_tokens import vocabulary

SPECIAL = ("<|call|>", "<|end|>")

ANY: dict[str, Any] = {"type": "any_text"}


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def regex(pattern: str) -> dict[str, Any]:
    return {"type": "regex", "pattern": pattern}


def grammar(text: str) -> dict[str, Any]:
    return {"type": "grammar", "grammar": text}


def bare(**schema: Any) -> dict[str, Any]:
    return {"type": "bare_string", "json_schema": schema}


def tag(begin: str, content: Any, end: str) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def sequence(*elements: Any) -> dict[str, Any]:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Any) -> dict[str, Any]:
    return {"type": "or", "elements": list(elements)}


def allowed(form: Any, *texts: str) -> list[bool]:
    words = vocabulary(SPECIAL)
    compiled = words.backend.compile(spec_of("structural_tag", {"type": "structural_tag", "format": form}))
    return [words.allows(compiled, text) for text in texts]


def refusal(form: Any) -> str:
    with pytest.raises(GrammarError) as error:
        allowed(form)
    return error.value.message


def test_what_a_pattern_matches_ends_with_the_constant_behind_it() -> None:
    cases = [
        (tag("<a>", regex("[a-z<>/]+"), "</a>"), ["<a>b</a>", "<a><b></a>"], ["<a></a>", "<a>b", "<a>b</a>x"]),
        (sequence(regex("[a-z]+"), const("end")), ["aend", "abcend"], ["end", "abc"]),
        (tag("", grammar("root ::= [a-z ]+"), " end"), ["a end", "a b end"], [" end", "a en"]),
        (sequence(regex("[a-z]+"), const("end"), const("!")), ["aend!"], ["aend", "a!"]),
        (sequence(regex("a+"), tag("a", regex("b"), "")), ["aab"], ["ab", "aa"]),
        (sequence(regex("[a-z<>|]+"), const("<|end|>")), ["ab<|end|>"], ["<|end|>", "ab"]),
        (sequence(regex("[a-z]+"), const("x<|end|>y")), ["abx<|end|>y"], ["abx<|end|>", "ab<|end|>y"]),
        (sequence(regex("[a-z]+"), regex("[0-9]+")), ["a1", "ab12"], ["a", "1"]),
        (regex("[a-z]+"), ["a", "ab"], ["", "a1"]),
        (sequence(either(regex("[a-z]+"), const("1")), const("e")), ["abe", "1e"], ["1", "ab", "e"]),
        (
            tag("", grammar('root ::= "(" root ")" | [a-z]+'), "end"),
            ["abend", "((a))end", "aendend"],
            ["ab", "(aend", "(a)"],
        ),
        (tag("", grammar('root ::= "(" root ")" | [a-z]+'), "<|end|>"), ["(a)<|end|>"], ["(a)"]),
    ]
    for form, texts, others in cases:
        assert allowed(form, *texts) == [True] * len(texts)
        assert allowed(form, *others) == [False] * len(others)


def test_constants_that_are_empty_are_not_there() -> None:
    cases = [
        (sequence(either(tag("A", ANY, ""), const("B")), const("END")), ["AxxEND", "BEND"], ["Axx", "B"]),
        (sequence(either(tag("A", ANY, ""), const("")), const("END")), ["AxxEND", "END"], ["Axx"]),
        (tag("A", sequence(ANY, const("")), "."), ["Ax."], ["Ax"]),
        (sequence(const(""), ANY), ["", "x"], []),
    ]
    for form, texts, others in cases:
        assert allowed(form, *texts) == [True] * len(texts)
        assert allowed(form, *others) == [False] * len(others)


def test_free_text_in_a_tag_needs_an_end_where_other_tags_may_follow() -> None:
    open_ = {"begin": "<a>", "content": ANY, "end": ""}
    for form in (
        {"type": "triggered_tags", "triggers": ["<a"], "tags": [open_]},
        {"type": "tags_with_separator", "tags": [open_], "separator": ","},
        {"type": "subsequence", "elements": [tag("<a>", ANY, "")], "required": [True], "separator": ""},
    ):
        assert "free text" in refusal(form)
    assert "must be followed" in refusal(sequence(ANY, regex("a")))


def test_number_of_tags_is_bounded() -> None:
    form = {"type": "tags_with_separator", "tags": [tag("<", regex("[0-9]"), ">")], "separator": ",", "at_most": 3}
    assert allowed(form, "", "<1>", "<1>,<2>,<3>", "<1>,<2>,<3>,<4>") == [True, True, True, False]
    assert allowed({**form, "at_least_one": True, "at_most": 1}, "", "<1>", "<1>,<2>") == [False, True, False]
    for wrong in (0, True, 1.5, "3"):
        assert "at_most" in refusal({**form, "at_most": wrong})


def test_tags_in_tags_without_ends_are_written_once_for_each_end() -> None:
    def lines(depth: int) -> int:
        form = regex("[a-z]+")
        for level in range(depth):
            inner = tag(f"<{level}>", form, "")
            form = {"type": "tags_with_separator", "tags": [inner], "separator": f"{level};", "at_least_one": True}
        writer = StructuralTagWriter(lambda schema: "x", lambda pattern: "x", {})
        return writer.write({"type": "structural_tag", "format": form}).count("\n")

    assert lines(20) <= 8 * lines(10), "with the square of the depth, not two to its power"


def test_a_separator_ends_tags_that_have_no_end_of_their_own() -> None:
    tags = [tag("<", regex("[a-z;]+"), ""), tag("=", {"type": "grammar", "grammar": "root ::= [0-9;]+"}, "")]
    form = {"type": "tags_with_separator", "tags": tags, "separator": ";", "at_least_one": True}
    texts = ("<ab;<cd;=12", "<ab", "=1;=2;<c", "<ab;", "<ab<cd", ";<ab")
    assert allowed(form, *texts) == [True, True, True, False, False, False]
    assert allowed(tag("[", form, "]"), *(f"[{text}]" for text in texts)) == [True, True, True, False, False, False]
    assert allowed({**form, "at_least_one": False}, "", "<a;<b") == [True, True]
    assert allowed({**form, "stop_after_first": True}, "<ab", "<ab;<cd") == [True, False]
    assert allowed({**form, "at_most": 2}, "<a", "<a;<b", "<a;<b;<c") == [True, True, False]


def test_a_trigger_that_begins_with_another_makes_no_tag_unreachable() -> None:
    tags = [
        {"begin": "<f>", "content": regex("[0-9]"), "end": "</f>"},
        {"begin": "<f=a>", "content": regex("[a-z]"), "end": "</f>"},
    ]
    form = {"type": "triggered_tags", "triggers": ["<f", "<f="], "tags": tags}
    assert allowed(form, "x<f>1</f>y<f=a>b</f>", "<f=a>b</f>", "") == [True] * 3
    assert allowed(form, "<f=a>1</f>", "<f>b</f>", "<f=b>") == [False] * 3
    first = {**form, "at_least_one": True}
    assert allowed(first, "<f=a>b</f>x", "<f>1</f>") == [True] * 2
    assert allowed(first, "x<f=a>b</f>") == [False]
    assert allowed({**first, "stop_after_first": True}, "<f>1</f>", "<f>1</f>x") == [True, False]
    assert allowed({**form, "stop_after_first": True}, "", "x<f>1</f>", "<f>1</f>x") == [True, True, False]


def test_either_form_may_name_its_type() -> None:
    for named in [{}, {"type": "structural_tag"}]:
        words = vocabulary(SPECIAL)
        older = {"structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}], "triggers": ["<f>"]}
        for form in (older, {"format": tag("<f>", regex("[0-9]"), "</f>")}):
            compiled = words.backend.compile(spec_of("structural_tag", {**named, **form}))
            assert words.allows(compiled, "<f>1</f>")
            assert not words.allows(compiled, "<f>x</f>")


def test_triggers_and_special_tokens() -> None:
    tags = [{"begin": "<|call|>f", "content": regex("[0-9]"), "end": "<|end|>"}]
    form = {"type": "triggered_tags", "triggers": ["<|call|>"], "tags": tags}
    assert allowed(form, "x<|call|>f1<|end|>y<|call|>f2<|end|>") == [True]
    assert "inside of a special token" in refusal({**form, "triggers": ["<|c"]})
    assert "no trigger" in refusal({**form, "triggers": ["<x"]})
    assert "no trigger" in refusal({**form, "tags": [{"begin": "", "content": ANY, "end": "x"}]})


def test_the_text_of_a_special_token_is_not_the_token() -> None:
    words = vocabulary(SPECIAL)
    form = {"type": "structural_tag", "format": tag("<|call|>", ANY, "<|end|>")}
    compiled = words.backend.compile(spec_of("structural_tag", form))
    assert words.follows(compiled, words.encode("<|call|>a<|end|>"))
    assert not words.follows(compiled, list(b"<|call|>a<|end|>"))


def test_a_subsequence_is_in_order_and_has_what_is_required() -> None:
    for separator in [", ", ""]:
        for required in ([False, False, False], [False, True, False], [True, False, True]):
            form = {
                "type": "subsequence",
                "elements": [const("a"), const("b"), const("c")],
                "required": required,
                "separator": separator,
            }
            for chosen in range(8):
                parts = [letter for bit, letter in enumerate("abc") if chosen >> bit & 1]
                complete = all(letter in parts for letter, must in zip("abc", required, strict=True) if must)
                assert allowed(form, separator.join(parts)) == [complete]
            assert allowed(form, separator.join("cba"), separator.join("abc") + separator + "c") == [False, False]


def test_a_subsequence_says_of_each_element_whether_it_is_required() -> None:
    for required in [[True], [True, 1], "x"]:
        form = {"type": "subsequence", "elements": [const("a"), const("b")], "required": required, "separator": ""}
        assert "required" in refusal(form)


def test_bare_strings_are_as_their_schema_asks() -> None:
    cases = [
        ({}, ["", "a b", '"'], []),
        ({"minLength": 2, "maxLength": 3}, ["ab", "aéb", "<v>"], ["a", "abcd", ""]),
        ({"minLength": 2}, ["ab", "a" * 2000], ["a"]),
        ({"maxLength": 100_000}, ["", "a" * 2000], []),
        ({"pattern": r"^\S+$"}, ["ab", "</"], ["a b", ""]),
        ({"pattern": "a|b"}, ["a", "xbx"], ["", "x"]),
        ({"pattern": "^a"}, ["a", "abc"], ["ba"]),
        ({"pattern": "a$"}, ["a", "cba"], ["ab"]),
        ({"pattern": r"^[^$]\$"}, ["a$b"], ["$$", "a"]),
        ({"pattern": "(^a)b"}, ["ab"], ["xab"]),
        ({"pattern": "[a-z]", "maxLength": 2}, ["a", "1a"], ["12", "12a"]),
        ({"format": "date"}, ["2024-02-29"], ["2023-02-29", "today"]),
        ({"format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
        ({"format": "ipv4"}, ["127.0.0.1"], ["256.0.0.1"]),
        ({"format": "ipv6"}, ["::", "::1", "1::", "fe80::a:1", "1:2:3:4:5:6:7:8"], ["1:2", "1::2::3", ":1", "g::"]),
        ({"format": "hostname"}, ["a", "a-b.example"], ["-a", "a.", "a b", ""]),
        ({"format": "email"}, ["a.b+c@d.example"], ["a", "a@", "@b", "a@b c"]),
        ({"format": "duration"}, ["P1Y2M3DT4H5M6S", "PT30S", "P2W", "P1M"], ["P", "PT", "P1H", "P1YT", "1D"]),
        ({"format": "uri"}, ["http://a.example:80/b%20?c=/d#e", "mailto:a@b", "file:///a"], ["a/b", "http://a b", "x"]),
        ({"format": "colour"}, ["red"], []),
        ({"pattern": "^(?!a)", "maxLength": 1, **LENIENTLY}, ["a", "b"], ["ab"]),
        ({"pattern": "^a|b$", **LENIENTLY}, ["ac", "cb"], []),
        ({"pattern": "^(a|b)$", **LENIENTLY}, ["a"], ["ab"]),
        ({"minLength": 2, "maxLength": 1, **LENIENTLY}, ["a"], []),
    ]
    for schema, texts, others in cases:
        form = tag("<v>", bare(**schema), "</v>")
        assert allowed(form, *(f"<v>{text}</v>" for text in texts)) == [True] * len(texts)
        assert allowed(form, *(f"<v>{text}</v>" for text in others)) == [False] * len(others)


def test_a_bare_string_that_cannot_be_is_refused_in_the_words_of_its_schema() -> None:
    assert "minLength of 2 and a maxLength of 1" in refusal(tag("<v>", bare(minLength=2, maxLength=1), "</v>"))


def test_a_schema_is_written_once_however_often_it_is_asked_for() -> None:
    words = vocabulary(SPECIAL)
    schema = {"type": "json_schema", "json_schema": {"enum": ["needle"]}}
    form = {"type": "structural_tag", "format": either(schema, sequence(const("x"), schema))}
    assert words.translator.translate(spec_of("structural_tag", form)).count("needle") == 1


def test_the_number_of_parts_is_bounded() -> None:
    assert str(MAX_PARTS) in refusal(sequence(*[const("a")] * MAX_PARTS))
