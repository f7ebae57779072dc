"""Markers of thoughts, calls and tags, whether they are special tokens, other added tokens, or many tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from bough.constrained.base import mask_words
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.masks import unpack
from bough.constrained.translate import Translator
from bough.parsers.base import ToolSpec
from bough.parsers.reasoning import Thoughts
from bough.parsers.structural import json_schema
from bough.tokenization.tokenizer import Tokenizer
from tests.constrained.following import (
    EOS_IDS,
    VOCAB_SIZE,
    make_tokenizer,
    spec_of,
    spelling_tokenizer,
    with_special_tokens,
)
from tests.parsers.parsing import dialect

MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
SIZE = VOCAB_SIZE + len(MARKS)
ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
NOW = ToolSpec("now", None, {"type": "object", "properties": {}, "additionalProperties": False}, False)

Kind = Literal["special", "added", "spelled"]
KINDS: tuple[Kind, ...] = ("special", "added", "spelled")


@cache
def tokenizer_of(kind: Kind) -> Tokenizer:
    if kind == "spelled":
        return spelling_tokenizer()
    ids = {mark: VOCAB_SIZE + index for index, mark in enumerate(MARKS)}
    return with_special_tokens(ids, special_flag=kind == "special")


@cache
def backend_of(kind: Kind) -> LLGuidanceBackend:
    tokenizer = tokenizer_of(kind)
    return LLGuidanceBackend(make_tokenizer(tokenizer, SIZE, EOS_IDS), Translator(special_tokens=special_of(kind)))


def special_of(kind: Kind) -> dict[str, int]:
    return tokenizer_of(kind).special_token_ids


def encode(kind: Kind, text: str) -> list[int]:
    return list(tokenizer_of(kind).encode(text, add_special_tokens=False))


def offered(grammar: Grammar, ids: Sequence[int]) -> bool:
    """Whether each of the tokens is in the mask of its place and accepted, and the output may end behind the last."""
    matcher = grammar.matcher()
    words = np.zeros((1, mask_words(SIZE)), dtype=np.int32)
    for token in ids:
        matcher.fill_masks([matcher], words)
        if not unpack(words, SIZE)[0, token] or not matcher.accept(token):
            return False
    return matcher.is_accepting


def only_way(grammar: Grammar) -> list[int]:
    """The tokens of a grammar that has but one text, each taken as the engine proposes it."""
    matcher: Any = grammar.matcher()
    taken: list[int] = []
    words = np.zeros((1, mask_words(SIZE)), dtype=np.int32)
    while not matcher.is_terminated:
        matcher.fill_masks([matcher], words)
        assert matcher.error is None, matcher.error
        forced = matcher._engine.compute_ff_tokens()
        for token in forced or [int(np.flatnonzero(unpack(words, SIZE)[0])[0])]:
            assert matcher.accept(token), (taken, token)
            taken.append(token)
    return taken


def test_a_constrained_answer_may_begin_with_thoughts_and_end_them() -> None:
    for kind in KINDS:
        for thoughts in [Thoughts.POSSIBLE, Thoughts.BEGUN]:
            for reasoning in ["qwen3", "deepseek-r1"]:
                speaks = dialect("none", reasoning)
                tag = speaks.structured(json_schema(ANSWER), with_calls=(), parallel=False, thoughts=thoughts)
                grammar = backend_of(kind).compile(spec_of("structural_tag", tag))
                begun = thoughts is Thoughts.BEGUN
                begin = "" if begun else "<think>"
                assert offered(grammar, encode(kind, f'{begin}Hm, {{"a": no.</think>\n\n{{"a": 1}}'))
                assert offered(grammar, encode(kind, '{"a": 1}')) is not begun
                assert not offered(grammar, encode(kind, f'{begin}Hm</think>{{"b": 1}}'))
                if kind == "added":
                    assert offered(grammar, encode("spelled", f'{begin}Hm</think>{{"a": 1}}'))


def test_a_constrained_answer_has_no_thoughts_where_the_prompt_has_closed_them() -> None:
    for kind in KINDS:
        tag = dialect("hermes", "qwen3").structured(
            json_schema(ANSWER), with_calls=[NOW], parallel=False, thoughts=Thoughts.NONE
        )
        grammar = backend_of(kind).compile(spec_of("structural_tag", tag))
        assert not offered(grammar, encode(kind, '<think>Hm.</think>\n\n{"a": 1}'))
        assert offered(grammar, encode(kind, '{"a": 1}'))
        assert offered(grammar, encode(kind, CALL))


def test_required_calls_come_behind_thoughts_between_their_marks() -> None:
    for kind in KINDS:
        tag = dialect("hermes", "qwen3").constraint([NOW], name="now", parallel=False, thoughts=Thoughts.POSSIBLE)
        grammar = backend_of(kind).compile(spec_of("structural_tag", tag))
        assert offered(grammar, encode(kind, CALL))
        assert offered(grammar, encode(kind, f"<think>\nNow?</think>\n\n{CALL}"))
        assert not offered(grammar, encode(kind, "Now?"))


def test_triggers_and_tags_are_added_tokens_or_text() -> None:
    for kind in KINDS:
        for trigger in ["<tool_call>", "<tool_call>\n{"]:
            tag = {"begin": '<tool_call>\n{"name": ', "content": json_schema(ANSWER), "end": "}\n</tool_call>"}
            form = {"type": "triggered_tags", "triggers": [trigger], "tags": [tag]}
            grammar = backend_of(kind).compile(spec_of("structural_tag", {"type": "structural_tag", "format": form}))
            call = '<tool_call>\n{"name": {"a": 1}}\n</tool_call>'
            assert offered(grammar, encode(kind, f"Well. {call} And {call}"))
            assert not offered(grammar, encode(kind, "Well. <tool_call>\n{}\n</tool_call>"))


def test_forced_text_is_written_with_tokens_that_are_accepted() -> None:
    for kind in KINDS:
        for grammar, text in [
            ("regex", "<think> oak</think> x"),
            ("choice", ["<|im_end|><think>"]),
            ("json_schema", {"const": "<think>"}),
        ]:
            ids = only_way(backend_of(kind).compile(spec_of(grammar, text)))
            assert not {*special_of(kind).values()} & {*ids} - {*EOS_IDS}
            if kind == "added":
                assert VOCAB_SIZE + MARKS.index("<think>") in ids
            wanted = {
                "regex": text,
                "choice": text[0] if grammar == "choice" else "",
                "json_schema": json.dumps("<think>"),
            }
            assert tokenizer_of(kind).decode(ids) == wanted[grammar]


def test_strings_may_hold_added_tokens_that_are_text() -> None:
    for kind in KINDS:
        grammar = backend_of(kind).compile(spec_of("json_schema", {"type": "string"}))
        assert offered(grammar, encode(kind, '"a<think>b"')) is (kind != "special")


def test_forced_text_is_what_the_grammar_says_whatever_the_tokenizer_would_make_of_it() -> None:
    normal = with_special_tokens({"<s>": VOCAB_SIZE}, special_flag=False, normalizer={"type": "NFC"})
    text = "cafe\u0301 \u212b"
    assert normal.decode(normal.encode(text, add_special_tokens=False)) != text
    backend = LLGuidanceBackend(make_tokenizer(normal, SIZE, EOS_IDS), Translator())
    assert normal.decode(only_way(backend.compile(spec_of("choice", [text])))) == text
