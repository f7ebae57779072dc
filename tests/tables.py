"""Tables of cases that are one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MAX_ROW_CHARS = 500


def table(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each row of a table, as one test that stops at the first row that fails and prints it.

    Use it in place of ``pytest.mark.parametrize`` where rows are many or quick. All rows share their fixtures. A row
    that skips does not skip the rest; a test whose rows all skip is skipped.

    Args:
        names: of the arguments that a row provides, separated by commas.
        rows: values of the arguments: tuples, or single values if there is one name.
    """
    arguments = [name.strip() for name in names.split(",")]
    cases = [row if len(arguments) > 1 else (row,) for row in rows]
    assert cases, "a table without rows tests nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*owner: Any, **fixtures: Any) -> None:
            skipped = ""
            num_skipped = 0
            for row in cases:
                values = dict(zip(arguments, row, strict=True))
                try:
                    test(*owner, **fixtures, **values)
                except pytest.skip.Exception as skip:
                    num_skipped += 1
                    skipped = str(skip)
                except BaseException:
                    print(f"row: {values!r}"[:MAX_ROW_CHARS])
                    raise
            if num_skipped == len(cases):
                pytest.skip(skipped)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        assert len(left) + len(arguments) == len(signature.parameters), f"{arguments} are arguments of the test"
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate
