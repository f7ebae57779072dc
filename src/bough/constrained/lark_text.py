"""Literals of llguidance's Lark dialect."""

from __future__ import annotations

import json


def lark_string(text: str) -> str:
    """A text as a string of Lark, whose lexer takes all that JSON's does but a bare U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
