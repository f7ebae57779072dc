"""Finds the end of a JSON value that stands between tags."""

from __future__ import annotations

from bough.parsers.json_scanner import JsonFollower
from bough.parsers.stream import Steps, Stream, beginning_of_marker, find_first


def json_until(stream: Stream, marker: str, *, drop_newline: bool, openers: tuple[str, ...]) -> Steps[tuple[str, bool]]:
    """Read the text of a value up to the first ``marker`` outside its strings.

    If the value is not JSON, or never ends, the first marker anywhere ends it, because models also write plain text.
    A value with markers in its strings counts as JSON even if it is too long to be held back.

    Args:
        stream: consumed up to and including the marker.
        marker: end of a value.
        drop_newline: leave out one line break before the marker.
        openers: also end the value, at the start of a line or outside its strings; they are not consumed.

    Returns:
        The text, and true if its end came.
    """
    closers = (f"\n{marker}", marker) if drop_newline else (marker,)
    markers = (*closers, *(f"\n{opener}" for opener in openers), *openers)
    value = JsonFollower()
    pieces: list[str] = []
    searched = stream.pos
    doubtful = False  # whether the marker that comes next may be part of a string, or be the end

    def take(end: int) -> None:
        pieces.append(stream.text[stream.pos : end])
        stream.pos = end
        stream.commit()

    while True:
        at, found = find_first(stream.text, markers, searched)
        if found is None and not (stream.ended and not stream.cut):
            at = beginning_of_marker(stream.text, markers, searched)
        value.follow(stream.text[searched:at])
        if found is not None and value.in_string:
            if found == marker:
                yield from stream.step()
                if not doubtful:
                    take(at)
                    at, doubtful = stream.pos, True
                value.follow(marker)
                searched = at + len(marker)
                continue
            if found in openers:
                yield from stream.step()
                value.follow(found)
                searched = at + len(found)
                continue
            value.follow("\n")
        if doubtful and not (value.valid if found is None else value.complete):
            break
        searched = at
        if found is not None:
            take(at)
            stream.pos += len(found) if found in closers else 0
            stream.commit()
            return "".join(pieces), True
        if not doubtful:
            take(at)
            searched = stream.pos
            if stream.ended:
                if stream.cut:
                    stream.drop_rest()
                return "".join(pieces), False
        if (yield from stream.more()):
            continue
        if not stream.ended:
            doubtful = False
        elif stream.cut:
            take(at)
            stream.drop_rest()
            return "".join(pieces), False
        else:
            break
    stream.turn_back()
    stream.pos += len(marker)
    stream.commit()
    return "".join(pieces), True
