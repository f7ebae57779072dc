"""``bough check-env``: what this machine offers to Bough."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bough import __version__
from bough.config.command_line import CommandParser
from bough.kernels.library import LibraryMissing, best_isa
from bough.model_executor.machine import Machine

_DISTRIBUTION = "bough-llm"
"""Name under which this package is installed; ``bough`` on the package index is another project."""

_CPU_FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "bf16", "i8mm", "sve")
"""Instruction sets that decide how fast the CPU kernels can be; x86-64 first, then arm64."""

_EXTRAS_OF_DEVELOPERS = ("dev", "test")

_GIB = 2**30


def main(argv: list[str]) -> int:
    """Run ``bough check-env``."""
    CommandParser(prog="bough check-env", description="Report versions, processor, memory and devices.").parse_args(
        argv
    )
    rows = [
        ("bough", __version__),
        *_told("python", lambda: f"{platform.python_version()} ({sys.executable})"),
        *_told("system", platform.platform),
        *_told("packages", lambda: [(name, _version(name)) for name in direct_dependencies()]),
        *_told("extras", lambda: [(f"extra {extra}", _extra(names)) for extra, names in sorted(extras().items())]),
        *_told("cpu", _cpu_model),
        *_told("cpu features", lambda: ", ".join(_cpu_features()) or "none of those that matter"),
        *_told("native kernels", _native_kernels),
        *_told("cores", _cores),
        *_told("memory", _memory),
        *_told("huge pages", _huge_pages),
        *_told("compiler", _compiler),
        *_told("open files", _open_files),
        *_told("temporary files", _temporary_files),
        *_told("threads", _torch_rows),
    ]
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:<{width}}  {value}")
    return 0


def _told(label: str, find_out: Callable[[], str | list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Rows of the report: what is broken, of whatever kind, must not hide the others."""
    try:
        found = find_out()
    except Exception as error:
        found = f"cannot be told: {type(error).__name__}: {error}"
    return [(label, found)] if isinstance(found, str) else found


def direct_dependencies() -> list[str]:
    """Names of the packages that a plain installation of Bough requires."""
    requirements = importlib.metadata.requires(_DISTRIBUTION) or []
    return [re.split(r"[^A-Za-z0-9_.-]", each, maxsplit=1)[0] for each in requirements if "extra ==" not in each]


def extras() -> dict[str, list[str]]:
    """Names of the packages of each extra that is for users, those left out that are extras themselves."""
    found: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires(_DISTRIBUTION) or []:
        extra = re.search(r"""extra == ['"](.+?)['"]""", requirement)
        name = re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]
        if extra is not None and extra[1] not in _EXTRAS_OF_DEVELOPERS and name != _DISTRIBUTION:
            found.setdefault(extra[1], []).append(name)
    return found


def _extra(names: list[str]) -> str:
    missing = [name for name in names if _version(name).startswith("missing")]
    if missing:
        return f"not installed ({', '.join(missing)})"
    return ", ".join(f"{name} {_version(name)}" for name in names)


def _huge_pages() -> str:
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text(encoding="ascii")
    except OSError:
        return "not known"
    chosen = re.search(r"\[(\w+)\]", text)
    return chosen[1] if chosen is not None else text.strip()


def _compiler() -> str:
    return (
        next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None) or "none: installing builds no kernels"
    )


def _open_files() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return f"{soft} at a time, at most {hard}" if hard != resource.RLIM_INFINITY else f"{soft} at a time, no limit"


def _temporary_files() -> str:
    directory = tempfile.gettempdir()
    return f"{shutil.disk_usage(directory).free / _GIB:.1f} GiB free in {directory}"


def _native_kernels() -> str:
    try:
        return best_isa().name.lower()
    except LibraryMissing as missing:
        return f"none: {missing}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing: pip install " + name


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _cpu_model() -> str:
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def _cpu_features() -> list[str]:
    info = _cpuinfo()
    present = set((info.get("flags") or info.get("Features") or "").split())
    return [flag for flag in _CPU_FLAGS if flag in present]


def _cores() -> str:
    return f"{Machine().usable_threads()} usable; the machine has {os.cpu_count()} hardware threads"


def _memory() -> str:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{Machine().available_bytes() / _GIB:.1f} GiB available of {physical / _GIB:.1f} GiB"


def _torch_rows() -> list[tuple[str, str]]:
    try:
        import torch
    except ImportError as error:
        return [("threads", f"torch cannot be imported: {error}")]
    rows = [("threads", f"{torch.get_num_threads()} by default; a model of less than 16 million parameters gets 1")]
    if not torch.cuda.is_available():
        build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "a build for the CPU only"
        return [*rows, ("cuda", f"not available ({build})")]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        memory = properties.total_memory / _GIB
        rows.append(
            (f"cuda:{index}", f"{properties.name}, {memory:.1f} GiB, capability {properties.major}.{properties.minor}")
        )
    return rows
