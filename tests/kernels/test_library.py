from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bough.kernels import library, structures
from bough.kernels.library import LibraryMissing, load_library
from bough.kernels.thread_pool import ThreadPool


@pytest.fixture(autouse=True)
def fresh() -> object:
    load_library.cache_clear()
    yield
    load_library.cache_clear()


def test_library_that_was_not_built_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LIBRARY_FILE", tmp_path / "libbough.so")
    with pytest.raises(LibraryMissing, match="install a C\\+\\+ compiler"):
        load_library()


def test_file_that_is_no_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "libbough.so"
    file.write_bytes(b"not a library")
    monkeypatch.setattr(library, "LIBRARY_FILE", file)
    with pytest.raises(LibraryMissing, match="cannot be loaded"):
        load_library()


def test_library_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "SHARED", (structures.Choice, *structures.SHARED[1:]))
    with pytest.raises(LibraryMissing, match="another version"):
        load_library()


def test_pool_needs_a_thread() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ThreadPool(0)


def test_pools_come_and_go() -> None:
    for count in (1, 2, 5):
        ThreadPool(count)


@pytest.mark.skipif(find_spec("setuptools") is None, reason="needs setuptools in this environment")
def test_without_a_compiler_the_build_leaves_the_kernels_out(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "csrc"):
        source = root / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "src/bough/kernels").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=tmp_path, env={"PATH": "", "CC": "no-such-cc", "CXX": "no-such-cxx"}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("src/bough/kernels/*.so"))
