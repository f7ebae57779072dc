"""Threads that compute stay on cores of their own, on a machine with more cores than threads.

A thread that wakes up on another core finds its cache cold and, where processors have memory of their own (NUMA), its
part of the weights far away; one that shares a core with another program makes all others wait at every barrier.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from bough.kernels.thread_pool import ThreadPool
from bough.model_executor.machine import Core, Machine

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CoreClaim:
    """Cores that no other server on this machine binds threads to, as long as this object or its process lives.

    Attributes:
        cores: in the order of the threads; the calling thread's first.
    """

    cores: Sequence[Core]
    _sockets: Sequence[socket.socket]

    def release(self) -> None:
        """Others may have the cores."""
        for claimed in self._sockets:
            claimed.close()


@dataclass(frozen=True)
class CoreBinding:
    """Threads of a pool that are bound, each to a core of its own.

    Attributes:
        cores: that this process may run on.
        claim: those of the pool.
    """

    cores: Sequence[Core]
    claim: CoreClaim

    def confine_caller(self) -> None:
        """Keep the calling thread, and what it starts from now on, off the other threads' cores.

        A thread that wakes up there right before a step makes its owner, who can go nowhere else, wait for it.
        """
        own, *workers = self.claim.cores
        free = [core for core in self.cores if core not in workers]
        near = [core for core in free if core.node == own.node]
        _bind(0, near if len(near) > 1 else free)


def bind_threads(threads: ThreadPool, machine: Machine) -> CoreBinding | None:
    """Bind each thread of the pool but the calling one to a core of its own.

    The calling one, and what it starts, stays near to the same memory; once it has no more parallel work of its own,
    :meth:`CoreBinding.confine_caller` keeps it off the others' cores.

    Nothing is bound where there are no more cores than threads, as whatever else runs would then have to share one with
    a thread that can go nowhere else; under a control group's quota, as others are then likely to have the same cores,
    from where their claims are not seen; and where other servers have claimed too many.

    Returns:
        What is to be kept as long as the pool; ``None`` if nothing was bound.
    """
    cores = machine.cores()
    if not hasattr(os, "sched_setaffinity") or threads.num_threads == 1 or len(cores) <= threads.num_threads:
        return None
    if machine.quota() is not None:
        return None
    claim = claim_cores(cores, threads.num_threads)
    if claim is None:
        logger.info("threads are not bound to cores: other servers have theirs bound to some of these %d", len(cores))
        return None
    nodes = {core.node for core in claim.cores}
    try:
        for thread, core in zip(threads.thread_ids()[1:], claim.cores[1:], strict=True):
            _bind(thread, [core])
        _bind(0, [core for core in cores if core.node in nodes])
    except OSError as error:
        claim.release()
        logger.warning("threads are not bound to cores: the system refuses it (%s)", error)
        return None
    logger.info("threads are bound to cores: %s", ", ".join(str(min(core.cpus)) for core in claim.cores[1:]))
    return CoreBinding(cores, claim)


def claim_cores(cores: Sequence[Core], count: int) -> CoreClaim | None:
    """Claim so many of the cores, all near to one memory if possible; ``None`` if other servers leave too few."""
    # The system's first cores are those that devices interrupt.
    cores = cores[::-1]
    nodes = dict.fromkeys(core.node for core in cores)
    for group in (*([core for core in cores if core.node == node] for node in nodes), cores):
        claim = _claim_some(group, count)
        if claim is not None:
            return claim
    return None


def _claim_some(cores: Sequence[Core], count: int) -> CoreClaim | None:
    if len(cores) < count:
        return None
    claimed: list[Core] = []
    sockets: list[socket.socket] = []
    for core in cores:
        if len(claimed) < count and (owned := _claim_core(core)) is not None:
            claimed.append(core)
            sockets.append(owned)
    claim = CoreClaim(claimed, sockets)
    if len(claimed) < count:
        claim.release()
        return None
    return claim


def _claim_core(core: Core) -> socket.socket | None:
    """A name that one process at a time can have; ``None`` if another has it, or the system gives none.

    An abstract socket (unix(7)) leaves no file behind and goes with its process, however that ends. Nobody can connect
    to it, as it does not listen.
    """
    owned = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        owned.bind(f"\0bough-core-{min(core.cpus)}")
    except OSError:
        owned.close()
        return None
    return owned


def _bind(thread: int, cores: Sequence[Core]) -> None:
    os.sched_setaffinity(thread, {cpu for core in cores for cpu in core.cpus})
