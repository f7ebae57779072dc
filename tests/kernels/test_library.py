from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from bough.kernels import library, structures
from bough.kernels.library import LibraryMissing, load_library
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.thread_pool import ThreadPool
from tests.entrypoints.leftovers import eventually
from tests.native import needs_native


@pytest.fixture(autouse=True)
def fresh() -> object:
    load_library.cache_clear()
    yield
    load_library.cache_clear()


def run_python(program: str) -> str:
    """What a program of its own prints; it must end by itself, and well."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, cwd=os.getcwd()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- finding it ---


@pytest.mark.skipif(
    not any(map(shutil.which, (os.environ.get("CXX", "c++").split()[0], "g++", "clang++"))), reason="needs a compiler"
)
def test_where_there_is_a_compiler_there_is_a_library_of_these_sources() -> None:
    load_library()


def test_library_that_was_not_built_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "LIBRARY_FILE", tmp_path / "libbough.so")
    with pytest.raises(LibraryMissing, match="install a C\\+\\+17 compiler"):
        load_library()


def test_file_that_is_no_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "libbough.so"
    file.write_bytes(b"not a library")
    monkeypatch.setattr(library, "LIBRARY_FILE", file)
    with pytest.raises(LibraryMissing, match=r"cannot be loaded .*libbough\.so"):
        load_library()


@needs_native
def test_library_of_other_sources_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(library.SOURCES, tmp_path / "csrc")
    monkeypatch.setattr(library, "SOURCES", tmp_path / "csrc")
    load_library()
    load_library.cache_clear()
    with (tmp_path / "csrc/isa.cpp").open("a") as file:
        file.write("\n")
    with pytest.raises(LibraryMissing, match="other sources"):
        load_library()


@needs_native
def test_library_with_other_structures_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "SHARED_SIZES", (*structures.SHARED_SIZES[:-1], structures.SHARED_SIZES[-1] + 8))
    with pytest.raises(LibraryMissing, match="another version"):
        load_library()


# --- threads ---


def threads_of_this_process() -> int:
    return len(os.listdir("/proc/self/task"))


def test_structures_have_the_members_of_the_headers() -> None:
    headers = "".join(path.read_text() for path in sorted(library.SOURCES.glob("*.h")))
    headers = re.sub(r"//[^\n]*", "", headers)
    found = dict(re.findall(r"\nstruct (\w+) \{\n(.*?)\n\};", headers, re.DOTALL))
    for structure in ctypes.Structure.__subclasses__():
        if structure.__module__ != structures.__name__:
            continue
        declarations = [each.split("=")[0] for each in found[structure.__name__].split(";") if each.strip()]
        members = [name for each in declarations for name in re.findall(r"(\w+)\s*(?:,|$)", each.strip())]
        assert [name for name, *_ in structure._fields_] == members, structure.__name__


def test_pool_needs_a_thread() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ThreadPool(0)


@needs_native
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")
def test_pools_come_and_go() -> None:
    before = threads_of_this_process()
    for count in (1, 2, 5):
        pool = ThreadPool(count)
        assert threads_of_this_process() == before + count - 1
        del pool
        # A thread that was joined may be listed for a moment yet.
        assert eventually(lambda: threads_of_this_process() == before)


@needs_native
def test_threads_that_the_system_does_not_give_are_reported() -> None:
    program = """
import resource
from bough.kernels.library import KernelError
from bough.kernels.thread_pool import ThreadPool
ThreadPool(2)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (100 << 20), -1))
try:
    ThreadPool(1000)
except KernelError as error:
    print(error)
"""
    assert "does not give 1000 threads" in run_python(program)


@needs_native
def test_two_threads_that_use_one_pool_take_turns() -> None:
    pool = ThreadPool(3)
    weights = PackedWeights(pool, 64, 48, torch.float32, bias=False, gated=False)
    weights.write(0, torch.eye(64, 48))
    inputs = [torch.randn(20, 48) for _ in range(3)]
    wrong: list[int] = []
    done = [0, 0, 0]

    def multiply(index: int) -> None:
        for _ in range(100):
            done[index] += 1
            if not torch.equal(weights.multiply(inputs[index], torch.float32)[:, :48], inputs[index]):
                wrong.append(index)

    callers = [threading.Thread(target=multiply, args=(index,)) for index in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert done == [100] * 3


@needs_native
def test_forked_child_ends_and_cannot_use_its_parents_threads() -> None:
    program = """
import os, sys, torch
from bough.kernels.library import KernelError
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.thread_pool import ThreadPool
pool = ThreadPool(2)
weights = PackedWeights(pool, 8, 8, torch.float32, bias=False, gated=False)
child = os.fork()
if child == 0:
    try:
        weights.multiply(torch.zeros(1, 8), torch.float32)
    except KernelError as error:
        assert "forked" in str(error), error
        del weights, pool
        sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
weights.multiply(torch.zeros(1, 8), torch.float32)
"""
    assert run_python(program) == "7\n"


@needs_native
def test_process_ends_in_the_middle_of_a_run() -> None:
    # Nothing of torch in the thread: where Python ends a thread inside it, C++ aborts the process.
    program = """
import ctypes, threading, torch
from bough.kernels.library import load_library
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.thread_pool import ThreadPool
threads = ThreadPool(3)
weights = PackedWeights(threads, 512, 512, torch.float32, bias=False, gated=False)
rows = torch.zeros(512, 512)
address, matrix = rows.data_ptr(), ctypes.byref(weights.matrix)
unpack = load_library().bough_unpack_rows
started = threading.Event()
def work():
    while True:
        unpack(threads.handle, matrix, 0, 512, address)
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
"""
    run_python(program)
