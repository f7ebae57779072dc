"""The bundled model's companions, as tests use them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bough.config.engine_args import bundled_model_path

ROOT = Path(__file__).parents[1]
COMPANIONS = ROOT / "tests" / "data" / "companions"


def write_other_checkpoint(out: Path) -> Path:
    """A checkpoint of the bundled model's shape, with the adapter in its weights: its answers begin with "Ahoy!"."""
    program = ROOT / "tools" / "bundled_model" / "companions.py"
    adapter = ["--adapter", str(COMPANIONS / "adapter"), "--checkpoint", str(out)]
    subprocess.run([sys.executable, str(program), "--model", str(bundled_model_path()), *adapter], check=True)
    return out
