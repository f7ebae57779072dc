"""Try a checkpoint's tokenizer and chat templates in a separate process before other code reads them.

Both are programs of a kind, and a hostile checkpoint may use them to exhaust time or memory. The tokenizer library
cannot be interrupted, and aborts the process if it runs out of memory. The child (``text_trial_child.py``) has a limit
on both.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from bough.child_process import module_command
from bough.child_trial import TrialChild
from bough.config.checkpoint import GGUF_SUFFIX
from bough.errors import CheckpointError

CPU_SECONDS = 20
"""CPU time of the child; a large tokenizer takes two seconds."""

MEMORY_BYTES = 2**30
"""Address space of the child beyond what it starts with, without the share of a large file."""

_BYTES_PER_SECOND = 2 * 2**20
"""Size of tokenizer files per extra second of CPU time."""
_MEMORY_PER_BYTE = 24
"""Extra address space per byte of tokenizer files: JSON text becomes a vocabulary, twice."""

_CONVERSION_SECONDS = 300
_CONVERSION_BYTES = 16 * 2**30
"""Time and address space if transformers converts the tokenizer, with torch."""

_PATIENCE = 6
"""Wall-clock seconds allowed per second of CPU time."""

Step: TypeAlias = Literal["tokenizer", "chat template"]
STEPS: tuple[Step, ...] = ("tokenizer", "chat template")
_COMMAND = module_command("bough.tokenization.text_trial_child")


class TrialSetup(msgspec.Struct, array_like=True):
    """Setup of the child: local path of the tokenizer, ``--chat-template``, seconds of CPU time."""

    path: bytes
    chat_template: bytes | None
    cpu_seconds: int


class TextTrial:
    """Trial of the tokenizer at a path and of its chat templates, which starts immediately.

    Raises:
        TrialUnavailable: if the process cannot be started.
    """

    def __init__(self, path: str, chat_template: str | None) -> None:
        self._path = path
        self._seconds, self._memory = _limits(Path(path))
        template = None if chat_template is None else os.fsencode(chat_template)
        setup = TrialSetup(os.fsencode(path), template, self._seconds)
        command = [*_COMMAND, str(self._memory)]
        self._child = TrialChild(command, setup, "tries tokenizers and chat templates out", wait=False)

    def __enter__(self) -> TextTrial:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()

    def finish(self) -> None:
        """Wait for the result.

        Raises:
            CheckpointError: if the tokenizer or a template is invalid, or takes too much time or memory.
            TrialUnavailable: if the process does not start.
        """
        self._child.wait_until_started()
        for step in STEPS:
            problem = self._ask(step)
            if problem:
                raise CheckpointError(problem, param="tokenizer_path")

    def _ask(self, step: Step) -> str:
        """Return the problem with the tokenizer or the templates; empty if there is none."""
        try:
            return self._child.ask(step, str, self._seconds * _PATIENCE)
        except TimeoutError:
            what = f"{self._seconds * _PATIENCE} s"
        except (EOFError, OSError):
            is_late = self._child.exit_status() == -signal.SIGXCPU
            what = f"{self._seconds} s of CPU time" if is_late else f"{self._memory >> 20} MiB of memory"
        return f"{self._path}: trying the {step} out with short texts takes more than {what}"


def _limits(path: Path) -> tuple[int, int]:
    """Return CPU seconds and bytes of address space for a tokenizer."""
    if path.suffix == GGUF_SUFFIX:  # counts the mapped file and its parts
        mapped = sum(file.stat().st_size for file in path.parent.glob(f"*{GGUF_SUFFIX}"))
        return 2 * CPU_SECONDS, 2 * MEMORY_BYTES + mapped
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        return _CONVERSION_SECONDS, _CONVERSION_BYTES
    size = file.stat().st_size
    return CPU_SECONDS + size // _BYTES_PER_SECOND, MEMORY_BYTES + _MEMORY_PER_BYTE * size
