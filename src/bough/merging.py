"""Rules that make one value of those that several schedulers report, and the one place that applies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

Merge = Literal["first", "sum", "min", "max", "union", "sums"]
"""Rule that makes one value of those that several schedulers reply: the first one's, their sum, the smallest, the
largest, one list or object that has the elements of all, or nested lists with the sum of each number."""


def merge(rule: Merge, values: Sequence[Any]) -> Any:
    """Return one value that stands for several, at least one."""
    return _MERGES[rule](values)


def merge_fields(rules: Mapping[str, Merge], reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one report that stands for several, at least one: the fields of the first, merged by their rules.

    A field without a rule stays as the first report has it.
    """
    return {
        name: merge(rules.get(name, "first"), [report[name] for report in reports if name in report])
        for name in reports[0]
    }


def _union(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Mapping):
        return {name: value for each in values for name, value in each.items()}
    return list(chain.from_iterable(values))


def _sums(values: Sequence[Any]) -> Any:
    if isinstance(values[0], Sequence):
        return [_sums(elements) for elements in zip(*values, strict=True)]
    return sum(values)


_MERGES: dict[Merge, Callable[[Sequence[Any]], Any]] = {
    "first": lambda values: values[0],
    "sum": sum,
    "min": min,
    "max": max,
    "union": _union,
    "sums": _sums,
}
