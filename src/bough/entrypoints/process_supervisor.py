"""The processes of an engine: noticing when one dies, and ending them all."""

from __future__ import annotations

import logging
import math
import os
import select
import threading
import time
from collections.abc import Callable, Container
from typing import Any

from bough.config.ranks import ProcessKey
from bough.entrypoints.launcher import StartedProcess
from bough.errors import StartupError

logger = logging.getLogger(__name__)

KILL_WAIT_SECONDS = 1.0
"""How long a child that was told to end at once may take before it is killed."""

REAP_WAIT_SECONDS = 10.0
"""How long the kernel may take to free what a killed child held."""

DUMP_SECONDS = 0.1
"""What a child gets to write its stacks before the next one does: they come in small pieces, into the same log."""

_MAX_POLL_MS = 60_000


class ProcessSupervisor:
    """The children of one engine. When one dies, the others are of no use. Methods may be called from any thread."""

    def __init__(self) -> None:
        self._children: list[StartedProcess] = []
        self._watcher: threading.Thread | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._stop_lock = threading.Lock()
        self._stopped = False

    @property
    def any_alive(self) -> bool:
        """True if a child still runs."""
        return any(child.wait(0.0) is None for child in self._children)

    @property
    def pids(self) -> list[int]:
        """Process ids of all children, in the order in which they were started."""
        return [child.pid for child in self._children]

    def add(self, process: StartedProcess) -> None:
        """Watch a process from now on, and end it with the others.

        Raises:
            StartupError: if the others were stopped; then this one is, too.
        """
        with self._stop_lock:
            if not self._stopped:
                self._children.append(process)
                return
        _end([process])
        process.close()
        raise StartupError("the engine was told to stop while it was starting")

    def wait_until_ready(self, timeout_s: float) -> dict[ProcessKey, dict[str, Any]]:
        """Wait until every child has reported; returns their reports.

        :meth:`stop`, from another thread, ends the waiting.

        Raises:
            ConfigError, StartupError: as soon as a child cannot start, or has died; or if one is not ready after
                ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        reports: dict[ProcessKey, dict[str, Any]] = {}
        reported: dict[int, StartedProcess] = {}
        waiting = {child.status_fd: child for child in self._children}
        poller = select.poll()
        for fd in (*waiting, self._wake_read):
            poller.register(fd, select.POLLIN)
        while waiting:
            remaining = max(deadline - time.monotonic(), 0.0)
            ready = [fd for fd, _ in poller.poll(math.ceil(min(remaining * 1000, _MAX_POLL_MS)))]
            if not ready and time.monotonic() >= deadline:
                late = sorted(child.key for child in waiting.values())
                self.dump_stacks(late)
                names = " and ".join(map(str, late))
                raise StartupError(
                    f"the {names} process was not ready after {timeout_s:g} s; if it is not stuck, a larger "
                    f"--startup-timeout gives it more"
                )
            if self._wake_read in ready:
                raise StartupError("the engine was told to stop while it was starting")
            for fd in ready:
                child = waiting.pop(fd, None)
                if child is None:  # one that has reported says no more: its pipe has ended, and so has it
                    raise StartupError(f"{reported[fd].describe_death()} while others were starting")
                reports[child.key] = child.take_report()
                reported[fd] = child
        return reports

    def watch(self, on_death: Callable[[str], None]) -> None:
        """From now on, call ``on_death`` from another thread with a description if a child dies; at most once.

        The other children are ended as well. ``on_death`` must not call :meth:`stop`, which waits for it.
        """
        self._watcher = threading.Thread(target=self._watch, args=(on_death,), name="bough-watch-children", daemon=True)
        self._watcher.start()

    def beat(self) -> None:
        """Show all children that this process does not hang; to be called about once a second."""
        for child in self._children:
            child.beat()

    def dump_stacks(self, keys: Container[ProcessKey]) -> None:
        """Make these children write the stacks of their threads to the log, one after the other."""
        found = [child for child in self._children if child.key in keys]
        for i, child in enumerate(found):
            if i:
                time.sleep(DUMP_SECONDS)
            child.dump_stacks()

    def unwatch(self) -> None:
        """From now on children may end without that being an accident."""
        with self._stop_lock:
            if not self._stopped:
                self._end_watch()

    def stop(self) -> None:
        """End all children at once and wait until they are gone. Doing it twice does nothing."""
        with self._stop_lock:
            if self._stopped:
                return
            self._stopped = True
            self._end_watch()
            _end(self._children)
            for child in self._children:
                child.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _end_watch(self) -> None:
        os.write(self._wake_write, b"x")
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self, on_death: Callable[[str], None]) -> None:
        children = {child.status_fd: child for child in self._children}
        poller = select.poll()
        for fd in (*children, self._wake_read):
            poller.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poller.poll()]
        if self._wake_read not in ready:
            on_death(children[ready[0]].describe_death())
            _end(self._children)


def _end(children: list[StartedProcess]) -> None:
    for child in children:
        child.hang_up()
    for child in _wait_for(children, KILL_WAIT_SECONDS):
        child.kill()
    _wait_for(children, REAP_WAIT_SECONDS)


def _wait_for(children: list[StartedProcess], timeout_s: float) -> list[StartedProcess]:
    """Wait for children to end; returns those that have not."""
    deadline = time.monotonic() + timeout_s
    return [child for child in children if child.wait(max(deadline - time.monotonic(), 0.0)) is None]
