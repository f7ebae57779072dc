"""From the sampling fields of OpenAI requests to :class:`SamplingParams`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bough.entrypoints.chat.constraints import Constraint
from bough.entrypoints.chat.sampling import make_sampling_params
from bough.entrypoints.http.openai.protocol import SharedFields
from bough.sampling.sampling_params import SamplingParams

_OTHER_NAMES = {"seed": "sampling_seed", "min_tokens": "min_new_tokens"}
_SAMPLING_FIELDS = (
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty"),
    *("n", "frequency_penalty", "presence_penalty", "logit_bias", "seed", "stop", "stop_token_ids", "stop_regex"),
    *("min_tokens", "no_stop_trim", "ignore_eos", "skip_special_tokens"),
)
_FIELD_DEFAULTS = {
    field.name: field.default for field in msgspec.structs.fields(SharedFields) if field.name in _SAMPLING_FIELDS
}


def to_sampling_params(
    request: SharedFields,
    max_tokens: int | None,
    max_tokens_field: str,
    defaults: Mapping[str, Any],
    vocab_size: int,
    constraint: Constraint | None = None,
) -> SamplingParams:
    """Sampling parameters of a request; a field that has its default value counts as absent.

    Args:
        request: the request.
        max_tokens: most tokens to generate; ``None`` for as many as fit.
        max_tokens_field: what the client called that.
        defaults: from :func:`sampling_defaults`.
        vocab_size: number of token ids.
        constraint: what the output has to follow.

    Raises:
        BadRequest: naming a field that is out of range.
    """
    given = {name: getattr(request, name) for name in _SAMPLING_FIELDS}
    values = {_OTHER_NAMES.get(name, name): value for name, value in given.items() if value != _FIELD_DEFAULTS[name]}
    names = {engine: client for client, engine in _OTHER_NAMES.items()}
    return make_sampling_params(values, max_tokens, max_tokens_field, defaults, vocab_size, constraint, names)
