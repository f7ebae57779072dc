from __future__ import annotations

from hypothesis import settings

# make fuzz: as long as one has patience for.
settings.register_profile("thorough", max_examples=60, deadline=None)
