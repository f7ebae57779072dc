from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bough.constrained.base import ENDED, GOES_ON, LATER, MASKED, REFUSED, GrammarError, Judgement, mask_words
from bough.constrained.llguidance_backend import (
    LOOKS_PER_DOUBLING,
    MAX_DOUBLINGS,
    PLAIN_STATES,
    SILENT_LOOKS,
    WORN_TOKENS,
    GrammarMatcher,
    LLGuidanceBackend,
)
from bough.constrained.masks import PendingMasks, mask_of, unpack
from bough.constrained.translate import Translator
from bough.constrained.vocabulary import TokenTable
from bough.parsers.structural import const
from tests.constrained.following import (
    EOS_IDS,
    VOCAB_SIZE,
    allows,
    bundled_tokenizer,
    bundled_vocabulary,
    encode,
    make_tokenizer,
    random_walk,
    spec_of,
)

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_texts_that_follow_and_texts_that_do_not(backend: LLGuidanceBackend) -> None:
    cases = [
        (
            "json_schema",
            PERSON,
            ['{"name": "A", "age": 7}', '{"name":"é\\n" , "age":120}'],
            ["{}", '{"age": 1}'],
        ),
        ("json_schema", True, ["1", '{"a": [null, true]}'], ["", "nul"]),
        ("json_schema", {"enum": ["a", 1, None]}, ['"a"', "1", "null"], ['"b"', "11"]),
        ("regex", "[a-c]{2}/x|é+", ["ab/x", "éé"], ["ab", "abc/x"]),
        ("regex", "^\\d+$", ["12"], ["", "a1", "\u0663"]),
        ("choice", ["ab", "abc", 'x"y\n'], ["ab", "abc", 'x"y\n'], ["a", "abcd", ""]),
        ("choice", ["\x7f"], ["\x7f"], [""]),
        ("ebnf", 'root ::= "(" root ")" | [a-z]+ "x"', ["abx", "((xx))"], ["ab", "(abx"]),
        ("ebnf", 'root ::= "\x7f" [\x7f]', ["\x7f\x7f"], ["\x7f"]),
        ("ebnf", 'root ::= "a"{0} "b" ("c" root){0,0}', ["b"], ["ab", "bcb"]),
        ("ebnf", f"root ::= item\n{'#' * 99}\n# Items\n{'#' * 99}\nitem ::= 'a'", ["a"], ["b"]),
        ("structural_tag", {"type": "structural_tag", "format": const("\x7f")}, ["\x7f"], [""]),
    ]
    for kind, text, good, bad in cases:
        grammar = backend.compile(spec_of(kind, text))
        assert [each for each in good if not allows(grammar, each)] == []
        assert [each for each in bad if allows(grammar, each)] == []


def test_what_cannot_be_enforced_is_refused_naming_the_field(backend: LLGuidanceBackend) -> None:
    cases = [
        ("json_schema", {"type": "array", "uniqueItems": True}, "uniqueItems"),
        ("json_schema", {"type": "no-such-type"}, "no-such-type"),
        ("json_schema", {"oneOf": [{"multipleOf": 2, "type": "integer"}, {"type": "number"}]}, "oneOf"),
        ("json_schema", {"$ref": "#/$defs/missing"}, "missing"),
        ("json_schema", False, "no value"),
        ("json_schema", {"x-guidance": {"whitespace_pattern": ".*"}}, "x-guidance"),
        ("regex", "(?=a)b", "look-around"),
        ("regex", "(", "unclosed group"),
        ("regex", "a\\", "ends in a backslash"),
        ("regex", r"(a)\1", "backreferences"),
        ("ebnf", "root ::= missing", "missing"),
        ("structural_tag", {"structures": []}, "structures"),
    ]
    for kind, text, problem in cases:
        with pytest.raises(GrammarError, match=problem) as raised:
            backend.compile(spec_of(kind, text))
        assert raised.value.param == kind
        assert raised.value.message.startswith(f"{kind}: ")


def test_lenient_schemas_ignore_what_cannot_be_enforced(backend: LLGuidanceBackend) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "x-guidance": {"lenient": True}}
    assert allows(backend.compile(spec_of("json_schema", schema)), "[1, 1]")


