"""How much text there is in a conversation, wherever it is."""

from __future__ import annotations

from typing import Any

from bough.managers.conversations import text_size


def test_all_of_it_counts() -> None:
    cases = [
        "x" * 1000,
        {"role": "user", "content": "x" * 1000},
        {"tool_calls": [{"function": {"arguments": "x" * 1000}}]},
        {"tool_calls": [{"function": {"arguments": {"a": {"b": ["x" * 500, "x" * 500]}}}}]},
        [{"content": [{"type": "text", "text": "x" * 1000}]}],
        {"numbers": [1.5] * 200},
    ]
    for value in cases:
        assert 1000 <= text_size(value) <= 1200


def test_counting_ends_where_it_is_enough() -> None:
    class Endless(list[Any]):
        def __iter__(self) -> Any:
            raise AssertionError("must not be looked at")

    assert text_size([Endless(), "x" * 100], enough=100) >= 100
    assert text_size([]) == 0
