"""What setup.py makes, and what it does where it cannot."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(find_spec("setuptools") is None, reason="needs setuptools in this environment")

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

TINY_FLAGS = """
FLAGS = -std=c++17
PER_ISA = kernel
X86_ISAS = avx2 future
ISA_avx2 = -mavx2
ISA_future = -mno-such-instructions
"""
NAMED_FUNCTION = """
#define JOIN(name, isa) name##_##isa
#define FUNCTION(name, isa) JOIN(name, isa)
extern "C" __attribute__((visibility("default"))) void FUNCTION(NAME, BOUGH_ISA)() {}
"""
"""A C++ file whose only function has the name of its instruction set in its own."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with a library from an earlier build, whose sources are two small files."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "src/bough/kernels"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").touch()
    (package / "libbough.so").write_bytes(b"of other sources")
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc/flags.mk").write_text(TINY_FLAGS)
    (tmp_path / "csrc/kernel.cpp").write_text("namespace BOUGH_ISA { int kernel() { return 1; } }\n")
    (tmp_path / "csrc/table.cpp").write_text('extern "C" const char* sources() { return BOUGH_SOURCES; }\n')
    return tmp_path


def build(tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tree, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def make(what: str, tree: Path) -> None:
    """A distribution of ``tree`` in its directory ``dist``."""
    program = f"from setuptools.build_meta import {what}; {what}('dist')"
    done = subprocess.run([sys.executable, "-c", program], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def library_of(tree: Path) -> Path:
    return tree / "src/bough/kernels/libbough.so"


def test_without_a_compiler_the_build_leaves_the_kernels_out(tree: Path) -> None:
    done = build(tree, PATH="", CC="no-such-cc", CXX="no-such-cxx")
    assert done.returncode == 0, done.stderr
    assert "no working C++17 compiler" in done.stdout + done.stderr
    assert not library_of(tree).exists()


@needs_compiler
def test_sources_that_do_not_compile_fail_the_build_and_leave_no_old_library(tree: Path) -> None:
    (tree / "csrc/table.cpp").write_text("this is not C++\n")
    done = build(tree)
    assert done.returncode != 0
    assert "table.cpp:1" in done.stderr
    assert not library_of(tree).exists()


@needs_compiler
def test_instruction_set_that_the_compiler_does_not_know_is_left_out(tree: Path) -> None:
    (tree / "csrc/table.cpp").write_text("#ifdef BOUGH_HAS_future\n#error\n#endif\n")
    done = build(tree)
    assert done.returncode == 0, done.stderr
    assert "does not know future" in done.stdout + done.stderr
    assert library_of(tree).read_bytes().startswith(b"\x7fELF")


@needs_compiler
def test_instruction_set_with_files_of_its_own_gets_no_others(tree: Path) -> None:
    files = ("PER_ISA = kernel", "PER_ISA = kernel other\nPER_ISA_wide = kernel")
    sets = ("avx2 future\nISA_avx2 = -mavx2", "plain wide\nISA_plain = -DPLAIN\nISA_wide = -DWIDE")
    (tree / "csrc/flags.mk").write_text(TINY_FLAGS.replace(*files).replace(*sets))
    for name in ("kernel", "other"):
        (tree / f"csrc/{name}.cpp").write_text(NAMED_FUNCTION.replace("NAME", name))
    done = build(tree)
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(library_of(tree)))
    made = {f"{name}_{isa}" for name in ("kernel", "other") for isa in ("portable", "plain", "wide")}
    assert {name for name in made if not hasattr(library, name)} == {"other_wide"}


@needs_compiler
def test_library_needs_no_cpp_runtime_of_the_machine(tree: Path) -> None:
    (tree / "csrc/kernel.cpp").write_text(
        "#include <string>\nstd::string kernel(int x) { return std::to_string(x); }\n"
    )
    (tree / "csrc/flags.mk").write_text(TINY_FLAGS.replace("PER_ISA = kernel", "PER_ISA ="))
    assert build(tree).returncode == 0
    assert b"libstdc++.so" not in library_of(tree).read_bytes()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacked sdist, with the wheel that is made of it in ``dist``."""
    copy = tmp_path_factory.mktemp("copy")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, tracked.decode().split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return unpacked_with_wheel(copy)


def unpacked_with_wheel(tree: Path) -> Path:
    """Make an sdist of ``tree``, and a wheel of what it unpacks to."""
    make("build_sdist", tree)
    with tarfile.open(next((tree / "dist").glob("*.tar.gz"))) as sdist:
        sdist.extractall(tree / "unpacked", filter="data")
    source = next((tree / "unpacked").iterdir())
    make("build_wheel", source)
    return source


def wheel_of(source: Path) -> Path:
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


@pytest.mark.slow
@needs_compiler
def test_packages_have_what_they_need(source: Path) -> None:
    """The wheel the library, the sdist its sources; and the wheel is made of the sdist."""
    assert {path.name for path in (source / "csrc").iterdir()} == {path.name for path in (ROOT / "csrc").iterdir()}
    with zipfile.ZipFile(wheel_of(source)) as wheel:
        names = wheel.namelist()
    assert "bough/kernels/libbough.so" in names
    assert "bough/py.typed" in names
    assert not any(name.startswith("vllm/") for name in names)
    assets = [path for path in (ROOT / "src/bough/assets").rglob("*") if path.is_file()]
    assert {path.relative_to(ROOT / "src").as_posix() for path in assets} <= set(names)


@pytest.mark.slow
@needs_compiler
def test_vllms_names_install_beside_bough_and_shadow_no_vllm(source: Path, tmp_path: Path) -> None:
    package = Path(shutil.copytree(ROOT / "packages/bough-vllm/src", tmp_path / "package/src")).parent
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / "packages/bough-vllm" / name, package / name)
    wheels = [wheel_of(source), wheel_of(unpacked_with_wheel(package))]
    python = tmp_path / "venv/bin/python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*install, *wheels], check=True)
    site = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    # What Bough itself needs is found in this environment, but no .pth file of it is read.
    (site / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(program: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [python, "-c", program]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    program = (
        "import bough, vllm; print(bough.__file__, vllm.__file__, *(getattr(vllm, name) for name in vllm.__all__))"
    )
    done = run(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(site)) == 2
    generate = (
        "from vllm import LLM; llm = LLM('sapling', max_model_len=64); print(len(llm.generate('Once')[0].outputs))"
    )
    done = run(generate)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    (site / "vllm/_custom_ops.py").touch()  # as if a real one had been installed into the same directory
    assert "ImportError: vLLM" in run("import vllm").stderr
    (site / "vllm/_custom_ops.py").unlink()
    (site / "vllm-9.9.dist-info").mkdir()
    (site / "vllm-9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 9.9\n")
    assert "ImportError: vLLM 9.9" in run("import vllm").stderr


@pytest.mark.slow
@needs_compiler
def test_what_is_compiled_is_kept_until_sources_or_compiler_change(tree: Path) -> None:
    def objects() -> dict[str, int]:
        made = (tree / "build/kernels").rglob("*.o")
        return {str(each.relative_to(tree)): each.stat().st_mtime_ns for each in made}

    def sources() -> bytes:
        made = ctypes.CDLL(shutil.copy(library_of(tree), tree / f"copy-{time.monotonic_ns()}.so"))
        made.sources.restype = ctypes.c_char_p
        return made.sources()

    shown = 'extern "C" __attribute__((visibility("default"))) const char* sources() { return BOUGH_SOURCES; }'
    (tree / "csrc/table.cpp").write_text(shown)
    assert build(tree).returncode == 0
    first, named = objects(), sources()
    assert first
    library_of(tree).unlink()
    assert build(tree).returncode == 0
    assert (objects(), sources()) == (first, named)
    (tree / "csrc/kernel.cpp").write_text("namespace BOUGH_ISA { int kernel() { return 2; } }\n")
    assert build(tree).returncode == 0
    second = objects()
    assert not first.keys() & second.keys()
    assert sources() != named
    assert build(tree, CXX="g++ -DANOTHER").returncode == 0
    third = objects()
    assert not second.keys() & third.keys()
    assert build(tree, CXX="g++", CXXFLAGS="-DOTHER").returncode == 0
    assert not third.keys() & objects().keys()


@needs_compiler
def test_sources_that_change_while_they_are_compiled_fail_the_build(tree: Path) -> None:
    compiler = tree / "slow-g++"
    compiler.write_text(f'#!/bin/sh\ng++ "$@" && case "$*" in *kernel.cpp*) echo >> {tree}/csrc/table.cpp;; esac\n')
    compiler.chmod(0o755)
    done = build(tree, CXX=str(compiler))
    assert done.returncode != 0
    assert "csrc/ has changed while it was compiled" in done.stderr
    assert not library_of(tree).exists()
    assert not list((tree / "build/kernels").rglob("portable/kernel.o"))
