"""Fields of other servers that ask for what fields here ask for, so that their clients get it.

They are llama.cpp's, Ollama's, text-generation-webui's, KoboldCpp's, Mistral's, Qwen's, Groq's and MiniMax's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.entrypoints.http.fields import Translation
from bough.sampling.sampling_params import MAX_REPETITION_WINDOW

UNTIL_FULL = -1
"""The bound of an output that goes on until the context is full."""


def _as(field: str) -> Callable[[Any], dict[str, Any]]:
    """A value as it is, under another name; nothing for an empty text or list."""
    return lambda value: {} if value in ("", []) else {field: value}


def _bound(value: Any) -> dict[str, Any]:
    return {"max_tokens": UNTIL_FULL if _is_negative(value) else value}


def _seed(value: Any) -> dict[str, Any]:
    return {} if _is_negative(value) else {"seed": value}


def _window(value: Any) -> dict[str, Any]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {"repetition_window": min(value, MAX_REPETITION_WINDOW) if is_number else value}


def _budget(value: Any) -> dict[str, Any]:
    return {} if _is_negative(value) else {"reasoning": {"max_tokens": value}}


def _is_negative(value: Any) -> bool:
    """Return whether a number stands for any, or for one that is drawn."""
    return isinstance(value, (int, float)) and value < 0


def _thinking(value: Any) -> dict[str, Any]:
    return {"reasoning": {"effort" if isinstance(value, str) else "enabled": value}}


def _reasoning_format(value: Any) -> dict[str, Any]:
    if value in ("none", "raw"):
        return {"separate_reasoning": False}
    return {"include_reasoning": False} if value == "hidden" else {}


def _format(value: Any) -> dict[str, Any]:
    if value == "json":
        return {"response_format": {"type": "json_object"}}
    if isinstance(value, dict):
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "format", "schema": value}}}
    return {} if value == "" else {"response_format": value}


def _greedy(value: Any) -> dict[str, Any]:
    return {"temperature": 0.0} if value is False else {}


def _named(
    field: str, convert: Callable[[Any], dict[str, Any]], *names: str, unless: str = ""
) -> dict[str, Translation]:
    return dict.fromkeys(names, Translation(field, convert, unless))


OF_COMPLETIONS: dict[str, Translation] = {
    **_named(
        "max_tokens",
        _bound,
        *("n_predict", "num_predict", "max_new_tokens", "max_output_tokens", "max_tokens_to_sample"),
        unless="max_completion_tokens",
    ),
    **_named("min_tokens", _as("min_tokens"), "min_new_tokens"),
    **_named("repetition_penalty", _as("repetition_penalty"), "repeat_penalty", "rep_pen"),
    **_named("repetition_window", _window, "repeat_last_n"),
    **_named("frequency_penalty", _as("frequency_penalty"), "freq_pen"),
    **_named("presence_penalty", _as("presence_penalty"), "presence_pen"),
    **_named("stop", _as("stop"), "stop_sequences", "stop_sequence", "stopping_strings", "stop_strings"),
    **_named("seed", _seed, "random_seed", "sampling_seed", "sampler_seed"),
    **_named("ebnf", _as("ebnf"), "grammar", "grammar_string"),
    **_named("response_format", _format, "format"),
    **_named("temperature", _greedy, "do_sample"),
    **_named("ignore_eos", _as("ignore_eos"), "ban_eos_token"),
}

OF_CHAT: dict[str, Translation] = {
    **OF_COMPLETIONS,
    **_named("reasoning", _thinking, "think", "enable_thinking"),
    **_named(
        "reasoning",
        _budget,
        *(
            "thinking_budget",
            "thinking_budget_tokens",
            "reasoning_budget",
            "max_thinking_tokens",
            "max_reasoning_tokens",
        ),
    ),
    **_named("separate_reasoning", _reasoning_format, "reasoning_format"),
    **_named("separate_reasoning", _as("separate_reasoning"), "reasoning_split"),
}
