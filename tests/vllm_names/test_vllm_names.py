"""The distribution bough-vllm, in programs of their own: in this one, ``vllm`` is not to be importable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import bough

ROOT = Path(__file__).parents[2]
PATH = [ROOT / "packages" / "bough-vllm" / "src", Path(bough.__file__).parents[1], ROOT]


def run(*arguments: str, first: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = [*([first] if first else []), *PATH]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=280
    )


@pytest.mark.parametrize("kind", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_programs_for_vllm_run(kind: str) -> None:
    cases = str(Path(__file__).with_name("cases.py"))
    done = run("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", kind, cases)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def test_the_two_distributions_have_one_version() -> None:
    text = (ROOT / "packages" / "bough-vllm" / "pyproject.toml").read_text()
    assert f'version = "{bough.__version__}"' in text
    assert f'"bough-llm=={bough.__version__}"' in text


def test_a_real_vllm_is_not_shadowed(tmp_path: Path) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("")
    editable = tmp_path / "editable"
    (editable / "vllm-9.9.dist-info").mkdir(parents=True)
    (editable / "vllm-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 9.9\n")
    done = run("-c", "import vllm", first=editable)
    assert "ImportError: vLLM 9.9" in done.stderr
    beside = f"import sys; sys.path.append({str(tmp_path)!r}); import vllm"
    done = run("-c", beside)
    assert done.returncode != 0
    assert "ImportError" in done.stderr
    assert str(tmp_path) in done.stderr
    assert run("-c", "import vllm; assert 'torch' not in __import__('sys').modules").returncode == 0
