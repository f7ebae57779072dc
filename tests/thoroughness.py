"""How much a run of the tests tries of what it draws at random."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = settings.get_current_profile_name() == "thorough"
"""Whether `make fuzz` runs them: there is time."""

_USUAL_SHARE = 0.4


def examples(count: int) -> int:
    """Of ``count`` examples of a property, how many to try."""
    return count if THOROUGH else max(round(count * _USUAL_SHARE), 1)
