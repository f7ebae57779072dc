"""Whatever a body holds, on whatever route: an answer that is no server error, and a server that goes on.

Made from the table of routes, so that a new route is tested by being there. `make fuzz` tries every value in every
field.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, get_type_hints

import httpx
import msgspec
import pytest

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.routes import ROUTES
from tests.thoroughness import THOROUGH

HEADERS = {"content-type": "application/json"}
DEEP = 3_000
DIGITS = b"9" * 5_000

HOSTILE_VALUES: dict[str, bytes] = {
    "lone surrogate": b'"\\ud800"',
    "surrogates the wrong way round": b'"\\udc00\\ud800"',
    "half an escape": b'"\\u12"',
    "invalid utf-8": b'"\xff\xfe"',
    "overlong utf-8": b'"\xc0\xaf"',
    "surrogate as utf-8": b'"\xed\xa0\x80"',
    "quote and backslash": b'"a\\"b\\\\c\\u0001"',
    "nul": b'"\\u0000"',
    "control character": b'"\x01"',
    "noncharacters": '"\uffff\ufffe\U0010ffff"'.encode(),
    "right to left, joined and combined": '"\u202e\u200d\u0301🏳️\u200d🌈"'.encode(),
    "list of surrogates": b'["\\ud800"]',
    "object with a surrogate name": b'{"\\ud800": 1}',
    "deep array": b"[" * DEEP + b"]" * DEEP,
    "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "unclosed deep array": b"[" * DEEP,
    "a list of deep arrays": b"[" + b",".join([b"[" * 90 + b"]" * 90] * 50) + b"]",
    "huge integer": DIGITS,
    "negative huge integer": b"-" + DIGITS,
    "list of huge integers": b"[" + DIGITS + b"]",
    "integer beyond 64 bits": b"18446744073709551616",
    "integer beyond 32 bits": b"[4294967296]",
    "huge exponent": b"1e999999",
    "tiny exponent": b"1e-999999",
    "long fraction": b"0." + DIGITS,
    "minus zero": b"-0.0",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "leading zero": b"01",
    "hexadecimal": b"0x10",
    "wide array": b"[" + b"1," * 30_000 + b"1]",
    "array of arrays": b"[" + b"[]," * 3_000 + b" " * 64 * 1024 + b"[]]",
    "wide object": b"{" + b",".join(b'"k%d":0' % i for i in range(5_000)) + b"}",
    "long string": b'"' + b"x" * 100_000 + b'"',
    "long emoji string": b'"' + "🌳".encode() * 20_000 + b'"',
    "boolean": b"true",
    "single quotes": b"'x'",
    "nothing": b"",
}


def posts() -> Iterator[tuple[str, BodySpec[Any] | None]]:
    for info in ROUTES:
        if "POST" in info.methods:
            for path in info.paths:
                yield path.replace("{response_id}", "resp_x").replace("{id}", "x"), info.body


def example(kind: Any, components: dict[str, Any]) -> Any:
    """A small valid value of a JSON schema."""
    if "$ref" in kind:
        return example(components[kind["$ref"]], components)
    if "default" in kind and kind["default"] is not None:
        return kind["default"]
    if "enum" in kind:
        return kind["enum"][-1]
    if "anyOf" in kind:
        return example(kind["anyOf"][0], components)
    if kind.get("type") == "object":
        required = kind.get("required", [])
        values = {name: example(kind["properties"][name], components) for name in required}
        if "content" in kind.get("properties", {}):
            values["content"] = "Hi"
        return values
    if kind.get("type") == "array":
        return [example(kind.get("items", {}), components)]
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(kind.get("type", "string"), "Hi")


def base_of(spec: BodySpec[Any] | None) -> dict[str, Any]:
    """The least that a route takes."""
    if spec is None:
        return {}
    (reference,), components = msgspec.json.schema_components([spec.model], ref_template="{name}")
    schema = components[reference["$ref"]]
    base = {name: example(schema["properties"][name], components) for name in schema.get("required", [])}
    return base | {name: 1 for name in ("max_tokens", "max_output_tokens") if name in schema["properties"]}


def with_field(base: dict[str, Any], name: str, value: bytes) -> bytes:
    others = [json.dumps(key).encode() + b":" + json.dumps(each).encode() for key, each in base.items() if key != name]
    return b"{" + b",".join([*others, json.dumps(name).encode() + b":" + value]) + b"}"


def assert_harmless(client: httpx.Client, path: str, body: bytes) -> None:
    response = client.post(path, content=body, headers=HEADERS)
    assert response.status_code < 500, (path, body[:200], response.text)
    if response.status_code >= 400 and response.headers["content-type"] == "application/json":
        error = response.json()["error"]
        message = error if isinstance(error, str) else error["message"]
        assert isinstance(message, str)
        assert message


@pytest.mark.parametrize(("path", "spec"), [pytest.param(*each, id=each[0]) for each in posts()])
def test_hostile_values_in_every_field(client: httpx.Client, path: str, spec: BodySpec[Any] | None) -> None:
    base = base_of(spec)
    names = spec.model.__struct_fields__ if spec is not None else ["messages", "prompt", "text", "input_ids"]
    # Fields of one kind are read alike: unless there is time for all, the first gets a third of the values and the
    # others a twelfth, each other ones.
    values, kinds = list(HOSTILE_VALUES.values()), Counter[str]()
    hints = get_type_hints(spec.model) if spec is not None else {}
    for name in [*names, "unknown field"]:
        kind = str(hints.get(name, name))
        every = 1 if THOROUGH else 12 if kinds[kind] else 3
        for value in values[(kinds[kind] + len(path)) % every :: every]:
            assert_harmless(client, path, with_field(base, name, value))
        kinds[kind] += 1
    for name in set(spec.names if spec is not None else ()).difference(names):
        for kind in ("lone surrogate", "deep object", "huge integer", "NaN"):
            assert_harmless(client, path, with_field(base, name, HOSTILE_VALUES[kind]))


NESTED: dict[str, tuple[str, ...]] = {
    "tool_choice": (
        '{"type": "function", "function": %s}',
        '{"type": "function", "function": {"name": %s}}',
        '{"type": "function", "name": %s}',
        '{"type": "tool", "name": %s}',
        '{"type": %s}',
        '{"type": "allowed_tools", "mode": %s, "tools": [{"name": "f"}]}',
        '{"type": "allowed_tools", "tools": %s}',
        '{"type": "allowed_tools", "tools": [%s]}',
        '{"type": "allowed_tools", "tools": [{"name": %s}]}',
        '{"type": "allowed_tools", "allowed_tools": %s}',
        '{"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": %s}]}}',
    ),
    "tools": ('[%s]', '[{"type": "function", "function": %s}]', '[{"type": "function", "name": %s}]',
              '[{"type": %s, "name": "f", "input_schema": {}}]',
              '[{"type": "function", "function": {"name": "f", "parameters": %s}}]'),
    "messages": ('[%s]', '[{"role": "user", "content": [%s]}]', '[{"role": %s, "content": "x"}]',
                 '[{"role": "assistant", "content": [{"type": "thinking", "thinking": %s}]}]',
                 '[{"role": "assistant", "content": [{"type": "refusal", "refusal": %s}]}]',
                 '[{"role": "user", "content": [{"type": %s, "text": "x"}]}]',
                 '[{"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": %s}}]}]',
                 '[{"role": "user", "content": [{"type": "document", "source": %s}]}]',
                 '[{"role": "user", "content": [{"type": "search_result", "title": "x", "content": %s}]}]'),
    "input": ('[%s]', '[{"role": "user", "content": [%s]}]', '[{"type": %s}]', '[{"id": %s}]',
              '[{"type": "function_call", "name": "f", "call_id": "x", "arguments": %s}]',
              '[{"type": "reasoning", "summary": %s}]', '[{"type": "function_call_output", "output": %s}]'),
    "metadata": ('{"a": %s}',),
    "text": ('{"format": %s}', '{"format": {"type": %s}}', '{"format": {"type": "json_schema", "schema": %s}}'),
    "response_format": ('{"type": %s}', '{"type": "json_schema", "json_schema": %s}'),
}  # fmt: skip
"""What may stand in fields whose inside is not declared."""

KINDS_INSIDE = (
    *("lone surrogate", "invalid utf-8", "nul", "object with a surrogate name", "deep array", "deep object", "NaN"),
    *("huge integer", "wide array", "long emoji string", "boolean"),
)
_CONVERSATIONS = ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/tokenize")
_TOOLS = {
    "/v1/responses": b'[{"type":"function","name":"f"}]',
    "/v1/messages": b'[{"name":"f","input_schema":{}}]',
}


@pytest.mark.parametrize(
    ("path", "spec"), [pytest.param(*each, id=each[0]) for each in posts() if each[0] in _CONVERSATIONS]
)
def test_hostile_values_inside_fields(client: httpx.Client, path: str, spec: BodySpec[Any]) -> None:
    values = [HOSTILE_VALUES[kind] for kind in KINDS_INSIDE]
    base = base_of(spec)
    for name, templates in NESTED.items():
        if name not in spec.model.__struct_fields__:
            continue
        for template in templates:
            before, after = template.encode().split(b"%s")
            for value in (*values, b"[]", b"{}", b"5", b"null", b'""'):
                body = with_field(base, name, before + value + after)
                if name == "tool_choice":
                    tools = _TOOLS.get(path, b'[{"type":"function","function":{"name":"f"}}]')
                    body = body[:-1] + b',"tools":' + tools + b"}"
                assert_harmless(client, path, body)


def test_hostile_bodies(client: httpx.Client) -> None:
    places = (b"%s", b'{"\\ud800":%s}', b'{"a":1} %s')
    for start, (path, _) in enumerate(posts()):
        for number, value in enumerate(HOSTILE_VALUES.values(), start):
            for place in places if THOROUGH else (places[number % 3],):
                assert_harmless(client, path, place % value)
        for encoding in ("utf-16", "utf-32", "utf-8-sig"):
            assert_harmless(client, path, '{"prompt": "Hi", "text": "Hi"}'.encode(encoding))


def test_hostile_headers(client: httpx.Client) -> None:
    for path in [path for path, _ in posts()]:
        for kind in ("", "text/plain", "application/json; charset=utf-16", "a" * 3000, "application/json;;;=", "\xff"):
            response = client.post(path, content=b"{}", headers={b"content-type": kind.encode("latin-1")})
            assert response.status_code < 500


@pytest.fixture(autouse=True)
def server_goes_on(client: httpx.Client) -> Iterator[None]:
    yield
    client.post("/continue_generation")  # unless one of them has paused it
    client.post("/wake_up")
    assert client.post("/update_weight_version", json={"new_version": "default"}).status_code == 200
    answer = client.post("/generate", json={"text": "Hi", "sampling_params": {"max_new_tokens": 1}})
    assert answer.status_code == 200
