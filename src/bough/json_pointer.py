"""JSON pointers (RFC 6901) as fragments of URIs, by which a JSON schema refers to its own parts."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

_MAX_CHARS = 4096

MAX_REFERENCES = 32
"""Most references that are followed from one to the next."""


def is_pointer(reference: str) -> bool:
    """Whether a reference is a pointer into its own document; ``#name`` is an anchor."""
    return reference == "#" or reference.startswith("#/")


def follow(root: Any, reference: Any) -> Any:
    """What a pointer points to; ``None`` if it points nowhere, or is very long."""
    if not isinstance(reference, str) or not is_pointer(reference) or len(reference) > _MAX_CHARS:
        return None
    node = root
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and key.isascii() and len(key) < 8 and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node
