"""The same calls of bough-vllm and of vLLM itself, in an environment of its own (``make conformance-vllm``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bough.config.engine_args import bundled_model_path
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
    command = [str(python), "-m", "tests.vllm_names.calls", str(bundled_model_path())]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_calls_give_what_they_give_in_vllm() -> None:
    ours, theirs = calls(sys.executable, PATH), calls(VLLM_PYTHON, [ROOT])
    differences = {name: (ours[name], each) for name, each in theirs.items() if not alike(ours[name], each)}
    assert not differences


def alike(one: Any, other: Any) -> bool:
    """Return whether two results are equal, numbers up to what rounding makes of a logprob."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 0.002
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)
