"""The front of the engine: takes requests in, tokenizes them, and hands results to those who wait for them.

Lives in the main process, on one event loop. Everything between a request's arrival and its last event that a request
may change is its :class:`~bough.managers.req_state.ReqState`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from bough.config.model_config import ModelConfig
from bough.config.ranks import DETOKENIZER, ONE_SCHEDULER, ParallelLayout
from bough.config.server_args import ServerArgs
from bough.errors import BoughError, EngineDead
from bough.ipc.channels import TokenizerChannels
from bough.ipc.messages import (
    BatchEmbeddingOutput,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    ControlReq,
    Heartbeat,
    OutputDelta,
    PauseMode,
    ToTokenizer,
)
from bough.managers.conversations import ConversationEncoder
from bough.managers.engine_memory import EngineMemory
from bough.managers.exclusive_changes import ExclusiveChanges
from bough.managers.generation import Generation
from bough.managers.health import HealthMonitor
from bough.managers.io_struct import GenerateReqInput, GenerateRequest
from bough.managers.live_outputs import LiveOutputs
from bough.managers.native_output import NativeOutput
from bough.managers.output_handler import OutputHandler
from bough.managers.prompt_encoder import PromptEncoder
from bough.managers.reasoning_span import reasoning_markers
from bough.managers.req_state import Outbox, ReadySignal, ReqState, write_all
from bough.managers.request_limits import WORK_PER_TURN, RequestLimits
from bough.managers.request_preparer import REQUESTS_PER_TURN, RequestPreparer, TokenizedReqInput
from bough.managers.request_records import RequestRecords
from bough.managers.rw_lock import ReaderWriterLock
from bough.managers.saved_weights import SavedWeights
from bough.managers.scheduler_control import CONTROL_TIMEOUT, SchedulerControl, data_of
from bough.managers.scheduler_queue import SchedulerQueue
from bough.managers.served_weights import ServedWeights
from bough.managers.sessions import SessionStore
from bough.managers.turns import Turns
from bough.managers.waiting_prompts import WaitingPrompts
from bough.managers.worker_calls import WorkerCalls
from bough.observability.metrics import Metrics
from bough.tokenization.chat_template import ChatTemplate, load_chat_template
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

PauseRequest = Literal[PauseMode, "wait"]
"""Mode of a pause, as clients ask for it: that of the schedulers, or a wait for the requests that are there."""

TICK = 1.0
"""Seconds between two looks at whether the other processes still show signs of life."""

FLUSH_POLL_SECONDS = 0.02
"""Seconds between two attempts to flush the cache of an engine that is not idle."""


class TokenizerManager:
    """Everything that front ends (HTTP, ``Engine``) ask for, they ask here.

    Args:
        tokenizer: ``None`` if the server was started without one; then prompts and outputs are ids.
        scheduler_info: report of the scheduler, or of all together, when they were ready:
            ``max_req_input_len`` and ``max_req_len`` (tokens), ``vocab_size``, and
            whatever else is to be shown by ``/server_info``.
        metrics: where to count; one of its own if not given.
        chat_template: makes prompts of conversations; by default that of ``--chat-template``, or the model's.
        layout: the schedulers that there are.

    Attributes:
        outputs: every output that is alive; ``rid_to_state``: the same, by id.
        model_update_lock: requests hold the reader side, updates of the weights the writer side.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        tokenizer: Tokenizer | None,
        channels: TokenizerChannels,
        scheduler_info: dict[str, Any],
        metrics: Metrics | None = None,
        chat_template: ChatTemplate | None = None,
        layout: ParallelLayout = ONE_SCHEDULER,
    ) -> None:
        self.server_args = server_args
        self.model_config = model_config
        self.tokenizer = tokenizer
        self.scheduler_info = scheduler_info
        self.served_model_name = server_args.served_model_name or server_args.model_path
        if chat_template is None and tokenizer is not None:
            chat_template = load_chat_template(tokenizer, server_args.chat_template)
        self.chat_template = chat_template
        self._reasoning = reasoning_markers(server_args, model_config, tokenizer, chat_template)
        self.limits = RequestLimits.of_server(server_args, model_config, scheduler_info, tokenizer, self._reasoning)
        self.metrics = metrics or Metrics(self.served_model_name, server_args.metrics_prefix, layout.leaders)
        numbers = {key: value for key, value in scheduler_info.items() if isinstance(value, (int, float))}
        self.metrics.capacities = {**numbers, "context_len": self.limits.context_len}
        has_detokenizer = tokenizer is not None and model_config.is_generation
        max_queued = server_args.max_queued_requests
        self.health = HealthMonitor(
            processes=[*layout.schedulers, *layout.controllers, *([DETOKENIZER] if has_detokenizer else [])],
            max_silence=server_args.watchdog_timeout,
            max_queued_requests=max_queued,
        )
        records = RequestRecords.of_server(server_args, self.metrics)
        queue = SchedulerQueue(None if max_queued is None else scheduler_info["max_running_requests"] + max_queued)
        waiting = WaitingPrompts(server_args.max_queued_bytes, self.limits.vocab_size, queue)
        self.outputs = LiveOutputs(channels.send, records, waiting, queue)
        self.rid_to_state = self.outputs.by_id
        self._handler = OutputHandler(self.outputs, records, server_args.queue_timeout, has_detokenizer=has_detokenizer)
        self.control = SchedulerControl(channels.send, layout.leaders)
        self.model_update_lock = ReaderWriterLock()
        changes = ExclusiveChanges(self.model_update_lock, self.health, self.outputs)
        self.memory = EngineMemory(self.control, self.outputs, changes, self.health)
        self.weights = ServedWeights(
            server_args, self.control, self.outputs, changes, self.health, self.memory.set_missing
        )
        self.workers = WorkerCalls(self.control, self.health, self.memory.set_missing)
        self.saved_weights = SavedWeights(model_config.model_path, self.control, self.health)
        self.sessions = SessionStore(
            max_sessions=server_args.max_sessions,
            max_tokens=server_args.max_session_tokens,
            timeout=server_args.session_timeout,
            abort=self.outputs.abort_one,
        )
        self.prompt_encoder = PromptEncoder(tokenizer, self.limits.max_prompt_tokens) if tokenizer is not None else None
        self.conversations = ConversationEncoder(chat_template, self.prompt_encoder)
        self._preparer = RequestPreparer(
            self.limits, self.sessions, tokenizer, self.prompt_encoder, waiting, self._reasoning
        )
        self._channels = channels
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to receive, on the running event loop, and take requests from now on."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self.handle_loop()), asyncio.create_task(self._tick())]
        self.health.set_ready()

    async def close(self, reason: str = "the engine was shut down") -> None:
        """Fail whatever is still waiting and stop receiving."""
        self.fail_all(EngineDead(reason))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.prompt_encoder is not None:
            self.prompt_encoder.close()

    def fail_all(self, error: BoughError, *, crashed: bool = False) -> None:
        """End every call with ``error``, and refuse later ones: the engine is gone.

        If it has ``crashed``, the latest requests are described in a file, if the options want that.
        """
        self.health.set_dead(error.message)
        self.outputs.fail_all(error)
        self.control.fail_all(error)
        if crashed:
            self.outputs.records.on_crash(error.message, self.rid_to_state.values())

    async def handle_loop(self) -> None:
        """Receive for ever. A message that cannot be handled is logged and affects no other."""
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

    async def generate_request(self, obj: GenerateReqInput, text_name: str = "text") -> AsyncIterator[Any]:
        """Generate, with results in the native shape; ``text_name`` is what the caller calls its ``text``, for errors.

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
            is_list = obj.is_batch or len(generation.states) > 1
            stream = obj.stream
            outputs = [self.native_output(state, with_index=is_list and stream) for state in generation.states]
            whole: list[Any] = [None] * len(outputs)
            started = False
            while generation.unfinished:
                for state, delta in await generation.deltas():
                    if not started:
                        generation.check(delta)
                    output = outputs[state.index]
                    output.add(delta)
                    result = output.answer(delta)
                    if stream:
                        started = True
                        yield result
                    else:
                        whole[state.index] = result
            if not stream:
                yield whole if is_list else whole[0]

    @asynccontextmanager
    async def generation(
        self, requests: Sequence[GenerateRequest], *, all_the_way: bool = False
    ) -> AsyncIterator[Generation]:
        """Send requests of one call to the engine and receive their outputs; prompts first, then parallel samples.

        Leaving the block early, for whatever reason, ends what is unfinished. With ``all_the_way``, the scheduler
        itself refuses what there is no room for. Raises :class:`BadRequest` or :class:`Overloaded` or
        :class:`EngineDead` before anything was sent.
        """
        signal = ReadySignal()
        states: list[ReqState] = []
        try:
            try:
                await self._begin(requests, states, signal, all_the_way=all_the_way)
            except Exception as error:
                self.outputs.refuse(requests, states, error)
                raise
            yield Generation(states, signal, self.outputs.queue)
        finally:
            signal.end()
            self.outputs.leave(states)

    async def _begin(
        self, requests: Sequence[GenerateRequest], states: list[ReqState], signal: ReadySignal, *, all_the_way: bool
    ) -> None:
        """Take the requests of a call and send them; ``states`` gets those of its outputs."""
        self.health.check_open()
        turns = Turns(WORK_PER_TURN)
        for work in self.limits.check_each(requests):
            await turns.spend(work)
        if not all_the_way:
            self.outputs.queue.check_room(requests)
        aborted = await self.outputs.wait_until_free(rid for request in requests for rid in request.rids)
        self.health.check_open()  # the engine may have died meanwhile, or begun to drain
        states += self.outputs.add(requests, signal, aborted)
        if (context := states[0].context) is not None and context.on_taken is not None:
            context.on_taken()
            context.on_taken = None
        await self.model_update_lock.acquire_reader()
        versions = ((self.weights.version, 0),)
        for state in states:
            state.weight_versions = versions
        # An update need not wait for clients to read what is finished.
        signal.expect(len(states), self.model_update_lock.release_reader)
        messages = await self._preparer.prepare(requests, states)
        turns = Turns(REQUESTS_PER_TURN)
        first = 0
        for message, request in zip(messages, requests, strict=True):
            self._send_one_request(message, states[first : first + len(request.rids)])
            first += len(request.rids)
            await turns.spend()

    def _send_one_request(self, message: TokenizedReqInput, states: Sequence[ReqState]) -> None:
        """Send a request; one whose outputs were all aborted meanwhile ends here."""
        if unsent := self.outputs.send(message, states):
            self._handle_batch_output(unsent)

    def native_output(self, state: ReqState, *, with_index: bool, as_json: bool = False) -> NativeOutput:
        """Writer of the answer for ``state`` in the native shape; arguments as there."""
        return NativeOutput(
            state,
            tokenizer=self.tokenizer,
            reasoning=self._reasoning,
            incremental=self.server_args.incremental_streaming_output and state.obj.stream,
            with_index=with_index,
            as_json=as_json,
        )

    def check_room(self, request: GenerateRequest) -> None:
        """Refuse, and record, a request that could not be taken now, before work is done for it.

        Raises :class:`BadRequest` if it could never be taken and that is seen here; :class:`Overloaded` or
        :class:`EngineDead` if the server takes no requests, or the queue is full.
        """
        try:
            self.health.check_open()
            if self.outputs.queue.is_full:
                self.limits.check_params_of(request)  # a client's fault comes first
            self.outputs.queue.check_room([request])
        except BoughError as error:
            self.outputs.refuse([request], [], error)
            raise

    def _handle_message(self, message: ToTokenizer) -> None:
        if isinstance(message, (BatchStrOutput, BatchTokenIDOutput, BatchEmbeddingOutput)):
            self._handle_batch_output(message.deltas)
        elif isinstance(message, Heartbeat):
            if self.health.on_heartbeat(message):
                self.metrics.on_heartbeat(message)
            self.metrics.malformed_messages = self._channels.malformed_total
        else:
            self.control.on_reply(message)

    def _handle_batch_output(self, deltas: Sequence[OutputDelta]) -> None:
        """Hand the results of a step to those who wait for them."""
        # Of streams that lag all deltas are written together, which costs less.
        outbox: Outbox | None = None if self._channels.lagging else []
        if any(delta.token_ids or delta.embedding for delta in deltas):
            self.health.on_progress()
        try:
            self._handler.hand_out(deltas, outbox)
        finally:
            if outbox:
                write_all(outbox)

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """End every request whose id starts with ``rid``, or all of them; each still gets its last event.

        An unknown id, or an empty one without ``abort_all``, does nothing.
        """
        if rid or abort_all:
            self.outputs.abort(rid, abort_all=abort_all)

    async def flush_cache(self, timeout: float = 0.0) -> ControlReply:
        """Forget all cached prefixes; fails if requests hold memory, after waiting ``timeout`` seconds for them.

        Raises as :meth:`SchedulerControl.call`.
        """
        deadline = time.monotonic() + timeout
        while True:
            # No promise waits: one that has been made stops a scheduler, which others may keep waiting.
            reply = await self.control.call_all_or_none("flush_cache")
            left = deadline - time.monotonic()
            if reply.success or left <= 0:
                return reply
            await asyncio.sleep(min(FLUSH_POLL_SECONDS, left))

    async def pause_generation(self, mode: PauseRequest = "abort") -> None:
        """Compute nothing until :meth:`continue_generation`; requests that come meanwhile wait.

        Args:
            mode: what becomes of requests that are there: ``abort`` ends them, with what they have so far, before this
                returns; ``retract`` has them give their memory back and compute it again later, as far as it is not in
                the prefix cache; ``in_place`` has them go on where they were; ``wait`` lets them finish first, unless
                nothing is computed already.

        Raises:
            Overloaded: if the server is shutting down, for which requests have to end.
            RequestFailed: if the engine does not answer.
        """
        self.health.check_serving()

        async def pause() -> None:
            waits = mode == "wait" and not self.health.computes_nothing
            async with self.model_update_lock.writer_lock() if waits else contextlib.nullcontext():
                data_of(await self.control.call("pause_generation", {"mode": "in_place" if mode == "wait" else mode}))
            if mode == "abort":
                self.abort_request(abort_all=True)  # includes those that the scheduler has not received yet
                async with self.model_update_lock.writer_lock():
                    pass

        # Whole, even if the caller leaves: the scheduler cannot be asked to forget half of it.
        await asyncio.shield(asyncio.ensure_future(pause()))

    async def continue_generation(self) -> None:
        """Go on after :meth:`pause_generation`; raises :class:`RequestFailed` if the engine does not answer."""
        data_of(await self.control.call("continue_generation"))

    def start_draining(self) -> None:
        """Take no more requests, and let those that are there finish: a pause, even one under way, ends.

        Where all schedulers are changing their weights they stay stopped until that is done.
        """
        self.health.start_draining()
        with contextlib.suppress(EngineDead):
            self._channels.send(ControlReq("", "continue_generation"))  # the reply is not awaited

    async def get_internal_state(self, timeout: float = CONTROL_TIMEOUT) -> list[dict[str, Any]]:
        """State of each scheduler; ``timeout``, in seconds, includes the wait for weights that are being loaded. Raises
        :class:`Overloaded` or :class:`RequestFailed` or :class:`EngineDead` as :meth:`SchedulerControl.call`."""
        replies = await self.control.call_each("get_internal_state", timeout=timeout, with_loading=True)
        return [data_of(reply) for reply in replies]
