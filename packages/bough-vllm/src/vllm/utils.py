"""Small functions of vLLM's that programs use."""

from __future__ import annotations

import uuid


def random_uuid() -> str:
    """Return an id that no other call returns, in 32 hexadecimal digits."""
    return uuid.uuid4().hex
