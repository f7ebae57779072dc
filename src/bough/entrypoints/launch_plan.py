"""Plan of an engine: everything that is known before a process starts."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bough.config.local_files import with_local_files
from bough.config.model_config import ModelConfig
from bough.config.ranks import ONE_SCHEDULER, ParallelLayout
from bough.config.server_args import ServerArgs, resolve
from bough.entrypoints.launcher import Launcher, ProcessLauncher
from bough.tokenization.text_trial import TextTrial

if TYPE_CHECKING:
    from bough.tokenization.chat_template import ChatTemplate
    from bough.tokenization.tokenizer import Tokenizer

SCHEDULER_MODULE = "bough.scheduler.process"

SIGNAL_STATUS = 128
"""Added to a signal's number, as shells have it."""


@dataclass(frozen=True)
class LaunchPlan:
    """Everything that is known before any process starts."""

    server_args: ServerArgs
    """Resolved, with the names that the user gave."""
    local_args: ServerArgs
    """The same with local paths; what the children get."""
    model_config: ModelConfig
    scheduler_module: str = SCHEDULER_MODULE
    """Main module of a scheduler process."""
    layout: ParallelLayout = ONE_SCHEDULER
    """Schedulers, and their places."""

    @classmethod
    def make(cls, server_args: ServerArgs, *, scheduler_module: str = SCHEDULER_MODULE) -> LaunchPlan:
        """Find the checkpoint and read what kind of model it is.

        Raises:
            ConfigError: if it cannot be served with these options.
        """
        resolved = resolve(server_args)
        local_args = with_local_files(resolved)
        # A packed state decides some options.
        decided = {name: getattr(local_args, name) for name in ("load_format", "quantization", "dtype")}
        resolved = dataclasses.replace(resolved, **decided)
        trial = None
        if not resolved.skip_tokenizer_init:
            trial = TextTrial(local_args.tokenizer_path or local_args.model_path, resolved.chat_template)
        with trial or contextlib.nullcontext():
            model_config = ModelConfig.from_args(local_args)
            layout = ParallelLayout.of(resolved)
            if not model_config.is_encoder:  # which its worker refuses to share
                model_config.shard_layers(layout.shard_spec("reduce"))
            plan = cls(resolved, local_args, model_config, scheduler_module, layout)
            if trial is not None:
                trial.finish()
        return plan

    def launcher(self) -> Launcher:
        """Make what starts the schedulers.

        Raises:
            ConfigError: if it is Ray, which is not installed.
        """
        if self.server_args.distributed_executor_backend != "ray":
            return ProcessLauncher(self.layout)
        from bough.entrypoints.ray_launcher import RayLauncher

        return RayLauncher(self.layout, self.server_args)

    def load_text(self) -> tuple[Tokenizer | None, ChatTemplate | None]:
        """Load the tokenizer and the chat template, unless prompts and outputs are ids."""
        if self.server_args.skip_tokenizer_init:
            return None, None
        from bough.tokenization.chat_template import load_chat_template
        from bough.tokenization.loading import load_tokenizer

        tokenizer = load_tokenizer(self.local_args.tokenizer_path or self.local_args.model_path)
        return tokenizer, load_chat_template(tokenizer, self.server_args.chat_template)
