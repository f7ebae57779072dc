"""The front of the engine: takes requests in, tokenizes them, and hands results to those who wait for them.

Lives in the main process, on one event loop. Everything between a request's arrival and its last event that a request
may change is its :class:`~bough.managers.req_state.ReqState`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Protocol

from bough import __version__
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.config.user_paths import shown_path
from bough.errors import BoughError, EngineDead, Overloaded, RequestFailed
from bough.ipc.messages import (
    BatchEmbeddingOutput,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    ControlReq,
    Heartbeat,
    OutputDelta,
    PauseMode,
    ToScheduler,
    ToTokenizer,
)
from bough.managers.control_calls import ControlCalls
from bough.managers.conversations import ConversationEncoder
from bough.managers.generation import Generation
from bough.managers.health import HealthMonitor, ServerState
from bough.managers.io_struct import GenerateReqInput, GenerateRequest
from bough.managers.live_outputs import LiveOutputs
from bough.managers.native_output import NativeOutput, failure_of, in_client_terms
from bough.managers.prompt_encoder import PromptEncoder
from bough.managers.queue_wait import QueueWait
from bough.managers.reasoning_span import reasoning_markers
from bough.managers.req_state import EVENTS_AT_ONCE, Outbox, ReadySignal, ReqState, write_all
from bough.managers.request_limits import WORK_PER_TURN, RequestLimits
from bough.managers.request_log import RecentRequests, RequestLog
from bough.managers.request_preparer import REQUESTS_PER_TURN, RequestPreparer
from bough.managers.request_records import RequestRecords
from bough.managers.rw_lock import ReaderWriterLock
from bough.managers.scheduler_places import SchedulerPlaces
from bough.managers.served_weights import ServedWeights
from bough.managers.sessions import SessionStore
from bough.managers.turns import Turns
from bough.managers.waiting_prompts import WaitingPrompts
from bough.observability.metrics import Metrics
from bough.tokenization.chat_template import ChatTemplate, load_chat_template
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

CONTROL_TIMEOUT = 60.0
"""Seconds that a control call may take, unless it says otherwise."""

TICK = 1.0
"""Seconds between two looks at whether the other processes still show signs of life."""


class Channels(Protocol):
    """What connects this process to the scheduler and the detokenizer."""

    async def recv(self) -> ToTokenizer:
        """The next message; waits for it."""
        ...

    @property
    def lagging(self) -> bool:
        """Whether the next message is there already."""
        ...

    @property
    def malformed_total(self) -> int:
        """Messages dropped because they did not fit the schema."""
        ...

    def send(self, message: ToScheduler) -> None:
        """Hand a message to the scheduler; never blocks."""
        ...


class TokenizerManager:
    """Everything that front ends (HTTP, ``Engine``) ask for, they ask here.

    Args:
        server_args: resolved options.
        model_config: facts about the model.
        tokenizer: ``None`` if the server was started without one; then prompts and outputs are ids.
        channels: connection to the other processes.
        scheduler_info: what the scheduler reported when it was ready: ``max_req_input_len`` and ``max_req_len``
            (tokens), ``vocab_size``, and whatever else is to be shown by ``/server_info``.
        metrics: where to count; one of its own if not given.
        chat_template: what turns conversations into prompts; by default what ``--chat-template`` says, or the model's.

    Attributes:
        outputs: every output that is alive.
        rid_to_state: those, by id.
        sessions: the conversations that are remembered.
        conversations: makes prompts of messages.
        weights: which are served, and how others take their place.
        model_update_lock: requests hold the reader side, updates of the weights the writer side.
        health: state of the server, and heartbeats.
        queue_wait: how long outputs wait for their first step, of late.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        tokenizer: Tokenizer | None,
        channels: Channels,
        scheduler_info: dict[str, Any],
        metrics: Metrics | None = None,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        self.server_args = server_args
        self.model_config = model_config
        self.tokenizer = tokenizer
        self.scheduler_info = scheduler_info
        self.served_model_name = server_args.served_model_name or server_args.model_path
        if chat_template is None and tokenizer is not None:
            chat_template = load_chat_template(tokenizer, server_args.chat_template)
        self.chat_template = chat_template
        self._reasoning = (
            reasoning_markers(server_args, tokenizer, chat_template) if model_config.is_generation else None
        )
        self.limits = RequestLimits.of_server(
            server_args,
            model_config,
            scheduler_info,
            has_tokenizer=tokenizer is not None,
            marks_thoughts=self._reasoning is not None,
        )
        self._has_detokenizer = tokenizer is not None and model_config.is_generation
        self.metrics = metrics or Metrics(self.served_model_name, server_args.metrics_prefix)
        numbers = {key: value for key, value in scheduler_info.items() if isinstance(value, (int, float))}
        self.metrics.capacities = {**numbers, "context_len": self.limits.context_len}
        processes = [("scheduler", 0), ("detokenizer", 0)] if self._has_detokenizer else [("scheduler", 0)]
        self.health = HealthMonitor(
            processes=processes,
            max_silence=server_args.watchdog_timeout,
            max_queued_requests=server_args.max_queued_requests,
        )
        self._recent: RecentRequests | None = None
        if server_args.crash_dump_folder is not None:
            self._recent = RecentRequests(server_args.crash_dump_folder, with_prompts=server_args.crash_dump_prompts)
        log_level = server_args.log_requests_level if server_args.log_requests else None
        self._records = RequestRecords(self.metrics, RequestLog(log_level), self._recent)
        max_queued = server_args.max_queued_requests
        max_places = None if max_queued is None else scheduler_info["max_running_requests"] + max_queued
        self.outputs = LiveOutputs(
            channels.send,
            self._records,
            WaitingPrompts(server_args.max_queued_bytes, self.limits.vocab_size),
            SchedulerPlaces(max_places),
        )
        self.rid_to_state = self.outputs.by_id
        self.queue_wait = QueueWait()
        self.model_update_lock = ReaderWriterLock()
        self.weights = ServedWeights(self)
        self.sessions = SessionStore(
            max_sessions=server_args.max_sessions,
            max_tokens=server_args.max_session_tokens,
            timeout=server_args.session_timeout,
            abort=self.outputs.abort_one,
        )
        self.prompt_encoder = PromptEncoder(tokenizer, self.limits.max_prompt_tokens) if tokenizer is not None else None
        self.conversations = ConversationEncoder(chat_template, self.prompt_encoder)
        self._preparer = RequestPreparer(
            self.limits, self.sessions, tokenizer, self.prompt_encoder, self.outputs.waiting, self._reasoning
        )
        self._channels = channels
        self._control_calls = ControlCalls(channels.send)
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

    def dump_requests(self, cause: str) -> None:
        """Write what is known of the latest requests, if that is wanted, those that were failed with the engine too."""
        if self._recent is None:
            return
        try:
            path = self._recent.write(cause, self.rid_to_state.values())
        except OSError as error:
            logger.error("Could not write the crash dump: %s", error)
        else:
            logger.error("The latest requests are described in %s", path)

    def fail_all(self, error: BoughError) -> None:
        """The engine is gone: every waiter gets ``error``, and so does everyone who comes later."""
        if self._dead is None:
            self._dead = error
            self.health.set_dead(error.message)
        self.outputs.fail_all(error)
        self._control_calls.fail_all(error)

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
            try:
                self.sessions.close_idle()
            except Exception:
                logger.exception("Could not close idle sessions")

    # --- generating -----------------------------------------------------------------------------------------------

    async def generate_request(self, obj: GenerateReqInput, text_name: str = "text") -> AsyncIterator[Any]:
        """Generate, with results in the native shape.

        Args:
            obj: what is asked for.
            text_name: what the caller calls its ``text``, for errors.

        Yields:
            While streaming, a dictionary per event and output (with ``index``, unless there is only one output);
            otherwise once: a dictionary, or a list of them for a batch or ``n > 1``.

        Raises:
            BadRequest, Overloaded: if the request cannot be taken.
            RequestFailed: if it failed before anything was yielded; afterwards the last dictionary says so.
            EngineDead: if the engine has died.
        """
        requests = obj.expand(preferred=self.server_args.preferred_sampling_params, text_name=text_name)
        async with self.generation(requests) as generation:
            if obj.is_batch or len(generation.states) > 1:
                results = self._handle_batch_request(generation)
            else:
                results = self._wait_one_response(generation)
            async for result in results:
                yield result

    @asynccontextmanager
    async def generation(
        self, requests: Sequence[GenerateRequest], *, all_the_way: bool = False
    ) -> AsyncIterator[Generation]:
        """Send requests to the engine and receive what it makes of them; prompts first, then parallel samples.

        Leaving the block early, for whatever reason, ends what is unfinished.

        Args:
            requests: of one call.
            all_the_way: whether the scheduler itself shall refuse what there is no place for.

        Raises:
            BadRequest, Overloaded, EngineDead: before anything was sent.
        """
        signal = ReadySignal()
        states: list[ReqState] = []
        try:
            try:
                await self._begin(requests, states, signal, all_the_way=all_the_way)
            except Exception as error:
                self.outputs.refuse(requests, states, error)
                raise
            yield Generation(states, signal)
        finally:
            signal.end()
            self.outputs.leave(states)

    async def _begin(
        self, requests: Sequence[GenerateRequest], states: list[ReqState], signal: ReadySignal, *, all_the_way: bool
    ) -> None:
        """Take the requests of a call and send them; ``states`` gets those of its outputs."""
        self.check_open()
        turns = Turns(WORK_PER_TURN)
        for work in self.limits.check_each(requests):
            await turns.spend(work)
        if not all_the_way:
            self._check_places(requests)
        await self._register(requests, states, signal)
        await self.model_update_lock.acquire_reader()
        versions = ((self.weights.version, 0),)
        for state in states:
            state.weight_versions = versions
        # An update need not wait for clients to read what is finished.
        signal.expect(len(states), self.model_update_lock.release_reader)
        messages = await self._preparer.prepare(requests, states, self.queue_wait.retry_after)
        turns = Turns(REQUESTS_PER_TURN)
        first = 0
        for message, request in zip(messages, requests, strict=True):
            unsent = self.outputs.send(message, states[first : first + len(request.rids)])
            if unsent:
                self._handle_batch_output(unsent)
            first += len(request.rids)
            await turns.spend()

    async def _wait_one_response(self, generation: Generation) -> AsyncIterator[dict[str, Any]]:
        """Results of the only output of a call."""
        output = self.native_output(generation.states[0], with_index=False)
        started = False
        while generation.unfinished:
            for _, delta in await generation.deltas():
                failure = failure_of(delta.finish_reason, self.queue_wait)
                if failure is not None and not started:
                    raise failure
                started = True
                output.add(delta)
                yield output.answer(delta)

    async def _handle_batch_request(self, generation: Generation) -> AsyncIterator[Any]:
        """Results of several outputs, interleaved while streaming, all at once otherwise."""
        stream = generation.states[0].obj.stream
        outputs = [self.native_output(state, with_index=stream) for state in generation.states]
        whole: list[Any] = [None] * len(outputs)
        started = False
        while generation.unfinished:
            for state, delta in await generation.deltas():
                failure = failure_of(delta.finish_reason, self.queue_wait)
                if failure is not None and not started:
                    raise failure
                outputs[state.index].add(delta)
                result = outputs[state.index].answer(delta)
                if stream:
                    started = True
                    yield result
                else:
                    whole[state.index] = result
        if not stream:
            yield whole

    def native_output(self, state: ReqState, *, with_index: bool, as_json: bool = False) -> NativeOutput:
        """What puts the answer for ``state`` together, in the native shape; arguments as there."""
        has_tokenizer = self.tokenizer is not None
        return NativeOutput(
            state,
            token_text=self.token_text if has_tokenizer else None,
            reasoning=self._reasoning,
            incremental=self.server_args.incremental_streaming_output and state.obj.stream,
            has_text=has_tokenizer,
            with_index=with_index,
            as_json=as_json,
        )

    def token_text(self, token_id: int) -> str:
        """The text of one token on its own; bytes that are no complete character become U+FFFD."""
        assert self.tokenizer is not None, "checked before"
        return self.tokenizer.id_to_piece_bytes(token_id).decode(errors="replace")

    def _check_alive(self) -> None:
        if self._dead is not None:
            raise EngineDead(self._dead.message)

    def check_open(self) -> None:
        """Raise :class:`EngineDead` or :class:`Overloaded` unless requests are taken now."""
        self._check_alive()
        if self.health.state is ServerState.STARTING:
            raise Overloaded("the server is starting")
        if self.health.state is ServerState.DRAINING:
            raise Overloaded("the server is shutting down", code="shutting_down")

    def check_room(self, request: GenerateRequest) -> None:
        """See to it that no work is done for a request which could not be taken now; records that if it is so.

        Raises:
            BadRequest: if it could never be taken and that is seen here.
            Overloaded: if the server takes no requests, or the queue is full.
            EngineDead: if the engine has died.
        """
        try:
            self.check_open()
            if self.outputs.places.are_taken:
                self.limits.check_params_of(request)  # a client's fault comes first
            self._check_places([request])
        except BoughError as error:
            self.outputs.refuse([request], [], error)
            raise

    def _check_places(self, requests: Sequence[GenerateRequest]) -> None:
        places = self.outputs.places
        if places.are_taken:
            places.refuse(requests, self.queue_wait.retry_after)

    async def _register(self, requests: Sequence[GenerateRequest], states: list[ReqState], signal: ReadySignal) -> None:
        aborted = await self.outputs.wait_until_free(rid for request in requests for rid in request.rids)
        self.check_open()  # the engine may have died while we waited, or begun to drain
        states += self.outputs.add(requests, signal, self.queue_wait.retry_after, aborted)
        if (context := states[0].context) is not None and context.on_taken is not None:
            context.on_taken()
            context.on_taken = None

    # --- what comes back ------------------------------------------------------------------------------------------

    def _handle_message(self, message: ToTokenizer) -> None:
        if isinstance(message, (BatchStrOutput, BatchTokenIDOutput, BatchEmbeddingOutput)):
            self._handle_batch_output(message.deltas)
        elif isinstance(message, Heartbeat):
            if self.health.on_heartbeat(message):
                self.metrics.on_heartbeat(message)
            self.metrics.malformed_messages = self._channels.malformed_total
        else:
            self._control_calls.on_reply(message)

    def _handle_batch_output(self, deltas: Sequence[OutputDelta]) -> None:
        """Hand the results of a step to those who wait for them."""
        # Of streams that lag all deltas are written together, which costs less.
        outbox: Outbox | None = None if self._channels.lagging else []
        if any(delta.token_ids or delta.embedding for delta in deltas):
            self.health.on_progress()
        try:
            self._hand_out(deltas, outbox)
        finally:
            if outbox:
                write_all(outbox)

    def _hand_out(self, deltas: Sequence[OutputDelta], outbox: Outbox | None) -> None:
        now = time.monotonic()
        for delta in deltas:
            state = self.rid_to_state.get(delta.rid)
            if state is None:
                continue
            if state.waiting_bytes:
                self.outputs.waiting.remove(state)
            is_last = delta.finish_reason is not None
            # Without text it is the detokenizer that gives up, and the scheduler goes on unless it is told.
            given_up = is_last and delta.text is None and self._has_detokenizer
            try:
                if given_up:
                    delta.text = ""
                if not state.abandoned:
                    self._handle_delta(state, delta, now, outbox)
            except Exception as error:
                logger.exception("Could not handle a result of request %r", delta.rid)
                state.event.fail(RequestFailed("internal error while handling a result", code="internal_error"))
                if state.obj.turn is not None:
                    state.obj.turn.discard()
                given_up = given_up or not is_last
                if not is_last:
                    self._records.on_error(state.obj, state.rid, error, state)
            if given_up and not state.abandoned:
                self.outputs.abandon(state)
            elif is_last and not given_up:
                self.outputs.forget(state)
            if outbox and len(outbox) >= EVENTS_AT_ONCE:
                write_all(outbox)
        self._records.on_step()

    def _handle_delta(self, state: ReqState, delta: OutputDelta, now: float, outbox: Outbox | None) -> None:
        if delta.queue_time is not None or delta.first_token_delay is not None:
            self._records.on_first_delta(state, delta)
        if delta.queue_time is not None:
            self.queue_wait.note(delta.queue_time)
        if delta.token_ids:
            if state.obj.turn is not None:
                state.obj.turn.add_output(delta.token_ids)
            self._records.on_tokens(state, delta, now)
        if delta.finish_reason is not None:
            delta.finish_reason = in_client_terms(delta.finish_reason, state.obj.grammar_param)
            state.finished_time = now
            self._on_finished(state, delta)
        state.push(delta, outbox)

    def _on_finished(self, state: ReqState, delta: OutputDelta) -> None:
        if delta.finish_reason is not None and delta.finish_reason.code == "queue_timeout":
            self.queue_wait.note(self.server_args.queue_timeout or 0.0)
        turn = state.obj.turn
        if turn is not None:
            if failure_of(delta.finish_reason, self.queue_wait) is None:
                turn.end()
            else:
                turn.discard()
        self._records.on_last_delta(state, delta)

    # --- control --------------------------------------------------------------------------------------------------

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """End every request whose id starts with ``rid``, or all of them; each still gets its last event.

        An id that nobody has, or an empty one without ``abort_all``, does nothing.
        """
        if rid or abort_all:
            self.outputs.abort(rid, abort_all=abort_all)

    async def control(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = CONTROL_TIMEOUT
    ) -> ControlReply:
        """Call a named handler of the scheduler, once it has the weights that it may be loading.

        It answers nobody as long, and what it is told then would be done after whoever asked has left.

        Args:
            method: name of the handler.
            params: its arguments.
            timeout: seconds to wait for the reply, after those for the weights.

        Raises:
            RequestFailed: if no reply came in time.
            EngineDead: if the engine has died.
        """
        await self.weights.wait_until_loaded()
        return await self.control_at_once(method, params, timeout)

    async def control_at_once(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = CONTROL_TIMEOUT
    ) -> ControlReply:
        """As :meth:`control`, whatever weights are being loaded."""
        self._check_alive()
        return await self._control_calls.call(method, params or {}, timeout)

    async def look(
        self, method: str, params: dict[str, Any] | None = None, timeout: float = CONTROL_TIMEOUT
    ) -> dict[str, Any]:
        """What a handler tells that changes nothing; as :meth:`control`, but ``timeout`` is for the weights as well.

        Raises:
            Overloaded: if weights are being loaded all that time.
            RequestFailed: also if the handler fails.
        """
        begun = time.monotonic()
        await self.weights.wait_until_loaded(timeout)
        reply = await self.control_at_once(method, params, timeout - (time.monotonic() - begun))
        if not reply.success:
            raise RequestFailed(reply.message)
        return reply.data

    async def flush_cache(self, timeout: float = 0.0) -> ControlReply:
        """Forget all cached prefixes; fails if requests hold memory, after waiting ``timeout`` seconds for them."""
        return await self.control("flush_cache", {"timeout": timeout}, timeout=timeout + CONTROL_TIMEOUT)

    async def pause_generation(self, mode: PauseMode = "abort") -> None:
        """Compute nothing until :meth:`continue_generation`; requests that come meanwhile wait.

        Args:
            mode: what becomes of requests that are there: ``abort`` ends them, with what they have so far, before this
                returns; ``retract`` has them give their memory back and compute it again later, as far as it is not in
                the prefix cache; ``in_place`` has them go on where they were.

        Raises:
            Overloaded: if the server is shutting down, for which requests have to end.
            RequestFailed: if the engine does not answer.
        """
        self.check_open()
        # Whole, even if the caller leaves: the scheduler cannot be asked to forget half of it.
        await asyncio.shield(asyncio.ensure_future(self._pause(mode)))

    async def _pause(self, mode: PauseMode) -> None:
        await self._change("pause_generation", {"mode": mode})
        if mode == "abort":
            self.abort_request(abort_all=True)  # those, too, that the scheduler has not heard of
            async with self.model_update_lock.writer_lock():
                pass

    async def continue_generation(self) -> None:
        """Go on after :meth:`pause_generation`.

        Raises:
            RequestFailed: if the engine does not answer.
        """
        await self._change("continue_generation", {})

    def start_draining(self) -> None:
        """Take no more requests, and let those that are there finish: a pause, even one under way, ends."""
        self.health.start_draining()
        with contextlib.suppress(EngineDead):
            self._channels.send(ControlReq("", "continue_generation"))  # nobody waits for the reply

    async def _change(self, method: str, params: dict[str, Any]) -> None:
        reply = await self.control(method, params)
        if not reply.success:
            raise RequestFailed(reply.message)

    async def get_internal_state(self, timeout: float = CONTROL_TIMEOUT) -> list[dict[str, Any]]:
        """What each scheduler has to say about itself; ``timeout`` is in seconds."""
        return [await self.look("get_internal_state", timeout=timeout)]

    async def get_server_info(self) -> dict[str, Any]:
        """Resolved options, what the scheduler reported at the start, and its state now."""
        return {
            **self.server_args.to_public_dict(),
            "model_path": self.weights.model_path,
            "weight_version": self.weights.version,
            **self.scheduler_info,
            "launch_command": shlex.join(["bough", "serve", *self.server_args.to_flags()]),
            "startup_time": self.metrics.startup_time,
            "internal_states": await self.get_internal_state(),
            "version": __version__,
            "frontend": "python",
        }

    def get_model_info(self) -> dict[str, Any]:
        """What is being served."""
        config, args = self.model_config, self.server_args
        return {
            "model_path": self.weights.model_path,
            "served_model_name": self.served_model_name,
            "tokenizer_path": shown_path(args.tokenizer_path or args.model_path),
            "is_generation": config.is_generation,
            "preferred_sampling_params": args.preferred_sampling_params,
            "weight_version": self.weights.version,
            "load_format": self.weights.load_format,
            "reasoning_parser": args.reasoning_parser,
            "tool_call_parser": args.tool_call_parser,
            "disaggregation_mode": "null",
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": config.hf_config.get("model_type"),
            "architectures": [config.architecture],
            "embedding": None if config.pooling is None else asdict(config.pooling),
        }
