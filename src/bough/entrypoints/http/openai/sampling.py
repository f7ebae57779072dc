"""From the sampling fields of OpenAI requests to :class:`SamplingParams`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bough.entrypoints.chat.constraints import Constraint
from bough.entrypoints.chat.sampling import make_sampling_params
from bough.entrypoints.http.openai.names_of_others import UNTIL_FULL
from bough.entrypoints.http.openai.protocol import SharedFields
from bough.errors import BadRequest
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import SamplingParams

_OTHER_NAMES = {"seed": "sampling_seed", "min_tokens": "min_new_tokens"}
_SAMPLING_FIELDS = (
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "repetition_window"),
    *("n", "frequency_penalty", "presence_penalty", "logit_bias", "seed", "stop", "stop_token_ids", "stop_regex"),
    *("allowed_token_ids", "bad_words", "thinking_token_budget"),
    *("min_tokens", "no_stop_trim", "ignore_eos", "skip_special_tokens", "spaces_between_special_tokens"),
)


def to_sampling_params(
    request: SharedFields,
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
    values = {_OTHER_NAMES.get(name, name): getattr(request, name) for name in _SAMPLING_FIELDS if name in given}
    names = {engine: client for client, engine in _OTHER_NAMES.items()}
    return make_sampling_params(values, max_tokens, max_tokens_field, defaults, limits, constraint, names)


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