def test_output_ends_only_where_it_may(backend: LLGuidanceBackend) -> None:
    matcher = backend.compile(spec_of("regex", "ab?")).matcher()
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    matcher.fill_mask(words)
    assert not unpack(words[None], VOCAB_SIZE)[0, list(EOS_IDS)].any()
    assert not matcher.is_accepting
    assert matcher.accept(encode("a")[0])
    matcher.fill_mask(words)
    assert unpack(words[None], VOCAB_SIZE)[0, list(EOS_IDS)].all()
    assert matcher.is_accepting
    assert not matcher.is_terminated
    assert matcher.accept(encode("b")[0])
    assert matcher.is_terminated
    assert matcher.error is None


def test_end_of_sequence_terminates(backend: LLGuidanceBackend) -> None:
    matcher = backend.compile(spec_of("regex", "a*")).matcher()
    assert matcher.accept(EOS_IDS[0])
    assert matcher.is_terminated


def test_refused_token_is_an_error_of_one_matcher_alone(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("regex", "ab"))
    broken, other = grammar.matcher(), grammar.matcher()
    assert not broken.accept(encode("b")[0])
    assert broken.error is not None
    words = np.full(mask_words(VOCAB_SIZE), -1, dtype=np.int32)
    broken.fill_mask(words)
    assert not words.any()
    assert other.accept(encode("a")[0])
    assert other.error is None


def test_rollback_restores_the_masks(backend: LLGuidanceBackend) -> None:
    matcher = backend.compile(spec_of("json_schema", PERSON)).matcher()
    masks = []
    tokens = encode('{"name": "Ann", "age": 7}')
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    for token in tokens:
        matcher.fill_mask(words)
        masks.append(words.copy())
        assert matcher.accept(token)
    for back in (1, 3, 5):
        at = len(tokens) - back
        matcher.rollback(back)
        matcher.fill_mask(words)
        assert np.array_equal(words, masks[at])
        assert all(matcher.accept(token) for token in tokens[at:])


def test_json_is_followed_by_nothing(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("json_schema", PERSON))
    rng = np.random.default_rng(0)
    texts = [text for _ in range(20) if (text := random_walk(grammar, rng)) is not None]
    assert len(texts) > 10
    for text in texts:
        value = json.loads(text)
        assert set(value) == {"name", "age"}
        assert 0 <= value["age"] <= 120


def test_masks_of_a_step_allow_stop_tokens_where_the_output_may_end(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("regex", "ab?"))
    at_start, after_a = grammar.matcher(), grammar.matcher()
    after_a.accept(encode("a")[0])
    masks = PendingMasks(np.array([0, 2], dtype=np.int32), [at_start, after_a], VOCAB_SIZE, {0: (77, 31), 1: (77, 31)})
    allowed = unpack(masks.bits, VOCAB_SIZE)
    assert np.flatnonzero(allowed[0]).tolist() == [i for i in np.flatnonzero(allowed[0]) if i not in (31, 77)]
    assert set(np.flatnonzero(allowed[1])) >= {31, 77, *EOS_IDS, encode("b")[0]}


def test_a_judged_token_leaves_the_mask_of_the_next_one(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("json_schema", PERSON))
    judging, plain = grammar.matcher(), grammar.matcher()
    written, expected = (np.full(mask_words(VOCAB_SIZE), -1, dtype=np.int32) for _ in range(2))
    for token in encode('{"name": "Ann", "age": 7'):
        assert judging.judge(token, False, (written.ctypes.data, written.nbytes)) is MASKED
        assert plain.accept(token)
        plain.fill_mask(expected)
        assert np.array_equal(written, expected)
    unwritten = written.copy()
    assert judging.judge(encode("}")[0], True, (written.ctypes.data, written.nbytes)) is ENDED
    assert plain.judge(encode("x")[0], True, (written.ctypes.data, written.nbytes)) is REFUSED
    assert np.array_equal(written, unwritten)
    begins = grammar.matcher().judge(encode("{")[0], True, (written.ctypes.data, written.nbytes))
    assert begins is MASKED or begins.forced


