from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bough.model_executor.machine import Core, Machine

GIB = 2**30


def machine(root: Path, files: dict[str, str]) -> Machine:
    for name, content in {"proc/meminfo": f"MemTotal: 1 kB\nMemAvailable: {16 * GIB // 1024} kB\n", **files}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content + "\n")
    return Machine(root)


def test_without_control_groups_the_system_counts(tmp_path: Path) -> None:
    assert machine(tmp_path, {}).available_bytes() == 16 * GIB


def test_limit_of_a_unified_group_less_what_is_used_plus_cache(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/pod/box",
        "sys/fs/cgroup/pod/box/memory.max": "max",
        "sys/fs/cgroup/pod/box/memory.current": str(3 * GIB),
        "sys/fs/cgroup/pod/memory.max": str(4 * GIB),
        "sys/fs/cgroup/pod/memory.current": str(3 * GIB),
        "sys/fs/cgroup/pod/memory.stat": f"anon 5\ninactive_file {GIB // 4}\nactive_file {GIB - GIB // 4}\n",
    }
    assert machine(tmp_path, files).available_bytes() == 2 * GIB


def test_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/not/mounted/here",
        "sys/fs/cgroup/memory.max": str(GIB),
        "sys/fs/cgroup/memory.current": str(GIB // 4),
    }
    assert machine(tmp_path, files).available_bytes() == GIB - GIB // 4


def test_limit_of_an_old_group(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "7:memory:/box\n3:cpu,cpuacct:/box",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(2 * GIB),
        "sys/fs/cgroup/memory/box/memory.usage_in_bytes": str(GIB),
        "sys/fs/cgroup/memory/box/memory.stat": f"total_inactive_file {GIB // 4}\ntotal_active_file {GIB // 4}",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**63 - 4096),
        "sys/fs/cgroup/memory/memory.usage_in_bytes": str(5 * GIB),
    }
    assert machine(tmp_path, files).available_bytes() == GIB + GIB // 2


def test_used_up_group_leaves_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": str(GIB),
        "sys/fs/cgroup/memory.current": str(2 * GIB),
    }
    assert machine(tmp_path, files).available_bytes() == 0


@pytest.fixture
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cpus")
@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({}, 8),
        ({f"sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list": f"{c % 4},{c % 4 + 4}" for c in range(8)}, 4),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "250000 100000"}, 2),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "50000 100000"}, 1),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/cpu.max": "max 100000"}, 8),
        (
            {
                "proc/self/cgroup": "4:cpuacct,cpu:/a",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/a",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            },
            8,
        ),
    ],
)
def test_threads_follow_cores_and_quota(tmp_path: Path, files: dict[str, str], threads: int) -> None:
    assert machine(tmp_path, files).usable_threads() == threads


@pytest.mark.usefixtures("eight_cpus")
def test_cores_have_their_threads_and_their_memory(tmp_path: Path) -> None:
    here = machine(
        tmp_path,
        {
            # The second thread of core 9 is not this process's.
            "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0-1",
            "sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "0-1",
            "sys/devices/system/cpu/cpu0/node0/cpulist": "0-3",
            "sys/devices/system/cpu/cpu7/topology/thread_siblings_list": "7,9",
            "sys/devices/system/cpu/cpu7/node1/cpulist": "7,9",
            "sys/devices/system/cpu/cpu7/cpufreq/cpuinfo_max_freq": "4900000",
            "sys/devices/system/cpu/cpu6/cpu_capacity": "1024",
        },
    )
    first, *others = here.cores()
    assert first == Core(0, frozenset({0, 1}))
    assert others[:4] == [Core(cpu, frozenset({cpu})) for cpu in range(2, 6)]
    assert others[4:] == [Core(6, frozenset({6}), speed=1024), Core(7, frozenset({7}), node=1, speed=4_900_000)]


def test_real_machine_answers() -> None:
    assert Machine().available_bytes() > 0
    assert 1 <= Machine().usable_threads() <= (os.cpu_count() or 1)


KEEPING = """
import resource, torch
from bough.model_executor.machine import keep_freed_memory
assert keep_freed_memory()
def churn():
    for _ in range(20):
        blocks = [torch.ones(2**20) for _ in range(4)]
churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
churn()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
# Memory that is given back and taken anew faults on each of its 81,920 pages; a system that takes idle pages away, or
# joins them, causes some faults in any case.
assert faults < 20_000, faults
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_freed_memory_is_kept() -> None:
    subprocess.run([sys.executable, "-c", KEEPING], check=True)


PEAK = """
from bough.model_executor.machine import peak_resident_bytes, reset_peak_resident_bytes

before = reset_peak_resident_bytes()
block = bytearray(b"x") * (64 * 2**20)
del block
peak = peak_resident_bytes()
assert peak - before >= 60 * 2**20, (before, peak)
assert reset_peak_resident_bytes() < peak
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_peak_memory_is_measured_from_the_reset_on() -> None:
    # In a process of its own: this one's allocator may hold enough freed memory for the block.
    subprocess.run([sys.executable, "-c", PEAK], check=True)
