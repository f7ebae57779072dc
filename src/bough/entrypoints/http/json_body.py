"""Takes JSON request bodies apart without holding up the event loop.

A small body is split by msgspec in one go. A large one is walked through in slices, with a turn for everybody else
after each: a body of a million token ids costs tens of milliseconds, during which no other client would get a token.
Values stay encoded; whoever needs one decodes it with the type that it should have.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from array import array
from collections.abc import Callable, Mapping

import msgspec

from bough.errors import BadRequest
from bough.json_words import NOT_POSSIBLE, fault_in_json, fault_of
from bough.managers.turns import Turns
from bough.tokenization.tokenizer import TokenIds

SLICE_BYTES = 32 * 1024
"""Bytes handled between two turns of the event loop: at most about 0.3 ms."""

LARGE_BODY_BYTES = 64 * 1024
"""Bodies from this size on are walked through in slices."""

COUNTED_BYTES = 512 * 1024
"""Of a list of too many token ids, how much is counted, for the error that says how many there are."""

MAX_STEPS = 256
"""Brackets and quotes passed between two turns."""

MAX_DEPTH = 64
"""Deepest nesting of arrays and objects in a member of a large body."""

MAX_SMALL_DEPTH = 512
"""The same of a small one. msgspec has a bound of its own, which differs between versions of Python."""

MAX_MEMBERS = 1024
"""Most members of the object that a body is."""

RawValue = bytes | memoryview
"""A JSON value, still encoded."""

_SPLITTER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRING = msgspec.json.Decoder(str)
_INTEGERS = msgspec.json.Decoder(list[int])
_SPACE = re.compile(rb"[ \t\n\r]*")
_SCALAR_END = re.compile(rb"[ \t\n\r,}]")
_STRING_ENDS = (b'"', b"\\")
_STRUCTURE = (b'"', b"[", b"]", b"{", b"}")
JSON_ERRORS = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding can raise on bad input (``ValueError``: invalid UTF-8, or an integer of thousands of digits)."""

ElementLimit = Callable[[str, bytes], int | None]
"""From name and first bytes of a member to how many elements it may have, if that is bounded."""


async def split_object(body: bytes, element_limit: ElementLimit | None = None) -> Mapping[str, RawValue]:
    """The members of a JSON object by name; the last one wins where a name appears twice.

    Args:
        element_limit: bounds the members of a large body, because each is later decoded in one go. Every comma and
            every opening bracket outside strings counts as an element.

    Raises:
        BadRequest: if the body is not a JSON object, or has too many members or elements. Values are only checked as
            far as finding their ends needs.
    """
    start = len(codecs.BOM_UTF8) if body.startswith(codecs.BOM_UTF8) else 0  # RFC 8259, 8.1: a parser may ignore it
    if len(body) >= LARGE_BODY_BYTES:
        return await _Walker(body, element_limit, MAX_DEPTH, start).split()
    body = body[start:]
    if body.count(b"[") + body.count(b"{") > MAX_SMALL_DEPTH:
        return await _Walker(body, None, MAX_SMALL_DEPTH).split()
    if not body.strip():
        raise BadRequest("the request body is empty; a JSON object is expected", code="invalid_json")
    try:
        members: Mapping[str, RawValue] = _SPLITTER.decode(body)
    except JSON_ERRORS as error:
        try:
            # If only the inside of a value is wrong, decoding that value fails with the name of its field.
            members = await _Walker(body, None, MAX_SMALL_DEPTH).split()
        except BadRequest:
            raise invalid_json(error) from None
    if len(members) > MAX_MEMBERS:
        raise _too_many_members()
    return members


def invalid_json(error: Exception | str) -> BadRequest:
    """The error for a body that is not JSON, or not a JSON object."""
    if isinstance(error, msgspec.ValidationError):
        return BadRequest("the request body must be a JSON object", code="invalid_json")
    text = fault_in_json(error) if isinstance(error, Exception) else error
    return BadRequest(f"the request body is not valid JSON: {text}", code="invalid_json")


