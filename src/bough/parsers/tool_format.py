"""What every way of writing tool calls has to say of itself."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from bough.parsers.base import ParsedEvent, ToolCallArguments, ToolCallStart, ToolSpec
from bough.parsers.json_scanner import NOT_STRING_BODY, JsonScanner
from bough.parsers.literals import refuse_constant, without_surrogates
from bough.parsers.stream import NotACall, Steps, Stream
from bough.parsers.structural import Format


class ToolFormat(ABC):
    """Format in which a model writes tool calls.

    Attributes:
        name: value of ``--tool-call-parser``.
        triggers: markers that begin calls anywhere.
        openers: markers that begin calls only at the start of the answer proper, after white space.
        controls: special tokens of this format, which are never shown.
        closers: end markers of calls, which are ignored after a call that has already ended.
        needs_special_tokens: the markers are special tokens, which are left out of text by default.
        on_channels: the format covers the whole answer, including thoughts, even if no calls are possible.
    """

    name: str
    triggers: tuple[str, ...] = ()
    openers: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    closers: tuple[str, ...] = ()
    needs_special_tokens: bool = False
    on_channels: bool = False

    @abstractmethod
    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        """Read one call or a run of calls, behind ``trigger``.

        Raises:
            NotACall: if what comes is none. What has not been committed by then is content.
        """

    @abstractmethod
    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        """What an answer must look like that is nothing but calls of these tools: at least one.

        Raises:
            BadRequest: if a schema is too large.
        """

    def for_template(self, template: str) -> ToolFormat:
        """The variant of this format that the model of a chat template was trained with, if there are several."""
        return self

    def new_id(self) -> str:
        """The id, by default as OpenAI's look, of a call that the model gives none."""
        return f"call_{uuid.uuid4().hex[:24]}"


MAX_HEAD_CHARS = 512
"""Most characters that may stand between two markers where a name should be."""


class Calls:
    """Writes down the calls of one answer; ``format_`` makes the ids."""

    def __init__(self, stream: Stream, tools: Mapping[str, ToolSpec], format_: ToolFormat) -> None:
        self.stream = stream
        self.tools = tools
        self.named = False
        """True if what is read now has shown that it is to be a call."""
        self._format = format_
        self._ids: set[str] = set()
        self._index = -1

    def start(self, name: str, call_id: str | None = None) -> None:
        """Begin a call, and commit all that was read of it. An id that is too long, or of an earlier call, is replaced.

        Raises:
            NotACall: if there is no such function.
        """
        if name not in self.tools:
            raise NotACall
        if not call_id or len(call_id) > MAX_HEAD_CHARS or call_id in self._ids:
            call_id = self._format.new_id()
        self._ids.add(call_id)
        self._index += 1
        self.stream.events.append(ToolCallStart(self._index, call_id, name))
        self.stream.commit()

    def arguments(self, fragment: str) -> None:
        """The arguments go on like this; all that was read so far is dealt with."""
        if fragment:
            self.stream.events.append(self.passed_on(fragment))
        self.stream.commit()

    def passed_on(self, fragment: str) -> ParsedEvent:
        """The arguments of the call that has begun go on like this: as an event."""
        return ToolCallArguments(self._index, fragment)

    def json_arguments(self) -> Steps[bool]:
        """Pass on a JSON value that comes next, piece by piece; false if it goes wrong, where reading stops."""
        stream, scanner = self.stream, JsonScanner(finite=True)
        while True:
            stream.pos = scanner.scan(stream.text, stream.pos)
            self.arguments(scanner.output + (scanner.held if stream.ended else ""))
            if scanner.done or scanner.fault or stream.ended:
                return scanner.done
            yield from stream.wait(self.passed_on if scanner.in_string else None, NOT_STRING_BODY)

    def object_arguments(
        self, name: str, call_id: str | None = None, *, marker: str | None, closing: str = ""
    ) -> Steps[bool]:
        """Begin a call if a JSON object comes next, and pass it on; see :meth:`start` and :meth:`raw_arguments`.

        Returns:
            False if the object went wrong.

        Raises:
            NotACall: if there is no such function, or no object.
        """
        if name not in self.tools:
            raise NotACall
        yield from self.stream.skip_space()
        if (yield from self.stream.peek()) != "{":
            raise NotACall
        self.start(name, call_id)
        if (yield from self.json_arguments()):
            return True
        yield from self.raw_arguments(marker, closing=closing)
        return False

    def raw_arguments(self, marker: str | None, *, closing: str = "") -> Steps[None]:
        """Pass on what is no JSON as it stands up to ``marker``, or the end of the answer; the caller may use it.

        ``closing`` stands before the marker, and is not part of the arguments.
        """
        if marker is not None:
            try:
                raw = (yield from self.stream.until(marker)).rstrip()
            except NotACall:
                pass  # cut off, or too long to be held back
            else:
                self.arguments(raw.removesuffix(closing).rstrip())
                return
        yield from self.stream.flow_until(self.arguments, marker)


def held_json(stream: Stream) -> Steps[str]:
    """The text of a JSON value that comes next, complete. Raises :class:`NotACall` if it is wrong or cut off."""
    scanner = JsonScanner(finite=True)
    pieces = []
    while True:
        stream.pos = scanner.scan(stream.text, stream.pos)
        pieces.append(scanner.output)
        if scanner.done:
            return "".join(pieces)
        if scanner.fault or not (yield from stream.more()):
            raise NotACall


def held_string(stream: Stream) -> Steps[str]:
    """The value of a JSON string that comes next. Raises :class:`NotACall` if there is none."""
    if (yield from stream.peek()) != '"':
        raise NotACall
    return string_value((yield from held_json(stream)))


def string_value(text: str) -> str:
    """The value of the JSON text of a string, without halves of surrogate pairs, which no encoding has."""
    value: str = json.loads(text)
    return without_surrogates(value)


def is_object(text: str) -> bool:
    """True if this is the JSON text of an object."""
    try:
        return isinstance(json.loads(text, parse_constant=refuse_constant), dict)
    except (ValueError, RecursionError):
        return False
