"""Models and parsers of other packages, found by their entry points.

A package that is installed beside Bough declares them (PyPA's entry points specification); nothing of it is imported
before it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from bough.errors import ConfigError

MODELS = "bough.models"
"""Language models: ``architectures[0]`` of a config.json to a :class:`~bough.models.base.CausalLM`."""

MODEL_CONFIGS = "bough.model_configs"
"""The same names to a :class:`~bough.models.family_reader.FamilyReader`, without torch; for models that need one."""

WORKERS = "bough.workers"
"""The same names to a class below :class:`~bough.model_executor.worker_info.Worker` that runs such checkpoints."""

TOOL_PARSERS = "bough.tool_parsers"
"""A name for ``--tool-call-parser`` to a :class:`~bough.parsers.tool_format.ToolFormat`."""

REASONING_PARSERS = "bough.reasoning_parsers"
"""A name for ``--reasoning-parser`` to a :class:`~bough.parsers.reasoning.ReasoningFormat`."""


@cache
def declared(group: str) -> Mapping[str, EntryPoint]:
    """What installed packages declare in one of the groups above, by name; what Bough has itself goes before it."""
    return {each.name: each for each in sorted(entry_points(group=group), key=lambda each: each.value)}


def load(group: str, name: str, kind: type) -> Any:
    """Import what is declared in a group as ``name``: a class below ``kind``, or something of it.

    Raises:
        ConfigError: if it cannot be imported, or is something else.
    """
    entry = declared(group)[name]
    origin = f"{name} of {entry.dist.name if entry.dist is not None else 'another package'} ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:  # whatever a stranger's module may raise
        raise ConfigError(f"{origin} cannot be imported: {type(error).__name__}: {error}") from error
    if not (isinstance(found, kind) or (isinstance(found, type) and issubclass(found, kind))):
        raise ConfigError(f"{origin} is no {kind.__name__}")
    return found
