"""Typed values out of a JSON object, such as a config.json. No torch here."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from bough.errors import CheckpointError, ConfigError

LARGEST_INTEGER = 2**31 - 1
"""No size of a model is larger, nor a number of positions: they are 32 bits wide in kernels."""


class CheckedValues:
    """Reads the entries of an object; every complaint names the file and the key.

    ``null`` is as good as silence, unless said otherwise.
    """

    def __init__(self, source: Path, entries: Mapping[str, Any]) -> None:
        self.source = source
        self.entries = entries

    def of(self, entries: Mapping[str, Any]) -> CheckedValues:
        """The same for another object of the file."""
        return CheckedValues(self.source, entries)

    def refusal(self, reason: str) -> ConfigError:
        """What to raise for a file that cannot be served."""
        return CheckpointError(f"{self.source}: {reason}", param="model_path")

    def error(self, key: str, rule: str, value: Any) -> ConfigError:
        """What to raise for an entry that breaks a rule, such as ``must be even``."""
        return self.refusal(f"{key} {rule}, got {value!r}")

    def get(self, key: str, default: Any = None) -> Any:
        """An entry as it is; ``null`` is ``None``."""
        return self.entries.get(key, default)

    def integer(self, key: str, default: int | None = None, *, minimum: int = 1, maximum: int = LARGEST_INTEGER) -> int:
        """A whole number, which must be there if there is no default."""
        value = self.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise self.error(key, f"must be a whole number of at least {minimum}", value)
        if value > maximum:
            raise self.error(key, f"must be at most {maximum}", value)
        return value

    def number(self, key: str, default: float, *, minimum: float = 0.0, maximum: float = sys.float_info.max) -> float:
        """A finite number."""
        value = self.optional_number(key, minimum=minimum, maximum=maximum)
        return default if value is None else value

    def optional_number(self, key: str, *, minimum: float = 0.0, maximum: float = sys.float_info.max) -> float | None:
        """A finite number, or ``None``."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value < math.inf:
            raise self.error(key, f"must be a number of at least {minimum}", value)
        if value > maximum:  # perhaps a whole number that has no end of digits
            raise self.error(key, f"must be at most {maximum}", value)
        return float(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false", value)
        return value

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        """One of some words; ``null`` is none of them."""
        return self.chosen(key, self.get(key, default), choices)

    def chosen(self, key: str, value: Any, choices: Collection[str]) -> str:
        """``value``, which ``key`` stands for, if it is one of some words."""
        if not isinstance(value, str) or value not in choices:
            rule = " or ".join(choices) if len(choices) < 3 else f"one of {', '.join(choices)}"
            raise self.error(key, f"must be {rule}", value)
        return value

    def words(self, key: str, choices: Collection[str], count: int) -> list[str]:
        """A list of so many words, each of them one of some."""
        value = self.get(key)
        is_list = isinstance(value, list) and len(value) == count
        if not is_list or not all(isinstance(each, str) and each in choices for each in value):
            raise self.error(key, f"must list {count} of {', '.join(choices)}", value)
        return list(value)

    def floats(self, key: str, *, minimum: float) -> tuple[float, ...]:
        """A list of finite numbers."""
        value = self.get(key)
        if not isinstance(value, list) or not all(
            isinstance(each, (int, float)) and not isinstance(each, bool) and minimum <= each < math.inf
            for each in value
        ):
            raise self.error(key, f"must be a list of numbers of at least {minimum}", value)
        return tuple(float(each) for each in value)
