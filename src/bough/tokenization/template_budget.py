"""Limit each rendering of a chat template: CPU time, total bytes produced, and size of values.

A value's weight is its size when written out. A list that contains another list twice uses the memory of
one but the time of two when compared, hashed or turned into text, in native code that cannot be interrupted.
So every container is weighed when it is made, and one that is too heavy or too deep is never created.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import jinja2

MAX_RENDERED_CHARS = 1 << 24
"""Longest text that a template may render: far more than any context holds."""

MAX_TEXT_BYTES = 4 * MAX_RENDERED_CHARS
"""Largest single text, list or tuple that a template may make."""

MAX_PRODUCED_BYTES = 1 << 28
"""Most bytes produced in one rendering, including intermediate values."""

MAX_WEIGHT = 1 << 27
"""Largest weight of a value in bytes, counting each part as often as it occurs."""

MAX_DEPTH = 200
"""Most levels of nested containers."""

MAX_RENDER_SECONDS = 5.0
"""CPU time of one rendering. Ordinary templates take milliseconds, about a second for a hundred thousand messages."""

_LOOK_SECONDS = 0.005
"""Time between two reads of the CPU clock, each of which is a system call."""

_CONTAINER_BYTES = 64
_POINTER_BYTES = 8
_MADE_BYTES = 512
"""Memory of a new container or generator and its record here, without its items."""

_EMPTY: dict[Any, Any] = {}
CONTAINERS = (list, tuple, dict, type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
"""Types that are compared, hashed and shown by their content."""

_SCALARS = (str, bytes, int, float, bool, type(None))


class LimitExceeded(jinja2.TemplateError):
    """A rendering takes too long or produces too much."""


class Budget:
    """Remaining budget of one rendering. Values that it made are kept alive until the end, so that ids stay unique."""

    __slots__ = ("_bytes", "_deadline", "_known", "_next_look")

    def __init__(self) -> None:
        self._next_look = 0.0
        self._bytes = 0
        self._deadline = time.thread_time() + MAX_RENDER_SECONDS
        self._known: dict[int, tuple[Any, int, int]] = {}
        """Value, weight and depth by id of the value."""

    def tick(self) -> None:
        """Count a step, and refuse it if there were too many."""
        now = time.perf_counter()
        if now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
            if time.thread_time() > self._deadline:
                raise LimitExceeded(f"rendering takes more than {MAX_RENDER_SECONDS:g} seconds")

    def ticking(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the same items, counting a step for each."""
        for item in items:
            self.tick()
            yield item

    def check(self, num_bytes: int) -> None:
        """Refuse a value of this size before it is made."""
        if num_bytes > MAX_TEXT_BYTES or self._bytes + num_bytes > MAX_PRODUCED_BYTES:
            raise LimitExceeded(f"rendering makes a text or list of more than {MAX_TEXT_BYTES} bytes, or too many")

    def make(self, num_bytes: int) -> None:
        """Count a value that is made."""
        self.check(num_bytes)
        self._bytes += num_bytes

    def make_container(self, num_items: int) -> None:
        """Count a container, or a lazy value, that is made."""
        self.make(_MADE_BYTES + _POINTER_BYTES * num_items)

    def took(self, value: Any, *sources: Any) -> Any:
        """Count a value made from others, and return it."""
        if isinstance(value, (str, bytes)):
            if not any(value is source for source in sources):
                self.make(sys.getsizeof(value))
        elif isinstance(value, CONTAINERS):
            self.make_container(len(value))
            self.weigh(value)
        elif not isinstance(value, (int, float, type(None))):
            # A lazy value holds its sources: a chain of these must not become deep either.
            self.make_container(0)
            depth = max((self.weigh(source)[1] for source in sources), default=0)
            self.keep(value, _CONTAINER_BYTES, depth + 1)
        return value

    def weigh(self, value: Any, level: int = 0) -> tuple[int, int]:
        """Return the weight of a value in bytes, and its depth, which is 0 for a value that is not a container."""
        if isinstance(value, _SCALARS):
            return sys.getsizeof(value), 0
        known = self._known.get(id(value))
        if known is not None:
            return known[1], known[2]
        if not isinstance(value, CONTAINERS):
            return _CONTAINER_BYTES, 0
        if level > MAX_DEPTH:
            raise _too_deep()
        self.tick()
        weight, depth = _CONTAINER_BYTES, 0
        for part in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            part_weight, part_depth = self.weigh(part, level + 1)
            weight += part_weight + _POINTER_BYTES
            depth = max(depth, part_depth)
        return self.keep(value, weight, depth + 1)

    def keep(self, value: Any, weight: int, depth: int) -> tuple[int, int]:
        """Record the weight of a value, if it is within the limits."""
        if weight > MAX_WEIGHT:
            raise LimitExceeded(f"a value takes more than {MAX_WEIGHT} bytes with everything in it")
        if depth > MAX_DEPTH:
            raise _too_deep()
        self._known[id(value)] = value, weight, depth
        return weight, depth


def _too_deep() -> LimitExceeded:
    return LimitExceeded(f"a value is nested in more than {MAX_DEPTH} levels")


_current: ContextVar[Budget] = ContextVar("render_budget")


def budget() -> Budget:
    """Return the budget of the current rendering, which must be inside :class:`spending`."""
    return _current.get()


class spending:
    """Context manager that makes a new budget the current one."""

    def __enter__(self) -> Budget:
        self._token = _current.set(made := Budget())
        return made

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
