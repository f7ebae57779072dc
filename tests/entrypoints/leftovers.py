"""What processes leave behind when they should not."""

from __future__ import annotations

import glob
import os
import tempfile
import threading
import time
from collections.abc import Callable

import psutil


def socket_directories() -> set[str]:
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "bough-*")))


def directories_of(*pids: int) -> set[str]:
    """Socket directories that processes have sockets in."""
    with open("/proc/net/unix") as file:
        inodes = {line.split()[6]: line.split()[7] for line in file if "/bough-" in line and len(line.split()) > 7}
    found = set()
    for pid in pids:
        for fd in glob.glob(f"/proc/{pid}/fd/*"):
            try:
                target = os.readlink(fd)
            except OSError:
                continue
            path = inodes.get(target.removeprefix("socket:[").removesuffix("]"))
            if path is not None:
                found.add(os.path.dirname(path))
    return found


def children(pid: int | None = None) -> list[int]:
    return [process.pid for process in psutil.Process(pid).children(recursive=True)]


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(condition: Callable[[], bool], timeout: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def own_resources() -> tuple[int, int, list[int]]:
    """Descriptors, threads and children of this process."""
    return len(os.listdir("/proc/self/fd")), threading.active_count(), children()


def loads_torch(pid: int) -> bool:
    with open(f"/proc/{pid}/maps") as file:
        return "libtorch" in file.read()
