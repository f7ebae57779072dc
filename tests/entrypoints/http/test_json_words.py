"""What is said of values that are wrong: where, what is wanted and what was given, in JSON's words."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

import httpx
import msgspec
import pytest
from msgspec import Meta

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.json_body import JSON_ERRORS
from bough.errors import BadRequest
from bough.json_words import TRUNCATED, fault_in_json, wrong_field


class Item(msgspec.Struct):
    count: int


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    count: int = 0


def message_of(kind: Any, value: str) -> str:
    """Of the error for a body of which ``x`` is declared as ``kind`` and holds some JSON."""
    spec = BodySpec(msgspec.defstruct("Body", [("x", kind)]))
    with pytest.raises(BadRequest) as raised:
        asyncio.run(spec.parse(b'{"x": %b}' % value.encode(), unknown=None, max_tokens=8))
    return raised.value.message


def test_it_is_told_what_is_wanted_and_what_was_given() -> None:
    cases = [
        (int, '"5"', 'x must be an integer, got "5"'),
        (int | None, "1.5", "x must be an integer or null, got 1.5"),
        (float, "true", "x must be a number, got true"),
        (bool, "1", "x must be true or false, got 1"),
        (bool | list[str] | None, '"ä"', 'x must be true, false, an array or null, got "ä"'),
        (str, "[1]", "x must be a string, got an array"),
        (str | list[str], "{}", "x must be a string or an array, got an object"),
        (list[int], "[1, null]", "x[1] must be an integer, got null"),
        (dict[str, list[int]], '{"a": [1, "b"]}', 'x.a[1] must be an integer, got "b"'),
        (int, json.dumps("a" * 39), "x must be an integer, got a string"),
        (int, json.dumps("a" * 100_000), "x must be an integer, got a string"),
        (Annotated[int, Meta(ge=1)], "0", "x must be at least 1, got 0"),
        (Annotated[float, Meta(le=100)], "1000", "x must be at most 100, got 1000"),
        (Annotated[float, Meta(gt=0)], "-0.5", "x must be more than 0, got -0.5"),
        (Annotated[float, Meta(lt=2.5)], "3", "x must be less than 2.5, got 3"),
        (Annotated[str, Meta(min_length=1)], '""', "x must have at least 1 character, got 0"),
        (Annotated[str, Meta(max_length=2)], '"abc"', "x must have at most 2 characters, got 3"),
        (Annotated[list[int], Meta(max_length=1)], "[1, 2]", "x must have at most 1 element, got 2"),
        (Annotated[dict[str, int], Meta(min_length=2)], "{}", "x must have at least 2 members, got 0"),
        (Annotated[str, Meta(pattern="^a$")], '"b"', "x must match the pattern '^a$', got \"b\""),
        (Literal["a", "b"], '"c"', 'x must be one of a, b, got "c"'),
        (Literal["a", "b"], json.dumps("c" * 1000), "x must be one of a, b, got a string"),
        (Literal["a", "b"], json.dumps(" - at `$" * 6000), "x must be one of a, b, got a string"),
        (Literal["a", "b"], json.dumps(" - at `$" * 60_000), "x must be one of a, b, got a string"),
        (list[Literal["a"]], '["a", " - at `$.x`"]', 'x[1] must be one of a, got " - at `$.x`"'),
        (Literal["a", "b"], "5", "x must be a string, got 5"),
        (dict[int, float], '{"1": 1, "a": 1}', 'x.a: the name must be an integer, got "a"'),
        (list[dict[int, float]], '[{"a": 1}]', 'x[0].a: the name must be an integer, got "a"'),
        (list[Item], '[{"count": 1}, {}]', "x[1].count is required"),
        (int, "01", "x: not valid JSON: invalid number (byte 1)"),
    ]
    for kind, value, message in cases:
        assert message_of(kind, value) == message


VERSIONS = ("0.19", "0.20", "0.21", "0.22")
"""Of msgspec, whose words were read."""


def test_words_about_json_are_those_of_known_versions() -> None:
    cases = [
        (b'{"a": ', TRUNCATED),
        (b"01", "invalid number (byte 1)"),
        (b'"\xff"', "it is not valid UTF-8"),
        (b"1e999", "a number is out of range"),
        (b"[" * 100_000, "nested too deeply"),
    ]
    for text, words in cases:
        assert msgspec.__version__.startswith(VERSIONS), "look whether fault_in_json understands this one"
        with pytest.raises(JSON_ERRORS) as raised:
            msgspec.json.decode(text)
        assert fault_in_json(raised.value) == words


def test_token_ids_in_a_large_body_are_spoken_of_alike() -> None:
    spec = BodySpec(msgspec.defstruct("Body", [("x", list[int])]), token_ids=frozenset({"x"}))
    body = json.dumps({"x": [1] * 30_000 + ["a"]}).encode()
    with pytest.raises(BadRequest) as raised:
        asyncio.run(spec.parse(body, unknown=None, max_tokens=100_000))
    assert raised.value.message == 'an element of x must be an integer, got "a"'


def test_every_dialect_speaks_so(client: httpx.Client) -> None:
    cases = [
        ("/v1/chat/completions", {"messages": "Hi"}, 'messages must be an array, got "Hi"'),
        ("/v1/messages", {"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ("/v1/responses", {"text": {"format": 5}}, "text.format must be an object or null, got 5"),
        ("/v1/embeddings", {"dimensions": "8"}, 'dimensions must be an integer or null, got "8"'),
        ("/generate", {"rid": {}}, "rid must be a string, an array or null, got an object"),
        ("/api/chat", {"think": 5}, "think must be true, false, a string or null, got 5"),
        (
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": "Hi"}],
                "response_format": {"type": "json_schema", "json_schema": []},
            },
            "response_format.json_schema must be an object, got an array",
        ),
    ]
    for path, body, message in cases:
        response = client.post(path, json=body)
        assert response.status_code == 400
        error = response.json()["error"]
        assert (error if isinstance(error, str) else error["message"]) == message


def test_what_is_not_json_is_said_in_few_words(client: httpx.Client) -> None:
    for body, message in [
        (b'{"prompt": "Hi', "it ends too early"),
        (b'{"prompt": "Hi",}', "trailing comma in object (byte 16)"),
    ]:
        response = client.post("/v1/completions", content=body, headers={"content-type": "application/json"})
        assert response.json()["error"]["message"] == f"the request body is not valid JSON: {message}"


def test_names_of_clients_are_cut_off() -> None:
    for name in ["q" * 30_000, "q - at `$." + "y" * 30_000, "q - at `key` in `$." + "y" * 30_000]:
        for kind in [Strict, list[Strict], dict[str, Strict]]:
            value = {Strict: {name: 1}, list[Strict]: [{name: 1}], dict[str, Strict]: {"a": {name: 1}}}[kind]
            assert len(message_of(kind, json.dumps(value))) < 200
            assert len(wrong_field("x", value, kind).message) < 300
