"""Markdown for a terminal, shown while it streams in."""

from __future__ import annotations

import re

BOLD = "\x1b[1m"
DIM = "\x1b[2m"
ITALIC = "\x1b[3m"
UNDERLINED = "\x1b[4m"
CODE = "\x1b[36m"
PLAIN = "\x1b[0m"
"""Escape sequences (ECMA-48, select graphic rendition)."""

_MOST_HELD = 160
"""Longest emphasis, in characters; what has not ended by then is text. The beginning of a line is no longer either."""

_BLOCK = re.compile(r"(?P<indent> {0,12})(?:(?P<heading>#{1,6}) |(?P<item>[-*+]) |(?P<quote>>) ?)")
_BLOCK_BEGUN = re.compile(r" {0,12}(?:#{0,6}|[-*+>]?|~*|`{0,2}|`{3,}[^`\n]*)")
_FENCE = re.compile(r" {0,12}(?P<run>`{3,}(?!.*`)|~{3,})")
"""What opens a block of code. A later backtick in the line makes it code within a line (CommonMark 0.31, 4.5)."""
_FENCE_END = re.compile(r" {0,12}(?P<run>`{3,}|~{3,})[ \t]*(?:\\r)?(?:\n|\Z)")
"""What may close it; the carriage return is one that :func:`harmless` has spelled out."""
_FENCE_END_BEGUN = re.compile(r" {0,12}(?:`*|~*)[ \t]*(?:\\r?)?")
_ESCAPE = r"\\[\\`*_#+\-~>]"
"""What takes its meaning from a mark (CommonMark 0.31, 2.4). Other escapes stay what they are, formulas mostly."""
_MARK = re.compile(rf"(?P<escape>{_ESCAPE})|`+|\*+|_+")
_LETTER = rf"{_ESCAPE}|\\(?!{_ESCAPE[2:]})"
"""In emphasis, beside characters that are neither marks nor backslashes."""

_EMPHASIS = (
    (re.compile(r"(?P<run>`+)(?!`)(?P<text>[^\n]+?)(?<!`)(?P=run)(?!`)"), CODE),
    (
        re.compile(rf"\*{{3}}(?=[^\s*])(?P<text>(?:{_LETTER}|[^\n\\])*?(?:[^\s*\\]|{_LETTER}))\*{{3}}(?!\*)"),
        BOLD + ITALIC,
    ),
    (re.compile(rf"\*{{2}}(?=[^\s*])(?P<text>(?:{_LETTER}|[^\n\\])*?(?:[^\s*\\]|{_LETTER}))\*{{2}}(?!\*)"), BOLD),
    (re.compile(rf"\*(?=[^\s*])(?P<text>(?:{_LETTER}|[^\n*\\])*(?:[^\s*\\]|{_LETTER}))\*(?!\*)"), ITALIC),
    (re.compile(rf"_{{2}}(?=[^\s_])(?P<text>(?:{_LETTER}|[^\n\\])*?(?:[^\s_\\]|{_LETTER}))_{{2}}(?!\w)"), BOLD),
    (re.compile(rf"_(?=[^\s_])(?P<text>(?:{_LETTER}|[^\n_\\])*(?:[^\s_\\]|{_LETTER}))_(?!\w)"), ITALIC),
)

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """``text`` with control characters, and those that turn the direction of writing, spelled out.

    What a model writes is data; a terminal would obey it: move the cursor, rename the window, answer into the shell.
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class MarkdownStream:
    """Turns pieces of one text in markdown into what a terminal shows of it.

    Headings, items, quotations, code and emphasis are shown; everything else, and emphasis that does not end in its
    line, stays what it is. Only beginnings of lines and emphasis without its end are held back, so that the pieces a
    text comes in change nothing.

    Args:
        in_colour: whether code has a colour; else it is underlined.
    """

    def __init__(self, *, in_colour: bool = True) -> None:
        self._in_colour = in_colour
        self._held = ""
        self._at_line_start = True
        self._fence = ""
        self._is_verbatim = False
        self._style = ""
        self._before = ""

    def feed(self, piece: str) -> str:
        """What can be shown after ``piece``."""
        self._held += harmless(piece)
        return self._coloured(self._show(ended=False))

    def end(self) -> str:
        """What was held back, where the text ends."""
        return self._coloured(self._show(ended=True)) + (PLAIN if self._style else "")

    def _coloured(self, shown: str) -> str:
        # All sequences in it are ours: those of the text have been spelled out.
        return shown if self._in_colour else shown.replace(CODE, UNDERLINED)

    def _show(self, *, ended: bool) -> str:
        shown = ""
        while self._held:
            if self._at_line_start:
                begun = _FENCE_END_BEGUN if self._fence else _BLOCK_BEGUN
                if not ended and len(self._held) <= _MOST_HELD and begun.fullmatch(self._held):
                    return shown
                shown += self._begin_line()
            line, newline, rest = self._held.partition("\n")
            if self._is_verbatim:
                shown += line
            else:
                text, taken, self._before = _inline(line, self._style, self._before, ended=bool(newline) or ended)
                shown += text
                if taken < len(line):
                    self._held = line[taken:]
                    return shown
            self._held = rest
            if newline:
                shown += (PLAIN if self._style else "") + "\n"
                self._at_line_start, self._is_verbatim, self._style, self._before = True, False, "", ""
        return shown

    def _begin_line(self) -> str:
        """What takes the place of a line's marker, which is removed."""
        self._at_line_start = False
        # No later than after so many characters it is decided, whether they have all come or not.
        fence = _FENCE_END.match(self._held) if self._fence else _FENCE.match(self._held[:_MOST_HELD])
        if (
            fence is not None and fence.end() <= _MOST_HELD and fence["run"].startswith(self._fence)
        ):  # only a run as long as the first one closes
            self._fence = "" if self._fence else fence["run"]
            self._is_verbatim, self._style = True, DIM
            return DIM
        if self._fence:
            self._is_verbatim, self._style = True, "" if self._held.startswith("\n") else CODE
            return self._style
        block = _BLOCK.match(self._held)
        if block is None:
            return ""
        self._held = self._held[block.end() :]
        if block["item"]:
            return f"{block['indent']}• "
        self._style = BOLD if block["heading"] else DIM
        return block["indent"] + self._style + ("│ " if block["quote"] else "")


