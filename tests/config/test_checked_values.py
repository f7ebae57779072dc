from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bough.config.checked_values import CheckedValues
from bough.errors import ConfigError


def values(**entries: Any) -> CheckedValues:
    return CheckedValues(Path("config.json"), entries)


def test_null_is_silence() -> None:
    nulls = values(a=None)
    assert nulls.integer("a", 3) == 3
    assert nulls.number("a", 0.5) == 0.5
    assert nulls.optional_number("a") is None
    assert nulls.flag("a", True) is True


def test_what_is_none_of_the_words_is_refused() -> None:
    for choices, rule in [(("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "one of a, b, c")]:
        for value in ["x", None, [], {}]:
            with pytest.raises(ConfigError, match=f"config.json: key must be {rule}, got") as caught:
                values(key=value).choice("key", choices, "a")
            assert caught.value.param == "model_path"


def test_a_word_that_is_left_out_is_the_default() -> None:
    assert values().choice("key", ("a", "b"), "b") == "b"


def test_lists_of_words_have_a_length() -> None:
    for value in [None, "ab", ["a"], ["a", "x"], ["a", []], ["a", "b", "a"]]:
        assert values(key=["b", "a"]).words("key", ("a", "b"), 2) == ["b", "a"]
        with pytest.raises(ConfigError, match="key must list 2 of a, b, got"):
            values(key=value).words("key", ("a", "b"), 2)


def test_lists_of_numbers_have_a_least_one() -> None:
    for value in [None, 1.0, [1.0, True], [0.1], [float("inf")]]:
        assert values(key=[1.0, 0.5]).floats("key", minimum=0.5) == (1.0, 0.5)
        with pytest.raises(ConfigError, match=r"key must be a list of numbers of at least 0\.5, got"):
            values(key=value).floats("key", minimum=0.5)
