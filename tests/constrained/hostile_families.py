"""Families of grammars that are small to write and large to follow, each for a number that makes it another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bough.sampling.sampling_params import GrammarSpec


def _regex(pattern: str) -> GrammarSpec:
    return GrammarSpec("regex", pattern)


def _schema(schema: Any) -> GrammarSpec:
    return GrammarSpec("json_schema", json.dumps(schema))


def _tag(content: dict[str, Any]) -> GrammarSpec:
    tag = {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"}
    return GrammarSpec("structural_tag", json.dumps({"type": "structural_tag", "format": tag}))


def _tree(leaf: str, levels: int) -> str:
    rules = [f"r{i} ::= r{i + 1} r{i + 1}" for i in range(levels)]
    return "\n".join(["root ::= [a-z] r0", *rules, f'r{levels} ::= "{leaf}"'])


FAMILIES: dict[str, Callable[[int], GrammarSpec]] = {
    "one character": lambda n: _regex(f"q{{{n * 1000}}}"),
    "one character, in a schema": lambda n: _schema({"type": "string", "pattern": f"^q{{{n * 1000}}}$"}),
    "one character, as a least length": lambda n: _schema({"type": "string", "pattern": "^q*$", "minLength": n * 1000}),
    "one character, behind others": lambda n: _regex(f"[a-z]{{{n % 50}}}q{{{n * 1000}}}"),
    "classes": lambda n: _regex(f"[a-z]{{{n * 1000}}}"),
    "alternatives": lambda n: _regex(f"(ab|cd){{{n * 1000}}}"),
    "alternatives that overlap": lambda n: _regex(
        "(" + "|".join(f"[a-z]{{{i},{i + n % 9}}}{i}" for i in range(200)) + ")*"
    ),
    "nested": lambda n: _regex(f"((a{{{n % 40 + 10}}}){{50}}){{{n}}}"),
    "a choice that comes late": lambda n: _regex(f"[a-z]*a[a-z]{{{n * 10}}}x"),
    "items": lambda n: _schema({"type": "array", "items": {"enum": ["a", n]}, "minItems": n * 1000}),
    "properties": lambda n: _schema({"properties": {f"p{i}": {"type": "string"} for i in range(n * 2)}}),
    "properties with patterns": lambda n: _schema(
        {"properties": {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{{i}}}x"} for i in range(n)}}
    ),
    "lengths": lambda n: _schema({"type": "string", "minLength": n * 100, "maxLength": n * 10_000}),
    "a long text": lambda n: _schema({"const": "x" * n * 500}),
    "texts": lambda n: _schema({"enum": [f"{n}-{i * 7919}" for i in range(n * 10)]}),
    "choices": lambda n: GrammarSpec("choice", json.dumps([f"{i * 7919}-{n}" for i in range(n * 10)])),
    "rules": lambda n: GrammarSpec("ebnf", f'root ::= ("ab" | "cd"){{{n * 20}}} "e"'),
    "rules that double": lambda n: GrammarSpec("ebnf", _tree(f"xy{n}", 14)),
    "a tag": lambda n: _tag(
        {"type": "json_schema", "json_schema": {"type": "string", "pattern": f"^q{{{n * 1000}}}$"}}
    ),
    "a tag with a pattern": lambda n: _tag({"type": "regex", "pattern": f"(ab|cd){{{n * 1000}}}"}),
}
