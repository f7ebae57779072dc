"""Rewrite bounds and values of numbers in a JSON schema so that the grammar engine enforces them correctly.

The engine is wrong about fractions in three cases. If an exclusive bound is a whole number and the other bound is less
than one away, it treats the bound as inclusive: it is replaced by an inclusive one a little further in. If a bound has
several decimal places, it refuses numbers that stop at an earlier one: 2.7 fails for a maximum of 2.75. Such
numbers are listed beside the bounds. Multiples suffer alike: 2.5 fails for 0.25, but passes for 0.5.
"""

from __future__ import annotations

import math
import sys
from decimal import ROUND_DOWN, Decimal
from typing import Any

from bough.schema_keywords import KEYWORDS, is_number

LARGEST_BOUND = 10**17
"""Largest number with bounds: the engine cannot count with more digits."""

SMALLEST_BOUND = 1e-30
LARGEST_COUNT = 2**31
LARGEST_STEP = 2**32 - 1
"""Largest ``multipleOf`` without its decimal point."""

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum")
_EXCLUSIVE = (("exclusiveMinimum", "minimum", max, 1), ("exclusiveMaximum", "maximum", min, -1))
BOUNDS = (*_LOWER_BOUNDS, *_UPPER_BOUNDS)

_INWARD = 1e-9
"""Distance by which an exclusive bound moves to become inclusive."""

_EXACT = 2**53


class OutOfReachError(ValueError):
    """A number that the engine cannot work with; the message completes "it must …"."""


def within_reach(key: str, value: float) -> float:
    """Return the number of a keyword such that the engine can enforce it: bounds of 64-bit integers become tighter.

    Raises:
        OutOfReachError: there is no such number.
    """
    if KEYWORDS[key].form == "count":
        if value > LARGEST_COUNT:
            raise OutOfReachError(f"be at most {LARGEST_COUNT}")
        return int(value)
    if value and abs(value) < SMALLEST_BOUND:
        raise OutOfReachError(f"be 0 or of a size of at least {SMALLEST_BOUND:g}")
    if key in _LOWER_BOUNDS and value < -LARGEST_BOUND:
        return -LARGEST_BOUND
    if key in _UPPER_BOUNDS and value > LARGEST_BOUND:
        return LARGEST_BOUND
    if abs(value) > LARGEST_BOUND:
        raise OutOfReachError(f"be of a size of at most {LARGEST_BOUND:g}")
    if key == "multipleOf":
        return _step(value)
    # The engine's bounds are 64-bit floats, which may only be further in.
    if key in _LOWER_BOUNDS and float(value) < value:
        return int(math.nextafter(value, math.inf))
    if key in _UPPER_BOUNDS and float(value) > value:
        return int(math.nextafter(value, -math.inf))
    return value


def _step(value: float) -> float:
    digits = shifted = float(value)
    while not shifted.is_integer():  # as the engine does it, including rounding errors
        shifted *= 10
        if shifted > LARGEST_STEP:
            break
    if not 0 < shifted <= LARGEST_STEP or not digits:
        raise OutOfReachError("be larger than 0 and have at most nine digits")
    return value


def inexact(value: Any) -> int | None:
    """Find a whole number in a value that the engine would change, because its numbers are 64-bit floats."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (list, dict)):
            pending.extend(each.values() if isinstance(each, dict) else each)
        elif isinstance(each, int) and abs(each) > _EXACT:
            digits = Decimal(repr(float(each))) if abs(each) <= sys.float_info.max else None
            if digits != each:
                return each
    return None


def make_numeric(schema: dict[str, Any]) -> None:
    """Turn the boolean exclusive bounds of draft 4 into numbers."""
    for exclusive, inclusive, _, _ in _EXCLUSIVE:
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and is_number(schema.get(inclusive)):
            schema[exclusive] = schema.pop(inclusive)


def make_exact(schema: dict[str, Any], *, is_alone: bool) -> None:
    """Correct bounds of fractions that the engine would misread, in place, with ``anyOf`` or ``allOf`` if needed.

    ``is_alone``: no other schema has bounds for the same number.
    """
    given = schema.get("type")
    if given is not None and "number" not in (given if isinstance(given, (str, list)) else ()):
        return
    lower = max((schema[name] for name in _LOWER_BOUNDS if name in schema), default=-math.inf)
    upper = min((schema[name] for name in _UPPER_BOUNDS if name in schema), default=math.inf)
    if upper - lower < 1 or not is_alone:
        for exclusive, inclusive, tighter, sign in _EXCLUSIVE:
            value = schema.get(exclusive)
            if value is not None and value == int(value):
                moved = value + sign * max(_INWARD, 8 * math.ulp(value))
                del schema[exclusive]
                schema[inclusive] = tighter(moved, schema.get(inclusive, moved))
    shorter = [value for value in (*_cut_off(upper), *(-each for each in _cut_off(-lower))) if lower <= value <= upper]
    if shorter:
        bounds = {name: schema.pop(name) for name in BOUNDS if name in schema}
        _require_one(schema, [bounds, {"enum": shorter}])
    steps = _coarser(schema["multipleOf"]) if "multipleOf" in schema else []
    if steps:
        _require_one(schema, [{"multipleOf": each} for each in (schema.pop("multipleOf"), *steps)])


def _require_one(schema: dict[str, Any], either: list[dict[str, Any]]) -> None:
    """Require one more list of alternatives in the schema."""
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), {"anyOf": either}]
    else:
        schema["anyOf"] = either


def _coarser(step: float) -> list[float]:
    """Return steps that yield exactly those multiples of a step that have fewer decimal places."""
    digits = Decimal(repr(float(step))).normalize()
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    whole = int(digits.scaleb(-exponent))
    if whole == 1:
        return []
    found = {math.lcm(whole, 10**cut) for cut in range(1, -exponent)}
    return [float(Decimal(each).scaleb(exponent)) for each in sorted(found) if each <= LARGEST_STEP]


def _cut_off(bound: float) -> list[float]:
    """Return the numbers made by cutting decimal places off a positive bound."""
    digits = Decimal(repr(float(bound))) if 0 < bound < math.inf else Decimal()
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    found = {float(digits.quantize(Decimal(1).scaleb(-places), ROUND_DOWN)) for places in range(1, -exponent)}
    return sorted(found)
