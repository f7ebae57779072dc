"""How many files and connections this process may have open."""

from __future__ import annotations

import resource

MAX_DESCRIPTORS = 65_536
"""Descriptors that are asked for; more of them would take memory of the kernel for nothing."""


def allow_many_connections() -> None:
    """Every connection is a descriptor, and the usual soft limit of 1,024 is there for programs that use select(2)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = MAX_DESCRIPTORS if hard == unlimited else min(MAX_DESCRIPTORS, hard)
    if soft != unlimited and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
