"""What references within a document point to."""

from __future__ import annotations

from typing import Any

import pytest

from bough.json_pointer import follow

DOCUMENT = {"a": [1, {"b/c": 2, "d~e": 3}], "": {"x y": 4}, "0": 5}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", DOCUMENT),
        ("#/a/0", 1),
        ("#/a/1/b~1c", 2),
        ("#/a/1/d~0e", 3),
        ("#//x%20y", 4),
        ("#/0", 5),
        ("#/a/2", None),
        ("#/a/-1", None),
        ("#/a/\N{SUPERSCRIPT TWO}", None),
        ("#/a/\N{ARABIC-INDIC DIGIT ONE}", None),
        ("#/a/" + "0" * 5000, None),
        ("#/a/0/b", None),
        ("#a", None),
        ("other.json#/a", None),
        ("", None),
        (None, None),
        (["#"], None),
    ],
)
def test_pointers_lead_to_values_or_nowhere(reference: Any, found: Any) -> None:
    assert follow(DOCUMENT, reference) == found
