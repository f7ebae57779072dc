from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

if not Path("/dev/nvidiactl").exists():
    # Before anything imports Triton: without a GPU its kernels are interpreted.
    os.environ.setdefault("TRITON_INTERPRET", "1")

# make fuzz: as long as one has patience for.
settings.register_profile("thorough", max_examples=60, deadline=None)
