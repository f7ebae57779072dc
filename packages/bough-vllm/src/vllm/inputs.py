"""Prompts, as vLLM has them: plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Union

from bough.errors import BadRequest


class _Optional(TypedDict, total=False):
    multi_modal_data: Any
    mm_processor_kwargs: Any
    cache_salt: str


class TextPrompt(_Optional):
    """A prompt as text."""

    prompt: str


class _Text(_Optional, total=False):
    prompt: str


class TokensPrompt(_Text):
    """A prompt as token ids; ``prompt`` is its text, which is only repeated in the output."""

    prompt_token_ids: list[int]


PromptType = Union[str, TextPrompt, TokensPrompt, list[int]]  # noqa: UP007 (evaluated on Python 3.10)


def prompt_fields(prompt: PromptType) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of ``Engine.generate`` for a prompt, and its text if it has one.

    Raises:
        BadRequest: if it is none, or has images.
    """
    if isinstance(prompt, str):
        return {"prompt": prompt}, prompt
    if isinstance(prompt, Sequence):
        return {"input_ids": list(prompt)}, None
    given: Any = prompt
    if not isinstance(given, dict):
        raise BadRequest("prompt must be a text, a list of token ids, a TextPrompt or a TokensPrompt", param="prompt")
    if given.get("multi_modal_data") or given.get("mm_processor_kwargs"):
        raise BadRequest("images, video and audio are not supported", param="multi_modal_data")
    text, salt = given.get("prompt"), given.get("cache_salt")
    fields = {} if salt is None else {"cache_salt": salt}
    if "prompt_token_ids" in given:
        return {"input_ids": list(given["prompt_token_ids"]), **fields}, text
    if text is None:
        raise BadRequest("prompt must have prompt or prompt_token_ids", param="prompt")
    return {"prompt": text, **fields}, text
