"""From what requests say of sampling to :class:`SamplingParams`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bough.config.model_config import LLAMA_CPP_WINDOW, ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.constraints import Constraint
from bough.errors import BadRequest
from bough.sampling.sampling_params import ALL_OF_CONTEXT, ALL_TOKENS, GRAMMAR_KINDS, SamplingParams

if TYPE_CHECKING:
    from bough.managers.tokenizer_manager import TokenizerManager

logger = logging.getLogger(__name__)

Source = Literal["flag", "checkpoint", "llama.cpp", "openai"]

_COMMON = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
_MODEL_DEFAULTS = (*_COMMON, "repetition_window")
"""Parameters that a checkpoint may set: in generation_config.json, or the last one, too, in a GGUF file's metadata."""

_LLAMA_CPP: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""llama.cpp's own defaults: users of GGUF files, and of Ollama's interface, are used to them."""

_OPENAI: dict[str, Any] = {name: getattr(SamplingParams(), name) for name in _COMMON}


class SamplingDefault(NamedTuple):
    """Value of a sampling parameter that a request leaves out, and its source."""

    value: Any
    source: Source


def sampling_defaults(server_args: ServerArgs, model_config: ModelConfig, *, is_ollama: bool = False) -> dict[str, Any]:
    """Values of the sampling parameters that a request leaves out, by the engine's names.

    Args:
        is_ollama: whether the requests come through Ollama's routes.
    """
    found = _found_defaults(server_args, model_config, is_ollama=is_ollama)
    return {name: default.value for name, default in found.items() if default.source != "openai"}


def describe_defaults(server_args: ServerArgs, model_config: ModelConfig) -> dict[str, dict[str, Any]]:
    """The same for ``/server_info``: with sources, for Ollama's routes and for all others that have defaults."""
    return {
        dialect: {
            name: default._asdict()
            for name, default in _found_defaults(server_args, model_config, is_ollama=dialect == "ollama").items()
        }
        for dialect in ("openai", "ollama")
    }


def _found_defaults(
    server_args: ServerArgs, model_config: ModelConfig, *, is_ollama: bool
) -> dict[str, SamplingDefault]:
    layers: list[tuple[Source, dict[str, Any]]] = [("openai", _OPENAI)]
    if is_ollama:
        layers.append(("llama.cpp", {"repetition_window": LLAMA_CPP_WINDOW}))
    if server_args.sampling_defaults == "model":
        if is_ollama or model_config.is_gguf:
            layers.append(("llama.cpp", _LLAMA_CPP))
        layers.append(("checkpoint", _named_by_checkpoint(model_config)))
    layers.append(("flag", server_args.preferred_sampling_params or {}))
    return {name: SamplingDefault(value, source) for source, layer in layers for name, value in layer.items()}


def _named_by_checkpoint(model_config: ModelConfig) -> dict[str, Any]:
    config = model_config.generation_config
    given = {name: config[name] for name in _MODEL_DEFAULTS if config.get(name) is not None}
    if given.get("top_k") == 0:  # "off" in these files
        given["top_k"] = ALL_TOKENS
    return {name: value for name, value in given.items() if _is_allowed(name, value, model_config.model_path)}


def _is_allowed(name: str, value: Any, model_path: str) -> bool:
    """Return whether a request may have a model's default; log it if not, since no client is at fault."""
    try:
        SamplingParams.from_dict({name: value}, named=lambda field: field).validate(None, named=lambda field: field)
    except (BadRequest, OverflowError) as error:
        _tell(model_path, str(error))
        return False
    return True


@lru_cache(maxsize=64)  # every dialect asks for the defaults
def _tell(model_path: str, complaint: str) -> None:
    logger.warning("The generation_config of %s is not followed in one point: %s", model_path, complaint)


class RequestSampling:
    """Sampling parameters of the requests of a server.

    Attributes:
        defaults: from :func:`sampling_defaults`.
    """

    def __init__(self, manager: TokenizerManager, *, is_ollama: bool = False) -> None:
        self.defaults = sampling_defaults(manager.server_args, manager.model_config, is_ollama=is_ollama)
        self._limits = manager.limits

    def params(
        self,
        values: Mapping[str, Any],
        max_tokens: int | None,
        max_tokens_field: str,
        constraint: Constraint | None,
        names: Mapping[str, str],
    ) -> SamplingParams:
        """Return sampling parameters out of what a request sets and what it leaves out.

        Args:
            values: what the request sets, by the engine's names.
            max_tokens: most tokens to generate; ``None`` for as many as fit.
            max_tokens_field: what the client called that.
            constraint: what the output has to follow.
            names: from the engine's names to the client's, for errors.

        Raises:
            BadRequest: naming a field that is out of range, or more than this server allows.
        """
        merged = {**self.defaults, **values}
        top_k = values.get("top_k")
        if top_k == 0 and not isinstance(top_k, bool):  # all tokens, at vLLM, Anthropic and Ollama
            merged["top_k"] = ALL_TOKENS
        if max_tokens is not None or "max_new_tokens" not in merged:
            merged["max_new_tokens"] = max_tokens
        merged.setdefault("repetition_window", ALL_OF_CONTEXT)
        called = {**names, "max_new_tokens": max_tokens_field}
        if constraint is not None:
            merged = {name: value for name, value in merged.items() if name not in GRAMMAR_KINDS}
            merged[constraint.kind] = constraint.value
            called[constraint.kind] = constraint.field

        def named(field: str) -> str:
            return called.get(field, field)

        params = SamplingParams.from_dict(merged, named=named)
        self._limits.check_params(params, named=named)
        return params
