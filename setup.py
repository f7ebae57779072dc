"""Builds the native CPU kernels beside the package that pyproject.toml describes.

The result is a plain shared library without Python in it, `bough/kernels/libbough.so`, loaded by ctypes. It is
optional: without a C++ compiler the package installs all the same, and torch computes.
"""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("csrc")

FLAGS = [
    *("-std=c++17", "-O3", "-g0", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-pthread"),
    # Nobody looks at errno or floating-point exceptions; sums may be contracted into fused multiply-adds, which makes
    # them more exact, but never reordered.
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
    # False alarms of g++ 12 in its own intrinsics.
    *("-Wno-uninitialized", "-Wno-maybe-uninitialized"),
]

PER_ISA = ("attention.cpp", "elementwise.cpp", "gemm.cpp", "sampling.cpp")
"""Compiled once per instruction set; all other files once."""

_AVX2 = ["-mavx2", "-mfma", "-mf16c"]
_AVX512 = [*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"]
X86_ISAS = {
    "avx2": _AVX2,
    "avx512": _AVX512,
    "avx512bf16": [*_AVX512, "-mavx512bf16", "-mavx512vnni"],
}
"""Flags of each instruction set; which of them runs is decided when the library is loaded."""


def compilations() -> list[tuple[Path, str, list[str]]]:
    """Every file to compile: its path, a name for its object file's directory, and flags of its own."""
    isas = {"portable": [], **(X86_ISAS if platform.machine() in ("x86_64", "AMD64") else {})}
    found = []
    for source in sorted(SOURCES.glob("*.cpp")):
        if source.name in PER_ISA:
            found += [(source, isa, [*flags, f"-DBOUGH_ISA={isa}"]) for isa, flags in isas.items()]
        else:
            found.append((source, "common", []))
    return found


class BuildKernels(build_ext):
    """Compiles each file with the flags of its instruction set and links them all into one library."""

    def get_ext_filename(self, ext_name: str) -> str:
        """Where the library goes: nothing of the interpreter is in its name, since nothing of it is inside."""
        return os.path.join(*ext_name.split(".")) + ".so"

    def build_extension(self, ext: Extension) -> None:
        """Compile and link; an error is a warning, because the extension is optional."""

        def compile_one(job: tuple[Path, str, list[str]]) -> list[str]:
            source, directory, flags = job
            objects: list[str] = self.compiler.compile(
                [str(source)],
                output_dir=os.path.join(self.build_temp, directory),
                extra_postargs=[*FLAGS, *flags],
                depends=ext.depends,
            )
            return objects

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            objects = [name for names in threads.map(compile_one, compilations()) for name in names]
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(ext.name), extra_postargs=["-pthread"], target_lang="c++"
        )


setup(
    ext_modules=[
        Extension(
            "bough.kernels.libbough",
            sources=[str(path) for path in sorted(SOURCES.glob("*.cpp"))],
            depends=[str(path) for path in sorted(SOURCES.glob("*.h"))],
            language="c++",
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
