"""Starts servers: the processes, the HTTP front end in this one, and the end of them all."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from bough.child_main import dump_stacks_on_signal
from bough.config.local_files import load_model_config, with_local_files
from bough.config.model_config import ModelConfig
from bough.config.port_args import PortArgs
from bough.config.server_args import ServerArgs, resolve
from bough.entrypoints.doorway import Doorway
from bough.entrypoints.process_supervisor import ProcessSupervisor
from bough.observability.logging import configure_logging
from bough.observability.startup_timer import StartupTimer
from bough.open_files import allow_many_connections
from bough.tokenization.text_trial import TextTrial

if TYPE_CHECKING:
    from bough.managers.health import HealthMonitor, ProcessKey

logger = logging.getLogger(__name__)

SCHEDULER_MODULE = "bough.scheduler.process"
DETOKENIZER_MODULE = "bough.managers.detokenizer_process"

SIGNAL_STATUS = 128
"""Added to a signal's number, as shells have it."""

HEALTH_CHECK_SECONDS = 1.0


@dataclass(frozen=True)
class LaunchPlan:
    """What is known before any process starts."""

    server_args: ServerArgs
    """Resolved, with the names that the user gave."""
    local_args: ServerArgs
    """The same with local paths; what the children get."""
    model_config: ModelConfig
    scheduler_module: str = SCHEDULER_MODULE
    """What the scheduler process runs."""

    @classmethod
    def make(cls, server_args: ServerArgs, *, scheduler_module: str = SCHEDULER_MODULE) -> LaunchPlan:
        """Find the checkpoint and read what kind of model it is.

        Raises:
            ConfigError: if it cannot be served with these options.
        """
        resolved = resolve(server_args)
        local_args = with_local_files(resolved)
        trial = None
        if not resolved.skip_tokenizer_init:
            trial = TextTrial(local_args.tokenizer_path or local_args.model_path, resolved.chat_template)
        with trial or contextlib.nullcontext():
            plan = cls(resolved, local_args, load_model_config(local_args), scheduler_module)
            if trial is not None:
                trial.finish()
        return plan


def _launch_subprocesses(plan: LaunchPlan, port_args: PortArgs, *, watch_parent: bool = False) -> ProcessSupervisor:
    """Start scheduler and detokenizer; returns at once, while they load.

    Without a tokenizer, or without text as a result, there is nothing to detokenize, and so no detokenizer.

    Args:
        plan: what to serve.
        port_args: endpoints of the channels.
        watch_parent: whether a child kills this process should it hang; then somebody has to call ``beat``.

    Raises:
        StartupError: if a process cannot be started; none is left then.
    """
    supervisor = ProcessSupervisor()
    try:
        alone = plan.server_args.skip_tokenizer_init or not plan.model_config.is_generation
        # One of them is enough, and the one that tidies up survives this process.
        last = {"tidies_up": True, "watches_parent": watch_parent}
        supervisor.start(plan.scheduler_module, "scheduler", plan.local_args, port_args, **(last if alone else {}))
        if not alone:
            supervisor.start(DETOKENIZER_MODULE, "detokenizer", plan.local_args, port_args, **last)
    except BaseException:
        supervisor.stop()
        raise
    return supervisor


async def watch_health(
    health: HealthMonitor,
    supervisor: ProcessSupervisor,
    server_args: ServerArgs,
    on_death: Callable[[str], None],
) -> None:
    """Look at the health of a running engine until it is broken, then say how.

    Parts that hang are made to write what they hang in; with ``soft_watchdog_timeout`` also earlier, without an end.
    """
    hung, suspicious = server_args.watchdog_timeout, server_args.soft_watchdog_timeout
    reported: set[ProcessKey] = set()
    while (broken := health.why_not_alive()) is None:
        silent = health.silent_for(suspicious) if suspicious is not None else {}
        for (name, rank), seconds in silent.items():
            if (name, rank) not in reported:
                logger.warning("No sign of life from %s %d for %.0f s (--soft-watchdog-timeout)", name, rank, seconds)
                supervisor.dump_stacks({name})
        reported = set(silent)
        await asyncio.sleep(HEALTH_CHECK_SECONDS)
    supervisor.dump_stacks({name for name, _ in health.silent_for(hung)})
    on_death(broken)


def launch_server(
    server_args: ServerArgs,
    *,
    listener: socket.socket | None = None,
    on_ready: Callable[[], None] | None = None,
    scheduler_module: str = SCHEDULER_MODULE,
) -> int:
    """Serve until told to end by a signal, or until a part of the server dies. Needs the main thread.

    Args:
        server_args: options of the server.
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
