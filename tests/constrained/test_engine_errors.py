from __future__ import annotations

from collections.abc import Iterator

import pytest

from bough.constrained.base import GrammarError
from bough.constrained.engine_errors import OF_THE_WHOLE, readable
from bough.constrained.translate import Translator
from bough.constrained.trial import TrialBackend
from bough.entrypoints.chat.constraints import constrained
from bough.entrypoints.chat.job import ToolChoice, ToolUse
from bough.parsers.base import ToolSpec
from bough.parsers.dialect import make_dialect
from bough.parsers.reasoning import Thoughts
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.sampling.sampling_params import SamplingParams
from tests.constrained.following import bundled_backend, bundled_tokenizer, bundled_vocabulary, spec_of

POSSIBLE = Thoughts.POSSIBLE


def test_words_of_the_engine_are_translated() -> None:
    cases = [
        ("NoExtensionBias", "nothing can be written that follows it"),
        ("Too many items (limit 50000; ff_tokens); try avoiding single-byte/short lexemes", "too ambiguous"),
        ("Parser Error: Too many items (limit 50000; ff_tokens); try avoiding single-byte", "too ambiguous"),
        ("fuel exhausted when checking relevance of lexemes (100)", "too much work for one token"),
        ("lexer error: too many expressions constructed", "too much work for one token"),
        ("LexerTooComplex: lexer error: too many states: 5 > 4", "too many states"),
        ("grammar size (number of symbols) too big (limit for this grammar: 200000)", "too large"),
        ('Unsatisfiable schema: required property "a"', 'no value follows it: required property "a"'),
    ]
    for given, said in cases:
        for problem in (given, f"at 2(10): failed to compile JSON schema: {given}"):
            assert said in readable(problem)
            assert "limit" not in readable(problem)


def test_what_grammars_are_refused_for() -> None:
    cases = [
        ("json_schema", {"type": "strin"}, "there is no type 'strin'"),
        ("json_schema", {"$ref": "#/nope"}, "'#/nope' leads to nothing"),
        ("json_schema", {"$ref": "http://a.b/c"}, "put it under $defs"),
        ("json_schema", {"type": "integer", "minimum": 5, "maximum": 1}, "no value follows it: minimum (5)"),
        ("regex", r"\bfoo\b", "look-around is not supported"),
        ("structural_tag", {"type": "structural_tag", "format": {"type": "regex", "pattern": "a("}}, "unclosed group"),
    ]
    for kind, text, said in cases:
        with pytest.raises(GrammarError, match=f"^{kind}: ") as refusal:
            bundled_backend().compile(spec_of(kind, text))
        assert said in refusal.value.message


def test_words_of_the_client_are_not_taken_for_the_engines() -> None:
    for word in ["rocket fuel", "too many states", "look-around, "]:
        for schema in ({"$ref": f"#/$defs/{word}"}, {"type": word}, {"format": word, "uniqueItems": True}):
            with pytest.raises(GrammarError) as refusal:
                bundled_backend().compile(spec_of("json_schema", schema))
            assert not any(each in refusal.value.message for each in (*OF_THE_WHOLE, "invalid pattern"))


@pytest.fixture(scope="module")
def tried() -> Iterator[TrialBackend]:
    translator = Translator(special_tokens=bundled_tokenizer().special_token_ids)
    backend = TrialBackend(bundled_backend(), translator, bundled_vocabulary())
    yield backend
    backend.close()


def test_the_tool_at_fault_is_named(tried: TrialBackend) -> None:
    for name in TOOL_FORMATS:
        wrong = {
            "type": "object",
            "properties": {"at": {"type": "array", "uniqueItems": True}},
            "required": ["at"],
            "additionalProperties": False,
        }
        tools = (ToolSpec("now", None, {"type": "object"}, True), ToolSpec("get_weather", None, wrong, True))
        dialect = make_dialect(None, tool_call_parser=name, reasoning_parser="none")
        params, _ = constrained(SamplingParams(), None, ToolUse(tools, ToolChoice.AUTO), dialect, thoughts=POSSIBLE)
        with pytest.raises(GrammarError, match="get_weather") as refusal:
            tried.compile(spec_of("structural_tag", params.structural_tag), 30.0)
        assert "uniqueItems" in refusal.value.message
        assert "'now" not in refusal.value.message
