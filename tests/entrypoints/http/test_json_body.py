"""Large bodies are walked through in slices; the outcome is that of parsing them at once."""

from __future__ import annotations

import asyncio
import json
from array import array
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.entrypoints.http import json_body
from bough.entrypoints.http.json_body import JSON_ERRORS, decode_token_ids, split_object
from bough.errors import BadRequest
from tests.thoroughness import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)
objects = st.dictionaries(st.text(), json_values, max_size=6)
spaces = st.sampled_from([None, 1, 4])


def split(body: bytes) -> dict[str, Any]:
    members = asyncio.run(split_object(body))
    return {name: msgspec.json.decode(bytes(raw)) for name, raw in members.items()}


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every body is a large one."""
    monkeypatch.setattr(json_body, "LARGE_BODY_BYTES", 0)
    monkeypatch.setattr(json_body, "SLICE_BYTES", 64)


@settings(max_examples=examples(200))
@given(objects, spaces, st.booleans())
def test_objects_come_apart_as_they_would_at_once(value: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        expected = msgspec.json.decode(body)
    except JSON_ERRORS:
        return
    assert split(body) == expected


def test_space_may_be_anywhere_and_of_any_length() -> None:
    for length in [1, 63, 64, 65, 128, 1000]:
        s = (" \t\r\n" * length)[:length]
        body = f'{s}{{{s}"a"{s}:{s}1{s},{s}"b"{s}:{s}[{s}[1{s},2{s}]{s},{s}[3]{s}]{s}}}{s}'.encode()
        assert split(body) == {"a": 1, "b": [[1, 2], [3]]}
        assert split(f"{s}{{{s}}}{s}".encode()) == {}
        lists = asyncio.run(decode_token_ids(asyncio.run(split_object(body))["b"], "b", 10, 10))
        assert [list(ids) for ids in lists] == [[1, 2], [3]]
        with pytest.raises(BadRequest, match="the end"):
            split(body + b"x")


@settings(max_examples=examples(300))
@given(objects, st.data())
def test_damaged_objects_are_refused_or_read_as_they_would_be_at_once(
    value: dict[str, Any], data: st.DataObject
) -> None:
    body = bytearray(json.dumps(value).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(body) - 1))
        body[position : position + 1] = data.draw(
            st.sampled_from([b"", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\"])
        )
        if not body:
            return
    try:
        expected: Any = msgspec.json.decode(bytes(body), type=dict[str, Any])
    except JSON_ERRORS:
        expected = None
    try:
        got: Any = split(bytes(body))
    except (BadRequest, *JSON_ERRORS):
        got = None
    assert got == expected


@given(st.lists(st.integers(0, 200_000), min_size=1), spaces)
def test_token_ids_are_decoded_in_slices(ids: list[int], indent: int | None) -> None:
    raw = json.dumps(ids, indent=indent).encode()
    assert asyncio.run(decode_token_ids(raw, "input_ids", 10**6, 10**6)) == array("i", ids)


@given(st.lists(st.lists(st.integers(0, 200_000), min_size=1), min_size=1), spaces)
def test_lists_of_token_ids_are_decoded_in_slices(prompts: list[list[int]], indent: int | None) -> None:
    raw = json.dumps(prompts, indent=indent).encode()
    assert asyncio.run(decode_token_ids(raw, "input_ids", 10**6, 10**6)) == [array("i", ids) for ids in prompts]


def test_what_are_no_token_ids_is_refused() -> None:
    cases = [
        b"[1,,2]",
        b"[1,2,]",
        b"[,1]",
        b"[1 2]",
        b"[1,2.5]",
        b'[1,"2"]',
        b"[1,[2]]",
        b"[[1],2]",
        b"[[1][2]]",
        b"[[1],]",
        b"[[1]",
        b"[1,true]",
        b"[1,null]",
        b"[3000000000]",
        b"[[[1]]]",
    ]
    for raw in cases:
        with pytest.raises(BadRequest, match="input_ids"):
            asyncio.run(decode_token_ids(raw, "input_ids", 100, 10**6))


def test_too_many_ids_are_counted_but_not_decoded() -> None:
    raw = b"[" + b",".join([b"5"] * 5000) + b"]"
    with pytest.raises(BadRequest, match=r"100 tokens.*5000 tokens"):
        asyncio.run(decode_token_ids(raw, "input_ids", 100, 10**6))


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"input_ids": list(range(100_000))}).encode(),
        json.dumps({"text": 'a "quoted" text\n' * 40_000}).encode(),
        json.dumps({"messages": [{"role": "user", "content": "Hi"}] * 20_000}).encode(),
        b'{"a":' + b"[" * 60 + b"[]," * 200_000 + b"[]" + b"]" * 60 + b"}",
        b"{" + b",".join(b'"%d":%b1' % (number, b" " * (32 * 1024 - 1)) for number in range(100)) + b"}",
    ],
    ids=["ids", "text", "messages", "brackets", "gaps"],
)
def test_others_get_their_turn_while_a_large_body_is_walked_through(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    turns = 0

    async def count_turns() -> int:
        nonlocal turns
        walking = asyncio.ensure_future(split_object(body))
        while not walking.done():
            turns += 1
            await asyncio.sleep(0)
        await walking
        return turns

    assert asyncio.run(count_turns()) >= len(body) // json_body.SLICE_BYTES


def test_more_prompts_than_allowed_are_refused_before_they_are_all_decoded() -> None:
    with pytest.raises(BadRequest, match="more than 3 prompts"):
        asyncio.run(decode_token_ids(b"[[1],[2],[3],[4],[x", "input_ids", 100, 3))


def test_elements_are_counted_outside_strings_before_anything_is_decoded() -> None:
    for value in [b"[[],[],[]]", b'[1,2,3,"a,b",4,5]', b'{"a":[],"b":{},"c":1}', b"[[[[[[1]]]]]]"]:
        elements = sum(char in b"[{," for char in value.replace(b'"a,b"', b'""'))
        body = b'{"x":%b,"y":[1,2,3,4,5,6,7,8,9,10,11,12]}' % value

        def limit_x(limit: int) -> Any:
            return lambda name, beginning: limit if name == "x" else None

        asyncio.run(split_object(body, limit_x(elements)))
        with pytest.raises(BadRequest) as caught:
            asyncio.run(split_object(body, limit_x(elements - 1)))
        assert caught.value.param == "x"


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for large_from in [0, 10**9]:
        monkeypatch.setattr(json_body, "LARGE_BODY_BYTES", large_from)
        body = json.dumps({str(i): i for i in range(json_body.MAX_MEMBERS + 1)}).encode()
        with pytest.raises(BadRequest, match="more than 1024 fields"):
            asyncio.run(split_object(body))
