"""From the sampling fields of OpenAI requests to :class:`SamplingParams`."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

from bough.entrypoints.http.openai.names_of_others import UNTIL_FULL
from bough.entrypoints.http.shared_fields import SamplingFields
from bough.errors import BadRequest
from bough.sampling.sampling_params import GRAMMAR_KINDS, SamplingParams

_OTHER_NAMES = {"seed": "sampling_seed", "min_tokens": "min_new_tokens"}
CLIENT_NAMES = {engine: client for client, engine in _OTHER_NAMES.items()}
"""Names of sampling parameters that clients call otherwise, by the engine's."""


@functools.cache
def _sampling_fields(kind: type[SamplingFields]) -> dict[str, str]:
    """The fields of a body that are sampling parameters, but for constraints, and the engine's names of them."""
    names = {name: _OTHER_NAMES.get(name, name) for name in kind.__struct_fields__}
    known = set(SamplingParams.__struct_fields__).difference(GRAMMAR_KINDS)
    return {name: engine for name, engine in names.items() if engine in known}


def sampling_values(request: SamplingFields, given: Collection[str]) -> dict[str, Any]:
    """The sampling parameters that a request sets, by the engine's names, but for its constraint.

    Args:
        given: names of the fields that it sets, be it to their default values.
    """
    fields = _sampling_fields(type(request))
    return {engine: getattr(request, name) for name, engine in fields.items() if name in given}


def max_tokens_of(
    max_tokens: int | None, max_completion_tokens: int | None, *, until_full: int | None = None
) -> tuple[int | None, str]:
    """Most tokens to generate, under whichever of its two names, and that name.

    Args:
        until_full: what stands for as many as fit.

    Raises:
        BadRequest: if there are both, and they differ.
    """
    if max_completion_tokens is None:
        return until_full if max_tokens == UNTIL_FULL else max_tokens, "max_tokens"
    if max_tokens not in (None, max_completion_tokens):
        raise BadRequest("max_tokens and max_completion_tokens differ; give one of them", param="max_tokens")
    return until_full if max_completion_tokens == UNTIL_FULL else max_completion_tokens, "max_completion_tokens"
