"""The frame of every child process: take the configuration, report, die with the parent."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import logging
import math
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bough.config.port_args import PortArgs
from bough.config.server_args import ServerArgs
from bough.config.user_paths import shown_path
from bough.errors import BoughError, CheckpointError, ConfigError
from bough.ipc.handshake import ChildConfig, ChildFailed, ChildReady, encode_message, read_message, write_message
from bough.observability.logging import configure_logging

logger = logging.getLogger(__name__)

FAILURE_STATUS = 1
USAGE_STATUS = 2

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a process of a server write the Python stack of each of its threads to its log; it goes on."""

LAST_DUMP_SECONDS = 0.5
"""How long a hung process gets to write its stacks before it is killed."""

_PR_SET_PDEATHSIG = 1
_PARENT_CHECK_MS = 1000


class Child:
    """What the work of a child process gets to see."""

    def __init__(self, config: ChildConfig, status_fd: int) -> None:
        self.config = config
        self.server_args = ServerArgs(**config.server_args)
        self._status_fd = status_fd
        self.is_ready = False

    @property
    def port_args(self) -> PortArgs:
        """Endpoints of the channels; only for children that have channels."""
        assert self.config.port_args is not None
        return PortArgs.from_dict(self.config.port_args, self.config.network)

    def ready(self, info: dict[str, Any] | None = None) -> None:
        """Tell the parent that the work can begin, and what it must know."""
        write_message(self._status_fd, encode_message(ChildReady(info or {})))
        self.is_ready = True

    def failed(self, error: Exception) -> None:
        """Tell the parent why the work cannot begin."""
        if isinstance(error, BoughError):
            message = error.message
        else:
            message = f"internal error: {type(error).__name__}: {error} (--log-level debug shows where)"
        with contextlib.suppress(BrokenPipeError):
            line = shown_path(" ".join(message.splitlines()))  # the message may contain a path
            is_config = isinstance(error, ConfigError) and not isinstance(error, CheckpointError)
            write_message(self._status_fd, encode_message(ChildFailed(line, is_config)))


def run_child(work: Callable[[Child], int], argv: list[str]) -> int:
    """Be a child process: run ``work`` until it returns the exit status.

    SIGINT, SIGHUP, SIGQUIT and SIGTERM are ignored: a terminal sends the first three, a service manager the last, to
    every process of a server at once, and only the parent knows what has to be finished before the end.

    Args:
        work: calls :meth:`Child.ready` as soon as it is. What it raises before that is reported to the parent; what
            it raises later is logged.
        argv: numbers of the inherited descriptors: configuration, status.
    """
    if len(argv) != 2 or not all(arg.isdecimal() for arg in argv):
        print("This program is a part of Bough and is started by it; to start a server: bough serve", file=sys.stderr)
        return USAGE_STATUS
    dump_stacks_on_signal()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the parent has blocked until here
    config_fd, status_fd = map(int, argv)
    os.set_inheritable(config_fd, False)
    os.set_inheritable(status_fd, False)
    message = read_message(config_fd)
    if message is None:
        return FAILURE_STATUS  # the parent died before it could say anything
    child = Child(msgspec.msgpack.decode(message, type=ChildConfig), status_fd)
    for descriptor in child.config.descriptors:
        os.set_inheritable(descriptor, False)
    _die_with_parent(child.config, config_fd)
    args = child.server_args
    configure_logging(args.log_level, label=child.config.key.ranks, log_format=args.log_format)
    try:
        return work(child)
    except Exception as error:
        if child.is_ready:
            logger.exception("The %s process ends because of an error", child.config.key)
            # The parent is to know at once, whatever threads and destructors would hold up an orderly exit.
            logging.shutdown()
            os._exit(FAILURE_STATUS)
        logger.debug("The %s process cannot start", child.config.key, exc_info=True)
        child.failed(error)
        return FAILURE_STATUS


def dump_stacks_on_signal() -> None:
    """Let crashes and :data:`STACKS_SIGNAL` write the stacks of all threads, whatever these are stuck in.

    The handlers are in C: a thread that holds the GIL for ever does not keep them from running.
    """
    with contextlib.suppress(RuntimeError, ValueError):  # there is no standard error to write to
        faulthandler.enable()
        faulthandler.register(STACKS_SIGNAL, all_threads=True)


def _die_with_parent(config: ChildConfig, config_fd: int) -> None:
    if config.started_by_main_thread and not config.tidies_up:
        # Works even where a stuck call into native code keeps Python from running.
        with contextlib.suppress(OSError, AttributeError):  # not Linux: the pipe alone must do
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch_parent, args=(config_fd, config), name="watch-parent", daemon=True).start()


def _watch_parent(config_fd: int, config: ChildConfig) -> None:
    """End this process when the parent has gone, and a parent that hangs.

    Besides the end of file there is a second sign, a new parent process: forks of a host keep the pipe open.
    """
    poller = select.poll()
    poller.register(config_fd, select.POLLIN)
    silence = ParentSilence(config)
    while os.getppid() == config.parent_pid:
        beats = poller.poll(_PARENT_CHECK_MS)
        if beats and not os.read(config_fd, 4096):
            break
        if silence.is_too_long(beat=bool(beats)):
            _end_parent(config.parent_pid, silence.seconds)
    if config.tidies_up and config.port_args is not None:
        # A parent that ends in order removes this itself, after its children have gone.
        shutil.rmtree(PortArgs.from_dict(config.port_args).directory, ignore_errors=True)
    os._exit(FAILURE_STATUS)


class ParentSilence:
    """Seconds for which a parent has not shown that its event loop turns.

    Before its first beat the parent is starting, for which the configuration has a limit of its own.
    """

    def __init__(self, config: ChildConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        limits = config.parent_limits
        self._limit, self._limit_when_started = limits if limits is not None else (math.inf, math.inf)
        self._clock = clock
        self._last_look = clock()

    def is_too_long(self, *, beat: bool) -> bool:
        """Look at the clock, about once a second; ``beat`` says whether there was a sign of life since the last look.

        When this process itself was stopped or starved, the parent was not silent; this one was deaf.
        """
        now = self._clock()
        elapsed, self._last_look = now - self._last_look, now
        self.seconds = 0.0 if beat else self.seconds + min(elapsed, _PARENT_CHECK_MS / 1000)
        if beat:
            self._limit = self._limit_when_started
        return self.seconds > self._limit


def _end_parent(pid: int, silence: float) -> None:
    message = "No sign of life from the main process for %.0f s; it is ended"
    # On a thread of its own, for a log that nobody reads may be what the parent hangs on.
    threading.Thread(target=logger.error, args=(message, silence), daemon=True).start()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, STACKS_SIGNAL)
        time.sleep(LAST_DUMP_SECONDS)
        if os.getppid() == pid:
            os.kill(pid, signal.SIGKILL)
