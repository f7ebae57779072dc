"""What this process may use of the machine: processors and memory, as containers limit them."""

from __future__ import annotations

import ctypes
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path

# Parameters of mallopt, from malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_UNLIMITED = 2**60
"""cgroup v1 writes "no limit" as a huge number."""


@dataclass(frozen=True, slots=True)
class Core:
    """A physical core.

    Attributes:
        number: of its first hardware thread, whether or not this process may run there.
        cpus: those of its hardware threads, as the system numbers them, that this process may run on.
        node: the memory that is near to it (NUMA).
        speed: larger where a core is faster than others, as the system measures it; 0 if it does not say.
    """

    number: int
    cpus: frozenset[int]
    node: int = 0
    speed: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """A view of the system's files; tests have them below another ``root``."""

    root: Path = Path("/")

    def available_bytes(self) -> int:
        """Memory that can still be taken without swapping and without exceeding a control group's limit.

        Page cache counts as available, on the system and within a control group alike.
        """
        return self.available()[0]

    def available(self) -> tuple[int, str]:
        """:meth:`available_bytes`, and what bounds them."""
        system = self._system_available()
        limited = min(self._cgroup_available(), default=system)
        if limited < system:
            return max(limited, 0), "within the control group's limit"
        return max(system, 0), "on this machine"

    def usable_threads(self) -> int:
        """Physical cores that this process may run on, at most the whole ones that a control group's quota adds up to.

        Threads spin within a step: one for a part of a core would use the quota up, and the system would stop all.
        """
        quotas = [quota for quota in map(self._quota, self._cgroup_directories("cpu")) if quota is not None]
        return max(min([len(self.cores()), *(math.floor(quota) for quota in quotas)]), 1)

    def cores(self) -> list[Core]:
        """Those that this process may run on, in the system's order."""
        cores: dict[int, set[int]] = {}
        for cpu in self._allowed_cpus():
            cores.setdefault(self._first_sibling(cpu), set()).add(cpu)
        return [
            Core(number, frozenset(cpus), self._node(number), self._speed(number)) for number, cpus in cores.items()
        ]

    def _allowed_cpus(self) -> list[int]:
        if hasattr(os, "sched_getaffinity"):
            return sorted(os.sched_getaffinity(0))
        return list(range(os.cpu_count() or 1))

    def _first_sibling(self, cpu: int) -> int:
        """The first of the hardware threads of a core that ``cpu`` is one of."""
        siblings = _read(self.root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        # A list such as "0,64" or "0-1", in ascending order.
        first = re.match(r"\d+", siblings or "")
        return int(first[0]) if first else cpu

    def _node(self, cpu: int) -> int:
        for directory in (self.root / f"sys/devices/system/cpu/cpu{cpu}").glob("node[0-9]*"):
            return int(directory.name.removeprefix("node"))
        return 0

    def _speed(self, cpu: int) -> int:
        directory = self.root / f"sys/devices/system/cpu/cpu{cpu}"
        return _read_int(directory / "cpu_capacity") or _read_int(directory / "cpufreq/cpuinfo_max_freq") or 0

    def _system_available(self) -> int:
        for line in (_read(self.root / "proc/meminfo") or "").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        # No Linux: physical memory is all that can be known portably; half of it may be free.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

    def _cgroup_available(self) -> list[int]:
        available = []
        for directory in self._cgroup_directories("memory"):
            # Files that are read again and again, as weights are, count as active, and can be dropped all the same.
            for limit_name, usage_name, cache_keys in (
                ("memory.max", "memory.current", ("inactive_file", "active_file")),
                ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
            ):
                limit, usage = _read_int(directory / limit_name), _read_int(directory / usage_name)
                if limit is not None and usage is not None and limit < _UNLIMITED:
                    cached = sum(_stat(directory / "memory.stat", key) for key in cache_keys)
                    available.append(limit - usage + cached)
        return available

    def _quota(self, directory: Path) -> float | None:
        """Processors' worth of time that a control group grants; ``None`` if it does not limit it."""
        quota, _, period = (_read(directory / "cpu.max") or "").partition(" ")
        if quota.isdecimal() and period.isdecimal():
            return int(quota) / int(period)
        old_quota = _read_int(directory / "cpu.cfs_quota_us")
        old_period = _read_int(directory / "cpu.cfs_period_us")
        if old_quota is not None and old_period and old_quota > 0:
            return old_quota / old_period
        return None

    def _cgroup_directories(self, controller: str) -> list[Path]:
        """The control groups of this process, innermost first: each of them limits."""
        mount = self.root / "sys/fs/cgroup"
        directories = []
        for line in (_read(self.root / "proc/self/cgroup") or "").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            # A container sees its own group as the root of the mount, whatever path /proc names.
            base = mount / controller if controllers else mount
            group = base / path.lstrip("/")
            while True:
                directories.append(group)
                if group == base or base not in group.parents:
                    break
                group = group.parent
        return directories


def keep_freed_memory() -> bool:
    """Make glibc's allocator keep what this process frees instead of giving it back to the system.

    Every step allocates and frees the same activations. Given back, each of their pages costs a fault in every step,
    which makes element-wise operations on a prompt of 512 tokens four times slower. The memory kept is bounded by the
    largest step, for which start-up sets memory aside anyway.

    Returns:
        Whether the allocator has taken the settings; others than glibc's have none.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # One arena, since a thread's own arena is made of heaps of 64 MiB that are given back whole.
    settings = ((_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, 2**31 - 1), (_M_ARENA_MAX, 1))
    accepted = [mallopt(parameter, value) == 1 for parameter, value in settings]
    return all(accepted)


def peak_resident_bytes() -> int | None:
    """Most memory this process has had at once since :func:`reset_peak_resident_bytes`; ``None`` if unknown."""
    for line in (_read(Path("/proc/self/status")) or "").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def reset_peak_resident_bytes() -> int | None:
    """Start a new measurement of the peak; returns the memory held now, ``None`` if the system cannot say."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return peak_resident_bytes()


def gib(num_bytes: int) -> str:
    """A size as errors show it."""
    return f"{num_bytes / 2**30:.2f} GiB"


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _read_int(path: Path) -> int | None:
    text = _read(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _stat(path: Path, key: str) -> int:
    for line in (_read(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0
