"""The engine for programs without an event loop: add requests, then step."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from typing import Any

from bough.errors import BadRequest
from vllm._calls import EngineCalls
from vllm._core import RequestState
from vllm.engine.arg_utils import EngineArgs
from vllm.inputs import PromptType
from vllm.outputs import RequestOutput
from vllm.sampling_params import RequestOutputKind, SamplingParams


class LLMEngine(EngineCalls):
    """Runs requests in the background; :meth:`step` waits for what they have got. For one thread."""

    def __init__(self, engine_args: EngineArgs) -> None:
        super().__init__(engine_args)
        self._outputs: queue.SimpleQueue[tuple[RequestState, RequestOutput | Exception]] = queue.SimpleQueue()
        self._running: dict[str, RequestState] = {}
        self._failure: Exception | None = None
        """Error that the next step raises."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bough-vllm", daemon=True)
        self._thread.start()

    @classmethod
    def from_engine_args(cls, engine_args: EngineArgs, usage_context: Any = None) -> LLMEngine:
        """Start an engine. ``usage_context`` has no effect."""
        return cls(engine_args)

    @property
    def model_config(self) -> Any:
        """Bough's configuration of the model."""
        return self._core.model_config

    @property
    def tokenizer(self) -> Any:
        """Bough's tokenizer; ``None`` if there is none."""
        return self._core.tokenizer

    def add_request(self, request_id: str, prompt: PromptType, params: SamplingParams, *, priority: int = 0) -> None:
        """Begin to work on a request; what is wrong with prompt or parameters is raised by :meth:`step`.

        Raises:
            BadRequest: if there is a request of this id whose last output :meth:`step` has not returned.
        """
        if request_id in self._running:
            raise BadRequest(f"request_id: there is a request {request_id!r} already", param="request_id")
        state = self._core.output_processor.add(request_id, params.clone())
        self._running[request_id] = state
        asyncio.run_coroutine_threadsafe(self._run(state, prompt, priority), self._loop)

    def step(self) -> list[RequestOutput]:
        """Wait until a request has got something new; return the outputs of all that have, each once.

        Returns immediately if there are no requests.

        Raises:
            Exception: the error of a request that has failed, which is over then.
        """
        changed: dict[str, RequestOutput] = {}
        while self._running and self._failure is None:
            try:
                state, output = self._outputs.get(block=not changed)
            except queue.Empty:
                break
            if self._running.get(state.request_id) is not state:
                continue  # an error after the last output
            if isinstance(output, RequestOutput):
                self._join(changed, output)
            else:
                self._failure = output
            if not isinstance(output, RequestOutput) or output.finished:
                del self._running[state.request_id]
        if self._failure is not None and not changed:
            failure, self._failure = self._failure, None
            raise failure
        return list(changed.values())

    def abort_request(self, request_ids: str | Sequence[str]) -> None:
        """End requests; their last output has the reason ``abort``."""
        self._core.abort([request_ids] if isinstance(request_ids, str) else request_ids)

    def has_unfinished_requests(self) -> bool:
        """Return whether :meth:`step` has more to return."""
        return bool(self._running) or self._failure is not None

    def get_num_unfinished_requests(self) -> int:
        """Return the number of requests that are not over."""
        return len(self._running)

    def do_log_stats(self) -> dict[str, Any]:
        """Return the state of the scheduler, in numbers."""
        return self._core.engine.call_scheduler("get_internal_state")

    def is_sleeping(self) -> bool:
        """Return whether any memory is given back."""
        return self._core.engine.is_sleeping()

    def shutdown(self) -> None:
        """End the engine, and wait for that."""
        super().shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _run(self, state: RequestState, prompt: PromptType, priority: int) -> None:
        try:
            async for output in self._core.run(state, prompt, priority):
                self._outputs.put((state, output))
        except Exception as failure:  # step() raises it
            self._outputs.put((state, failure))

    def _join(self, changed: dict[str, RequestOutput], output: RequestOutput) -> None:
        """Keep the later of two outputs of a request; of what is new only, both."""
        earlier = changed.get(output.request_id)
        if earlier is not None and self._running[output.request_id].params.output_kind is RequestOutputKind.DELTA:
            output.outputs = [*earlier.outputs, *output.outputs]
        changed[output.request_id] = output
