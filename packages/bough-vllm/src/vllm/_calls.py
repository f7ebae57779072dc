"""The calls that vLLM's synchronous classes have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm._core import Core
from vllm.engine.arg_utils import EngineArgs


class EngineCalls:
    """An engine, with the calls that address all of it.

    What goes wrong is raised as :mod:`bough.errors`.
    """

    def __init__(self, args: EngineArgs) -> None:
        self._core = Core(args)

    def collective_rpc(
        self,
        method: str,
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Call a method of the worker of every rank; returns the result of each, in order."""
        return self._core.engine.collective_rpc(method, timeout, args, kwargs)

    def reset_prefix_cache(self) -> bool:
        """Forget cached prefixes; false if requests hold some, and nothing is forgotten then."""
        return self._core.reset_prefix_cache()

    def sleep(self, level: int = 1) -> None:
        """Give all memory back; see ``Engine.sleep``."""
        self._core.engine.sleep(level)

    def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again: ``weights``, ``kv_cache``, or all."""
        self._core.engine.wake_up(tags)

    def start_profile(self) -> None:
        """Record what scheduler and model do; see :meth:`Core.start_profile`."""
        self._core.start_profile()

    def stop_profile(self) -> list[str]:
        """End the recording; return the paths of its files."""
        return self._core.engine.stop_profile()

    def shutdown(self) -> None:
        """End the engine, and wait for that; the end of the program does so, too."""
        self._core.engine.shutdown()
