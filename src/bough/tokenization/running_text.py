"""Encoding of text in the middle of a text, as tokens that spell just it."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from tokenizers import Tokenizer as Backend

_PUTS_NOTHING_IN_FRONT: dict[str, dict[str, Any]] = {
    "Metaspace": {"prepend_scheme": "never"},
    "ByteLevel": {"add_prefix_space": False},
}


def running_text_backend(description: str, special_ids: Container[int]) -> Backend:
    """A backend that puts nothing in front of a text, and to which the strings of special tokens are ordinary text.

    Other added tokens of the description (``tokenizer.json`` text) are recognised, unless among ``special_ids``.
    """
    described = json.loads(description)
    for token in described["added_tokens"]:
        token.update(lstrip=False, rstrip=False, special=token["special"] or token["id"] in special_ids)
    described["normalizer"] = _only_replacing(described.get("normalizer"))
    described["pre_tokenizer"] = _without_prefix(described.get("pre_tokenizer"))
    backend = Backend.from_str(json.dumps(described))
    backend.encode_special_tokens = True
    return backend


def _only_replacing(normalizer: dict[str, Any] | None) -> dict[str, Any] | None:
    """What writes spaces the way that the vocabulary has them; all else changes text, or adds to it."""
    if normalizer is None or normalizer["type"] == "Replace":
        return normalizer
    steps = map(_only_replacing, normalizer.get("normalizers", ()))
    return {"type": "Sequence", "normalizers": [step for step in steps if step is not None]}


def _without_prefix(step: dict[str, Any] | None) -> dict[str, Any] | None:
    if step is None:
        return None
    if step["type"] == "Sequence":
        return {**step, "pretokenizers": [_without_prefix(each) for each in step["pretokenizers"]]}
    return {**step, **_PUTS_NOTHING_IN_FRONT.get(step["type"], {})}
