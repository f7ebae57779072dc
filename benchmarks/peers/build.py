"""The programs that Bough is compared with, in an environment of their own, at the versions of the reference figures.

llama.cpp's tools are built from the sdist of llama-cpp-python, for the instruction set of this machine; OpenVINO GenAI
and what converts models to it are wheels. Everything comes from the package index that pip is set up with.
"""

from __future__ import annotations

import shutil
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "llama-cpp-python"
LLAMA_CPP = f"{PROJECT}==0.3.36"
TORCH = "torch==2.13.0"
PACKAGES = ("openvino-genai==2026.4.1.0", "optimum-intel==2.2.0", "nncf==3.4.0", "gguf==0.19.0")
UNWANTED = ("openvino-telemetry", "torchvision")
"""Come along, but the first sends usage figures to its makers, and the second fits one build of torch only."""
TOOLS = ("llama-bench", "llama-batched-bench", "llama-quantize", "llama-server")
CMAKE_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",
    "BUILD_SHARED_LIBS": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",  # would be fetched
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
}


class PeerEnvironment:
    """The peers' programs under ``directory``, which is absolute."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def python(self) -> Path:
        """The interpreter of the virtual environment."""
        return self.script("python")

    @property
    def bandwidth_probe(self) -> Path:
        """Prints how fast so many threads read memory: see ``read_bandwidth.c``."""
        return self._directory / "read-bandwidth"

    def script(self, name: str) -> Path:
        """A program of an installed package."""
        return self._directory / "venv/bin" / name

    def tool(self, name: str) -> Path:
        """One of llama.cpp's :data:`TOOLS`."""
        return self._directory / "llama-build/bin" / name

    def run_module(self, name: str, *arguments: Path) -> None:
        """Run a module of this package with the environment's interpreter."""
        subprocess.run([self.python, "-m", f"{__package__}.{name}", *arguments], check=True, cwd=ROOT)

    def build(self, jobs: int) -> None:
        """Make whatever is missing; takes some twenty minutes on two cores. Needs CMake and a C++ compiler.

        Args:
            jobs: compilers at the same time.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        installed = self._directory / "installed.txt"
        wanted = "\n".join((TORCH, *PACKAGES))
        if not installed.exists() or installed.read_text(encoding="utf-8") != wanted:
            self._install()
            installed.write_text(wanted, encoding="utf-8")
        if not all(self.tool(name).exists() for name in TOOLS):
            self._build_llama_cpp(jobs)
        if not self.bandwidth_probe.exists():
            source = Path(__file__).with_name("read_bandwidth.c")
            subprocess.run(["cc", "-O3", "-march=native", "-pthread", source, "-o", self.bandwidth_probe], check=True)

    def _install(self) -> None:
        if not self.python.exists():
            venv.create(self._directory / "venv", with_pip=True)
        self._pip("install", TORCH)  # first and alone: the build that is chosen for it satisfies the others
        self._pip("install", *PACKAGES)
        self._pip("uninstall", "--yes", *UNWANTED)

    def _pip(self, *arguments: str) -> None:
        subprocess.run([self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)

    def _build_llama_cpp(self, jobs: int) -> None:
        sources = self._directory / "llama-source"
        if not sources.exists():
            self._pip("download", "--no-deps", "--no-binary", PROJECT, "--dest", str(self._directory), LLAMA_CPP)
            (archive,) = self._directory.glob("llama_cpp_python-*.tar.gz")
            shutil.unpack_archive(archive, sources)
        (vendored,) = sources.glob("*/vendor/llama.cpp")
        build = self._directory / "llama-build"
        options = [f"-D{name}={value}" for name, value in CMAKE_OPTIONS.items()]
        processor = Path("/proc/cpuinfo")
        if processor.exists() and "amx_tile" in processor.read_text(encoding="utf-8"):
            # g++ 12 does not know that loading the configuration of tiles reads it, and drops most of what is written.
            options.append("-DCMAKE_CXX_FLAGS=-fno-dse -fno-tree-dse")
        subprocess.run(["cmake", "-S", vendored, "-B", build, *options], check=True)
        subprocess.run(["cmake", "--build", build, "--parallel", str(jobs), "--target", *TOOLS], check=True)
