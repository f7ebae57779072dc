"""How much a run of the tests tries of what it draws at random."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = settings.get_current_profile_name() == "thorough"
"""Whether `make fuzz` runs them: there is time."""

_USUAL_SHARE, _THOROUGH_SHARE = 0.25, 4


def examples(count: int) -> int:
    """Of a property that ``count`` examples suit, how many to try."""
    return max(round(count * (_THOROUGH_SHARE if THOROUGH else _USUAL_SHARE)), 1)
