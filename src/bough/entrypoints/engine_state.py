"""The methods of an engine about its state: weights in files, memory that is given back, profiles."""

from __future__ import annotations

from collections.abc import Sequence

from bough.config.packed_manifest import SavedForm
from bough.entrypoints import engine_arguments
from bough.entrypoints.engine_arguments import takes
from bough.entrypoints.engine_parts import EngineParts
from bough.managers.profiles import ProfileReqInput, Profiles


class StateMethods:
    """What :class:`~bough.entrypoints.engine.Engine` offers to those who keep its weights, or need its memory."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._profiles = Profiles(parts.manager.control, parts.manager.server_args.profile_dir)

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

    @takes(engine_arguments.start_profile)
    def start_profile(self, request: ProfileReqInput) -> None:
        """Record what scheduler and model do, for Perfetto; the arguments are the fields of ``POST /start_profile``.

        ``output_dir`` may be any directory here, ``profile_dir`` by default. Further keywords of SGLang's are refused
        where they ask for something.

        Raises:
            BadRequest: if a value is wrong, or a profile is being recorded already.
        """
        self._parts.loop.call(self._profiles.start(request, within_directory=False))

    def stop_profile(self) -> list[str]:
        """End the recording; return the paths of its files.

        Raises:
            BadRequest: if none is being recorded.
            RequestFailed: if the files cannot be written.
        """
        return self._parts.loop.call(self._profiles.stop())

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
