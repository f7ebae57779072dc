"""From what requests say of sampling to :class:`SamplingParams`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.constraints import Constraint
from bough.errors import BadRequest
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import ALL_TOKENS, GRAMMAR_KINDS, SamplingParams

logger = logging.getLogger(__name__)

_MODEL_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a checkpoint's generation_config.json may set."""


def sampling_defaults(server_args: ServerArgs, model_config: ModelConfig) -> dict[str, Any]:
    """Sampling parameters of requests that do not set them: the server's preferred ones, else the model's own."""
    defaults: dict[str, Any] = {}
    if server_args.sampling_defaults == "model":
        config = model_config.generation_config
        given = {name: config[name] for name in _MODEL_DEFAULTS if config.get(name) is not None}
        if given.get("top_k") == 0:  # "off" in these files
            del given["top_k"]
        defaults = {name: value for name, value in given.items() if _is_allowed(name, value, model_config.model_path)}
    return {**defaults, **(server_args.preferred_sampling_params or {})}


def _is_allowed(name: str, value: Any, model_path: str) -> bool:
    """Whether a request may have a model's default; if not, no client is at fault, and the server's log tells of it."""
    try:
        SamplingParams.from_dict({name: value}, named=lambda field: field).validate(None, named=lambda field: field)
    except (BadRequest, OverflowError) as error:
        _tell(model_path, str(error))
        return False
    return True


@lru_cache(maxsize=64)  # every dialect asks for the defaults
def _tell(model_path: str, complaint: str) -> None:
    logger.warning("The generation_config of %s is not followed in one point: %s", model_path, complaint)


def make_sampling_params(
    values: Mapping[str, Any],
    max_tokens: int | None,
    max_tokens_field: str,
    defaults: Mapping[str, Any],
    limits: RequestLimits,
    constraint: Constraint | None = None,
    names: Mapping[str, str] | None = None,
) -> SamplingParams:
    """Sampling parameters out of what a request sets and what it leaves out.

    Args:
        values: what the request sets, by the engine's names.
        max_tokens: most tokens to generate; ``None`` for as many as fit.
        max_tokens_field: what the client called that.
        defaults: from :func:`sampling_defaults`.
        limits: of the server.
        constraint: what the output has to follow.
        names: from the engine's names to the client's, for errors.

    Raises:
        BadRequest: naming a field that is out of range, or more than this server allows.
    """
    merged = {**defaults, **values}
    top_k = values.get("top_k")
    if top_k == 0 and not isinstance(top_k, bool):  # all tokens, at vLLM, Anthropic and Ollama
        merged["top_k"] = ALL_TOKENS
    if max_tokens is not None or "max_new_tokens" not in merged:
        merged["max_new_tokens"] = max_tokens
    called = {**(names or {}), "max_new_tokens": max_tokens_field}
    if constraint is not None:
        merged = {name: value for name, value in merged.items() if name not in GRAMMAR_KINDS}
        merged[constraint.kind] = constraint.value
        called[constraint.kind] = constraint.field

    def named(field: str) -> str:
        return called.get(field, field)

    params = SamplingParams.from_dict(merged, named=named)
    limits.check_params(params, named=named)
    return params
