from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest
from benchmarks.grammar_corpus import corpus, documents

from bough.constrained.base import GrammarError
from bough.constrained.json_schema import prepare
from bough.constrained.llguidance_backend import LLGuidanceBackend
from tests.constrained.following import allows, random_walk, spec_of

CORPUS = corpus()
SAMPLE = [name for i, name in enumerate(CORPUS) if i % 6 == 0 and not name.startswith("hostile")]
DOCUMENTS = documents()


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize("name", SAMPLE)
def test_what_comes_out_is_valid_and_what_is_invalid_is_refused(backend: LLGuidanceBackend, name: str) -> None:
    schema = CORPUS[name]
    try:
        grammar = backend.compile(spec_of("json_schema", json.dumps(schema)))
    except GrammarError:
        return
    cls = jsonschema.Draft202012Validator
    validator = cls(schema, format_checker=cls.FORMAT_CHECKER)
    for seed in range(3):
        text = random_walk(grammar, np.random.default_rng(seed), 150)
        if text is not None:
            validator.validate(json.loads(text))
    for document in DOCUMENTS:
        if not validator.is_valid(document):
            assert not allows(grammar, json.dumps(document, ensure_ascii=False)), document


@pytest.mark.parametrize(
    "options",
    [
        [{"type": "string"}, {"type": "integer"}, {"type": "null"}],
        [{"const": 1}, {"enum": ["a", None]}],
        [obj(k={"const": "a"}), obj(k={"const": "b"})],
        [obj(k={"enum": ["a", "c"]}), obj(k={"const": "b"}), {"type": "array"}],
        [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
    ],
)
def test_one_of_that_excludes_itself_is_any_of(options: list[Any]) -> None:
    defs = {"a": obj(k={"const": "a"}), "b": obj(k={"$ref": "#/$defs/tag"}), "tag": {"const": "b"}}
    schema = {"$defs": defs, "type": "array", "items": {"oneOf": options}}
    prepared, lenient = prepare(schema)
    assert prepared["items"] == {"anyOf": options}
    assert not lenient
    assert "oneOf" in schema["items"]


@pytest.mark.parametrize(
    "options",
    [
        [{"type": "number"}, {"type": "integer"}],
        [{"const": 1}, {"const": 1.0}],
        [obj(k={"const": "a"}), obj(k={"const": "a"})],
        [obj(k={"const": "a"}), {"type": "object", "properties": {"k": {"const": "b"}}}],
        [{"minimum": 1}, {"maximum": 0}],
        [True, {"type": "string"}],
        [{"$ref": "#/missing"}, {"type": "string"}],
        [{"$ref": "#/oneOf/0"}, {"type": "string"}],
    ],
)
def test_one_of_that_may_overlap_stays(options: list[Any]) -> None:
    assert prepare({"oneOf": options})[0] == {"oneOf": options}


def test_names_of_properties_and_values_are_not_keywords() -> None:
    schema = {
        "properties": {"oneOf": {"type": "string"}, "format": {"type": "null"}},
        "const": {"oneOf": [{"type": "string"}, {"type": "null"}], "format": "date"},
    }
    assert prepare(schema)[0] == schema


@pytest.mark.parametrize(
    ("format_name", "good", "bad"),
    [
        ("date", ["2024-02-29", "2000-02-29", "0001-01-01", "1999-12-31"], ["2023-02-29", "1900-02-29", "0000-01-01"]),
        ("date", ["2023-04-30"], ["2023-04-31", "2023-13-01", "2023-1-1", "2023-01-00"]),
        ("date-time", ["2024-02-29T23:59:59Z", "2024-01-01T00:00:00.5+01:00"], ["2024-01-01", "2024-01-01T24:00:00Z"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]),
        ("ipv4", ["127.0.0.1"], ["256.0.0.1"]),
    ],
)
def test_formats(backend: LLGuidanceBackend, format_name: str, good: list[str], bad: list[str]) -> None:
    grammar = backend.compile(spec_of("json_schema", {"type": "string", "format": format_name}))
    assert [text for text in good if not allows(grammar, json.dumps(text))] == []
    assert [text for text in bad if allows(grammar, json.dumps(text))] == []
