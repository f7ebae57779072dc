from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bough


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import bough", ["torch", "numpy", "msgspec", "asyncio"]),
        ("from bough import Engine, SamplingParams, ServerArgs", ["torch", "starlette", "uvicorn", "transformers"]),
        ("from bough import Runtime", ["torch", "starlette", "uvicorn", "transformers"]),
        ("import bough.entrypoints.server_run, bough.entrypoints.http.app", ["torch", "transformers"]),
        ("import bough.managers.detokenizer_manager", ["torch", "transformers", "starlette", "uvicorn"]),
    ],
)
def test_importing_costs_only_what_is_needed(statement, absent):
    script = f"import sys; {statement}; print([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nothing_below_the_scheduler_imports_it():
    root = Path(bough.__file__).parent
    below = (
        "constrained",
        "kernels",
        "layers",
        "mem_cache",
        "model_executor",
        "model_loader",
        "models",
        "sampling",
        "weight_sync",
    )
    files = [path for folder in below for path in (root / folder).rglob("*.py")] + [root / "step_plan.py"]
    assert len(files) > 50
    assert not [path for path in files if "bough.scheduler" in path.read_text(encoding="utf-8")]


def test_public_names_are_there_and_others_are_not():
    assert set(bough.__all__) <= set(dir(bough))
    for name in bough.__all__:
        assert getattr(bough, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        bough.no_such_name
