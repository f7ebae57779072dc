from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from bough.constrained import judge as module
from bough.constrained.base import mask_words
from bough.constrained.grammar_bounds import MAX_COMPILED_BYTES
from bough.constrained.judge import MAX_FORCED_BYTES, Case, Cost, Judge, TrialSetup, forces_much, without_forcing
from bough.process_usage import allocated_bytes
from bough.sampling.sampling_params import GrammarSpec
from tests.constrained.following import (
    VOCAB_SIZE,
    allows,
    bundled_backend,
    bundled_tokenizer,
    bundled_vocabulary,
    spec_of,
)
from tests.constrained.hostile_families import FAMILIES

PATIENCE_S = 10.0


@cache
def bundled_judge() -> Judge:
    return Judge(TrialSetup(" ?", bundled_tokenizer().special_token_ids, bundled_vocabulary()))


def judged(spec: GrammarSpec) -> module.Verdict:
    return bundled_judge()(Case(spec, PATIENCE_S))


def test_what_passes_takes_no_more_than_was_measured_and_forces_little() -> None:
    for family in FAMILIES:
        verdict = judged(FAMILIES[family](300))
        if verdict.source is None:
            assert verdict.problem
            continue
        before = allocated_bytes()
        grammar = bundled_backend().build("regex", verdict.source, verdict.num_bytes)
        matcher, rng = grammar.matcher(), np.random.default_rng(1)
        words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
        for _ in range(40):
            matcher.fill_mask(words)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            if not allowed.size or matcher.is_terminated:
                break
            forced = matcher.judge(int(rng.choice(allowed)), True, None).forced
            assert sum(len(bundled_vocabulary().tokens[token]) for token in forced) <= MAX_FORCED_BYTES
        assert allocated_bytes() - before < MAX_COMPILED_BYTES
        assert verdict.num_bytes < MAX_COMPILED_BYTES


def test_usual_grammars_pass() -> None:
    cases = [
        (spec_of("json_schema", {"enum": [f"value {i}" for i in range(500)]}), '"value 499"'),
        (spec_of("json_schema", {"type": "string", "maxLength": 4000}), json.dumps("oak " * 900)),
        (spec_of("json_schema", {"const": "oak " * 700}), json.dumps("oak " * 700)),
        (spec_of("json_schema", {"properties": {f"p{i}": {"type": "integer"} for i in range(300)}}), '{"p299": 1}'),
        (spec_of("json_schema", {"type": "array", "items": {"const": 0}, "minItems": 30}), json.dumps([0] * 30)),
        (spec_of("regex", r"([a-z]{3,9} [0-9]{1,3}, (oak|ash|birch); ){20}"), "abc 12, oak; " * 20),
        (spec_of("regex", "x{5000}"), "x" * 5000),
        (spec_of("choice", [f"tree {i}" for i in range(2000)]), "tree 1999"),
        (spec_of("ebnf", 'root ::= ("ab" | "cd"){100} "e"'), "ab" * 100 + "e"),
    ]
    for spec, good in cases:
        verdict = judged(spec)
        assert verdict.source is not None, verdict.problem
        assert allows(bundled_backend().build(spec.kind, verdict.source, verdict.num_bytes), good)


def test_without_forcing_the_same_texts_follow() -> None:
    for kind in ["regex", "json_schema"]:
        texts = {"regex": ("oak|elm+", "elmm", "ash"), "json_schema": ({"const": ["oak", 7]}, '["oak",7]', '["oak"]')}
        spec, good, bad = texts[kind]
        backend = bundled_backend()
        grammar = backend.build(kind, without_forcing(bundled_judge()._translator.translate(spec_of(kind, spec))))
        assert allows(grammar, good)
        assert not allows(grammar, bad)
        assert not grammar.matcher()._engine.compute_ff_tokens()


def test_only_what_is_repeated_often_is_guessed_to_force_much() -> None:
    cases = [
        (r"([a-z]{3,9} [0-9]{1,3}, (oak|ash|birch); ){200}", False),
        ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", False),
        ("q{999}", False),
        ("q{1000}", True),
        ("((a{50}){50}){50}", True),
    ]
    for pattern, expected in cases:
        for spec in (spec_of("regex", pattern), spec_of("json_schema", {"type": "string", "pattern": pattern})):
            assert forces_much(bundled_judge()._translator.translate(spec)) == expected


FINE = {"num_bytes": 1000, "build_s": 0.01, "hold_s": 1e-4, "masks_s": [1e-4] * 9, "forced_bytes": 9}


def test_a_refusal_says_which_bound_was_passed() -> None:
    cases = [
        ({}, None),
        ({"num_bytes": MAX_COMPILED_BYTES + 1}, "16 MiB of memory"),
        ({"build_s": 1.5}, "1 s to compile"),
        ({"hold_s": 0.01}, "5 ms for one token"),
        ({"masks_s": [1e-4, 0.03, 1e-4]}, "20.2 ms for the tokens"),
        ({"masks_s": [0.003] * 9}, "1.2 ms on average"),
    ]
    for beyond, bound in cases:
        problem = Cost(**{**FINE, **beyond}).problem(5000)
        assert (problem is None) == (bound is None)
        assert bound is None or bound in (problem or "")


def test_a_source_that_is_far_longer_than_its_specification_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SOURCE_CHARS", 100)
    assert "100 characters" in (judged(spec_of("regex", "x" * 101)).problem or "")
