"""Tokens that a tokenizer_config.json names and gives ids to, read by those who want its ends and by the tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.config.checkpoint import wrong_entry

_MOST_DIGITS = 10
"""Of an id that is a key."""


def declared_tokens(path: Path, config: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """The entries of ``added_tokens_decoder`` by token id, each an object whose ``content`` is a string.

    Raises:
        ConfigError: if an entry is not that.
    """
    entries = config.get("added_tokens_decoder")
    declared: dict[int, dict[str, Any]] = {}
    for key, token in (entries if isinstance(entries, dict) else {}).items():
        entry = f"added_tokens_decoder[{key!r:.40}]"
        if not isinstance(token, dict) or not isinstance(token.get("content"), str):
            raise wrong_entry(path, entry, "must be an object with a content, a string", token)
        declared[read_token_id(path, entry, key)] = token
    return declared


def read_token_id(path: Path, entry: str, value: Any) -> int:
    """The id that an entry has as its value or its key, a whole number or its digits.

    Raises:
        ConfigError: if it is something else.
    """
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong_entry(path, entry, "must be a token id", value)
    return value


def token_text(path: Path, entry: str, value: Any) -> str | None:
    """The string of a token that an entry names, as it is or as the ``content`` of an object; ``None`` for none.

    Raises:
        ConfigError: if it is something else.
    """
    text = value.get("content") if isinstance(value, dict) else value
    if not isinstance(text, str) and value is not None:
        raise wrong_entry(path, entry, "must be a string, or an object with a content that is one", value)
    return text
