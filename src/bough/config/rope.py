"""Rotary positions as configurations describe them; :mod:`bough.layers.rotary` computes them. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from bough.config.checked_values import LARGEST_INTEGER, CheckedValues

RopeType = Literal["default", "linear", "dynamic", "llama3", "yarn", "longrope", "frequency_factors"]

FREQUENCY_FACTORS: Literal["frequency_factors"] = "frequency_factors"
"""A rope type that has no name elsewhere: each pair has a factor of its own, as in GGUF files."""

LONGROPE: Literal["longrope"] = "longrope"

_FACTORS: dict[RopeType, str] = {FREQUENCY_FACTORS: "factors", LONGROPE: "short_factor"}
"""Entries that have a divisor for each pair."""

DEFAULT_POSITIONS = 2048
"""Longest sequence of a model where neither its file nor its family says."""
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
    """Divisors of the pairs' frequencies, for ``frequency_factors`` and, in short contexts, ``longrope``."""
    long_factors: tuple[float, ...] = ()
    """Divisors for ``longrope`` where contexts longer than those of the pre-training are served."""
    partial_rotary_factor: float = 1.0
    """Share of a head that is rotated, its first numbers; the others stay as they are."""
    query_scale_beta: float = 0.0
    """Growth of queries with the logarithm of the number of pre-training contexts before them."""

    @property
    def positions(self) -> int:
        """Longest sequence that the model was made for."""
        if self.rope_type == "linear":
            return int(self.max_position_embeddings * self.factor)
        if self.rope_type == "yarn":
            return max(self.max_position_embeddings, int(self.original_max_position_embeddings * self.factor))
        return self.max_position_embeddings

    def rotated_dim(self, head_dim: int) -> int:
        """Numbers of a head that are rotated."""
        return int(head_dim * self.partial_rotary_factor)

    def query_scale(self, context_len: int) -> tuple[float, int] | None:
        """Factor on queries at position ``p``, ``1 + beta * log(1 + p // period)``: beta and period, in tokens.

        ``None`` if it is 1 wherever in a context a query is.
        """
        period = self.original_max_position_embeddings
        return (self.query_scale_beta, period) if self.query_scale_beta and context_len > period else None

    @property
    def stretch(self) -> float:
        """How many times as long sequences may be if that is asked for."""
        return self.factor if self.rope_type == "dynamic" else 1.0


def read_rope(
    values: CheckedValues, head_dim: int, *, partial: bool = False, names: Mapping[str, RopeType] | None = None
) -> RopeParameters:
    """Rope parameters from either spelling.

    What a type does not use is checked as well: files keep it when their type is changed.

    Args:
        partial: whether the family may rotate a part of a head.
        names: further names of types that the family's files use.

    Raises:
        ConfigError: naming the entry that cannot be served.
    """
    max_positions = values.integer("max_position_embeddings", DEFAULT_POSITIONS)
    places = _places(values)
    given = places[0]
    wanted = given.get("rope_type") or given.get("type") or "default"
    wanted = (names or {}).get(wanted, wanted) if isinstance(wanted, str) else wanted
    rope_type = cast(RopeType, given.chosen("rope_type", wanted, get_args(RopeType)))
    rotated = _rotated_share(places, head_dim, partial=partial)
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
        frequency_factors=given.floats(factors, minimum=_LEAST) if (factors := _FACTORS.get(rope_type)) else (),
        long_factors=given.floats("long_factor", minimum=_LEAST) if rope_type == LONGROPE else (),
        partial_rotary_factor=rotated,
        query_scale_beta=given.number("llama_4_scaling_beta", 0.0, maximum=_MOST),
    )
    if max(max_positions, original) * rope.factor > LARGEST_INTEGER:
        raise given.error("factor", f"must leave at most {LARGEST_INTEGER} positions", rope.factor)
    _check_type(given, rope, head_dim)
    return rope


def _rotated_share(places: Sequence[CheckedValues], head_dim: int, *, partial: bool) -> float:
    """Share of a head that is rotated; the first place that states it counts."""
    stated = [(place, place.number("partial_rotary_factor", 1.0)) for place in places]
    place, rotated = next(((place, share) for place, share in stated if share != 1.0), (places[0], 1.0))
    if rotated != 1.0 and not partial:
        raise place.error("partial_rotary_factor", "must be 1", rotated)
    if not 0.0 < rotated <= 1.0 or int(head_dim * rotated) < 2 or int(head_dim * rotated) % 2:
        raise place.error("partial_rotary_factor", f"must leave an even part of a head of {head_dim}", rotated)
    return rotated


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
    pairs = rope.rotated_dim(head_dim) // 2
    lists = ((_FACTORS.get(rope.rope_type, ""), rope.frequency_factors), ("long_factor", rope.long_factors))
    for key, factors in lists:
        if factors and len(factors) != pairs:
            raise given.error(key, f"must have {pairs} entries", len(factors))
    if rope.rope_type == LONGROPE and rope.original_max_position_embeddings < 2:
        raise given.error("original_max_position_embeddings", "must be at least 2", 1)  # its logarithm divides
