"""Threads that compute stay on cores of their own (``--bind-threads``).

A thread that wakes up on another core may find its cache cold and, where processors have memory of their own (NUMA),
its part of the weights far away; of one that has to wait for its core the others do the work.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bough.errors import ConfigError, StartupError
from bough.kernels.thread_pool import ThreadPool
from bough.model_executor.machine import Core, Machine

logger = logging.getLogger(__name__)

_CLAIMING_SECONDS = 10.0
"""In which other servers that start have made their claims."""


@dataclass(frozen=True)
class CoreClaim:
    """Cores that no other server on this machine claims, as long as this object or its process lives."""

    cores: Sequence[Core]
    _names: Sequence[socket.socket]

    def release(self) -> None:
        """Others may have the cores."""
        for name in self._names:
            name.close()


@dataclass(frozen=True)
class CoreBinding:
    """Cores of the threads of a pool: two for the calling thread and what it starts, one for each of the others."""

    claim: CoreClaim
    caller_cores: Sequence[Core]
    worker_cores: Sequence[Core]

    def confine_caller(self) -> None:
        """Keep the calling thread, and what it starts from now on, to its cores.

        A thread on the core of another makes that one, who can go nowhere else, wait.
        """
        _bind(0, self.caller_cores)


def bind_threads(threads: ThreadPool, machine: Machine) -> CoreBinding:
    """Bind each thread of the pool but the calling one to a core of its own.

    The calling one, and what it starts, stays near to the same memory; once it has no more parallel work of its own,
    :meth:`CoreBinding.confine_caller` keeps it off the others' cores.

    Returns:
        What is to be kept as long as the pool.

    Raises:
        ConfigError: if there are no more cores than threads: what else runs would share one with a thread that can go
            nowhere else.
        StartupError: if other servers have claimed too many cores, or the system refuses.
    """
    cores, count = machine.cores(), threads.num_threads + 1
    if len(cores) < count:
        fewer = f"set --cpu-threads to at most {len(cores) - 1}, or " if len(cores) > 1 else ""
        raise ConfigError(
            f"--bind-threads needs more cores than threads; here are {len(cores)} for {threads.num_threads}: {fewer}"
            "leave --bind-threads out",
            param="bind_threads",
        )
    claim = claim_cores(cores, count)
    if claim is None:
        fewer = "lower --cpu-threads, or " if threads.num_threads > 1 else ""
        raise StartupError(
            f"--bind-threads needs {count} cores, one more than threads, and others with this flag have too many of "
            f"the {len(cores)} here; who shuts down has them until the end: {fewer}leave --bind-threads out",
            param="bind_threads",
        )
    binding = CoreBinding(claim, claim.cores[:2], claim.cores[2:])
    nodes = {core.node for core in claim.cores}
    try:
        for thread, core in zip(threads.thread_ids()[1:], binding.worker_cores, strict=True):
            _bind(thread, [core])
        _bind(0, [core for core in cores if core.node in nodes])
    except OSError as error:
        claim.release()
        raise _refused(error) from None
    if binding.worker_cores:
        logger.info("threads are bound to cores %s", _numbers(binding.worker_cores))
    logger.info("the scheduler, which computes, too, is kept to cores %s", _numbers(binding.caller_cores))
    return binding


def claim_cores(cores: Sequence[Core], count: int) -> CoreClaim | None:
    """Claim so many of the cores, all near to one memory if possible; ``None`` if other servers leave too few.

    Raises:
        StartupError: if the system has no names to claim cores by.
    """
    # Products are shared out alike, and all wait for the slowest.
    cores = sorted(cores, key=lambda core: -core.speed)
    groups = [[core for core in cores if core.node == node] for node in dict.fromkeys(core.node for core in cores)]
    with _turn():
        for group in (*groups, *([cores] if len(groups) > 1 else [])):
            claim = _claim_some(group, count)
            if claim is not None:
                return claim
    return None


def _claim_some(cores: Sequence[Core], count: int) -> CoreClaim | None:
    if len(cores) < count:
        return None
    claimed: list[Core] = []
    names: list[socket.socket] = []
    for core in cores:
        if len(claimed) < count and (name := _take(f"bough-core-{core.number}")) is not None:
            claimed.append(core)
            names.append(name)
    claim = CoreClaim(claimed, names)
    if len(claimed) < count:
        claim.release()
        return None
    return claim


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Servers claim one after the other: two at a time might each have what the other lacks."""
    deadline = time.monotonic() + _CLAIMING_SECONDS
    while (turn := _take("bough-cores")) is None:
        if time.monotonic() > deadline:
            raise StartupError(
                "--bind-threads: another server has been choosing its cores for too long; try again, or leave "
                "--bind-threads out",
                param="bind_threads",
            )
        time.sleep(0.01)
    with turn:
        yield


def _take(name: str) -> socket.socket | None:
    """A name that one process at a time can have; ``None`` if another has it.

    An abstract socket (unix(7)) leaves no file behind and goes with its process, however that ends. Nobody can connect
    to it, as it does not listen.
    """
    try:
        taken = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            taken.bind(f"\0{name}")
        except OSError:
            taken.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return None
        raise _refused(error) from None
    return taken


def _refused(error: OSError) -> StartupError:
    return StartupError(f"--bind-threads: the system refuses ({error}); leave --bind-threads out", param="bind_threads")


def _numbers(cores: Sequence[Core]) -> str:
    return ", ".join(str(core.number) for core in cores)


def _bind(thread: int, cores: Sequence[Core]) -> None:
    os.sched_setaffinity(thread, {cpu for core in cores for cpu in core.cpus})
