"""Engines before they run: the plan, the start of their processes, and the watch over these."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bough.config.local_files import with_local_files
from bough.config.model_config import ModelConfig
from bough.config.port_args import PortArgs
from bough.config.server_args import ServerArgs, resolve
from bough.entrypoints.process_supervisor import ProcessSupervisor
from bough.tokenization.text_trial import TextTrial

if TYPE_CHECKING:
    from bough.managers.health import HealthMonitor, ProcessKey
    from bough.tokenization.chat_template import ChatTemplate
    from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

SCHEDULER_MODULE = "bough.scheduler.process"
DETOKENIZER_MODULE = "bough.managers.detokenizer_manager"

SIGNAL_STATUS = 128
"""Added to a signal's number, as shells have it."""

HEALTH_CHECK_SECONDS = 1.0


@dataclass(frozen=True)
class LaunchPlan:
    """Everything that is known before any process starts."""

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
            plan = cls(resolved, local_args, ModelConfig.from_args(local_args), scheduler_module)
            if trial is not None:
                trial.finish()
        return plan

    def load_text(self) -> tuple[Tokenizer | None, ChatTemplate | None]:
        """Load the tokenizer and the chat template, unless prompts and outputs are ids."""
        if self.server_args.skip_tokenizer_init:
            return None, None
        from bough.tokenization.chat_template import load_chat_template
        from bough.tokenization.loading import load_tokenizer

        tokenizer = load_tokenizer(self.local_args.tokenizer_path or self.local_args.model_path)
        return tokenizer, load_chat_template(tokenizer, self.server_args.chat_template)


def launch_subprocesses(plan: LaunchPlan, port_args: PortArgs, *, watch_parent: bool = False) -> ProcessSupervisor:
    """Start scheduler and detokenizer; returns at once, while they load.

    Without a tokenizer, or without text as a result, there is nothing to detokenize, and so no detokenizer. With
    ``watch_parent``, a child kills this process should it hang; then ``beat`` has to be called.

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