async def decode_token_ids(raw: RawValue, param: str, max_tokens: int, max_prompts: int) -> TokenIds | list[TokenIds]:
    """Decode one list of token ids, or a list of such lists, in slices.

    Args:
        max_tokens: longest prompt that can be served; a longer one is refused before it is all decoded.
        max_prompts: most lists; more are refused before they are all decoded.

    Raises:
        BadRequest: if it is anything else, or too long.
    """
    inside = await _skip_space(raw, 1)
    if raw[inside : inside + 1] != b"[":
        return await _decode_flat(raw, 0, len(raw), param, max_tokens)
    data = bytes(raw)
    prompts: list[TokenIds] = []
    position = inside
    turns = Turns(SLICE_BYTES)
    while True:
        end = data.find(b"]", position) + 1
        if data[position : position + 1] != b"[" or end == 0:
            raise BadRequest(f"{param} must be a list of token ids, or a list of such lists", param=param)
        if len(prompts) == max_prompts:
            raise BadRequest(f"{param} holds more than {max_prompts} prompts", param=param)
        prompts.append(await _decode_flat(data, position, end, f"{param}[{len(prompts)}]", max_tokens))
        begin, position = position, await _skip_space(data, end)
        if data[position : position + 1] == b"]":
            return prompts
        if data[position : position + 1] != b",":
            raise invalid_json(f"expected , or ] in {param}")
        position = await _skip_space(data, position + 1)
        await turns.spend(position - begin)


async def _decode_flat(data: RawValue, start: int, end: int, param: str, max_tokens: int) -> TokenIds:
    """Decode ``data[start:end]``, which starts with ``[`` and ends with ``]``; it is never copied as a whole."""
    ids = array("i")
    position = start + 1
    while True:
        comma = _next_comma(data, position + SLICE_BYTES, end)
        last = comma < 0
        piece = bytes(data[position : end - 1 if last else comma])
        try:
            values = _INTEGERS.decode(b"[" + piece + b"]")
        except JSON_ERRORS:
            raise _wrong_ids(param, piece) from None
        if not values and (ids or not last):
            raise invalid_json(f"a value is missing in {param}")
        try:
            ids.extend(array("i", values))
        except OverflowError:
            raise BadRequest(f"{param} holds a number that is no token id", param=param) from None
        if len(ids) > max_tokens:
            counted = min(end, position + COUNTED_BYTES)
            count = len(ids) + (0 if last else bytes(data[comma:counted]).count(b","))
            raise _too_many(param, count, max_tokens, is_all=counted == end)
        if last:
            return ids
        position = comma + 1
        await asyncio.sleep(0)


def _wrong_ids(param: str, piece: bytes) -> BadRequest:
    try:
        problem = (fault_of(msgspec.json.decode(b"[" + piece + b"]"), list[int]) or NOT_POSSIBLE).problem
    except JSON_ERRORS as error:
        problem = f": {fault_in_json(error)}"
    return BadRequest(f"an element of {param}{problem}", param=param)


def _next_comma(data: RawValue, start: int, end: int) -> int:
    for position in range(start, end, SLICE_BYTES):
        within = bytes(data[position : min(position + SLICE_BYTES, end)]).find(b",")
        if within >= 0:
            return position + within
    return -1


def _too_many(param: str, count: int, limit: int, *, is_all: bool) -> BadRequest:
    return BadRequest(
        f"This model's maximum prompt length is {limit} tokens. However, {param} has {'' if is_all else 'at least '}"
        f"{count} tokens.",
        param=param,
        code="context_length_exceeded",
    )


def _too_many_members() -> BadRequest:
    return BadRequest(f"the request body has more than {MAX_MEMBERS} fields", code="invalid_value")


async def _skip_space(data: RawValue, position: int) -> int:
    """Where the white space ends that begins at ``position``, if there is any."""
    while True:
        match = _SPACE.match(data, position, position + SLICE_BYTES)
        assert match is not None, "matches the empty string too"
        if match.end() < position + SLICE_BYTES:
            return match.end()
        position = match.end()
        await asyncio.sleep(0)


class _Nearest:
    """Finds the nearest of some bytes. A search for each is many times as fast as a pattern that has all of them."""

    def __init__(self, data: bytes, wanted: tuple[bytes, ...]) -> None:
        self._data = data
        self._wanted = wanted
        self._horizon = 0
        self._ahead = [-1] * len(wanted)
        """Of each, the next one, or the horizon if it does not come before; out of date where that has been passed."""

    def find(self, start: int) -> tuple[int, bool]:
        """The nearest place from ``start`` on, which never decreases, and whether it is there: if not, none is before.

        At most :data:`SLICE_BYTES` are looked at.
        """
        if start >= self._horizon:
            self._horizon = start + SLICE_BYTES
            self._ahead = [-1] * len(self._wanted)
        horizon, ahead = self._horizon, self._ahead
        for i, byte in enumerate(self._wanted):
            if ahead[i] < start:
                found = self._data.find(byte, start, horizon)
                ahead[i] = horizon if found < 0 else found
        nearest = min(ahead)
        return nearest, nearest < horizon


