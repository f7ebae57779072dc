"""The front of the engine: takes requests in, tokenizes them, and hands results to those who wait for them.

Lives in the main process, on one event loop. Everything between a request's arrival and its last event that a request
may change is its :class:`~bough.managers.req_state.ReqState`.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec

from bough import __version__
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, BoughError, EngineDead, Overloaded, RequestFailed
from bough.ipc.messages import (
    AbortReq,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    ControlReq,
    Heartbeat,
    OutputDelta,
    TokenizedGenerateReqInput,
    ToScheduler,
    ToTokenizer,
)
from bough.managers.health import HealthMonitor, ServerState
from bough.managers.io_struct import GenerateReqInput, GenerateRequest
from bough.managers.native_output import DEFAULT_WEIGHT_VERSION, NativeOutput, failure_of
from bough.managers.prompt_encoder import PromptEncoder
from bough.managers.req_state import ReadySignal, ReqState, aborted_delta
from bough.managers.rw_lock import ReaderWriterLock
from bough.observability.metrics import Metrics
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

CONTROL_TIMEOUT = 60.0
"""Seconds that a control call may take, unless it says otherwise."""

REUSE_TIMEOUT = 10.0
"""Seconds that a request waits for an earlier one with the same id to be gone, whose client has left."""

TICK = 1.0
"""Seconds between two looks at whether the other processes still show signs of life."""


class Channels(Protocol):
    """What connects this process to the scheduler and the detokenizer."""

    async def recv(self) -> ToTokenizer:
        """The next message; waits for it."""
        ...

    def send(self, message: ToScheduler) -> None:
        """Hand a message to the scheduler; never blocks."""
        ...


class Generation:
    """The outputs of one call, while it is being answered."""

    __slots__ = ("_signal", "states", "unfinished")

    def __init__(self, states: list[ReqState], signal: ReadySignal) -> None:
        self.states = states
        self.unfinished = len(states)
        """Outputs whose last delta was not taken yet."""
        self._signal = signal

    async def deltas(self) -> list[tuple[ReqState, OutputDelta]]:
        """What is new, one merged delta per output that has news; waits until there is something.

        A request that does not stream has news once, when it is finished.

        Raises:
            BoughError: if the engine cannot go on.
        """
        news = [(state, state.take()) for state in await self._signal.wait()]
        for _, delta in news:
            if delta.finish_reason is not None:
                self.unfinished -= 1
        return news


class TokenizerManager:
    """Everything that front ends (HTTP, ``Engine``) ask for, they ask here.

    Args:
        server_args: resolved options.
        model_config: facts about the model.
        tokenizer: ``None`` if the server was started without one; then prompts and outputs are ids.
        channels: connection to the other processes.
        scheduler_info: what the scheduler reported when it was ready: ``max_req_input_len`` and ``context_len`` (tokens)
            and whatever else is to be shown by ``/server_info``.
        metrics: where to count; one of its own if not given.

    Attributes:
        rid_to_state: every output that is alive, by id.
        model_update_lock: requests hold the reader side, updates of the weights the writer side.
        health: state of the server, and heartbeats.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        tokenizer: Tokenizer | None,
        channels: Channels,
        scheduler_info: dict[str, Any],
        metrics: Metrics | None = None,
    ) -> None:
        self.server_args = server_args
        self.model_config = model_config
        self.tokenizer = tokenizer
        self.scheduler_info = scheduler_info
        self.served_model_name = server_args.served_model_name or server_args.model_path
        self.vocab_size: int = scheduler_info.get("vocab_size", model_config.vocab_size)
        self.context_len: int = min(
            model_config.context_len, scheduler_info.get("max_req_len", model_config.context_len)
        )
        """Most tokens of one request, prompt and output together."""
        self.max_prompt_tokens: int = min(
            scheduler_info.get("max_req_input_len", self.context_len), self.context_len
        )
        self.metrics = metrics or Metrics(self.served_model_name)
        self.metrics.max_total_num_tokens = scheduler_info.get("max_total_num_tokens", 0)
        self.metrics.context_len = self.context_len
        self.health = HealthMonitor(
            max_silence=server_args.watchdog_timeout, max_queued_requests=server_args.max_queued_requests
        )
        self.model_update_lock = ReaderWriterLock()
        self.rid_to_state: dict[str, ReqState] = {}
        self.prompt_encoder = PromptEncoder(tokenizer, self.max_prompt_tokens) if tokenizer is not None else None
        self._channels = channels
        self._calls: dict[str, asyncio.Future[ControlReply]] = {}
        self._dead: BoughError | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- life -----------------------------------------------------------------------------------------------------

    def auto_create_handle_loop(self) -> None:
        """Begin to receive, on the running event loop. Calling it again does nothing."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self.handle_loop()), asyncio.create_task(self._tick())]

    async def start(self) -> None:
        """Begin to receive, and take requests from now on."""
        self.auto_create_handle_loop()
        self.health.set_ready()

    async def close(self, reason: str = "the engine was shut down") -> None:
        """Fail whatever is still waiting and stop receiving."""
        self.fail_all(EngineDead(reason))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.prompt_encoder is not None:
            self.prompt_encoder.close()

    def fail_all(self, error: BoughError) -> None:
        """The engine is gone: every waiter gets ``error``, and so does everyone who comes later."""
        if self._dead is None:
            self._dead = error
            self.health.set_dead(error.message)
        states = list(self.rid_to_state.values())
        self.rid_to_state.clear()
        for state in states:
            state.event.fail(error)
            _let_go(state)
        for call in self._calls.values():
            if not call.done():
                call.set_exception(EngineDead(error.message))

    async def handle_loop(self) -> None:
        """Receive for ever. A message that cannot be handled is logged and costs nobody else anything."""
        while True:
            try:
                message = await self._channels.recv()
            except EngineDead as error:
                self.fail_all(error)
                return
            except Exception:
                logger.exception("Lost the connection to the engine")
                self.fail_all(EngineDead("the connection to the engine is lost"))
                return
            try:
                self._handle_message(message)
            except Exception:
                logger.exception("Could not handle a %s", type(message).__name__)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.health.tick()

    # --- generating -----------------------------------------------------------------------------------------------

    async def generate_request(self, obj: GenerateReqInput) -> AsyncIterator[Any]:
        """Generate, with results in the native shape.

        Yields:
            While streaming, a dictionary per event and output (with ``index``, unless there is only one output);
            otherwise once: a dictionary, or a list of them for a batch or ``n > 1``.

        Raises:
            BadRequest, Overloaded: if the request cannot be taken.
            RequestFailed: if it failed before anything was yielded; afterwards the last dictionary says so.
            EngineDead: if the engine has died.
        """
        requests = obj.expand(preferred=self.server_args.preferred_sampling_params)
        async with self.generation(requests) as generation:
            if obj.is_batch or len(generation.states) > 1:
                results = self._handle_batch_request(generation)
            else:
                results = self._wait_one_response(generation)
            async for result in results:
                yield result

    @asynccontextmanager
    async def generation(self, requests: Sequence[GenerateRequest]) -> AsyncIterator[Generation]:
        """Send requests to the engine and receive what it makes of them; prompts first, then parallel samples.

        Leaving the block early, for whatever reason, ends what is unfinished.

        Raises:
            BadRequest, Overloaded, EngineDead: before anything was sent.
        """
        self._check_open()
        for request in requests:
            self._check_request(request)
        signal = ReadySignal()
        states = await self._register(requests, signal)
        try:
            await self.model_update_lock.acquire_reader()
            try:
                await self._encode_texts(requests)
                tokenized = [self._tokenize_one_request(request) for request in requests]
                first = 0
                for message in tokenized:
                    self._send_one_request(message, states[first : first + len(message.rids)])
                    first += len(message.rids)
                yield Generation(states, signal)
            finally:
                self.model_update_lock.release_reader()
        finally:
            self._leave(states)

    async def _wait_one_response(self, generation: Generation) -> AsyncIterator[dict[str, Any]]:
        """Results of the only output of a call."""
        output = self._native_output(generation.states[0])
        started = False
        while generation.unfinished:
            for _, delta in await generation.deltas():
                failure = failure_of(delta.finish_reason)
                if failure is not None and not started:
                    raise failure
                started = True
                yield output.add(delta)

    async def _handle_batch_request(self, generation: Generation) -> AsyncIterator[Any]:
        """Results of several outputs, interleaved while streaming, all at once otherwise."""
        outputs = [self._native_output(state) for state in generation.states]
        stream = generation.states[0].obj.stream
        whole: list[Any] = [None] * len(outputs)
        started = False
        while generation.unfinished:
            for state, delta in await generation.deltas():
                failure = failure_of(delta.finish_reason)
                if failure is not None and not started:
                    raise failure
                result = outputs[state.index].add(delta)
                if stream:
                    started = True
                    yield {**result, "index": state.index}
                else:
                    whole[state.index] = result
        if not stream:
            yield whole

    def _native_output(self, state: ReqState) -> NativeOutput:
        tokenizer = self.tokenizer
        return NativeOutput(
            state,
            token_text=self.token_text if tokenizer is not None else None,
            incremental=self.server_args.incremental_streaming_output and state.obj.stream,
            has_text=tokenizer is not None,
        )

    def token_text(self, token_id: int) -> str:
        """The text of one token on its own; bytes that are no complete character become U+FFFD."""
        assert self.tokenizer is not None, "checked before"
        return self.tokenizer.id_to_piece_bytes(token_id).decode(errors="replace")

    def _check_open(self) -> None:
        if self._dead is not None:
            raise EngineDead(self._dead.message)
        if self.health.state is ServerState.STARTING:
            raise Overloaded("the server is starting")
        if self.health.state is ServerState.DRAINING:
            raise Overloaded("the server is shutting down", code="shutting_down")

    def _check_request(self, request: GenerateRequest) -> None:
        """What can be said about a request before its prompt is encoded."""
        params = request.sampling_params
        params.validate(self.vocab_size)
        if self.tokenizer is None:
            if request.text is not None:
                raise BadRequest(
                    f"{request.prompt_param}: this server has no tokenizer; send token ids", param=request.prompt_param
                )
            if params.has_text_stops:
                raise BadRequest("stop strings and patterns need a tokenizer, and this server has none", param="stop")
            if request.return_text_in_logprobs:
                raise BadRequest("return_text_in_logprobs needs a tokenizer", param="return_text_in_logprobs")
        self.check_token_ids(request.token_ids_logprob or (), "token_ids_logprob")

    def check_token_ids(self, ids: Sequence[int], param: str) -> None:
        """Raise :class:`BadRequest` unless all are ids of this model's vocabulary."""
        if not ids:
            return
        # Seen as unsigned numbers, negative ones are too large: one pass instead of two over what may be long.
        largest = max(memoryview(ids).cast("B").cast("I") if isinstance(ids, array) else ids)
        if largest >= self.vocab_size or (not isinstance(ids, array) and min(ids) < 0):
            wrong = next(token for token in ids if not 0 <= token < self.vocab_size)
            raise BadRequest(f"{param} must hold token ids in [0, {self.vocab_size}), got {wrong}", param=param)

    async def _register(self, requests: Sequence[GenerateRequest], signal: ReadySignal) -> list[ReqState]:
        rids = [rid for request in requests for rid in request.rids]
        if len(set(rids)) != len(rids):
            raise BadRequest("rid names the same id twice", param="rid", code="duplicate_request_id")
        while (old := next((s for s in map(self.rid_to_state.get, rids) if s is not None), None)) is not None:
            await self._wait_until_gone(old)
        now = time.monotonic()
        states: list[ReqState] = []
        for request in requests:
            for rid in request.rids:
                state = ReqState(rid, len(states), request, signal, now)
                states.append(state)
                self.rid_to_state[rid] = state
        return states

    async def _wait_until_gone(self, state: ReqState) -> None:
        """Wait for an output that was given up to be gone from the engine."""
        duplicate = BadRequest(
            f"rid {state.rid!r} is in use by another request", param="rid", code="duplicate_request_id"
        )
        if not state.abandoned:
            raise duplicate
        if state.gone is None:
            state.gone = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(asyncio.shield(state.gone), REUSE_TIMEOUT)
        except asyncio.TimeoutError:
            raise duplicate from None

    async def _encode_texts(self, requests: Sequence[GenerateRequest]) -> None:
        """Give every request its token ids; the texts of a batch are encoded together."""
        with_text = [request for request in requests if request.input_ids is None]
        if not with_text:
            return
        assert self.prompt_encoder is not None, "checked before"
        texts = [request.text or "" for request in with_text]
        encoded = await self.prompt_encoder.encode(texts, [request.prompt_param for request in with_text])
        for request, ids in zip(with_text, encoded, strict=True):
            request.input_ids = ids

    def _tokenize_one_request(self, request: GenerateRequest) -> TokenizedGenerateReqInput:
        """What the scheduler gets of a request whose prompt is encoded; all limits that depend on it are checked."""
        ids = request.input_ids
        if not ids:
            raise BadRequest(f"{request.prompt_param} is empty: there are no tokens to go on from", param=request.prompt_param)
        if request.text is None:
            self.check_token_ids(ids, request.prompt_param)
        if request.return_logprob and request.logprob_start_len >= len(ids):
            raise BadRequest(
                f"logprob_start_len ({request.logprob_start_len}) must be less than the number of prompt tokens "
                f"({len(ids)})",
                param="logprob_start_len",
            )
        return TokenizedGenerateReqInput(
            rids=request.rids,
            input_ids=ids.tobytes(),
            sampling_params=self._fit_into_context(request, len(ids)),
            stream=request.stream,
            return_logprob=request.return_logprob,
            logprob_start_len=request.logprob_start_len,
            top_logprobs_num=request.top_logprobs_num,
            token_ids_logprob=request.token_ids_logprob,
            priority=request.priority,
            extra_key=request.extra_key,
        )

    def _fit_into_context(self, request: GenerateRequest, num_prompt_tokens: int) -> Any:
        params = request.sampling_params
        room = self.context_len - num_prompt_tokens
        wanted = params.max_new_tokens
        if num_prompt_tokens > self.max_prompt_tokens or room < min(1, 1 if wanted is None else wanted):
            raise context_length_exceeded(self.context_len, num_prompt_tokens, None, request.prompt_param)
        if wanted is not None and wanted <= room:
            return params
        if wanted is not None and request.exact_max_new_tokens is not None:
            raise context_length_exceeded(self.context_len, num_prompt_tokens, wanted, request.exact_max_new_tokens)
        return msgspec.structs.replace(
            params, max_new_tokens=room, min_new_tokens=min(params.min_new_tokens, room)
        )

    def _send_one_request(self, message: TokenizedGenerateReqInput, states: list[ReqState]) -> None:
        """Send a request to the scheduler, unless all its outputs were aborted meanwhile."""
        aborted = [state for state in states if state.abort_reason is not None]
        if len(aborted) < len(states):
            self._channels.send(message)
            for state in states:
                state.sent = True
                if state.abort_reason is not None:
                    self._channels.send(AbortReq(state.rid, exact=True))
            return
        now = time.monotonic()
        for state in aborted:
            self._handle_delta(aborted_delta(state, state.abort_reason or "aborted"), now)

    def _leave(self, states: list[ReqState]) -> None:
        """Nobody waits for these outputs any more: end in the scheduler what is unfinished."""
        for state in states:
            if state.finished or state.rid not in self.rid_to_state:
                continue
            state.abandoned = True
            state.out_list.clear()
            if state.obj.log_metrics:
                self.metrics.num_requests += 1
                self.metrics.num_aborted_requests += 1
            if state.sent and self._dead is None:
                # The id stays taken until the scheduler's last word on it, which would otherwise reach whoever uses it next.
                self._channels.send(AbortReq(state.rid, exact=True))
            else:
                del self.rid_to_state[state.rid]
                _let_go(state)

    # --- what comes back ------------------------------------------------------------------------------------------

    def _handle_message(self, message: ToTokenizer) -> None:
        if isinstance(message, (BatchStrOutput, BatchTokenIDOutput)):
            self._handle_batch_output(message.deltas)
        elif isinstance(message, Heartbeat):
            self.health.on_heartbeat(message)
            if message.stats is not None:
                self.metrics.scheduler_stats[message.rank] = message.stats
        else:
            call = self._calls.get(message.call_id)
            if call is not None and not call.done():
                call.set_result(message)

    def _handle_batch_output(self, deltas: Sequence[OutputDelta]) -> None:
        """Hand the results of a step to those who wait for them."""
        now = time.monotonic()
        self.health.on_progress()
        for delta in deltas:
            self._handle_delta(delta, now)

    def _handle_delta(self, delta: OutputDelta, now: float) -> None:
        state = self.rid_to_state.get(delta.rid)
        if state is None:
            return
        num_tokens = len(delta.token_ids)
        if num_tokens and state.obj.log_metrics:
            metrics = self.metrics
            metrics.generation_tokens += num_tokens
            if state.last_time:
                metrics.inter_token_latency.observe((now - state.last_time) / num_tokens, num_tokens)
            elif state.obj.stream:
                metrics.time_to_first_token.observe(now - state.created_time)
        if num_tokens:
            if not state.last_time:
                state.first_token_time = now
            state.last_time = now
        if delta.finish_reason is not None:
            state.finished_time = now
            del self.rid_to_state[delta.rid]
            self._on_finished(state, delta)
        state.push(delta)

    def _on_finished(self, state: ReqState, delta: OutputDelta) -> None:
        _let_go(state)
        if state.abandoned:
            return
        if state.obj.log_metrics:
            self._count_finished(state, delta)
        if self.server_args.log_requests:
            reason = delta.finish_reason
            logger.info(
                "Request %s: %d prompt tokens (%d cached), %d generated, %s, %.3f s",
                state.rid, delta.prompt_tokens, delta.cached_tokens, delta.completion_tokens,
                reason.type if reason is not None else "?", state.finished_time - state.created_time,
            )  # fmt: skip

    def _count_finished(self, state: ReqState, delta: OutputDelta) -> None:
        metrics = self.metrics
        metrics.num_requests += 1
        metrics.prompt_tokens += delta.prompt_tokens
        metrics.cached_tokens += delta.cached_tokens
        metrics.e2e_request_latency.observe(state.finished_time - state.created_time)
        metrics.prompt_tokens_per_request.observe(delta.prompt_tokens)
        metrics.generation_tokens_per_request.observe(delta.completion_tokens)
        if delta.finish_reason is not None and delta.finish_reason.type == "abort":
            if delta.finish_reason.status_code is None:
                metrics.num_aborted_requests += 1
            else:
                metrics.num_failed_requests += 1

    # --- control --------------------------------------------------------------------------------------------------

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """End every request whose id starts with ``rid``, or all of them; each still gets its last event.

        An id that nobody has, or an empty one without ``abort_all``, does nothing.
        """
        if not rid and not abort_all:
            return
        any_sent = False
        for state in self.rid_to_state.values():
            if abort_all or state.rid.startswith(rid):
                any_sent |= state.sent
                state.abort_reason = "aborted"
        if any_sent:
            self._channels.send(AbortReq(rid, abort_all=abort_all))

    async def control(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = CONTROL_TIMEOUT
    ) -> ControlReply:
        """Call a named handler of the scheduler.

        Args:
            method: name of the handler.
            params: its arguments.
            timeout: seconds to wait for the reply.

        Raises:
            RequestFailed: if no reply came in time.
            EngineDead: if the engine has died.
        """
        if self._dead is not None:
            raise EngineDead(self._dead.message)
        call_id = uuid.uuid4().hex
        reply: asyncio.Future[ControlReply] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = reply
        try:
            self._channels.send(ControlReq(call_id, method, params or {}))
            return await asyncio.wait_for(reply, timeout)
        except asyncio.TimeoutError:
            raise RequestFailed(f"the scheduler did not answer {method} within {timeout:g} s", status_code=504) from None
        finally:
            del self._calls[call_id]

    async def flush_cache(self, timeout: float = 0.0) -> ControlReply:
        """Forget all cached prefixes; waits up to ``timeout`` seconds for running requests, and fails if there are any."""
        return await self.control("flush_cache", {"timeout": timeout}, timeout=timeout + CONTROL_TIMEOUT)

    async def get_internal_state(self) -> list[dict[str, Any]]:
        """What each scheduler has to say about itself."""
        return [(await self.control("get_internal_state")).data]

    async def get_server_info(self) -> dict[str, Any]:
        """Resolved options, what the scheduler reported at the start, and its state now."""
        return {
            **self.server_args.to_dict(),
            **self.scheduler_info,
            "internal_states": await self.get_internal_state(),
            "version": __version__,
            "frontend": "python",
        }

    def get_model_info(self) -> dict[str, Any]:
        """What is being served."""
        config, args = self.model_config, self.server_args
        return {
            "model_path": args.model_path,
            "served_model_name": self.served_model_name,
            "tokenizer_path": args.tokenizer_path or args.model_path,
            "is_generation": True,
            "preferred_sampling_params": args.preferred_sampling_params,
            "weight_version": DEFAULT_WEIGHT_VERSION,
            "load_format": args.load_format,
            "reasoning_parser": None,
            "tool_call_parser": None,
            "disaggregation_mode": "null",
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": config.hf_config.get("model_type"),
            "architectures": [config.architecture],
        }


def context_length_exceeded(context_len: int, prompt_tokens: int, max_tokens: int | None, param: str) -> BadRequest:
    """The error for a request that does not fit, worded the way clients have learnt to parse."""
    if max_tokens is None:
        request = f"your prompt has {prompt_tokens} tokens, which leaves no room for an answer"
    else:
        request = (
            f"you requested {prompt_tokens + max_tokens} tokens ({prompt_tokens} in the prompt, "
            f"{max_tokens} in the completion)"
        )
    return BadRequest(
        f"This model's maximum context length is {context_len} tokens. However, {request}. Please shorten the prompt"
        f"{'' if max_tokens is None else ' or ask for fewer tokens'}.",
        param=param,
        code="context_length_exceeded",
    )


def _let_go(state: ReqState) -> None:
    """Tell whoever waits for the id of ``state`` that it is free."""
    if state.gone is not None and not state.gone.done():
        state.gone.set_result(None)
