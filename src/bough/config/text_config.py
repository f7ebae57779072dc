"""Configuration of the text model inside a checkpoint that wraps it, beside parts that read images. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bough.config.architectures import TEXT_MODELS, WRAPPERS
from bough.config.checked_values import CheckedValues

_PARTS = ("text_config", "vision_config", "audio_config")


def text_entries(source: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return the entries that a config.json of the text model alone would have.

    Args:
        source: the file, for messages.
        config: its content, of a wrapping architecture or any other, which is returned as it is.

    Raises:
        ConfigError: if the text model is missing or not supported.
    """
    architectures = config.get("architectures")
    if not (isinstance(architectures, list) and architectures and architectures[0] in WRAPPERS):
        return config
    values, text = CheckedValues(source, config), config.get("text_config")
    if not isinstance(text, dict):
        raise values.error("text_config", "must be an object", text)
    kind = values.chosen("text_config.model_type", text.get("model_type"), TEXT_MODELS)
    outer = {key: value for key, value in config.items() if key not in _PARTS}
    stated = {key: value for key, value in text.items() if value is not None or key not in outer}
    # The wrapper ties its head to the text's embeddings, whatever the text alone would do.
    tied = {key: outer[key] for key in ("tie_word_embeddings",) if outer.get(key) is not None}
    ends = [end for entries in (config, text) for end in _as_list(entries.get("eos_token_id"))]
    return {**outer, **stated, **tied, "eos_token_id": ends or None, "architectures": [TEXT_MODELS[kind]]}


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
