"""``options`` of Ollama's routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.entrypoints.http.shared_fields import (
    FrequencyPenalty,
    MinP,
    PresencePenalty,
    RepetitionPenalty,
    StopStrings,
    Temperature,
    TopP,
)
from bough.entrypoints.http.unknown_fields import Unknown, unknown_field
from bough.errors import BadRequest
from bough.other_engines import is_neutral
from bough.sampling.sampling_params import ALL_OF_CONTEXT, ALL_TOKENS, MAX_REPETITION_WINDOW


class OllamaOptions(msgspec.Struct):
    """Choice of tokens and end of the output, in Ollama's words.

    Options that are integers take any number, as Ollama does: see :data:`_INTEGERS`.
    """

    temperature: Temperature = None
    top_p: TopP = None
    top_k: Annotated[
        float | None, Meta(description="Number of tokens to choose from, any number; 0 and less keep all.")
    ] = None
    min_p: MinP = None
    seed: Annotated[float | None, Meta(description="Any number; -1: another one every time.")] = None
    stop: StopStrings = None
    num_predict: Annotated[
        float | None,
        Meta(description="Most tokens to generate, any number; below 0: until the context is full."),
    ] = None
    repeat_penalty: RepetitionPenalty = None
    repeat_last_n: Annotated[
        float | None,
        Meta(
            description="Tokens at the end of prompt and output that `repeat_penalty` counts, any number; 64 if not "
            f"given, below 0: all. At most {MAX_REPETITION_WINDOW} count."
        ),
    ] = None
    presence_penalty: PresencePenalty = None
    frequency_penalty: FrequencyPenalty = None
    num_ctx: Annotated[Any, Meta(description="Without effect, as are others that are chosen at the start.")] = None


SAMPLING_OPTIONS = {
    "num_predict": "max_new_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "stop": "stop",
    "seed": "sampling_seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repeat_penalty": "repetition_penalty",
    "repeat_last_n": "repetition_window",
}
"""Options that choose tokens or end the answer, and the engine's names of them."""

_INTEGERS = {
    "num_predict": 2**31 - 1,
    "top_k": 2**31 - 1,
    "seed": 2**63 - 1,
    "repeat_last_n": MAX_REPETITION_WINDOW,
}
"""Those that are integers, and the largest ones. A fraction is dropped, and a larger number is the largest one."""

_OF_THE_START = frozenset(
    {"numa", "num_ctx", "num_batch", "num_gpu", "main_gpu", "low_vram", "f16_kv", "vocab_only", "use_mmap", "use_mlock"}
    | {"num_thread", "num_keep", "embedding_only", "logits_all"}
)
"""Options about memory and devices, which are chosen when the server starts; without effect in a request."""

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "mirostat": (0,),
    "mirostat_tau": (5, 5.0),
    "mirostat_eta": (0.1,),
    "tfs_z": (1, 1.0),
    "typical_p": (1, 1.0),
    "penalize_newline": (True,),
}
"""Options that do not work, and the values of them that ask for nothing."""


def sampling_values(options: Mapping[str, Any] | None, unknown: Unknown | None) -> dict[str, Any]:
    """Sampling parameters, by the engine's names, out of ``options``.

    Args:
        unknown: collects options that are unknown or do not work, which are ignored, as at Ollama; ``None`` to refuse
            them.

    Raises:
        BadRequest: naming an option that is refused.
    """
    values: dict[str, Any] = {}
    for name, value in (options or {}).items():
        param = f"options.{name[:64]}"
        if value is None or name in _OF_THE_START or is_neutral(value, _NEUTRAL.get(name, ())):
            continue
        if name in SAMPLING_OPTIONS:
            values[SAMPLING_OPTIONS[name]] = _integer(name, value, param) if name in _INTEGERS else value
        elif unknown is not None:
            unknown[param] = None
        elif name in _NEUTRAL:
            raise BadRequest(f"{param} is not supported", param=param, code="unsupported_parameter")
        else:
            raise unknown_field(param, name, (*SAMPLING_OPTIONS, *_NEUTRAL, *_OF_THE_START))
    return values


def _integer(name: str, value: Any, param: str) -> int | None:
    """A number as the engine has it: ``num_predict`` below 0 means until the context ends, ``top_k`` below 0 that there
    is no bound, ``repeat_last_n`` below 0 all of the context, and the seed -1 that there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRequest(f"{param} must be an integer", param=param, code="invalid_value")
    number = max(-(2**63), min(int(value), _INTEGERS[name]))
    if name == "seed":
        return None if number == -1 else number
    if number >= 0:
        return number
    return {"top_k": ALL_TOKENS, "repeat_last_n": ALL_OF_CONTEXT}.get(name)
