"""Finds the end of a JSON value (RFC 8259) that comes in pieces, and what is wrong with it as soon as it is.

Nesting takes a stack and no recursion, so that depth is no matter. A raw control character in a string, which JSON
forbids and models write, is escaped.
"""

from __future__ import annotations

import math
import re
from enum import Enum, auto

MAX_NUMBER_CHARS = 1024
"""Longest number. Programs that read JSON refuse such as well."""

_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*')
NOT_STRING_BODY = re.compile(r'["\\\x00-\x1f]')
"""What does not stand for itself in a string."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER_BODY = re.compile(r"[-+.0-9eE]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_NOT_FINITE = {"N": "NaN", "I": "Infinity"}
_MAY_NOT_BE_FINITE = re.compile(r"[eE]\+?[0-9]{3}|[0-9]{308}|NaN|Infinity")
_CLOSER = {"{": "}", "[": "]"}
_HEX = frozenset("0123456789abcdefABCDEF")


class _State(Enum):
    VALUE = auto()
    FIRST_ELEMENT = auto()  # a value, or the end of an empty array
    FIRST_KEY = auto()  # a key, or the end of an empty object
    KEY = auto()
    COLON = auto()
    AFTER_VALUE = auto()
    STRING = auto()
    ESCAPE = auto()
    HEX = auto()
    NUMBER = auto()
    LITERAL = auto()
    DONE = auto()
    FAULT = auto()


class JsonScanner:
    """Follows one JSON value, which must not begin with white space.

    Args:
        finite: emit numbers beyond the range of a float (``1e999``), ``NaN`` and ``Infinity`` as strings. Numbers are
            then emitted only when complete.
    """

    __slots__ = ("_finite", "_in_key", "_open", "_quoted", "_rest", "_state", "output")

    def __init__(self, *, finite: bool = False) -> None:
        self._finite = finite
        self._quoted = False  # True while a literal is emitted as a string
        self._state = _State.VALUE
        self._open: list[str] = []
        self._in_key = False
        self._rest = ""  # of a literal or of hexadecimal digits: what must come; of a number: what came
        self.output = ""
        """What the last :meth:`scan` has passed, as valid JSON text."""

    @property
    def done(self) -> bool:
        """True if the value is complete."""
        return self._state is _State.DONE

    @property
    def held(self) -> str:
        """Number that has not been emitted yet, if the value ends with one."""
        return self._rest if self._finite and self._state is _State.NUMBER else ""

    @property
    def in_string(self) -> bool:
        """True if the next character is one of a string, or ends it."""
        return self._state is _State.STRING

    @property
    def fault(self) -> bool:
        """True if this is no JSON value."""
        return self._state is _State.FAULT

    def scan(self, text: str, pos: int) -> int:
        """Follow the value through more text, which holds its continuation from ``pos`` on.

        Returns:
            The place behind the last character that belongs to the value, or at which it is wrong.
        """
        begin = pos
        pieces: list[str] = []
        end = len(text)
        while pos < end:
            state = self._state
            if state is _State.STRING:
                match = _STRING_BODY.match(text, pos)
                assert match is not None
                pos = match.end()
                if pos == end:
                    break
                character = text[pos]
                if character == '"':
                    self._state = _State.COLON if self._in_key else self._after_value()
                elif character == "\\":
                    self._state = _State.ESCAPE
                else:
                    pieces += text[begin:pos], f"\\u{ord(character):04x}"
                    begin = pos + 1
                pos += 1
            elif state is _State.ESCAPE or state is _State.HEX:
                if not self._escape(text[pos]):
                    break
                pos += 1
            elif state is _State.NUMBER:
                match = _NUMBER_BODY.match(text, pos, pos + MAX_NUMBER_CHARS + 1 - len(self._rest))
                assert match is not None
                self._rest += match.group()
                pos = match.end()
                if len(self._rest) > MAX_NUMBER_CHARS:
                    self._state = _State.FAULT
                elif pos < end and self._finite and self._rest == "-" and text[pos] == "I":
                    self._state, self._rest, self._quoted = _State.LITERAL, _NOT_FINITE["I"], True
                    pieces.append('"-')
                    begin = pos
                    continue
                elif pos < end:
                    self._state = self._after_value() if _NUMBER.fullmatch(self._rest) else _State.FAULT
                if self._finite:
                    begin = pos
                    if self._state is not _State.NUMBER:
                        pieces.append(_finite(self._rest))
            elif state is _State.LITERAL:
                if text[pos] != self._rest[0]:
                    self._state = _State.FAULT
                    break
                self._rest = self._rest[1:]
                pos += 1
                if not self._rest:
                    self._state = self._after_value()
                    if self._quoted:
                        pieces += text[begin:pos], '"'
                        begin, self._quoted = pos, False
            elif state is _State.DONE or state is _State.FAULT:
                break
            else:
                match = _SPACE.match(text, pos)
                assert match is not None
                pos = match.end()
                if pos == end:
                    break
                self._state = self._structure(text[pos])
                if self._state is _State.FAULT:
                    break
                if self._finite and self._state is _State.NUMBER:
                    pieces.append(text[begin:pos])
                    begin = pos + 1
                elif self._quoted:
                    pieces += text[begin:pos], '"'
                    begin = pos
                pos += 1
        pieces.append(text[begin:pos])
        self.output = "".join(pieces) if len(pieces) > 1 else pieces[0]
        return pos

    def _after_value(self) -> _State:
        return _State.AFTER_VALUE if self._open else _State.DONE

    def _escape(self, character: str) -> bool:
        if self._state is _State.HEX:
            if character not in _HEX:
                self._state = _State.FAULT
                return False
            self._rest = self._rest[1:]
            if not self._rest:
                self._state = _State.STRING
        elif character == "u":
            self._state, self._rest = _State.HEX, "0000"
        elif character in '"\\/bfnrt':
            self._state = _State.STRING
        else:
            self._state = _State.FAULT
            return False
        return True

    def _structure(self, character: str) -> _State:
        """The state after a character that is neither white space nor inside a string, number or literal."""
        state = self._state
        if state is _State.COLON:
            return _State.VALUE if character == ":" else _State.FAULT
        if character in "]}" and state in (_State.AFTER_VALUE, _State.FIRST_ELEMENT, _State.FIRST_KEY):
            if self._open[-1] != character:
                return _State.FAULT
            self._open.pop()
            return self._after_value()
        if state is _State.AFTER_VALUE:
            if character != ",":
                return _State.FAULT
            return _State.KEY if self._open[-1] == "}" else _State.VALUE
        if state in (_State.KEY, _State.FIRST_KEY):
            self._in_key = True
            return _State.STRING if character == '"' else _State.FAULT
        if character == '"':
            self._in_key = False
            return _State.STRING
        if character in _CLOSER:
            self._open.append(_CLOSER[character])
            return _State.FIRST_KEY if character == "{" else _State.FIRST_ELEMENT
        if character in _LITERALS:
            self._rest = _LITERALS[character][1:]
            return _State.LITERAL
        if self._finite and character in _NOT_FINITE:
            self._rest, self._quoted = _NOT_FINITE[character][1:], True
            return _State.LITERAL
        if character == "-" or "0" <= character <= "9":
            self._rest = character
            return _State.NUMBER
        return _State.FAULT


def _finite(number: str) -> str:
    """Return the JSON text of a number, or of a string with its text if it is not finite."""
    is_huge = _MAY_NOT_BE_FINITE.search(number) is not None and _NUMBER.fullmatch(number) is not None
    return f'"{number}"' if is_huge and math.isinf(float(number)) else number


def finite_json(text: str) -> str:
    """Return JSON text with strings in place of non-finite numbers; after a syntax error the rest is unchanged."""
    if _MAY_NOT_BE_FINITE.search(text) is None:
        return text
    scanner = JsonScanner(finite=True)
    end = scanner.scan(text, 0)
    return f"{scanner.output}{_finite(scanner.held)}{text[end:]}"


class JsonFollower:
    """Tells whether text that comes in pieces may yet become a JSON value, and nothing else but white space.

    A raw control character in a string is an error here.
    """

    __slots__ = ("_scanner", "valid")

    def __init__(self) -> None:
        self._scanner = JsonScanner()
        self.valid = True
        """True if nothing is wrong with it so far."""

    @property
    def in_string(self) -> bool:
        """True if what comes next is part of a string, or ends it."""
        return self.valid and self._scanner.in_string

    @property
    def complete(self) -> bool:
        """True if it is a whole value."""
        return self.valid and self._scanner.done

    def follow(self, text: str) -> None:
        """Follow the value through more text."""
        if not self.valid or not text:
            return
        end = self._scanner.scan(text, 0)
        as_it_stands = len(self._scanner.output) == end
        self.valid = as_it_stands and not self._scanner.fault and (end == len(text) or text[end:].isspace())
