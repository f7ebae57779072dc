"""Bounds and values of numbers in a JSON schema, as the grammar engine can hold an output to them.

The engine is wrong about fractions in three places. Where an exclusive bound is a whole number and the other is less
than one away, it takes the bound for an inclusive one: it becomes one, a little further in. Where a bound has several
digits behind the point, it does not let a number end at an earlier one of them: 2.7 is no number up to 2.75. Such
numbers are listed beside the bounds. The same holds for multiples: 2.5 is none of 0.25, but it is one of 0.5.
"""

from __future__ import annotations

import math
import sys
from decimal import ROUND_DOWN, Decimal
from typing import Any

from bough.schema_keywords import KEYWORDS, is_number

LARGEST_BOUND = 10**17
"""Numbers that have bounds at all are no larger than this: with more digits the engine cannot count."""

SMALLEST_BOUND = 1e-30
LARGEST_COUNT = 2**31
LARGEST_STEP = 2**32 - 1
"""Largest ``multipleOf``, without its point."""

_LOWER_BOUNDS = ("minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum")
_EXCLUSIVE = (("exclusiveMinimum", "minimum", max, 1), ("exclusiveMaximum", "maximum", min, -1))
BOUNDS = (*_LOWER_BOUNDS, *_UPPER_BOUNDS)

_INWARD = 1e-9
"""How far a bound moves that becomes inclusive."""

_EXACT = 2**53


class OutOfReachError(ValueError):
    """What is asked of a number that the engine could work with."""


def within_reach(key: str, value: float) -> float:
    """The number of a keyword, such that the engine can enforce it: bounds of 64-bit integers become tighter.

    Raises:
        OutOfReachError: there is none.
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
    # The engine's bounds are floats of 64 bits, which may only be further in.
    if key in _LOWER_BOUNDS and float(value) < value:
        return int(math.nextafter(value, math.inf))
    if key in _UPPER_BOUNDS and float(value) > value:
        return int(math.nextafter(value, -math.inf))
    return value


def _step(value: float) -> float:
    digits = shifted = float(value)
    while not shifted.is_integer():  # as the engine does it, rounding errors included
        shifted *= 10
        if shifted > LARGEST_STEP:
            break
    if not 0 < shifted <= LARGEST_STEP or not digits:
        raise OutOfReachError("be larger than 0 and have at most nine digits")
    return value


def inexact(value: Any) -> int | None:
    """A whole number in a value that the engine, whose numbers are floats of 64 bits, would write as another one."""
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
    """Exclusive bounds of draft 4, which are booleans beside the others, as numbers."""
    for exclusive, inclusive, _, _ in _EXCLUSIVE:
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and is_number(schema.get(inclusive)):
            schema[exclusive] = schema.pop(inclusive)


def make_exact(schema: dict[str, Any], *, is_alone: bool) -> None:
    """Mend bounds of fractions that the engine would read otherwise.

    Args:
        schema: gets other bounds, and ``anyOf`` or ``allOf`` in their place where that is needed.
        is_alone: no other schema has bounds for the same number.
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
    """Let the schema ask for one of several more."""
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), {"anyOf": either}]
    else:
        schema["anyOf"] = either


def _coarser(step: float) -> list[float]:
    """Steps whose multiples are those of a step that have fewer digits behind the point."""
    digits = Decimal(repr(float(step))).normalize()
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    whole = int(digits.scaleb(-exponent))
    if whole == 1:
        return []
    found = {math.lcm(whole, 10**cut) for cut in range(1, -exponent)}
    return [float(Decimal(each).scaleb(exponent)) for each in sorted(found) if each <= LARGEST_STEP]


def _cut_off(bound: float) -> list[float]:
    """Numbers that have the first digits of a positive bound behind the point, but not all of them."""
    digits = Decimal(repr(float(bound))) if 0 < bound < math.inf else Decimal()
    exponent = digits.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    found = {float(digits.quantize(Decimal(1).scaleb(-places), ROUND_DOWN)) for places in range(1, -exponent)}
    return sorted(found)