def test_tokens_are_looked_at_with_the_next_mask_but_for_those_that_may_be_the_last(
    backend: LLGuidanceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for in_parallel in [False, True]:
        if in_parallel:
            for least in ("MIN_PARALLEL_MASKS", "MIN_PARALLEL_VOCAB"):
                monkeypatch.setattr(f"bough.constrained.llguidance_backend.{least}", 1)
        grammar = backend.compile(spec_of("json_schema", PERSON))
        tokens = encode('{"name": "Ann", "age": 7}')

        def finish(matcher: GrammarMatcher) -> Judgement:
            plain = grammar.matcher()
            masks = np.zeros((2, mask_words(VOCAB_SIZE)), dtype=np.int32)
            for token in tokens[:-1]:
                matcher.judge(token, False, LATER)
                assert plain.accept(token)
                masks[:] = 0
                assert matcher.fill_masks([matcher, plain], masks) == []
                assert np.array_equal(masks[0], masks[1])
            return matcher.judge(tokens[-1], False, LATER)

        first, second = grammar.matcher(), grammar.matcher()
        assert finish(first) is GOES_ON
        bits = np.zeros((2, mask_words(VOCAB_SIZE)), dtype=np.int32)
        for _ in range(2):  # the first answer may be lost, with its step
            assert first.fill_masks([grammar.matcher(), first], bits) == [1]
        assert set(np.flatnonzero(unpack(bits, VOCAB_SIZE)[1])) <= set(EOS_IDS)
        assert first.is_terminated
        assert finish(second) is ENDED, "the token is known for a last one now"

        may_end = backend.compile(spec_of("regex", "a*")).matcher()
        assert may_end.judge(EOS_IDS[1], False, LATER) is ENDED


def test_what_is_asked_of_a_matcher_counts_tokens_that_nobody_has_looked_at(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("regex", "ab?"))
    a, b, x = (encode(letter)[0] for letter in "abx")

    def behind(token: int) -> GrammarMatcher:
        matcher = grammar.matcher()
        assert matcher.judge(token, False, LATER) is GOES_ON
        return matcher

    assert behind(a).is_accepting
    assert not behind(a).is_terminated
    assert behind(a).accept(b)
    assert behind(a).judge(b, False, None) is ENDED
    assert behind(x).error is not None
    refused, bits = behind(x), np.full((1, mask_words(VOCAB_SIZE)), -1, dtype=np.int32)
    assert refused.fill_masks([refused], bits) == []
    assert not bits.any()
    back = behind(a)
    back.rollback(1)
    assert not back.is_accepting


def test_forced_texts_are_encoded_once_and_few_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.constrained.vocabulary.MAX_REMEMBERED_TEXTS", 2)
    table = TokenTable(
        bundled_vocabulary(), bundled_tokenizer().running_text_encoder(set(bundled_vocabulary().special_ids))
    )
    assert table("oak") is table("oak")
    assert table("oak") == encode("oak")
    remembered = table("ash")
    table("birch")
    assert table("ash") == remembered
    assert table("ash") is not remembered
    assert table("tree " * 100) is not table("tree " * 100)


def test_a_grammar_that_forces_nothing_is_seldom_asked_until_it_does(backend: LLGuidanceBackend) -> None:
    class Counting:
        def __init__(self, engine: Any) -> None:
            self.engine, self.asked = engine, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.engine, name)

        def compute_ff_tokens(self) -> list[int]:
            self.asked += 1
            forced: list[int] = self.engine.compute_ff_tokens()
            return forced

    a, c = (encode(letter)[0] for letter in "ac")
    matcher = backend.compile(spec_of("regex", "a*([cd]hello wonderful world)*")).matcher()
    engine = Counting(matcher._engine)
    matcher._engine = engine  # type: ignore[assignment]
    looks = SILENT_LOOKS + LOOKS_PER_DOUBLING * MAX_DOUBLINGS
    tokens = SILENT_LOOKS + LOOKS_PER_DOUBLING * sum(2**n for n in range(MAX_DOUBLINGS))
    interval = 2**MAX_DOUBLINGS
    for _ in range(tokens + 10 * interval):
        assert matcher.judge(a, True, None) is GOES_ON
    assert engine.asked == looks + 10
    # Compiled anew, it is asked as rarely.
    matcher = backend.compile(spec_of("regex", "a*([cd]hello wonderful world)*")).matcher()
    matcher._engine = engine = Counting(matcher._engine)  # type: ignore[assignment]
    for _ in range(10 * interval):
        assert matcher.judge(a, True, None) is GOES_ON
    assert engine.asked == 10
    for _ in range(interval):
        forced = matcher.judge(c, True, None).forced
        if forced:
            break
        for token in encode("hello wonderful world"):
            assert matcher.accept(token)
    assert forced
    asked = engine.asked
    for _ in range(2):
        assert matcher.judge(forced[0], True, None).outcome != "refused"
        forced = forced[1:]
    assert engine.asked == asked + 2


