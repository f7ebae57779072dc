"""The kernels as a GPU would get them: the interpreter accepts what the compiler does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARED_BYTES = {90: 227 * 1024, 89: 99 * 1024}
"""What a program may have, by compute capability."""

SPILLED_BYTES = 64
"""A few registers too many, depending on the release of Triton; lists of numbers that do not fit are far larger."""


@pytest.mark.slow
def test_kernels_compile_and_fit_into_registers_and_shared_memory(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "tests.kernels.triton.compile_all"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    kernels = [json.loads(line) for line in result.stdout.splitlines()]
    sources = [path.read_text() for path in (ROOT / "src/bough/kernels/triton").glob("*.py")]
    launched = {name for source in sources for name in re.findall(r"^ +(_\w+)\[.+?\]\(", source, re.MULTILINE)}
    assert len(launched) > 10
    assert {kernel["kernel"] for kernel in kernels} == launched
    assert {kernel["kernel"] for kernel in kernels if kernel["capability"] == 89} >= {"_extend_tiles", "_coded_tiles"}
    assert not [kernel for kernel in kernels if kernel["shared_bytes"] > SHARED_BYTES[kernel["capability"]]]
    assert not [kernel for kernel in kernels if kernel["spilled_bytes"] > SPILLED_BYTES]
