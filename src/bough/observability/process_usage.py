"""What a process has used of the machine."""

from __future__ import annotations

import os


def resident_bytes() -> int:
    """Memory of this process that is in RAM, in bytes; 0 where the system does not say (no Linux)."""
    return _pages(1) * os.sysconf("SC_PAGE_SIZE")


def address_space_bytes() -> int:
    """Addresses that this process has asked for, in bytes; 0 where the system does not say (no Linux)."""
    return _pages(0) * os.sysconf("SC_PAGE_SIZE")


def _pages(column: int) -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[column])
    except OSError:
        return 0
