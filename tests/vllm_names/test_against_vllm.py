"""The same calls of bough-vllm and of vLLM itself, in an environment of its own (``make conformance-vllm``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.config.engine_args import bundled_model_path
from tests.minilm import minilm_path
from tests.vllm_names.test_vllm_names import PATH, ROOT

VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not VLLM_PYTHON.exists(), reason="there is no environment with vLLM in it"),
]


def calls(python: str | Path, path: list[Path]) -> dict[str, Any]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    command = [str(python), "-m", "tests.vllm_names.calls", str(bundled_model_path()), str(minilm_path())]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_calls_give_what_they_give_in_vllm() -> None:
    ours, theirs = calls(sys.executable, PATH), calls(VLLM_PYTHON, [ROOT])
    assert not list(differences(ours, theirs))


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Yield where two results differ, numbers by more than what rounding makes of a logprob."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{where}[{index}]")
    elif not (one == other or (isinstance(one, float) and isinstance(other, float) and abs(one - other) <= 0.002)):
        yield f"{where}: {one!r}, and vLLM {other!r}"
