"""Schemas, patterns and grammars that are wrong, endless or odd: each is followed or refused, and harms nobody."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.soak.measuring import server_without_model

AT_ONCE = 8
COMPILE_SECONDS = 3.0
HANG_SECONDS = 30.0
PLAIN = {"text": "x", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}

LEAVES: tuple[Any, ...] = (
    *({"type": name} for name in ("string", "integer", "number", "boolean", "null", "array", "object", "wrong", "")),
    *({"$ref": ref} for ref in ("#", "#/$defs/a", "#/$defs/b", "#/$defs/missing", "#/$defs", "http://x/y", 7)),
    *(True, False, None, 7, "string", [], {}, {"type": []}, {"type": ["string", "string", "wrong"]}),
    *({"const": 1}, {"enum": []}, {"enum": [1, "a", None, {"b": [2]}]}, {"enum": "a"}),
    *({"pattern": "(?=x)y", "type": "string"}, {"pattern": "(a+)+$"}, {"pattern": "["}, {"pattern": "[a-z]{2000}"}),
    *({"type": "string", "minLength": 10**9}, {"type": "string", "minLength": 9, "maxLength": 2}, {"minLength": -1}),
    *({"type": "string", "format": name} for name in ("date", "ipv6", "regex", "no-such-format")),
    *({"type": "number", "multipleOf": 0}, {"minimum": "x"}, {"type": "integer", "minimum": 9, "maximum": 2}),
    *({"type": "number", "minimum": 1e308, "maximum": -1e308}, {"type": "integer", "multipleOf": 1e-300}),
    *({"type": "array", "uniqueItems": True}, {"type": "array", "minItems": 10**6}, {"required": ["a", 7]}),
)
PIECES = (
    *("a", "b*", "(a|b)*", "[a-z]{3}", "(a+)+$", "(a|aa)+", ".*", ".*?", "\\w+\\d", "^", "$", "\\b", "(?:x)", "(?i)K"),
    *("(?=x)", "(?<!y)", "\\1", "(?P<n>x)", "(?P=n)", "(?R)", "[", "(", ")", "*", "{2,1}", "{1000000}", "\\", "[z-a]"),
    *("\\p{Greek}", "\\x00", "\\ud800", "é", "😀", "(" * 300, "[^\\n]{1,500}", "((a{1,90}){1,90}){1,90}"),
)
SYMBOLS = (
    *('"a"', "[a-z]", "[^\\n]*", "root", "rule", "missing", "(", ")", "|", "*", "+", "?", '""', "/a+/", "{9}", "::="),
    *('"', "[", "#", "\\x00", "😀", '"é"', "%import common.WS", "<[1]>", "\n", "rule ::= ", "root ::= ", "start: "),
)


def schema(rng: random.Random, depth: int) -> Any:
    """A random schema, most of them wrong somewhere."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)

    def some(most: int) -> list[Any]:
        return [schema(rng, depth - 1) for _ in range(rng.randint(0, most))]

    keyword = rng.choice(("properties", "items", "oneOf", "anyOf", "allOf", "not", "if", "prefixItems", "contains"))
    made: dict[str, Any] = {}
    if keyword == "properties":
        made = {"type": "object", "properties": dict(zip("abcdé", some(5), strict=False))}
        made["required"] = rng.sample("abcdex", rng.randint(0, 4))
        made["additionalProperties"] = rng.choice((True, False, schema(rng, depth - 1)))
    elif keyword in ("oneOf", "anyOf", "allOf", "prefixItems"):
        made = {keyword: some(6)}
    elif keyword == "items":
        made = {"type": "array", "items": rng.choice((some(4), schema(rng, depth - 1)))}  # a list is draft-07's tuple
    elif keyword == "if":
        made = {"if": schema(rng, depth - 1), "then": schema(rng, depth - 1), "else": schema(rng, depth - 1)}
    else:
        made = {keyword: schema(rng, depth - 1)}
    if rng.random() < 0.3:
        made["$defs"] = {"a": schema(rng, depth - 1), "b": {"$ref": f"#/$defs/{rng.choice('ab')}"}}
    return made


def grammar(rng: random.Random) -> dict[str, Any]:
    """A random grammar, as the sampling parameter that it is."""
    kind = rng.choice(("json_schema", "json_schema", "regex", "ebnf", "structural_tag"))
    if kind == "json_schema":
        made = schema(rng, rng.randint(1, 6))
        return {kind: rng.choice((made, json.dumps(made))) if isinstance(made, dict) else json.dumps(made)}
    if kind == "regex":
        return {kind: "".join(rng.choices(PIECES, k=rng.randint(1, 8)))}
    if kind == "ebnf":
        return {kind: rng.choice(("root ::= ", "")) + " ".join(rng.choices(SYMBOLS, k=rng.randint(1, 14)))}
    tag = {"begin": rng.choice(("<f>", "")), "schema": schema(rng, 3), "end": rng.choice(("</f>", ""))}
    return {kind: {"structures": [tag] * rng.randint(0, 3), "triggers": rng.choice((["<f>"], [""], []))}}


@pytest.mark.parametrize("count", [pytest.param(60, id="short"), pytest.param(1000, marks=pytest.mark.soak, id="long")])
def test_every_grammar_is_followed_or_refused(tmp_path: Path, count: int) -> None:
    rng = random.Random(5)
    grammars = [grammar(rng) for _ in range(count)]
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    wrong: list[str] = []
    with server_without_model(tmp_path, "--grammar-compile-timeout", f"{COMPILE_SECONDS}") as server:
        processes = {process.pid for process in server.processes()}
        expected = server.generate(**PLAIN)["text"]

        def ask(params: dict[str, Any]) -> None:
            begin = time.monotonic()
            body = {**PLAIN, "sampling_params": {**PLAIN["sampling_params"], **params}}  # type: ignore[dict-item]
            answer = httpx.post(f"{server.url}/generate", json=body, timeout=HANG_SECONDS)
            seconds.append(time.monotonic() - begin)
            statuses[answer.status_code] += 1
            if answer.status_code not in (200, 400):
                wrong.append(f"{answer.status_code} {answer.text[:200]} {params}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(ask, grammars))
        print(f"{dict(statuses)}, {max(seconds):.1f} s at most")
        assert not wrong, wrong[:5]
        assert min(statuses[200], statuses[400]) > count // 20, "some can be followed, and some cannot"
        server.assert_idle_and_whole()
        assert processes <= {process.pid for process in server.processes()}
        assert server.generate(**PLAIN)["text"] == expected
        assert "Traceback" not in server.log.read_text()
