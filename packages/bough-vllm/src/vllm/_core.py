"""The engine behind vLLM's classes: Bough's, with its calls under their names."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from bough import Engine
from bough.entrypoints.chat.sampling import sampling_defaults
from bough.errors import BadRequest, ConfigError, EngineDead, Overloaded
from bough.ipc.messages import PauseMode
from vllm.engine.arg_utils import DEFAULT_PARAMS, EngineArgs
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

_PROFILE_DIRECTORY = "VLLM_TORCH_PROFILER_DIR"
"""Variable that names the directory of profiles, as in vLLM."""


@dataclass(eq=False)
class RequestState:
    """A request that is not finished.

    Attributes:
        rid: its id for Bough, which is no beginning of another one.
        has_begun: whether the engine has it.
        is_aborted: whether it is to end, be it before it has begun.
    """

    request_id: str
    params: SamplingParams
    rid: str
    has_begun: bool = False
    is_aborted: bool = False


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

    def has_begun_requests(self) -> bool:
        """Return whether the engine works on any."""
        return any(state.has_begun for state in list(self.request_states.values()))

    def add(self, request_id: str, params: SamplingParams) -> RequestState:
        """Count a request until :meth:`remove`, from when on its id may be used again.

        Raises:
            BadRequest: if there is one of this id.
        """
        if request_id in self.request_states:
            raise BadRequest(f"request_id: there is a request {request_id!r} already", param="request_id")
        self.request_states[request_id] = state = RequestState(request_id, params, random_uuid())
        return state

    def remove(self, state: RequestState) -> None:
        """Count a request no longer; does nothing if it is not counted."""
        if self.request_states.get(state.request_id) is state:
            del self.request_states[state.request_id]


class Core:
    """An engine of Bough's, started with vLLM's arguments.

    Raises:
        ConfigError, StartupError: as :class:`bough.Engine`; also if the model does not do what ``runner`` asks for.
    """

    def __init__(self, args: EngineArgs) -> None:
        self.args = args
        self.engine = Engine(args.server_args())
        self.output_processor = OutputProcessor()
        manager = self.engine.tokenizer_manager
        self.model_config = manager.model_config
        if args.runner == "generate" and self.model_config.pooling is not None:
            self.engine.shutdown()
            raise ConfigError("runner must be 'auto' or 'pooling': this model does not generate text", param="runner")
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
        state = self.output_processor.add(request_id, params)
        async with contextlib.aclosing(self.run(state, prompt, priority)) as outputs:
            async for output in outputs:
                yield output

    async def run(
        self, state: RequestState, prompt: PromptType, priority: int = 0
    ) -> AsyncGenerator[RequestOutput, None]:
        """Generate as :meth:`generate` does, for a request that is counted already; with its last output it is not."""
        try:
            async with contextlib.aclosing(self._outputs(state, prompt, priority)) as outputs:
                async for output in outputs:
                    if output.finished:
                        self.output_processor.remove(state)
                    if output.finished or state.params.output_kind is not RequestOutputKind.FINAL_ONLY:
                        yield output
        finally:
            self.output_processor.remove(state)

    async def _outputs(
        self, state: RequestState, prompt: PromptType, priority: int
    ) -> AsyncGenerator[RequestOutput, None]:
        """Yield the output after each event."""
        params = state.params
        self._check_mode(params)
        fields, text = prompt_fields(prompt)
        builder = OutputBuilder(state.request_id, text, fields.get("input_ids"), params, self._eos_token_ids)
        fields.update(params.request_fields(), stream=True)
        if "input_ids" not in fields:
            fields["return_prompt_token_ids"] = True
        if priority:
            # Smaller is sooner in vLLM.
            fields["priority"] = -priority
        while self._is_draining and not state.is_aborted:
            await asyncio.sleep(_POLL_SECONDS)
        if state.is_aborted:
            yield builder.aborted()
            return
        state.has_begun = True
        events = await self.engine.async_generate(rid=state.rid, **fields)
        async with contextlib.aclosing(events):
            async for event in events:
                output = builder.add(event)
                if state.is_aborted and not output.finished:
                    # The engine may not have known the request when it was told to end it.
                    await asyncio.to_thread(self.engine.abort_request, state.rid)
                yield output

    def default_params(self) -> SamplingParams:
        """Return the parameters of requests without any: the checkpoint's and the engine's arguments', else vLLM's."""
        found = sampling_defaults(self.engine.tokenizer_manager.server_args, self.model_config)
        return SamplingParams(**{name: found[entry] for entry, name in DEFAULT_PARAMS.items() if entry in found})

    def _check_mode(self, params: SamplingParams) -> None:
        """Refuse logprobs that Bough's are not, where the arguments say which are wanted."""
        if params.logprobs is None or self.args.logprobs_mode is None:
            return
        mode = self.args.logprobs_mode
        if params.edits_logits if mode == "raw_logprobs" else params.truncates:
            raise BadRequest(
                f"logprobs are those after penalties, masks and temperature and before truncation, and {mode} asks for "
                "others here",
                param="logprobs",
            )

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests; unknown ones are ignored."""
        for request_id in request_ids:
            state = self.output_processor.request_states.get(request_id)
            if state is not None:
                state.is_aborted = True
                if state.has_begun:
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
            while self._is_draining and self.output_processor.has_begun_requests():
                await asyncio.sleep(_POLL_SECONDS)
            await asyncio.to_thread(self.engine.pause_generation, _PAUSES[mode])
            self.is_paused = True
        finally:
            self._is_draining = False

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        self.engine.continue_generation()
        self.is_paused = False

    def reset_prefix_cache(self) -> bool:
        """Forget cached prefixes; false if requests hold some, and nothing is forgotten then."""
        return self.engine.flush_cache().success

    def start_profile(self) -> None:
        """Record into the directory that ``VLLM_TORCH_PROFILER_DIR`` names, or a new one.

        Raises:
            BadRequest: if a profile is being recorded.
        """
        self.engine.start_profile(output_dir=os.environ.get(_PROFILE_DIRECTORY) or None)

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
        except Overloaded:
            return None  # it is busy, or about to end
        return None
