"""Rotary positions as configurations describe them; :mod:`bough.layers.rotary` computes them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from bough.config.checked_values import LARGEST_INTEGER, CheckedValues

RopeType = Literal["default", "linear", "dynamic", "llama3", "yarn", "frequency_factors"]

FREQUENCY_FACTORS: Literal["frequency_factors"] = "frequency_factors"
"""A rope type that has no name elsewhere: each pair has a factor of its own, as in GGUF files."""

_DEFAULT_THETA = 10_000.0
_LEAST_YARN_THETA = 1.001
"""Its logarithm divides."""
_LEAST, _MOST = 1e-6, 1e6
"""What multiplies, divides or bounds frequencies is between these; beyond them they may come out infinite."""


@dataclass(frozen=True, slots=True)
class RopeParameters:
    """Rotary position embedding of a model, with the names that Hugging Face configurations use."""

    rope_type: RopeType
    rope_theta: float
    max_position_embeddings: int
    factor: float = 1.0
    original_max_position_embeddings: int = 0
    """Positions of the pre-training; meaningful for ``llama3`` and ``yarn``."""
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    attention_factor: float | None = None
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True
    frequency_factors: tuple[float, ...] = ()
    """What each pair's frequency is divided by, for ``frequency_factors``."""

    @property
    def positions(self) -> int:
        """Longest sequence that the model was made for."""
        if self.rope_type == "linear":
            return int(self.max_position_embeddings * self.factor)
        if self.rope_type == "yarn":
            return max(self.max_position_embeddings, int(self.original_max_position_embeddings * self.factor))
        return self.max_position_embeddings

    @property
    def stretch(self) -> float:
        """How many times as long sequences may be if that is asked for."""
        return self.factor if self.rope_type == "dynamic" else 1.0


def read_rope(values: CheckedValues, head_dim: int) -> RopeParameters:
    """Rope parameters from either spelling.

    What a type does not use is checked as well: files keep it when their type is changed.

    Raises:
        ConfigError: naming the entry that cannot be served.
    """
    max_positions = values.integer("max_position_embeddings", 2048)
    places = _places(values)
    given = places[0]
    wanted = given.get("rope_type") or given.get("type") or "default"
    rope_type = cast(RopeType, given.chosen("rope_type", wanted, get_args(RopeType)))
    for place in places:
        if (rotated := place.number("partial_rotary_factor", 1.0)) != 1.0:
            raise place.error("partial_rotary_factor", "must be 1", rotated)
    original_place = values if values.get("original_max_position_embeddings") else given
    original = original_place.integer("original_max_position_embeddings", max_positions)
    if rope_type in ("linear", "dynamic", "llama3") and given.get("factor") is None:
        raise given.error("factor", f"must be given for rope type {rope_type}", None)
    theta_place = next((place for place in places if place.get("rope_theta") is not None), given)
    usual_factor = max_positions / original
    least_theta = _LEAST_YARN_THETA if rope_type == "yarn" else 1.0
    rope = RopeParameters(
        rope_type=rope_type,
        rope_theta=theta_place.number("rope_theta", _DEFAULT_THETA, minimum=least_theta),
        max_position_embeddings=max_positions,
        factor=given.number("factor", usual_factor, minimum=1.0) if rope_type != "default" else 1.0,
        original_max_position_embeddings=original,
        low_freq_factor=given.number("low_freq_factor", 1.0, maximum=_MOST),
        high_freq_factor=given.number("high_freq_factor", 4.0, maximum=_MOST),
        attention_factor=given.optional_number("attention_factor", maximum=_MOST),
        beta_fast=_rotations(given, "beta_fast", 32.0),
        beta_slow=_rotations(given, "beta_slow", 1.0),
        mscale=given.optional_number("mscale", maximum=_MOST) or None,
        mscale_all_dim=given.optional_number("mscale_all_dim", maximum=_MOST) or None,
        truncate=_truncates(given),
        frequency_factors=given.floats("factors", minimum=_LEAST) if rope_type == FREQUENCY_FACTORS else (),
    )
    if max(max_positions, original) * rope.factor > LARGEST_INTEGER:
        raise given.error("factor", f"must leave at most {LARGEST_INTEGER} positions", rope.factor)
    _check_type(given, rope, head_dim)
    return rope


def _places(values: CheckedValues) -> list[CheckedValues]:
    """Where entries are looked for, first to last; the first one is the object with the scaling.

    What scaling alone, such as an override, leaves unsaid may stand beside it or in the other spelling.
    """
    stored = values.get("rope_parameters")
    scaling = values.get("rope_scaling") or stored or {}
    if not isinstance(scaling, dict):
        raise values.error("rope_parameters", "must be an object", scaling)
    other: dict[str, Any] = stored if isinstance(stored, dict) else {}
    if any(isinstance(value, dict) for place in (scaling, other) for value in place.values()):
        raise values.error("rope_parameters", "must be the same for all layers", stored or scaling)
    return [values.of(scaling), values, values.of(other)]


def _rotations(given: CheckedValues, key: str, default: float) -> float:
    if given.get(key) == 0:  # as good as silence
        return default
    return given.number(key, default, minimum=_LEAST, maximum=_MOST)


def _truncates(given: CheckedValues) -> bool:
    value = given.get("truncate", True)
    if value not in (None, True, False):
        raise given.error("truncate", "must be true or false", value)
    return bool(value)  # null is no


def _check_type(given: CheckedValues, rope: RopeParameters, head_dim: int) -> None:
    """Refuse parameters that do not go together, or not with the width of a head, in a type of rope."""
    if rope.rope_type == "dynamic" and head_dim < 4:
        raise given.error("head_dim", "must be at least 4 for rope type dynamic", head_dim)
    if rope.rope_type == "llama3" and rope.high_freq_factor <= rope.low_freq_factor:
        raise given.error("high_freq_factor", "must be greater than low_freq_factor", rope.high_freq_factor)
    if rope.rope_type == FREQUENCY_FACTORS and len(rope.frequency_factors) not in (0, head_dim // 2):
        raise given.error("factors", f"must have {head_dim // 2} entries", len(rope.frequency_factors))
