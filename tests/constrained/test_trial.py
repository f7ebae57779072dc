from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from bough.constrained.base import GrammarError
from bough.constrained.translate import Translator
from bough.constrained.trial import TrialBackend, needs_trial
from bough.sampling.sampling_params import GrammarSpec
from tests.constrained.following import allows, bundled_backend, bundled_tokenizer, spec_of

EXPONENTIAL = {"type": "string", "allOf": [{"pattern": f"a{i}"} for i in range(50)]}
"""The intersection of fifty languages: compiling it takes for ever."""


@pytest.fixture
def tried() -> Iterator[TrialBackend]:
    translator = Translator(special_tokens=bundled_tokenizer().special_token_ids)
    backend = TrialBackend(bundled_backend(), translator, timeout_s=1.0)
    yield backend
    backend.close()


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "bough.constrained.trial" in each.cmdline()]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (spec_of("json_schema", {"type": "object", "properties": {"a": {"type": "integer"}}}), False),
        (spec_of("json_schema", {"properties": {"a": {"$ref": "#"}}}), True),
        (spec_of("json_schema", '{"\\u0070attern": "a"}'), True),
        (spec_of("json_schema", {"enum": ["x" * 20_000]}), True),
        (spec_of("choice", ["a", "b"]), False),
        (spec_of("regex", "a"), True),
        (spec_of("ebnf", 'root ::= "a"'), True),
        (spec_of("structural_tag", {}), True),
    ],
)
def test_only_plain_grammars_need_no_trial(spec: GrammarSpec, expected: bool) -> None:
    assert needs_trial(spec) == expected


def test_what_survives_is_compiled(tried: TrialBackend) -> None:
    assert allows(tried.compile(spec_of("regex", "[a-c]+")), "abc")
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "x<|im_end|>"}}
    tried.compile(spec_of("structural_tag", tag))
    assert len(children()) == 1


def test_what_is_wrong_is_told_and_the_child_goes_on(tried: TrialBackend) -> None:
    for _ in range(2):
        with pytest.raises(GrammarError, match=r"^regex: .*look-ahead"):
            tried.compile(spec_of("regex", "(?=a)"))
    assert len(children()) == 1


def test_what_takes_for_ever_is_ended_and_the_next_one_works(tried: TrialBackend) -> None:
    begin = time.monotonic()
    with pytest.raises(GrammarError, match="more than 1 s"):
        tried.compile(spec_of("json_schema", EXPONENTIAL))
    assert time.monotonic() - begin < 10
    assert children() == []
    assert allows(tried.compile(spec_of("regex", "[a-c]+")), "abc")


def test_a_child_that_dies_is_an_error_of_its_grammar_alone(tried: TrialBackend) -> None:
    tried.compile(spec_of("regex", "a"))
    (child,) = children()
    child.kill()
    child.wait(5)
    with pytest.raises(GrammarError, match="too deep or too large"):
        tried.compile(spec_of("regex", "b"))
    assert allows(tried.compile(spec_of("regex", "b")), "b")


def test_deep_chains_of_references_hurt_nobody(tried: TrialBackend) -> None:
    chain: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(6000)}
    schema = {"$defs": {**chain, "d6000": {"type": "string"}}, "$ref": "#/$defs/d0"}
    try:
        source = tried._try(spec_of("json_schema", schema))
    except GrammarError as error:
        assert "too deep" in error.message  # noqa: PT017
    else:
        assert "d6000" in source


def test_children_end_with_the_backend(tried: TrialBackend) -> None:
    tried.compile(spec_of("regex", "a"))
    assert children()
    tried.close()
    assert children() == []
