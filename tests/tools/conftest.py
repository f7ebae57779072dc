"""The programs that make the bundled model, as they find each other when they run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools" / "bundled_model"))
