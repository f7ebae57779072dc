"""The engine behind vLLM's classes: Bough's, with its calls under their names."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bough import Engine
from bough.errors import BadRequest, EngineDead
from bough.ipc.messages import PauseMode
from vllm.engine.arg_utils import EngineArgs
from vllm.inputs import PromptType, prompt_fields
from vllm.outputs import OutputBuilder, RequestOutput
from vllm.sampling_params import RequestOutputKind, SamplingParams
from vllm.utils import random_uuid

VllmPauseMode = Literal["abort", "wait", "keep"]

_PAUSES: dict[VllmPauseMode, PauseMode] = {"abort": "abort", "keep": "in_place", "wait": "in_place"}
"""Modes of a pause by Bough's names."""

HEALTH_SECONDS = 30.0
"""Seconds that workers may take to show that they are well, steps and other calls before that included."""

_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class RequestState:
    """A request that is not finished: its parameters, and the id that Bough has for it."""

    params: SamplingParams
    rid: str


class OutputProcessor:
    """The requests that an engine has not finished.

    Attributes:
        request_states: these, by the ids that the program has given them.
    """

    def __init__(self) -> None:
        self.request_states: dict[str, RequestState] = {}

    def get_num_unfinished_requests(self) -> int:
        """Return how many there are."""
        return len(self.request_states)

    def has_unfinished_requests(self) -> bool:
        """Return whether there are any."""
        return bool(self.request_states)

    @contextlib.contextmanager
    def holding(self, request_id: str, params: SamplingParams) -> Iterator[str]:
        """Count a request while it is worked on; yields its id for Bough, which is no beginning of another one.

        Raises:
            BadRequest: if there is one of this id.
        """
        if request_id in self.request_states:
            raise BadRequest(f"request_id: there is a request {request_id!r} already", param="request_id")
        self.request_states[request_id] = state = RequestState(params, random_uuid())
        try:
            yield state.rid
        finally:
            del self.request_states[request_id]


class Core:
    """An engine of Bough's, started with vLLM's arguments.

    Raises:
        ConfigError, StartupError: as :class:`bough.Engine`.
    """

    def __init__(self, args: EngineArgs) -> None:
        self.args = args
        self.engine = Engine(args.server_args())
        self.output_processor = OutputProcessor()
        manager = self.engine.tokenizer_manager
        self.model_config = manager.model_config
        self.tokenizer = manager.tokenizer
        self.max_model_len: int = manager.scheduler_info["max_req_len"]
        self._eos_token_ids = frozenset(self.model_config.eos_token_ids)
        self.is_paused = False
        self._is_draining = False

    async def generate(
        self, prompt: PromptType, params: SamplingParams, request_id: str, priority: int = 0
    ) -> AsyncGenerator[RequestOutput, None]:
        """Generate; yields outputs as ``params.output_kind`` has it. Leaving the iterator early ends the request.

        Raises:
            BadRequest, Overloaded, RequestFailed, EngineDead: as ``Engine.async_generate``.
        """
        self._check_mode(params)
        fields, text = prompt_fields(prompt)
        builder = OutputBuilder(request_id, text, fields.get("input_ids"), params, self._eos_token_ids)
        fields.update(params.request_fields(), stream=True)
        if "input_ids" not in fields:
            fields["return_prompt_token_ids"] = True
        if priority:
            # Smaller is sooner in vLLM.
            fields["priority"] = -priority
        is_final_only = params.output_kind is RequestOutputKind.FINAL_ONLY
        while self._is_draining:
            await asyncio.sleep(_POLL_SECONDS)
        with self.output_processor.holding(request_id, params) as rid:
            events = await self.engine.async_generate(rid=rid, **fields)
            async with contextlib.aclosing(events):
                async for event in events:
                    output = builder.add(event)
                    if output.finished or not is_final_only:
                        yield output

    def _check_mode(self, params: SamplingParams) -> None:
        """Refuse logprobs that Bough's are not, where the arguments say which are wanted."""
        if params.logprobs is None or self.args.logprobs_mode is None:
            return
        is_cut = params.top_p != 1.0 or params.top_k not in (0, -1) or params.min_p != 0.0
        is_scaled = params.temperature not in (0.0, 1.0)
        mode = self.args.logprobs_mode
        if is_scaled if mode == "raw_logprobs" else is_cut:
            raise BadRequest(
                f"logprobs are those after temperature and before truncation, and {mode} asks for others here",
                param="logprobs",
            )

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests; unknown ones are ignored."""
        for request_id in request_ids:
            state = self.output_processor.request_states.get(request_id)
            if state is not None:
                self.engine.abort_request(state.rid)

    async def pause(self, mode: VllmPauseMode) -> None:
        """Compute nothing until :meth:`resume`: running requests end, or stay, or are waited for first.

        Raises:
            BadRequest: if there is no such mode.
        """
        if mode not in _PAUSES:
            raise BadRequest(f"mode must be one of {', '.join(_PAUSES)}, got {mode!r}", param="mode")
        try:
            self._is_draining = mode == "wait"
            while self._is_draining and self.output_processor.has_unfinished_requests():
                await asyncio.sleep(_POLL_SECONDS)
            await asyncio.to_thread(self.engine.pause_generation, _PAUSES[mode])
            self.is_paused = True
        finally:
            self._is_draining = False

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self.engine.continue_generation()
        self.is_paused = False

    def check_health(self) -> None:
        """Raise :class:`~bough.errors.BoughError` unless all workers answer within :data:`HEALTH_SECONDS`."""
        self.engine.collective_rpc("check_health", HEALTH_SECONDS)

    @property
    def dead_error(self) -> EngineDead | None:
        """Cause of the engine's end; ``None`` while it lives."""
        try:
            self.engine.tokenizer_manager.health.check_serving()
        except EngineDead as error:
            return error
        except Exception:
            return None  # it is busy, or about to end
        return None
