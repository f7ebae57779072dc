"""What a process has used of the machine."""

from __future__ import annotations

import os


def resident_bytes() -> int:
    """Memory of this process that is in RAM, in bytes; 0 where the system does not say (no Linux)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
