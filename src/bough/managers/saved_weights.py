"""States of the weights that are being served, written into a directory from which a server can start."""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

from bough.config.checkpoint import SMALL_FILES, STAGE_FILES
from bough.config.packed_manifest import SavedForm
from bough.config.user_paths import user_path
from bough.errors import BadRequest, RequestFailed
from bough.managers.health import HealthMonitor
from bough.managers.scheduler_control import SchedulerControl, data_of, merged

logger = logging.getLogger(__name__)

SAVING_TIMEOUT = 7200.0
"""Seconds after which a state is waited for no longer."""

_CONFIG = "config.json"
_STALE = ("*.safetensors.index.json", "bough-packed-*.json")
"""Patterns of small files of the checkpoint that describe its own weights."""


class SavedWeights:
    """Writes states of the model in ``model_path``, a local directory.

    A state is written beside its place and moved there when it is complete and on the disk, so that a process that is
    killed leaves nothing at that place, but a hidden directory beside it.
    """

    def __init__(self, model_path: str, control: SchedulerControl, health: HealthMonitor) -> None:
        self._source = Path(model_path)
        self._control, self._health = control, health

    async def save(
        self, form: SavedForm, path: str, *, pattern: str | None = None, max_size: int | None = None
    ) -> None:
        """Write a state of all ranks with the checkpoint's configuration and tokenizer; requests wait meanwhile.

        Args:
            path: of a directory that does not exist or is empty.
            pattern: of file names, with ``{rank}`` and ``{part}``; for ``sharded_state``.
            max_size: most bytes of weights in a file, unless a single weight has more; for ``sharded_state``.

        Raises:
            BadRequest: if there is something else at the path, or the weights have no such form.
            RequestFailed: if it cannot be written.
            EngineDead: if the engine is or becomes dead.
        """
        self._health.check_serving()
        begin = time.monotonic()
        target = user_path(path).absolute()
        partial = await asyncio.to_thread(self._make_partial, target)
        try:
            params = {"form": form, "directory": str(partial), "pattern": pattern, "max_size": max_size}
            replies = await self._control.load("save_weights", params, SAVING_TIMEOUT)
            data_of(merged(replies))
            num_bytes = sum(file.stat().st_size for file in partial.iterdir())
            await asyncio.to_thread(self._complete, partial, target)
        finally:
            await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        logger.info("%.2f GB of weights are in %s, after %.1f s", num_bytes / 1e9, target, time.monotonic() - begin)

    def _make_partial(self, target: Path) -> Path:
        if not self._source.is_dir():
            raise BadRequest(
                f"{self._source} is no directory in Hugging Face format with a configuration to be saved with the "
                "weights",
                code="unsupported_by_model",
            )
        check_place(target)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(".partial", f".{target.name[:100]}.", target.parent))
        except OSError as error:
            raise BadRequest(f"path: cannot make {target} ({error.strerror})", param="path") from None

    def _complete(self, partial: Path, target: Path) -> None:
        """Copy what is no weight, without which nothing loads, and move the whole to its place."""
        try:
            names = [name for name in os.listdir(self._source) if _is_small(name)]
            for pattern in STAGE_FILES:
                names += [str(path.relative_to(self._source)) for path in self._source.glob(pattern)]
            # The configuration is the last: it makes a model of the rest.
            for name in sorted(names, key=lambda name: (name == _CONFIG, name)):
                (partial / name).parent.mkdir(exist_ok=True)
                with (self._source / name).open("rb") as source, (partial / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy)
                    copy.flush()
                    os.fsync(copy.fileno())
            partial.chmod(0o777 & ~_umask())
            _sync(partial)
            partial.rename(target)  # takes the place of an empty directory
            _sync(target.parent)
        except OSError as error:
            raise RequestFailed(f"{target} cannot be written: {error.strerror}") from None


def check_place(target: Path) -> None:
    """Raise :class:`BadRequest` unless there is nothing at the path, or an empty directory."""
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise BadRequest(f"path: {target} has files already", param="path")
    except OSError as error:
        raise BadRequest(f"path: cannot look at {target} ({error.strerror})", param="path") from None


def _is_small(name: str) -> bool:
    def matches(patterns: tuple[str, ...]) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    return matches(SMALL_FILES) and not matches(_STALE)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next((int(line.split()[1], 8) for line in text.splitlines() if line.startswith("Umask:")), 0o022)
