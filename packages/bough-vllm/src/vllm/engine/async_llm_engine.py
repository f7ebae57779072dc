"""The engine for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from vllm._core import Core, OutputProcessor, VllmPauseMode
from vllm.engine.arg_utils import EngineArgs
from vllm.inputs import PromptType
from vllm.outputs import RequestOutput
from vllm.sampling_params import SamplingParams


class AsyncLLMEngine:
    """Generates for coroutines of any event loop. Made by :meth:`from_engine_args`.

    What goes wrong is raised as :mod:`bough.errors`.
    """

    def __init__(self, engine_args: EngineArgs) -> None:
        self._core = Core(engine_args)

    @classmethod
    def from_engine_args(
        cls, engine_args: EngineArgs, start_engine_loop: bool = True, usage_context: Any = None
    ) -> AsyncLLMEngine:
        """Start an engine; returns when it is ready, and may be called inside a running event loop.

        ``start_engine_loop`` and ``usage_context`` have no effect: the engine's loop is its own.
        """
        return cls(engine_args)

    @property
    def output_processor(self) -> OutputProcessor:
        """The requests that are not finished."""
        return self._core.output_processor

    @property
    def model_config(self) -> Any:
        """Bough's configuration of the model."""
        return self._core.model_config

    @property
    def is_running(self) -> bool:
        """True until the engine has ended."""
        return self._core.dead_error is None

    @property
    def errored(self) -> bool:
        """True once the engine has ended."""
        return not self.is_running

    @property
    def dead_error(self) -> BaseException | None:
        """Cause of the end."""
        return self._core.dead_error

    def generate(
        self,
        prompt: PromptType,
        sampling_params: SamplingParams,
        request_id: str,
        *,
        priority: int = 0,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Return an asynchronous generator of the output so far, or of what ``output_kind`` asks for.

        The last output is ``finished``. Closing the generator ends the request.
        """
        return self._core.generate(prompt, sampling_params, request_id, priority)

    async def abort(self, request_id: str | Iterable[str]) -> None:
        """End one request or several; their last output has the reason ``abort``."""
        ids = [request_id] if isinstance(request_id, str) else list(request_id)
        await asyncio.to_thread(self._core.abort, ids)

    async def collective_rpc(
        self,
        method: str,
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Call a method of the worker of every rank; returns the result of each, in order."""
        return await self._core.engine.async_collective_rpc(method, timeout, args, kwargs)

    async def sleep(self, level: int = 1) -> None:
        """Give all memory back; see ``Engine.sleep``."""
        await asyncio.to_thread(self._core.engine.sleep, level)

    async def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again: ``weights``, ``kv_cache``, or all."""
        await asyncio.to_thread(self._core.engine.wake_up, tags)

    async def is_sleeping(self) -> bool:
        """Return whether any memory is given back."""
        return self._core.engine.is_sleeping()

    async def pause_generation(self, *, mode: VllmPauseMode = "abort", clear_cache: bool = True) -> None:
        """Compute nothing until :meth:`resume_generation`; requests that come meanwhile wait.

        Args:
            mode: ``abort`` ends running requests, ``keep`` has them go on later, ``wait`` waits for them first.
            clear_cache: forget cached prefixes, where no request holds them.
        """
        await self._core.pause(mode)
        if clear_cache:
            await self.reset_prefix_cache()

    async def resume_generation(self) -> None:
        """Go on after :meth:`pause_generation`."""
        await asyncio.to_thread(self._core.resume)

    async def is_paused(self) -> bool:
        """Return whether generation is paused."""
        return self._core.is_paused

    async def reset_prefix_cache(self) -> bool:
        """Forget cached prefixes; false if requests hold some, and nothing is forgotten then."""
        return await asyncio.to_thread(self._core.reset_prefix_cache)

    async def check_health(self) -> None:
        """Raise :class:`~bough.errors.EngineDead` if a part of the engine has died."""
        await asyncio.to_thread(self._core.check_health)

    async def start_profile(self) -> None:
        """Record what scheduler and model do; see :meth:`Core.start_profile`."""
        await asyncio.to_thread(self._core.start_profile)

    async def stop_profile(self) -> list[str]:
        """End the recording; return the paths of its files."""
        return await asyncio.to_thread(self._core.engine.stop_profile)

    async def get_tokenizer(self) -> Any:
        """Return Bough's tokenizer."""
        return self._core.tokenizer

    def shutdown(self) -> None:
        """End the engine, and wait for that."""
        self._core.engine.shutdown()
