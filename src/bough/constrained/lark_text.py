"""Write grammars in llguidance's Lark dialect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_LAZY_TEXT = "FREE_TEXT"


def lark_string(text: str) -> str:
    """Return a text as a string of Lark, whose lexer takes all that JSON's does but a bare U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def lark_choice(options: list[str]) -> str:
    """Return the choice between some options, each of them once."""
    texts = [option.strip() or '""' for option in options]
    return f"({' | '.join(dict.fromkeys(texts))})"


class LarkRules:
    """Rules of one grammar, with constants in which the strings of special tokens stand for these tokens."""

    def __init__(self, special_tokens: Mapping[str, int]) -> None:
        self._special = dict(special_tokens)
        longest_first = sorted(self._special, key=len, reverse=True)
        self._splitter = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        self.lines = [f"{_LAZY_TEXT}: /(?s:.*)/"]

    def rule(self, lark: str) -> str:
        """Add a rule and return its name."""
        name = self.new_name("part")
        self.lines.append(f"{name}: {lark}")
        return name

    def new_name(self, kind: str) -> str:
        """Return a name for a rule that is going to be added."""
        return f"{kind}_{len(self.lines)}"

    def constant(self, text: str) -> str:
        """Return Lark for a text."""
        return " ".join(map(self._piece, self._parts(text)))

    def text_until(self, end: str | None, terminal: str = _LAZY_TEXT) -> str:
        """Return Lark for text that matches a terminal, free text if not given, and the constant that ends it."""
        text, pieces = self.split_end(end)
        name = self.new_name("until")
        self.lines.append(f"{name}[lazy]: {terminal} {self._piece(text)}" if text else f"{name}: {terminal}")
        return " ".join([name, *pieces])

    def split_end(self, end: str | None) -> tuple[str, list[str]]:
        """Return the part of a constant that can be part of a terminal in front of it, and Lark for the rest.

        Special tokens cannot. They are no text either, so that text before one ends by itself.
        """
        parts = self._parts(end or "")
        num_text = 1 if parts and parts[0] not in self._special else 0
        return "".join(parts[:num_text]), [self._piece(part) for part in parts[num_text:]]

    def special_in(self, text: str) -> list[str]:
        """Return the special tokens in a text."""
        return [part for part in self._parts(text) if part in self._special]

    def _parts(self, text: str) -> list[str]:
        """Return special tokens, and the text between them."""
        return [part for part in (self._splitter.split(text) if self._splitter is not None else [text]) if part]

    def _piece(self, part: str) -> str:
        return f"<[{self._special[part]}]>" if part in self._special else lark_string(part)
