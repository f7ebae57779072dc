"""The methods of an engine about its state: weights in files, memory that is given back."""

from __future__ import annotations

from collections.abc import Sequence

from bough.config.packed_manifest import SavedForm
from bough.entrypoints.engine_parts import EngineParts


class StateMethods:
    """What :class:`~bough.entrypoints.engine.Engine` offers to those who keep its weights, or need its memory."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    def release_memory_occupation(self, tags: Sequence[str] | None = None) -> None:
        """Give memory back to the machine, by default all; see :meth:`EngineMemory.release`.

        Args:
            tags: of ``weights``, ``kv_cache`` and ``cuda_graph``.

        Raises:
            BadRequest: if requests are running and generation is not paused, or there is no such tag.
            RequestFailed: if it cannot be done. All is as before then.
        """
        self._parts.loop.call(self._parts.manager.memory.release(tags))

    def resume_memory_occupation(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again, by default all that is given back.

        Raises:
            RequestFailed: if there is none, or the weights cannot be read. It stays given back then.
        """
        self._parts.loop.call(self._parts.manager.memory.resume(tags))

    def sleep(self, level: int = 1) -> None:
        """Give all memory back, by vLLM's name; raises as :meth:`release_memory_occupation`.

        Args:
            level: 1: weights of a checkpoint are read again, and those of a trainer stay, or go to
                ``sleep_directory``; 2: all weights are discarded.
        """
        self._parts.loop.call(self._parts.manager.memory.sleep(level))

    def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again, by vLLM's name and tags; see :meth:`EngineMemory.wake_up`."""
        self._parts.loop.call(self._parts.manager.memory.wake_up(tags))

    def is_sleeping(self) -> bool:
        """Return whether any memory is given back."""
        return self._parts.manager.memory.is_sleeping

    def save_packed_state(self, path: str) -> None:
        """Write the weights as they lie in memory, packed and quantised, into the directory ``path``.

        A server that is started on it neither packs nor quantises. It takes the same version of Bough's panels and the
        same number of ranks.

        Raises:
            BadRequest: if something is at the path, or native CPU kernels do not run the model.
            RequestFailed: if it cannot be written. Nothing is left then.
        """
        self._save("packed", path)

    def save_sharded_state(self, path: str, pattern: str | None = None, max_size: int | None = None) -> None:
        """Write the weights of each rank under their names in checkpoints; ``--load-format sharded_state`` reads them.

        Args:
            path: of a directory that does not exist or is empty.
            pattern: of file names, with ``{rank}`` and ``{part}``; by default that of vLLM and SGLang.
            max_size: most bytes of weights in a file, unless a single weight has more; by default 5 GiB.

        Raises:
            BadRequest: also if the weights are quantised.
            RequestFailed: as :meth:`save_packed_state`.
        """
        self._save("sharded_state", path, pattern, max_size)

    def save_tensorized_model(self, path: str) -> None:
        """Write the weights of each rank in the format of CoreWeave's tensorizer, an optional package;
        ``--load-format tensorizer`` reads them. Raises as :meth:`save_sharded_state`."""
        self._save("tensorizer", path)

    def _save(self, form: SavedForm, path: str, pattern: str | None = None, max_size: int | None = None) -> None:
        saving = self._parts.manager.saved_weights.save(form, str(path), pattern=pattern, max_size=max_size)
        self._parts.loop.call(saving)
