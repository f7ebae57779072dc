"""Launchers start the schedulers of an engine, and what they start is a process that reports, dies and is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from bough.child_main import STACKS_SIGNAL
from bough.child_process import module_command, module_environment
from bough.config.port_args import PortArgs
from bough.config.ranks import MachineShare, ParallelLayout, ProcessKey
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError, StartupError
from bough.ipc.handshake import ChildConfig, ChildReady, ChildStatus, encode_message, read_message, write_message
from bough.model_executor.machine import Machine

_LAST_WORDS_SECONDS = 2.0
"""How long the end of a process may lag behind the end of its status pipe."""


class StartedProcess(ABC):
    """A process that a :class:`Launcher` has started.

    Attributes:
        key: its identity.
        status_fd: a descriptor that becomes readable when the process reports, and ends with the process.
    """

    key: ProcessKey
    status_fd: int

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id, on the machine where it runs."""

    def take_report(self) -> dict[str, Any]:
        """Wait for the report that the process makes when it is ready, and return it.

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

    @abstractmethod
    def wait(self, timeout_s: float) -> int | None:
        """Exit status as ``subprocess`` gives it; ``None`` if the process still runs after ``timeout_s`` seconds."""

    def describe_death(self) -> str:
        """Cause of its end, once its status descriptor has ended."""
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

    @abstractmethod
    def hang_up(self) -> None:
        """Make the process end at once, unless it hangs."""

    @abstractmethod
    def beat(self) -> None:
        """Show the process that its parent does not hang. Never blocks."""

    @abstractmethod
    def dump_stacks(self) -> None:
        """Make the process write the stacks of its threads to the log, unless it is stopped or has ended."""

    @abstractmethod
    def kill(self) -> None:
        """Send SIGKILL; does nothing if the process has ended."""

    @abstractmethod
    def close(self) -> None:
        """Free what is kept for a process that has ended."""


class ChildProcess(StartedProcess):
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
        inherited = [config_read, status_write, *config.descriptors]
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
        return self._popen.pid

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_for_end(self) -> int:
        """Wait for its end; returns the exit status as ``subprocess`` gives it."""
        return self._popen.wait()

    def hang_up(self) -> None:
        """Close the pipe that tells the child that its parent lives; it then ends at once."""
        with self._config_lock:
            if self._config_open:
                self._config_open = False
                os.close(self._config_fd)

    def beat(self) -> None:
        with self._config_lock, contextlib.suppress(BlockingIOError, BrokenPipeError):
            if self._config_open:
                os.write(self._config_fd, b".")

    def dump_stacks(self) -> None:
        self._popen.send_signal(STACKS_SIGNAL)

    def terminate(self) -> None:
        """SIGTERM; does nothing if the child has ended."""
        self._popen.terminate()

    def kill(self) -> None:
        self._popen.kill()

    def close(self) -> None:
        self.hang_up()
        os.close(self.status_fd)


class Launcher(ABC):
    """A way to start the schedulers of an engine."""

    def prepare(self, port_args: PortArgs) -> PortArgs:
        """Find room for all schedulers, which may take minutes; :meth:`stop`, from another thread, ends the search.

        Returns:
            The endpoints as processes on this machine have them.

        Raises:
            StartupError: if there is no room.
        """
        return port_args

    @abstractmethod
    def shares(self) -> contextlib.AbstractContextManager[dict[ProcessKey, MachineShare]]:
        """Share of its machine for each scheduler that is to be started, while the context lasts."""

    @abstractmethod
    def start(self, module: str, config: ChildConfig) -> StartedProcess:
        """Start a scheduler; returns at once, while it loads.

        Args:
            module: that a scheduler runs.
            config: for it.

        Raises:
            StartupError: if the process cannot be started.
        """

    @abstractmethod
    def stop(self) -> None:
        """Give back the room that :meth:`prepare` has found, after all processes have ended. Doing it twice does
        nothing."""


class ProcessLauncher(Launcher):
    """Starts the schedulers of a layout that are for this machine as children of this process."""

    def __init__(self, layout: ParallelLayout) -> None:
        self._layout = layout

    @contextlib.contextmanager
    def shares(self) -> Iterator[dict[ProcessKey, MachineShare]]:
        layout = self._layout
        # Measured once, before any of them takes memory.
        memory = Machine().available_bytes() if len(layout.local_schedulers) > 1 else None
        with shared_memory(layout) as (weights, groups):
            yield {
                key: replace(layout.share_of(key), memory=memory, weights=weights, group=groups.get(key.dp))
                for key in layout.local_schedulers
            }

    def start(self, module: str, config: ChildConfig) -> ChildProcess:
        return ChildProcess(module, config)

    def stop(self) -> None:
        pass


@contextlib.contextmanager
def shared_memory(layout: ParallelLayout) -> Iterator[tuple[int | None, dict[int | None, int | None]]]:
    """Descriptors of memory for schedulers of one machine, while they are being started: for weights that all have,
    and, by replica, for ranks that compute together."""
    weights = _shared_memory("weights") if layout.has_equal_schedulers else None
    groups: dict[int | None, int | None] = {}
    if layout.tp_size > 1:
        groups = {key.dp: _shared_memory("ranks") for key in layout.leaders}
    try:
        yield weights, groups
    finally:
        for descriptor in (weights, *groups.values()):
            if descriptor is not None:
                os.close(descriptor)


def child_config(key: ProcessKey, server_args: ServerArgs) -> ChildConfig:
    """The configuration of a child that is started by the calling thread."""
    return ChildConfig(
        key=key,
        parent_pid=os.getpid(),
        started_by_main_thread=threading.current_thread() is threading.main_thread(),
        server_args=server_args.to_dict(),
    )


def _shared_memory(what: str) -> int | None:
    """Return a descriptor of memory without a name, still of no size; ``None`` if the system has no such memory."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        return os.memfd_create(f"bough-{what}", os.MFD_CLOEXEC)
    return None


def _stderr_fd() -> int:
    """Where children write: a stray ``print`` must not end up in the output of a host that is piped somewhere."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
