"""The kernels as a GPU would get them: the interpreter accepts what the compiler does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SHARED_BYTES = {90: 227 * 1024, 89: 99 * 1024}
"""What a program may have, by compute capability."""

SPILLED_BYTES = 64
"""A few registers too many, depending on the release of Triton; lists of numbers that do not fit are far larger."""


MEASURED = {"_extend_tiles": 1024, "_coded_tiles": 512}
"""The same of kernels that a device runs faster so: with twice as many warps nothing spills, and prompts take a tenth
longer."""

FLOAT32_PRODUCTS = {"_extend_tiles", "_decode_pieces", "_coded_tiles"}
FLOAT32_SPILLED_BYTES = 1024
"""The same of these in float32, which hold more in registers; tiles of the size of others spill up to 38 KB."""


def said_by(module: str, cache: Path) -> list[dict[str, Any]]:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", f"tests.kernels.triton.{module}"]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.slow
def test_kernels_compile_and_fit_into_registers_and_shared_memory(tmp_path: Path) -> None:
    kernels = said_by("compile_all", tmp_path)
    sources = [path.read_text() for path in (ROOT / "src/bough/kernels/triton").glob("*.py")]
    launched = {name for source in sources for name in re.findall(r"^ +(_\w+)\[.+?\]\(", source, re.MULTILINE)}
    assert len(launched) > 10
    assert {kernel["kernel"] for kernel in kernels} == launched
    on_smaller = {kernel["kernel"] for kernel in kernels if kernel["capability"] == 89}
    assert on_smaller >= {"_extend_tiles", "_decode_pieces", "_linear_tiles", "_coded_tiles"}
    assert not [kernel for kernel in kernels if kernel["shared_bytes"] > SHARED_BYTES[kernel["capability"]]]
    products = [kernel for kernel in kernels if kernel["float32"] and kernel["kernel"] in FLOAT32_PRODUCTS]
    assert {kernel["kernel"] for kernel in products} == FLOAT32_PRODUCTS
    assert not [kernel for kernel in products if kernel["spilled_bytes"] > FLOAT32_SPILLED_BYTES]
    others = [kernel for kernel in kernels if kernel not in products]
    assert not [each for each in others if each["spilled_bytes"] > MEASURED.get(each["kernel"], SPILLED_BYTES)]


@pytest.mark.slow
def test_nothing_is_compiled_anew_for_another_step(tmp_path: Path) -> None:
    compiled, again, anew = said_by("compile_shapes", tmp_path)
    # Whole numbers and 8-bit floating point, each with three tiles; decode rows look their tokens up, prompts do not.
    assert compiled.pop("_coded_tiles") == 6
    assert compiled.pop("_enter_tokens") == 2
    assert len(compiled) > 10
    assert set(compiled.values()) == {1}
    assert (again, anew) == ({"compiled": []}, {"compiled": ["_store_tokens"]})