def test_masks_of_many_are_those_of_each(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("json_schema", PERSON))
    matchers = [grammar.matcher() for _ in range(12)]
    for count, matcher in enumerate(matchers):
        for token in encode('{"name": "Ann", "age": 7}')[:count]:
            matcher.accept(token)
    assert not matchers[1].accept(encode("x")[0])
    together = np.zeros((12, mask_words(VOCAB_SIZE)), dtype=np.int32)
    matchers[0].fill_masks(matchers, together)
    alone = np.zeros_like(together)
    for words, matcher in zip(alone, matchers, strict=True):
        matcher.fill_mask(words)
    assert np.array_equal(together, alone)
    assert together.any(axis=1).tolist() == [i != 1 for i in range(12)]


def test_rows_without_a_grammar_have_the_tokens_that_they_are_left(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("regex", "[a-z]"))
    a, b, mark = (encode(char)[0] for char in "ab!")
    few = mask_of((a, mark), VOCAB_SIZE)
    rows = np.array([0, 1, 4], dtype=np.int32)
    masks = PendingMasks(rows, [None, grammar.matcher(), grammar.matcher()], VOCAB_SIZE, allowed={0: few, 2: few})
    allowed = unpack(masks.bits, VOCAB_SIZE)
    assert np.flatnonzero(allowed[0]).tolist() == sorted((a, mark))
    assert allowed[1][a]
    assert allowed[1][b]
    assert np.flatnonzero(allowed[2]).tolist() == [a]
    without = PendingMasks(rows[:1], [None], VOCAB_SIZE, allowed={0: few})
    assert np.flatnonzero(unpack(without.bits, VOCAB_SIZE)[0]).tolist() == sorted((a, mark))


def test_a_grammar_is_worn_after_many_tokens_and_once_it_has_no_states_left(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("regex", "a*"))
    matcher = grammar.matcher()
    for _ in range(WORN_TOKENS):
        assert not grammar.is_worn
        matcher.accept(encode("a")[0])
    assert grammar.is_worn
    limited = LLGuidanceBackend(make_tokenizer(bundled_tokenizer(), VOCAB_SIZE, EOS_IDS), Translator(), max_states=300)
    grammar = limited.compile(spec_of("regex", "[a-z]*(a|b)[a-z]{20}"))
    matcher, rng = grammar.matcher(), np.random.default_rng(0)
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    while matcher.error is None:
        matcher.fill_mask(words)
        if words.any():
            matcher.accept(int(rng.choice(np.flatnonzero(unpack(words[None], VOCAB_SIZE)[0]))))
    assert "too many states" in matcher.error
    assert grammar.is_worn


def test_a_schema_without_lengths_and_patterns_has_few_states_and_lasts() -> None:
    cases = [
        {"type": "array", "minItems": 20_000},
        {"type": "array", "items": {**PERSON, "additionalProperties": True}, "minItems": 20_000},
        {"type": "array", "items": {"enum": ["oak", "ash", 7, None]}, "minItems": 20_000},
        {"type": "array", "items": {"type": "number", "minimum": -1e9, "multipleOf": 0.01}, "minItems": 20_000},
    ]
    for schema in cases:
        limited = LLGuidanceBackend(
            make_tokenizer(bundled_tokenizer(), VOCAB_SIZE, EOS_IDS), Translator(), max_states=PLAIN_STATES
        )
        grammar = limited.compile(spec_of("json_schema", schema))
        rng = np.random.default_rng(0)
        words = np.zeros((1, mask_words(VOCAB_SIZE)), dtype=np.int32)
        matcher = grammar.matcher()
        for _ in range(WORN_TOKENS + 1):
            words[:] = 0
            matcher.fill_mask(words[0])
            assert matcher.error is None
            assert matcher.accept(int(rng.choice(np.flatnonzero(unpack(words, VOCAB_SIZE)[0]))))
        assert not grammar.is_worn


def test_a_long_string_of_bounded_length_can_be_written(backend: LLGuidanceBackend) -> None:
    grammar = backend.compile(spec_of("json_schema", {"type": "string", "maxLength": 8000}))
    text = json.dumps("The oak is old, and the ash is young; who knows why? " * 150)
    assert allows(grammar, text)