class _Walker:
    """Finds where the members of a large JSON object begin and end."""

    def __init__(self, body: bytes, element_limit: ElementLimit | None, max_depth: int, start: int = 0) -> None:
        self._body = body
        self._max_depth = max_depth
        self._element_limit = element_limit
        self._string_ends = _Nearest(body, _STRING_ENDS)
        self._structure = _Nearest(body, _STRUCTURE)
        self._position = self._last_turn = start
        self._steps = 0

    async def split(self) -> Mapping[str, RawValue]:
        body, view = self._body, memoryview(self._body)
        members: dict[str, RawValue] = {}
        await self._skip_space()
        if self._byte() != b"{":
            raise invalid_json(msgspec.ValidationError())
        self._position += 1
        await self._skip_space()
        if self._byte() == b"}":
            self._position += 1
        else:
            while True:
                start = self._position
                if self._byte() != b'"':
                    raise self._malformed("a name in quotes")
                await self._string()
                try:
                    name = _STRING.decode(view[start : self._position])
                except JSON_ERRORS as error:
                    raise invalid_json(error) from None
                await self._skip_space()
                if self._byte() != b":":
                    raise self._malformed("':'")
                self._position += 1
                await self._skip_space()
                start = self._position
                limit = self._element_limit(name, body[start : start + 256]) if self._element_limit else None
                await self._value(name, limit)
                members[name] = view[start : self._position]
                if len(members) > MAX_MEMBERS:
                    raise _too_many_members()
                await self._skip_space()
                separator = self._byte()
                self._position += 1
                if separator == b"}":
                    break
                if separator != b",":
                    raise self._malformed("',' or '}'")
                await self._skip_space()
        await self._skip_space()
        if self._position != len(body):
            raise self._malformed("the end")
        return members

    async def _value(self, name: str, limit: int | None) -> None:
        first = self._byte()
        if first == b'"':
            await self._string()
        elif first in (b"[", b"{"):
            await self._container(name, limit)
        else:
            match = _SCALAR_END.search(self._body, self._position, self._position + SLICE_BYTES)
            if match is None or match.start() == self._position:
                raise self._malformed("a value")
            self._position = match.start()

    async def _string(self) -> None:
        """Move behind the string that begins here."""
        body = self._body
        position = self._position + 1
        while True:
            place, is_there = self._string_ends.find(position)
            if not is_there:
                if place >= len(body):
                    raise self._malformed("the end of a string")
                position = place
            elif body[place] == 0x22:
                self._position = place + 1
                return
            else:
                position = place + 2
            await self._give_turn(position)

    async def _container(self, name: str, limit: int | None) -> None:
        """Move behind the array or object that begins here. Brackets are counted, not paired."""
        body = self._body
        depth = elements = 0
        while True:
            start = self._position
            place, is_there = self._structure.find(start)
            if limit is not None:
                elements += body.count(b",", start, place)
                if elements > limit:
                    raise BadRequest(f"{name} holds more than {limit} elements", param=name)
            if not is_there:
                self._position = place
                if self._position >= len(body):
                    raise self._malformed("the end of an array or object")
            elif body[place] == 0x22:
                self._position = place
                await self._string()
            else:
                self._position = place + 1
                opens = body[place] in b"[{"
                depth += 1 if opens else -1
                elements += opens
                if depth == 0:
                    return
                if depth > self._max_depth:
                    raise invalid_json(f"nested too deeply: more than {self._max_depth} levels in a body of this size")
            await self._give_turn(self._position)

    async def _give_turn(self, position: int) -> None:
        self._steps += 1
        if self._steps >= MAX_STEPS or position - self._last_turn >= SLICE_BYTES:
            self._last_turn = position
            self._steps = 0
            await asyncio.sleep(0)

    async def _skip_space(self) -> None:
        self._position = await _skip_space(self._body, self._position)
        await self._give_turn(self._position)

    def _byte(self) -> bytes:
        return self._body[self._position : self._position + 1]

    def _malformed(self, expected: str) -> BadRequest:
        return invalid_json(f"expected {expected} at byte {self._position}")
