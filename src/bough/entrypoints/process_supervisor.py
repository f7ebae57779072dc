"""Starts the child processes of an engine, notices when one dies, and ends them all."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container
from typing import Any

import msgspec

from bough.child_main import STACKS_SIGNAL
from bough.child_process import module_command, module_environment
from bough.config.port_args import PortArgs
from bough.config.ranks import ONE_SCHEDULER, WHOLE_MACHINE, MachineShare, ParallelLayout, ProcessKey
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError, StartupError
from bough.ipc.handshake import ChildConfig, ChildReady, ChildStatus, encode_message, read_message, write_message

logger = logging.getLogger(__name__)

KILL_WAIT_SECONDS = 1.0
"""How long a child that was told to end at once may take before it is killed."""

REAP_WAIT_SECONDS = 10.0
"""How long the kernel may take to free what a killed child held."""

DUMP_SECONDS = 0.1
"""What a child gets to write its stacks before the next one does: they come in small pieces, into the same log."""

_MAX_POLL_MS = 60_000

_LAST_WORDS_SECONDS = 2.0
"""How long the end of a process may lag behind the end of its status pipe."""


class ChildProcess:
    """One child process: a fresh interpreter that runs a module of ours.

    Not a fork, and not a spawn of ``multiprocessing``: it neither inherits the parent's state nor imports the user's
    ``__main__``, so scripts need no guard and the child loads only what it needs.

    Args:
        module: to run as ``python -m``; it calls :func:`bough.child_main.run_child`.
        config: what to tell it.
        new_session: whether to take it out of reach of the terminal's Ctrl-C.

    Raises:
        StartupError: if the process cannot be started.
    """

    def __init__(self, module: str, config: ChildConfig, *, new_session: bool = False) -> None:
        self.key = config.key
        message = encode_message(config)  # what cannot be sent must not leave a child behind that waits for it
        config_read, self._config_fd = os.pipe()
        self.status_fd, status_write = os.pipe()
        self._config_open = True
        self._config_lock = threading.Lock()
        inherited = [config_read, status_write, *config.share.descriptors]
        if config.listener_fd is not None:
            inherited.append(config.listener_fd)
        # A Ctrl-C while the child imports, before it can say that it ignores them, would print tracebacks.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._popen = subprocess.Popen(
                module_command(module, str(config_read), str(status_write)),
                pass_fds=inherited,
                stdin=subprocess.DEVNULL,
                stdout=_stderr_fd(),
                env=module_environment(),
                start_new_session=new_session,
            )
        except OSError as error:
            os.close(self._config_fd)
            os.close(self.status_fd)
            raise StartupError(f"cannot start the {self.key} process with {sys.executable}: {error}") from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(config_read)
            os.close(status_write)
        with contextlib.suppress(BrokenPipeError):  # it has died already, which its status pipe tells
            write_message(self._config_fd, message)
        os.set_blocking(self._config_fd, False)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._popen.pid

    def take_report(self) -> dict[str, Any]:
        """What the child reports when it is ready, waiting for it.

        Raises:
            ConfigError, StartupError: if it cannot start, or dies.
        """
        message = read_message(self.status_fd)
        if message is None:
            raise StartupError(f"{self.describe_death()} while it was starting; --log-level debug may say more")
        status: ChildStatus = msgspec.msgpack.decode(message, type=ChildStatus)
        if isinstance(status, ChildReady):
            return status.info
        raise (ConfigError if status.is_config_error else StartupError)(status.message)

    def wait(self, timeout_s: float) -> int | None:
        """Exit status as ``subprocess`` gives it; ``None`` if the child still runs after ``timeout_s`` seconds."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def describe_death(self) -> str:
        """How the child ended, once its status pipe has."""
        status = self.wait(_LAST_WORDS_SECONDS)
        if status is None:
            return f"the {self.key} process hung up"
        if status >= 0:
            return f"the {self.key} process ended with status {status}"
        try:
            cause = signal.Signals(-status).name
        except ValueError:
            cause = f"signal {-status}"
        hint = "; was there too little memory?" if -status == signal.SIGKILL else ""
        return f"the {self.key} process was killed by {cause}{hint}"

    def hang_up(self) -> None:
        """Close the pipe that tells the child that its parent lives; it then ends at once."""
        with self._config_lock:
            if self._config_open:
                self._config_open = False
                os.close(self._config_fd)

    def beat(self) -> None:
        """Show the child that its parent does not hang. Never blocks."""
        with self._config_lock, contextlib.suppress(BlockingIOError, BrokenPipeError):
            if self._config_open:
                os.write(self._config_fd, b".")

    def dump_stacks(self) -> None:
        """Make the child write the stacks of its threads to the log, unless it is stopped or has ended."""
        self._popen.send_signal(STACKS_SIGNAL)

    def terminate(self) -> None:
        """SIGTERM; does nothing if the child has ended."""
        self._popen.terminate()

    def kill(self) -> None:
        """SIGKILL; does nothing if the child has ended."""
        self._popen.kill()

    def close(self) -> None:
        """Free the descriptors of a child that has ended."""
        self.hang_up()
        os.close(self.status_fd)