def _inline(text: str, style: str, before: str, *, ended: bool) -> tuple[str, int, str]:
    """A part of a line with its emphasis shown.

    Args:
        before: the character before it, if any; a backslash for one that was escaped.

    Returns:
        What to show, how many characters of ``text`` it stands for, and which is the last of these, as ``before``.
    """
    shown, position, escaped_end = "", 0, -1

    def up_to(end: int) -> tuple[str, int, str]:
        return shown, end, before if end == 0 else "\\" if end == escaped_end else text[end - 1]

    while (mark := _MARK.search(text, position)) is not None:
        start, end = mark.span()
        shown += text[position:start]
        if mark["escape"]:
            shown, position, escaped_end = shown + mark[0][1], end, end
            continue
        if start == 0 and before == mark[0][0]:  # goes on with a run that was too long to be held
            shown, position = shown + mark[0], end
            continue
        if end == len(text) and not ended and end - start <= _MOST_HELD:
            return up_to(start)
        left, right = text[start - 1] if start else before, text[end : end + 1]
        in_word = left.isalnum() and (mark[0][0] == "_" or right.isalnum()) and mark[0][0] != "`"
        if in_word or right in ("", " "):
            shown, position = shown + mark[0], end
            continue
        matches = ((pattern.match(text, start, start + _MOST_HELD + 2), code) for pattern, code in _EMPHASIS)
        emphasis, code = next((found for found in matches if found[0] is not None), (None, ""))
        if emphasis is not None and emphasis.end() - start <= _MOST_HELD:
            if emphasis.end() == len(text) and not ended:
                return up_to(start)
            inner = emphasis["text"]
            if code != CODE:
                inner, _, _ = _inline(inner, style + code, "", ended=True)
            shown += f"{code}{inner}{PLAIN}{style}"
            position = emphasis.end()
        elif not ended and len(text) - start <= _MOST_HELD:
            return up_to(start)
        else:
            shown, position = shown + mark[0], end
    end = len(text) - (text.endswith("\\", position) and not ended)  # what it escapes, if anything, has not come yet
    shown += text[position:end]
    return up_to(end)
