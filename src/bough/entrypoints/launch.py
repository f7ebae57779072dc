"""Starts servers: what is checked before anything is started, and then their life."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

from bough.child_main import dump_stacks_on_signal
from bough.config.server_args import ServerArgs
from bough.entrypoints.doorway import Doorway
from bough.entrypoints.launch_plan import SCHEDULER_MODULE, SIGNAL_STATUS, LaunchPlan
from bough.observability.logging import configure_logging
from bough.observability.startup_timer import StartupTimer
from bough.open_files import allow_many_connections


def launch_server(
    server_args: ServerArgs,
    *,
    listener: socket.socket | None = None,
    on_ready: Callable[[], None] | None = None,
    scheduler_module: str = SCHEDULER_MODULE,
) -> int:
    """Serve until told to end by a signal, or until a part of the server dies. Needs the main thread.

    Args:
        listener: a listening socket to serve on, instead of ``host`` and ``port``; it is closed in the end.
        on_ready: called once when the server takes requests.
        scheduler_module: main module of the scheduler process.

    Returns:
        The exit status: 0 after an orderly end, 1 if a part of the server has died, 128 plus the signal's number if
        running requests were cut off or the server was still starting.

    Raises:
        StartupError: if the server cannot start; nothing of it is left then.
    """
    timer = StartupTimer.from_process_start()
    dump_stacks_on_signal()
    signal.signal(signal.SIGTERM, _end_at_once)
    configure_logging(server_args.log_level, log_format=server_args.log_format)
    allow_many_connections()
    # Before a model is downloaded or loaded in vain.
    doorway = Doorway.open(server_args, listener)
    with contextlib.closing(doorway):
        timer.end_phase("Python and imports")
        plan = LaunchPlan.make(server_args, scheduler_module=scheduler_module)
        timer.end_phase("configuration")
        import uvloop

        from bough.entrypoints.server_run import ServerRun

        return uvloop.run(ServerRun(plan, doorway, timer, on_ready).run())


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """What SIGTERM does while there is nothing but this process, which may be downloading a model for an hour.

    As the first process of a container it would hear nothing of signals that it has no handler for.
    """
    os._exit(SIGNAL_STATUS + number)
