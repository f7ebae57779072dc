"""From the sampling fields of OpenAI requests to :class:`SamplingParams`."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.openai.protocol import SharedFields
from bough.errors import BadRequest
from bough.sampling.sampling_params import SamplingParams

_MODEL_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a checkpoint's generation_config.json may set."""

_OTHER_NAMES = {"seed": "sampling_seed", "min_tokens": "min_new_tokens"}
_SAMPLING_FIELDS = (
    *_MODEL_DEFAULTS,
    *("n", "frequency_penalty", "presence_penalty", "logit_bias", "seed", "stop", "stop_token_ids", "stop_regex"),
    *("min_tokens", "no_stop_trim", "ignore_eos", "skip_special_tokens"),
)
_FIELD_DEFAULTS = {
    field.name: field.default for field in msgspec.structs.fields(SharedFields) if field.name in _SAMPLING_FIELDS
}


def sampling_defaults(server_args: ServerArgs, model_config: ModelConfig) -> dict[str, Any]:
    """Sampling parameters of requests that do not set them: the server's preferred ones, else the model's own."""
    defaults: dict[str, Any] = {}
    if server_args.sampling_defaults == "model":
        config = model_config.generation_config
        defaults = {name: config[name] for name in _MODEL_DEFAULTS if config.get(name) is not None}
        if defaults.get("top_k") == 0:  # "off" in these files
            del defaults["top_k"]
    return {**defaults, **(server_args.preferred_sampling_params or {})}


def to_sampling_params(
    request: SharedFields, max_tokens: int | None, max_tokens_field: str, defaults: dict[str, Any], vocab_size: int
) -> SamplingParams:
    """Sampling parameters of a request; a field that has its default value counts as absent.

    Args:
        request: the request.
        max_tokens: most tokens to generate; ``None`` for as many as fit.
        max_tokens_field: what the client called that.
        defaults: from :func:`sampling_defaults`.
        vocab_size: number of token ids.

    Raises:
        BadRequest: naming a field that is out of range.
    """
    values = dict(defaults)
    for name in _SAMPLING_FIELDS:
        value = getattr(request, name)
        if value != _FIELD_DEFAULTS[name]:
            values[_OTHER_NAMES.get(name, name)] = value
    if max_tokens is not None or "max_new_tokens" not in values:
        values["max_new_tokens"] = max_tokens
    try:
        params = SamplingParams.from_dict(values, prefix="")
        params.validate(vocab_size, prefix="")
    except BadRequest as error:
        raise _in_client_terms(error, max_tokens_field) from None
    return params


def _in_client_terms(error: BadRequest, max_tokens_field: str) -> BadRequest:
    names = {engine: client for client, engine in _OTHER_NAMES.items()} | {"max_new_tokens": max_tokens_field}
    message = error.message
    for engine_name, client_name in names.items():
        message = message.replace(engine_name, client_name)
    return BadRequest(message, param=names.get(error.param or "", error.param), code=error.code)
