"""From the sampling fields of OpenAI requests to :class:`SamplingParams`."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any

from bough.entrypoints.chat.constraints import Constraint
from bough.entrypoints.chat.sampling import make_sampling_params
from bough.entrypoints.http.openai.names_of_others import UNTIL_FULL
from bough.entrypoints.http.shared_fields import SamplingFields
from bough.errors import BadRequest
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import GRAMMAR_KINDS, SamplingParams

_OTHER_NAMES = {"seed": "sampling_seed", "min_tokens": "min_new_tokens"}
_NAMES = {engine: client for client, engine in _OTHER_NAMES.items()}


@functools.cache
def _sampling_fields(kind: type[SamplingFields]) -> dict[str, str]:
    """The fields of a body that are sampling parameters, but for constraints, and the engine's names of them."""
    names = {name: _OTHER_NAMES.get(name, name) for name in kind.__struct_fields__}
    known = set(SamplingParams.__struct_fields__).difference(GRAMMAR_KINDS)
    return {name: engine for name, engine in names.items() if engine in known}


def to_sampling_params(
    request: SamplingFields,
    given: Collection[str],
    max_tokens: int | None,
    max_tokens_field: str,
    defaults: Mapping[str, Any],
    limits: RequestLimits,
    constraint: Constraint | None = None,
) -> SamplingParams:
    """Sampling parameters of a request.

    Args:
        request: the request.
        given: names of the fields that it sets, be it to their default values.
        max_tokens: most tokens to generate; ``None`` for as many as fit.
        max_tokens_field: what the client called that.
        defaults: from :func:`sampling_defaults`.
        limits: of the server.
        constraint: what the output has to follow.

    Raises:
        BadRequest: naming a field that is out of range, or more than this server allows.
    """
    fields = _sampling_fields(type(request))
    values = {engine: getattr(request, name) for name, engine in fields.items() if name in given}
    return make_sampling_params(values, max_tokens, max_tokens_field, defaults, limits, constraint, _NAMES)


def max_tokens_of(
    max_tokens: int | None, max_completion_tokens: int | None, *, until_full: int | None = None
) -> tuple[int | None, str]:
    """Most tokens to generate, under whichever of its two names, and that name.

    Args:
        max_tokens: under the one name.
        max_completion_tokens: under the other.
        until_full: what stands for as many as fit.

    Raises:
        BadRequest: if there are both, and they differ.
    """
    if max_completion_tokens is None:
        return until_full if max_tokens == UNTIL_FULL else max_tokens, "max_tokens"
    if max_tokens not in (None, max_completion_tokens):
        raise BadRequest("max_tokens and max_completion_tokens differ; give one of them", param="max_tokens")
    return until_full if max_completion_tokens == UNTIL_FULL else max_completion_tokens, "max_completion_tokens"
