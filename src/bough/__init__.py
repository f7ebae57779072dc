"""Bough, a serving engine for large language models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bough.config.server_args import ServerArgs
    from bough.entrypoints.engine import Engine
    from bough.entrypoints.llm_engine import LLMEngine
    from bough.entrypoints.runtime import Runtime, RuntimeEndpoint
    from bough.sampling.sampling_params import SamplingParams

__version__ = "0.1.0"

__all__ = ["Engine", "LLMEngine", "Runtime", "RuntimeEndpoint", "SamplingParams", "ServerArgs", "__version__"]

_HOMES = {
    "Engine": "bough.entrypoints.engine",
    "LLMEngine": "bough.entrypoints.llm_engine",
    "Runtime": "bough.entrypoints.runtime",
    "RuntimeEndpoint": "bough.entrypoints.runtime",
    "SamplingParams": "bough.sampling.sampling_params",
    "ServerArgs": "bough.config.server_args",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used: a program pays only for what it needs."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
