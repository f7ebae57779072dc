"""From what requests say of sampling to :class:`SamplingParams`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.constraints import Constraint
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import GRAMMAR_KINDS, SamplingParams

_MODEL_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a checkpoint's generation_config.json may set."""


def sampling_defaults(server_args: ServerArgs, model_config: ModelConfig) -> dict[str, Any]:
    """Sampling parameters of requests that do not set them: the server's preferred ones, else the model's own."""
    defaults: dict[str, Any] = {}
    if server_args.sampling_defaults == "model":
        config = model_config.generation_config
        defaults = {name: config[name] for name in _MODEL_DEFAULTS if config.get(name) is not None}
        if defaults.get("top_k") == 0:  # "off" in these files
            del defaults["top_k"]
    return {**defaults, **(server_args.preferred_sampling_params or {})}


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
