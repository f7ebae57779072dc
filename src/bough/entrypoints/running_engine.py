"""A running engine: its processes, the channels to them, its front end, and the watch over their health."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bough.config.port_args import PortArgs
from bough.config.ranks import DETOKENIZER, WHOLE_MACHINE, MachineShare, ProcessKey
from bough.entrypoints.launch_plan import LaunchPlan
from bough.entrypoints.launcher import ChildProcess, child_config
from bough.entrypoints.process_supervisor import ProcessSupervisor
from bough.errors import EngineDead
from bough.ipc.channels import TokenizerChannels
from bough.ipc.handshake import ChildConfig
from bough.ipc.messages import ShutdownReq

if TYPE_CHECKING:
    from bough.managers.health import HealthMonitor
    from bough.managers.tokenizer_manager import TokenizerManager
    from bough.tokenization.chat_template import ChatTemplate
    from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

DETOKENIZER_MODULE = "bough.managers.detokenizer_manager"

CONTROLLER_MODULE = "bough.managers.data_parallel_controller"

HEALTH_CHECK_SECONDS = 1.0

CHILDREN_GRACE_SECONDS = 5.0
"""How long children that were asked to end may take."""

_POLL_SECONDS = 0.05


class RunningEngine:
    """Everything that serves a model behind one front end. Starts in stages, and ends from each of them.

    The stages are :meth:`prepare`, :meth:`launch`, :meth:`load_text`, :meth:`wait_until_ready` and, on the event loop
    that the engine lives on, :meth:`start`. :meth:`close` ends the front end on that loop, :meth:`stop` then the rest.
    Without a tokenizer, or without text as a result, there is nothing to detokenize, and so no detokenizer.

    Args:
        plan: of the engine.
        on_death: called on the event loop, with a description, if a process dies or hangs; it calls :meth:`fail`.
        watch_parent: a child kills this process should it hang; then :meth:`beat` has to be called.

    Attributes:
        manager: the front end; ``None`` before :meth:`start`. To be used on the event loop only.
    """

    def __init__(self, plan: LaunchPlan, on_death: Callable[[str], None], *, watch_parent: bool = False) -> None:
        self.plan = plan
        self.manager: TokenizerManager | None = None
        self._health_check: asyncio.Task[None] | None = None
        self._on_death = on_death
        self._text: tuple[Tokenizer | None, ChatTemplate | None] = (None, None)
        self._reports: dict[ProcessKey, dict[str, Any]] = {}
        self._channels: TokenizerChannels | None = None
        self._watch_parent = watch_parent
        self._launcher = plan.launcher()
        self._port_args = PortArgs.create()
        self._supervisor = ProcessSupervisor()

    @property
    def pids(self) -> list[int]:
        """Process ids of the children."""
        return self._supervisor.pids

    def prepare(self) -> None:
        """Find room for the schedulers; :meth:`stop_children`, from another thread, ends the search.

        Raises:
            StartupError: if there is none.
        """
        self._port_args = self._launcher.prepare(self._port_args)

    def launch(self) -> None:
        """Start all processes; returns while they load.

        Raises:
            StartupError: if a process cannot be started.
        """
        plan = self.plan
        helpers = dict.fromkeys(plan.layout.controllers, CONTROLLER_MODULE)
        if plan.model_config.is_generation and not plan.server_args.skip_tokenizer_init:
            helpers[DETOKENIZER] = DETOKENIZER_MODULE
        with self._launcher.shares() as shares:
            last = next(reversed((*shares, *helpers)))
            for key, share in shares.items():
                config = self._configuration(key, share, is_last=key == last)
                self._supervisor.add(self._launcher.start(plan.scheduler_module, config))
        for key, module in helpers.items():
            config = self._configuration(key, WHOLE_MACHINE, is_last=key == last)
            self._supervisor.add(ChildProcess(module, config))

    def load_text(self) -> None:
        """Load the tokenizer and the chat template, and open the channels."""
        self._text = self.plan.load_text()
        self._channels = TokenizerChannels(self._port_args, self.plan.layout)

    def wait_until_ready(self) -> None:
        """Wait for the children; :meth:`stop`, from another thread, ends the waiting.

        Raises:
            ConfigError, StartupError: if a child cannot start, dies or takes too long.
        """
        self._reports = self._supervisor.wait_until_ready(self.plan.server_args.startup_timeout)

    async def start(self) -> TokenizerManager:
        """Begin to take requests, and to watch the health of all processes; returns the front end."""
        from bough.managers.server_info import merged_info
        from bough.managers.tokenizer_manager import TokenizerManager

        assert self._channels is not None
        args, layout = self.plan.server_args, self.plan.layout
        tokenizer, template = self._text
        self.manager = manager = TokenizerManager(
            args,
            self.plan.model_config,
            tokenizer,
            self._channels,
            merged_info([self._reports[key] for key in layout.leaders]),
            chat_template=template,
            layout=layout,
        )
        await manager.start()
        loop = asyncio.get_running_loop()

        def on_death(message: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the engine has ended already
                loop.call_soon_threadsafe(self._on_death, message)

        self._supervisor.watch(on_death)
        self._health_check = asyncio.create_task(self._watch_health(manager.health))
        self._health_check.add_done_callback(self._on_check_over)
        return manager

    def beat(self) -> None:
        """Show the children that this process does not hang; due about once a second."""
        self._supervisor.beat()

    def fail(self, error: EngineDead, *, crashed: bool) -> None:
        """End every call with ``error``, refuse later ones and end the watch. On the event loop, like :meth:`close`."""
        if self._health_check is not None:
            self._health_check.cancel()
        if self.manager is not None:
            self.manager.fail_all(error, crashed=crashed)

    async def close(self, in_a_hurry: Callable[[], bool] = lambda: True) -> None:
        """End the front end and close the channels; calls that still wait fail.

        As long as ``in_a_hurry`` is false, the children may take :data:`CHILDREN_GRACE_SECONDS` to end in order.
        """
        if self._health_check is not None:
            self._health_check.cancel()
        try:
            if self.manager is not None:
                await self.manager.close()
        finally:
            try:
                if self.manager is not None and not in_a_hurry():
                    await self._ask_children_to_end(in_a_hurry)
            finally:
                if self._channels is not None:
                    self._channels.close()

    async def _ask_children_to_end(self, in_a_hurry: Callable[[], bool]) -> None:
        assert self._channels is not None
        await asyncio.to_thread(self._supervisor.unwatch)
        self._channels.send(ShutdownReq())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CHILDREN_GRACE_SECONDS
        while self._supervisor.any_alive and not in_a_hurry() and loop.time() < deadline:
            await asyncio.sleep(_POLL_SECONDS)

    def finish_encoding(self, seconds: float | None = None) -> None:
        """After :meth:`close`: wait for each thread to finish the text that it encodes, at most so long."""
        if self.manager is not None and self.manager.prompt_encoder is not None:
            self.manager.prompt_encoder.join(seconds)

    def stop_children(self) -> None:
        """End the children at once and wait until they are gone; from any thread. Doing it twice does nothing."""
        self._supervisor.stop()
        self._launcher.stop()

    def stop(self) -> None:
        """End what :meth:`close` leaves, children and files. Doing it twice does nothing."""
        self.stop_children()
        if self.manager is None and self._channels is not None:  # otherwise they belong to the event loop
            self._channels.close()
        self._port_args.cleanup()

    def _on_check_over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Failure of the health check", exc_info=error)
            self._on_death("the health check has failed")

    def _configuration(self, key: ProcessKey, share: MachineShare, *, is_last: bool) -> ChildConfig:
        args = self.plan.local_args
        config = child_config(key, args.without_secrets())  # a child serves no HTTP
        config.port_args = self._port_args.to_dict()
        config.layout, config.share = self.plan.layout, share
        if (network := self._port_args.network) is not None:
            endpoints = self._port_args.endpoints_of(key, config.layout) if key.kind != "scheduler" else ()
            config.network = network.of_process(endpoints)
        # One child is enough for both, and the one that tidies up survives this process.
        config.tidies_up = is_last
        if is_last and self._watch_parent:
            hung = args.watchdog_timeout
            config.parent_limits = (args.startup_timeout + hung, hung)
        return config

    async def _watch_health(self, health: HealthMonitor) -> None:
        """Look at the health of all processes until one is broken, then say how.

        Parts that hang write what they hang in; with ``soft_watchdog_timeout`` also earlier, without an end.
        """
        args, supervisor = self.plan.server_args, self._supervisor
        hung, suspicious = args.watchdog_timeout, args.soft_watchdog_timeout
        reported: set[ProcessKey] = set()
        while (broken := health.why_not_alive()) is None:
            silent = health.silent_for(suspicious) if suspicious is not None else {}
            for key, seconds in silent.items():
                if key not in reported:
                    flag = "--soft-watchdog-timeout"
                    logger.warning("No sign of life from %s for %.0f s (%s)", key, seconds, flag)
                    supervisor.dump_stacks({key})
            reported = set(silent)
            await asyncio.sleep(HEALTH_CHECK_SECONDS)
        supervisor.dump_stacks(health.silent_for(hung))
        self._on_death(broken)