class ProcessSupervisor:
    """The children of one engine. When one dies, the others are of no use.

    Methods may be called from any thread, but starting and stopping not at the same time.
    """

    def __init__(self) -> None:
        self._children: list[ChildProcess] = []
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

    def start(
        self,
        module: str,
        key: ProcessKey,
        server_args: ServerArgs,
        port_args: PortArgs,
        *,
        layout: ParallelLayout = ONE_SCHEDULER,
        share: MachineShare = WHOLE_MACHINE,
        tidies_up: bool = False,
        watches_parent: bool = False,
    ) -> None:
        """Start a child; returns at once, while it loads what it needs.

        Args:
            layout: of the engine, and ``share`` of the machine that the child may use.
            tidies_up: this child removes the directory of the endpoints should the parent die.
            watches_parent: it kills this process should it hang; then :meth:`beat` has to be called.

        Raises:
            StartupError: if the process cannot be started.
        """
        config = child_config(key, server_args.without_secrets())  # nobody calls a child over HTTP
        config.port_args = port_args.to_dict()
        config.layout, config.share = layout, share
        config.tidies_up = tidies_up
        if watches_parent:
            hung = server_args.watchdog_timeout
            config.parent_limits = (server_args.startup_timeout + hung, hung)
        self._children.append(ChildProcess(module, config))

    def wait_until_ready(self, timeout_s: float) -> dict[ProcessKey, dict[str, Any]]:
        """Wait until every child has reported; returns their reports.

        :meth:`stop`, from another thread, ends the waiting.

        Raises:
            ConfigError, StartupError: as soon as a child cannot start, or has died; or if one is not ready after
                ``timeout_s`` seconds.
        """
        deadline = time.monotonic() + timeout_s
        reports: dict[ProcessKey, dict[str, Any]] = {}
        reported: dict[int, ChildProcess] = {}
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
            self._end_children()
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
            self._end_children()

    def _end_children(self) -> None:
        for child in self._children:
            child.hang_up()
        for child in _wait_for(self._children, KILL_WAIT_SECONDS):
            child.kill()
        _wait_for(self._children, REAP_WAIT_SECONDS)


def child_config(key: ProcessKey, server_args: ServerArgs) -> ChildConfig:
    """The configuration of a child that is started by the calling thread."""
    return ChildConfig(
        key=key,
        parent_pid=os.getpid(),
        started_by_main_thread=threading.current_thread() is threading.main_thread(),
        server_args=server_args.to_dict(),
    )


def _wait_for(children: list[ChildProcess], timeout_s: float) -> list[ChildProcess]:
    """Wait for children to end; returns those that have not."""
    deadline = time.monotonic() + timeout_s
    return [child for child in children if child.wait(max(deadline - time.monotonic(), 0.0)) is None]


def _stderr_fd() -> int:
    """Where children write: a stray ``print`` must not end up in the output of a host that is piped somewhere."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
