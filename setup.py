"""Builds the native CPU kernels beside the package that pyproject.toml describes.

The result is a plain shared library without Python in it, `bough/kernels/libbough.so`, loaded by ctypes. Without a
C++17 compiler the package installs all the same, and torch computes. A compiler that works and then fails on the
sources is an error: `CXX=false pip install ...` does without the kernels.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, ExecError

SOURCES = Path("csrc")


def read_flags() -> dict[str, list[str]]:
    """What csrc/flags.mk says."""
    lines = (line.partition("=") for line in (SOURCES / "flags.mk").read_text("utf-8").splitlines())
    return {name.strip(): words.split() for name, equals, words in lines if equals and not name.startswith("#")}


SHARED = read_flags()
FLAGS = [*SHARED["FLAGS"], "-O3", "-g0", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]

# The C++ runtime goes into the library, and none of it is shown: machines with an older one can load it.
LINK_CHOICES = [["-pthread", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL"], ["-pthread"]]

# Needs C++17 and its library.
PROBE = """
#include <string_view>
#include <thread>
int probe(std::string_view name) {
    std::thread([] {}).join();
    if (const auto size = name.size(); size > 0) return static_cast<int>(size);
    return 0;
}
"""


def is_source(name: str) -> bool:
    """Whether a file of csrc goes into the library, and is not what an editor keeps there meanwhile."""
    return not name.startswith(".") and (name.endswith((".cpp", ".h")) or name == "flags.mk")


def sources_hash() -> str:
    """SHA-256 of everything in csrc, as bough/kernels/library.py computes it, too."""
    digest = hashlib.sha256()
    for path in sorted(path for path in SOURCES.iterdir() if is_source(path.name)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class BuildKernels(build_ext):
    """Compiles each file with the flags of its instruction set and links them all into one library."""

    def get_ext_filename(self, ext_name: str) -> str:
        """Where the library goes: nothing of the interpreter is in its name, since nothing of it is inside."""
        return os.path.join(*ext_name.split(".")) + ".so"

    def run(self) -> None:
        """Build; whatever fails, no library of other sources stays behind."""
        # While it builds, setuptools does as if it did not do so in place.
        self.keeps_objects = bool(self.inplace or self.editable_mode)
        Path("build", "kernels").mkdir(parents=True, exist_ok=True)
        with open(Path("build", "kernels", "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another build may be at it: what it makes is there then
            if self.inplace:
                package = self.get_finalized_command("build_py").get_package_dir("bough.kernels")
                Path(package, "libbough.so").unlink(missing_ok=True)
            super().run()

    def build_extension(self, ext: Extension) -> None:
        """Compile and link.

        An installation in place keeps what it compiles, so that `make` can begin before its environment is ready.

        Raises:
            CompileError: if there is a compiler, and the sources do not compile.
        """
        target = Path(self.get_ext_fullpath(ext.name))
        target.unlink(missing_ok=True)
        link_flags = next((flags for flags in LINK_CHOICES if self.works(FLAGS, flags)), None)
        if link_flags is None:
            # Nothing is made, and whoever copies what was made must not miss it.
            ext.optional = True
            self.warn("no working C++17 compiler: the native CPU kernels are left out, and torch computes")
            return
        isas = {"portable": []}
        if platform.machine() in ("x86_64", "AMD64"):
            for isa in SHARED["X86_ISAS"]:
                if self.works([*FLAGS, *SHARED[f"ISA_{isa}"]], link_flags):
                    isas[isa] = SHARED[f"ISA_{isa}"]
                else:
                    self.warn(f"the compiler does not know {isa}: kernels for it are left out")
        self.compile_and_link(ext, target, isas, link_flags)

    def compile_and_link(self, ext: Extension, target: Path, isas: dict[str, list[str]], link_flags: list[str]) -> None:
        """The library ``target`` with kernels for some instruction sets."""
        objects = self.compile(ext, isas, self.kept_objects(isas))
        self.compiler.link_shared_object(objects, str(target), extra_postargs=link_flags, target_lang="c++")

    def compile(self, ext: Extension, isas: dict[str, list[str]], kept: Path) -> list[str]:
        """The objects of the library, in ``kept``, of which those that are there already are taken as they are.

        Raises:
            CompileError: if the sources do not compile, or change meanwhile.
        """
        sources = sources_hash()
        common = [f'-DBOUGH_SOURCES="{sources}"', *(f"-DBOUGH_HAS_{isa}" for isa in isas)]

        def compile_one(job: tuple[str, str, list[str]]) -> Path:
            source, directory, flags = job
            made = kept / directory / f"{Path(source).stem}.o"
            if not made.exists():
                unfinished = str(kept / directory / "unfinished")
                (compiled,) = self.compiler.compile([source], output_dir=unfinished, extra_postargs=[*FLAGS, *flags])
                if sources_hash() != sources:
                    raise CompileError("csrc/ has changed while it was compiled; build again")
                os.replace(compiled, made)
            return made

        jobs = []
        for source in ext.sources:
            name = Path(source).stem
            if name not in SHARED["PER_ISA"]:
                jobs.append((source, "common", common))
                continue
            own = SHARED.get(f"FLAGS_{name}", [])
            for isa, flags in isas.items():
                if name in SHARED.get(f"PER_ISA_{isa}", SHARED["PER_ISA"]):
                    jobs.append((source, isa, [*flags, *own, f"-DBOUGH_ISA={isa}"]))
        # What takes longest first, so that no core is left with it in the end.
        jobs.sort(key=lambda job: Path(job[0]).stat().st_size, reverse=True)
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return [str(made) for made in threads.map(compile_one, jobs)]

    def kept_objects(self, isas: dict[str, list[str]]) -> Path:
        """Where what is compiled with these sources, flags and compiler is kept; what was kept for others goes."""
        # Temporary directories of editable installations are not kept.
        directory = Path("build" if self.keeps_objects else self.build_temp, "kernels")
        directory.mkdir(parents=True, exist_ok=True)
        compiler = self.compiler.compiler_so_cxx
        version = subprocess.run([compiler[0], "--version"], capture_output=True, text=True, check=False).stdout
        command = [*compiler, version, *FLAGS, str(isas), sources_hash()]
        wanted = hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]
        for other in directory.iterdir():
            if other.is_dir() and other.name != wanted:
                shutil.rmtree(other)
        return directory / wanted

    def works(self, flags: list[str], link_flags: list[str]) -> bool:
        """Whether the compiler makes a shared library of a small program with these flags."""
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory, "probe.cpp")
            source.write_text(PROBE)
            try:
                objects = self.compiler.compile([str(source)], output_dir=directory, extra_postargs=flags)
                library = str(Path(directory, "probe.so"))
                self.compiler.link_shared_object(objects, library, extra_postargs=link_flags, target_lang="c++")
            except (CCompilerError, ExecError, OSError):
                return False
            return True


setup(
    ext_modules=[
        Extension(
            "bough.kernels.libbough",
            sources=[str(path) for path in sorted(SOURCES.glob("*.cpp")) if is_source(path.name)],
            depends=[str(path) for path in sorted(SOURCES.iterdir()) if is_source(path.name)],
            language="c++",
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
