"""The scheduler: receive, admit, plan, run, process."""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.constrained.base import mask_words
from bough.constrained.compiler import GrammarCompiler
from bough.constrained.masks import are_masks_late
from bough.errors import BadRequest, BoughError, ConfigError, EngineDead
from bough.ipc.messages import (
    AbortReq,
    ControlReply,
    ControlReq,
    FinishReason,
    Heartbeat,
    OutputDelta,
    PauseMode,
    SchedulerStats,
    ShutdownReq,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
    ToScheduler,
)
from bough.mem_cache.kv_cache_manager import make_kv
from bough.mem_cache.req_to_token_pool import ReqToTokenPool
from bough.model_executor.worker_info import Worker
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.admission import NewTokenRatio
from bough.scheduler.control import CONTROL_HANDLERS, ControlCalls
from bough.scheduler.deadlines import Deadlines
from bough.scheduler.executor import StepExecutor, TimedWorker, executor_for
from bough.scheduler.grammars import Grammars, grammars_for
from bough.scheduler.intake import RequestIntake
from bough.scheduler.output_processor import OutputProcessor
from bough.scheduler.planned import Planned
from bough.scheduler.planner import StepPlanner
from bough.scheduler.prefix_sharing import PrefixSharing
from bough.scheduler.profiler import Profiler
from bough.scheduler.reports import Counters, expected_silence_of, init_info_of, internal_state_of, stats_of
from bough.scheduler.req import Pooling, Req
from bough.scheduler.request_table import RequestTable
from bough.scheduler.requests import Requests
from bough.scheduler.step_budget import limits_of_steps
from bough.scheduler.step_log import StepLog
from bough.scheduler.trials import Trials
from bough.scheduler.waiting_queue import WaitingQueue
from bough.scheduler.warmup import measure_step_costs, probe_device
from bough.scheduler.weights import Weights
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

WHOLE_ANSWER_INTERVAL = 64
"""Tokens per delta of a request that does not stream: keeps its detokenisation spread out and its state fresh."""

IDLE_POLL_SECONDS = 0.25
"""Longest wait for a message when there is nothing to do; only heartbeats and waiting control calls need a turn."""

INTAKE_SECONDS = 0.002
"""How long taking in messages may hold up those requests that run; what is left has its turn after the next step."""

GRAMMAR_WAIT_SECONDS = 0.002
"""Longest wait for a grammar when there is nothing else to do: then it is time to look for messages."""

PROFILE_SECONDS = 600.0
"""Silence that writing a profile may take: those of a GPU can have millions of events."""

StepEvent = Callable[[str, Planned | None, float], None]
"""Told what begins: ``plan``, ``launch``, ``launched``, ``wait``, ``process`` or ``processed``; which step it is about,
and how many seconds that took on the device, once it is known."""


class SchedulerMessages(Protocol):
    """The scheduler's end of its channels, as far as the loop needs it; nothing in it blocks but ``recv``."""

    @property
    def heartbeat_due(self) -> bool:
        """Whether it is time to show that the loop turns."""

    @property
    def descriptors(self) -> Sequence[int]:
        """File descriptors of which one can be read from once messages have arrived after :meth:`recv` found none."""

    def recv(self, timeout_s: float) -> Sequence[ToScheduler]:
        """Messages that have arrived; waits at most ``timeout_s`` seconds for the first."""

    def send(self, message: ControlReply | Heartbeat) -> None:
        """Send a control reply or a heartbeat."""


class Scheduler:
    """Decides what runs next, and runs it.

    Usable without sockets: :meth:`process_input_requests` takes messages, :meth:`step` advances everything by one
    step, and deltas go to ``send_deltas``.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        worker: Worker,
        tokenizer: Tokenizer | None,
        *,
        send_deltas: Callable[[list[OutputDelta]], None],
        make_executor: Callable[[Worker], StepExecutor] | None = None,
        make_compiler: Callable[[], GrammarCompiler] | None = None,
        on_event: StepEvent | None = None,
        strict_accounting: bool = False,
    ) -> None:
        """Build the host side of a loaded model.

        Args:
            server_args: resolved options.
            model_config: facts about the checkpoint.
            worker: runs steps; its model is loaded.
            tokenizer: for stop strings; ``None`` if requests have ids only.
            send_deltas: takes the results of a step; must not block.
            make_executor: runs the steps; by default what ``disable_overlap_schedule`` and the device ask for.
            make_compiler: makes what compiles grammars; by default what the options ask for.
            on_event: told what the scheduler does.
            strict_accounting: raise when KV accounting does not add up at idle, instead of repairing it.
        """
        self.server_args = server_args
        self.tokenizer = tokenizer
        self.info = info = worker.get_worker_info()
        self._send_deltas = send_deltas
        self.on_event = on_event
        self._strict_accounting = strict_accounting
        self._eos_token_ids = frozenset(model_config.eos_token_ids)
        rng = random.Random(server_args.random_seed)
        self._timed_worker = timed = TimedWorker(worker)

        reuses_prefixes = info.reuses_prefixes and not server_args.disable_radix_cache
        self.kv = make_kv(
            info.max_total_num_tokens,
            info.page_size,
            ReqToTokenPool(info.max_running_requests, info.max_req_len + 1),
            server_args.radix_eviction_policy if reuses_prefixes else None,
        )
        words = 0 if are_masks_late(info.vocab_size) else mask_words(info.vocab_size)
        self.table = RequestTable(info.max_running_requests, info.max_req_len + 1, words)
        self.queue = WaitingQueue(
            server_args.schedule_policy,
            self.kv,
            use_priority=server_args.enable_priority_scheduling,
            seed=rng.getrandbits(32),
        )
        self.requests = Requests(self.kv, self.table, self.queue, PrefixSharing(enabled=reuses_prefixes))
        start = time.perf_counter()
        self.deadlines = Deadlines(
            self.requests,
            queue_timeout=server_args.queue_timeout,
            request_timeout=server_args.request_timeout,
        )
        self.trials = Trials(self.queue)
        self.cost_model = measure_step_costs(timed, server_args.max_prefill_tokens)
        self.warmup_seconds = time.perf_counter() - start
        self.ratio = NewTokenRatio(server_args.schedule_conservativeness)
        self.planner = StepPlanner(
            self.requests,
            self.cost_model,
            self.ratio,
            limits_of_steps(server_args, info),
            vocab_size=info.vocab_size,
            send_interval=self._send_interval,
        )
        self.intake = RequestIntake(server_args, info, tokenizer, self._eos_token_ids, rng)
        self.output = OutputProcessor(self.requests, model_config.eos_token_ids, info.vocab_size)
        if make_executor is None:
            disabled = server_args.disable_overlap_schedule
            make_executor = executor_for(worker, overlap=None if disabled is None else not disabled)
        self.executor = make_executor(timed)
        try:
            self.max_steps = self._most_steps(server_args.num_continuous_decode_steps)
        except ConfigError:
            self.executor.close()
            raise
        start = time.perf_counter()
        # Here, since nothing else can run meanwhile: no stream is to wait for the vocabulary later.
        if make_compiler is not None:
            self.grammars = Grammars(self.requests, make_compiler())
        else:
            self.grammars = grammars_for(server_args, info, self.requests, tokenizer, self._eos_token_ids)
        self.grammar_seconds = time.perf_counter() - start
        self.control = ControlCalls(self, CONTROL_HANDLERS)
        self.weights = Weights(worker, self.requests, info.weight_bytes)
        self.profiler = Profiler(self.requests)
        self.log = StepLog(self.requests, server_args.decode_log_interval)
        self.shutting_down = False
        self._end: EngineDead | None = None
        self.paused = False
        self.counters = Counters()
        self._is_unchecked = False
        self._received: deque[ToScheduler] = deque()
        self._has_more = False
        self._told = (False, False)
        self._messages: SchedulerMessages | None = None
        """Where heartbeats go, while the loop runs."""
        self._dispatch: dict[type, Callable[[Any], list[ControlReply]]] = {
            TokenizedGenerateReqInput: self.handle_generate_request,
            TokenizedEmbeddingReqInput: self.handle_embedding_request,
            AbortReq: self.abort_request,
            ControlReq: self.control.submit,
            ShutdownReq: self._handle_shutdown,
        }

    def _most_steps(self, wanted: int | None) -> int:
        """Most steps of a plan.

        Raises:
            ConfigError: if more than one is wanted where there can be but one.
        """
        # Where steps overlap, the host has time to look at each.
        possible = self.info.max_steps if self.executor.depth == 0 else 1
        if wanted is not None and wanted > 1 and possible == 1:
            raise ConfigError(
                f"--num-continuous-decode-steps {wanted} is for text models on native CPU kernels without overlapping "
                "steps; here it can only be 1, so leave it out",
                param="num_continuous_decode_steps",
            )
        return possible if wanted is None else min(wanted, possible)

    # --- the loop -------------------------------------------------------------------------------------------------

    def run_event_loop(self, messages: SchedulerMessages) -> None:
        """Serve until a :class:`ShutdownReq` arrives.

        Raises:
            EngineDead: what :meth:`end_with` was told.
        """
        busy = False
        self._messages = messages
        self._timed_worker.interrupt_on(messages.descriptors)
        while not self.shutting_down:
            self.recv_requests(messages, busy)
            busy = self.step()
            while self.plan_goes_on:  # what arrives meanwhile ends it
                self.step()
            self._tell_news(messages)
            if self._end is not None:
                raise self._end
        self.close()

    def _tell_news(self, messages: SchedulerMessages) -> None:
        """Send a heartbeat if it is time, or if what was told last is no longer true for those who send requests here.

        That is: whether the queue is full, and whether anything is computed.
        """
        limit = self.server_args.max_queued_requests
        is_full = limit is not None and self.requests.num_waiting >= max(limit, 1)
        told, self._told = self._told, (is_full, self.paused)
        if messages.heartbeat_due or told != self._told:
            self.announce(expected_silence_of(self))

    def announce(self, expected_silence: float) -> None:
        """Send a heartbeat that tells for how long there may be no other, in seconds."""
        if self._messages is not None:
            self._messages.send(Heartbeat("scheduler", stats=self.stats(), expected_silence=expected_silence))

    def end_with(self, error: EngineDead) -> None:
        """End the loop with an error once what is to be said meanwhile has been said: nobody can be served any more."""
        self._end = error

    def close(self) -> None:
        """End the threads beside the scheduler, after the steps in flight. Doing it twice does nothing."""
        self.executor.close()
        self.grammars.close()

    def recv_requests(self, messages: SchedulerMessages, busy: bool) -> None:
        """Take in the messages that have come, as many as there is time for; only an idle scheduler waits for them."""
        received = self._received
        self._has_more = False
        if not received:
            received.extend(messages.recv(0.0 if busy else IDLE_POLL_SECONDS))
        deadline = time.monotonic() + INTAKE_SECONDS
        while True:
            at_most_one = [received.popleft()] if received else []
            for reply in self.process_input_requests(at_most_one):
                self._tell_news(messages)  # first: whoever is told that there is a pause is to find it so
                messages.send(reply)
            if not at_most_one:
                return
            if time.monotonic() >= deadline:
                # Descriptors tell of what comes once nothing was found, and not of what was there.
                self._has_more = True
                return
            if not received:
                received.extend(messages.recv(0.0))

    def process_input_requests(self, received: Sequence[ToScheduler]) -> list[ControlReply]:
        """Handle messages in order; returns the replies to control calls that are due."""
        if received and self.plan_goes_on:
            self._end_plan(self.requests.in_flight[0])
        # Calls that waited go before those that come now.
        replies: list[ControlReply] = self.control.poll() if received else []
        for message in received:
            try:
                replies.extend(self._dispatch[type(message)](message))
            except Exception:
                logger.exception("Could not handle a %s", type(message).__name__)
        replies.extend(self.control.poll())
        return replies

    @property
    def plan_goes_on(self) -> bool:
        """Whether the next :meth:`step` is another one of the last plan, unless there are messages before."""
        return self.executor.depth == 0 and bool(self.requests.in_flight)

    def step(self) -> bool:
        """Launch the next step, and process the results of those that may no longer be in flight.

        With an executor of depth 0 a step's results are processed before the next is planned (``event_loop_normal``);
        with depth 1, while it runs (``event_loop_overlap``).

        Returns:
            Whether there was anything to do.
        """
        if self.plan_goes_on:
            self.process_batch_result()
            return True
        self.end_late()
        self.admit_compiled()
        self._mark("plan")
        planned = None if self.paused else self.get_next_batch_to_run()
        if planned is not None:
            self.run_batch(planned)
        in_flight = self.requests.in_flight
        may_overlap = planned is not None and not self.trials.running and not self.control.wait_for_drain
        allowed = self.executor.depth if may_overlap else 0
        busy = planned is not None or bool(in_flight)
        while len(in_flight) > allowed:
            self.process_batch_result()
            if self.plan_goes_on:
                break
        if not busy and self.trials.running and not self.paused:
            if not self.trials.clear(self.requests.num_computed):
                self.trials.adjourn()
            busy = True
        if not busy and self.requests.compiling:
            self.grammars.wait(GRAMMAR_WAIT_SECONDS)
            busy = True
        if busy or self.has_unfinished_requests():
            self._is_unchecked = True
        elif self._is_unchecked:
            self._is_unchecked = False
            self._on_idle()
        return busy

    def end_late(self) -> None:
        """End requests that have waited, or taken, too long: those of which there is nothing with an error."""
        for req, limit in self.deadlines.expired():
            if limit == "queue":
                self.counters.queue_timeouts += 1
                text = f"the request has waited for {self.server_args.queue_timeout:g} s (--queue-timeout)"
                reason = FinishReason("abort", message=text, status_code=503, code="queue_timeout")
            else:
                nothing = len(self.table.output_ids(req)) == 0
                reason = FinishReason(
                    "abort", message="the request has timed out", status_code=504 if nothing else None, code="timeout"
                )
            delta = self.output.cut_short(req, reason)
            self.counters.timeouts += limit == "request" and delta.finish_reason is reason
            self.stream_output([delta])

    def admit_compiled(self) -> None:
        """Let requests go on whose grammar is ready, and end those whose grammar cannot be used."""
        failed = self.grammars.poll()
        self.stream_output(
            [
                self.output.fail(req, error.message, status_code=error.status_code, param=error.param, code=error.code)
                for req, error in failed
            ]
        )

    def get_next_batch_to_run(self) -> Planned | None:
        """Plan the next step; ends requests for which there is no way on."""
        while True:
            outcome = self.planner.plan(
                time.monotonic(),
                in_flight=bool(self.requests.in_flight),
                max_steps=1 if self._has_other_work else self.max_steps,
                seconds=self.deadlines.seconds_left,
            )
            self.stream_output([self.output.finish(req, FinishReason("stop")) for req in outcome.complete])
            for req in outcome.exhausted:
                reason = FinishReason("length", length=len(self.table.output_ids(req)))
                self.stream_output([self.output.finish(req, reason)])
            if outcome.unstartable is not None:
                message = "there is no room for the request, though nothing runs; try again"
                logger.error("Request %r cannot start: %s", outcome.unstartable.rid, message)
                self.stream_output([self.output.fail(outcome.unstartable, message, status_code=503)])
            elif outcome.needs_drain:
                if self.requests.in_flight:
                    self.process_batch_result()
            elif outcome.planned is not None or not outcome.exhausted:
                return outcome.planned

    @property
    def _has_other_work(self) -> bool:
        """Whether there is something to look at after each step, beside what steps yield."""
        return bool(
            self.requests.in_flight
            or self.trials.running
            or self.requests.compiling
            or self._received
            or self._has_more
            or self.control.are_waiting
        )

    def run_batch(self, planned: Planned) -> None:
        """Launch a step."""
        self._mark("launch", planned)
        self.requests.in_flight.append(planned)
        silence = expected_silence_of(self)
        if silence:
            self.announce(silence)
        self.executor.submit(planned.plan)
        self._mark("launched", planned)

    def process_batch_result(self) -> None:
        """Wait for the oldest step in flight and apply its result; another of the same plan may follow."""
        planned = self.requests.in_flight[0]
        self._mark("wait", planned)
        try:
            result = self.executor.resolve_batch_result()
        except Exception:
            self._fail_step(planned)
            return
        planned.add(result)
        self._mark("process", planned, result.seconds)
        if not result.goes_on:
            self._end_plan(planned)
        self.stream_output(self.output.process(planned, result))
        if result.goes_on and not planned.alive.all():
            self._end_plan(planned)
        self._clear_suspects()
        self._mark("processed", planned)

    def _end_plan(self, planned: Planned, *, num_failed: int = 0) -> None:
        """No further step of the oldest plan is run.

        Args:
            planned: the plan.
            num_failed: steps, 0 or 1, that were begun and have failed.
        """
        self.requests.in_flight.popleft()
        plan, num_run = planned.plan, planned.num_run
        num_left = plan.num_steps - num_run - num_failed
        if num_left:
            self.requests.take_back(planned, num_left)
        if num_run == 0:
            return
        has_prompt = plan.num_decode_rows < plan.num_rows
        seconds = planned.seconds / num_run
        self.cost_model.observe(plan.num_tokens, planned.token_context, seconds, has_prompt, num_run)
        self.ratio.on_decode_step(num_run - 1)  # planning has told of the first
        self.log.on_plan(planned)

    def _mark(self, event: str, planned: Planned | None = None, seconds: float = 0.0) -> None:
        if self.on_event is not None:
            self.on_event(event, planned, seconds)

    def stream_output(self, deltas: list[OutputDelta]) -> None:
        """Send what is new, if anything is."""
        if deltas:
            self._send_deltas(deltas)

    # --- requests -------------------------------------------------------------------------------------------------

    def handle_generate_request(self, message: TokenizedGenerateReqInput) -> list[ControlReply]:
        """Take a request: one :class:`Req` per parallel sample. A bad one ends with an error delta, alone."""
        return self._take(message, None)

    def handle_embedding_request(self, message: TokenizedEmbeddingReqInput) -> list[ControlReply]:
        """Take a request for a vector: a prompt after which nothing is generated."""
        prompt_only = TokenizedGenerateReqInput(
            [message.rid],
            message.input_ids,
            SamplingParams(max_new_tokens=0),
            priority=message.priority,
            timeout=message.timeout,
            extra_key=message.extra_key,
            arrival_time=message.arrival_time,
        )
        types = message.token_types
        token_types = None if types is None else np.frombuffer(types, dtype=np.uint8).astype(np.int32)
        return self._take(prompt_only, Pooling(message.dimensions, token_types))

    def _take(self, message: TokenizedGenerateReqInput, pooling: Pooling | None) -> list[ControlReply]:
        try:
            reqs = self.intake.requests_of(message, pooling, self.requests)
            if self._queue_is_full(reqs):
                self._refuse(message, "the waiting queue is full", 503, "queue_full")
                return []
            grammar = message.sampling_params.grammar
            if grammar is not None:
                self.grammars.add(reqs, grammar)
            else:
                for req in reqs:
                    self.requests.add(req)
            for req in reqs:
                self.deadlines.add(req, message.timeout)
        except BoughError as error:
            self._refuse(message, error.message, error.status_code, error.code, error.param)
        except Exception:
            logger.exception("Could not take request %r", message.rids[0] if message.rids else "without id")
            self._refuse(message, "internal error while taking the request", 500)
        return []

    def abort_request(self, message: AbortReq) -> list[ControlReply]:
        """End requests, wherever they are; an unknown id is nobody's error."""
        reqs = list(self.requests) if message.abort_all else self.requests.find(message.rid, exact=message.exact)
        reason = FinishReason("abort", message="aborted")
        deltas = [self.output.cut_short(req, reason) for req in reqs]
        self.counters.aborted += sum(delta.finish_reason is reason for delta in deltas)
        self.stream_output(deltas)
        return []

    def has_unfinished_requests(self) -> bool:
        """Whether any request is alive or any step in flight."""
        return len(self.requests) > 0 or bool(self.requests.in_flight)

    def _refuse(
        self,
        message: TokenizedGenerateReqInput,
        text: str,
        status_code: int,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        reason = FinishReason("abort", message=text, status_code=status_code, param=param, code=code)
        # An id that is alive belongs to another request, which must not be told that it has ended.
        rids = [rid for rid in message.rids if rid not in self.requests]
        self.stream_output([OutputDelta(rid, [], "", reason) for rid in rids])

    def _queue_is_full(self, arriving: list[Req]) -> bool:
        """Whether more requests would wait than may. Those that the next step can start do not count as waiting.

        Raises:
            BadRequest: if there would be too many on an idle server as well.
        """
        limit = self.server_args.max_queued_requests
        if limit is None or self.requests.num_waiting + len(arriving) <= limit:
            return False
        most = self.info.max_running_requests + limit
        if len(arriving) > most:
            raise BadRequest(
                f"n must be at most {most} on this server, got {len(arriving)}: it computes "
                f"{self.info.max_running_requests} outputs at a time and lets {limit} wait (--max-queued-requests)",
                param="n",
            )
        if not len(self.requests):
            return False
        return self.requests.num_waiting + len(arriving) - self.planner.num_startable(arriving) > limit

    def _send_interval(self, req: Req) -> int:
        if not req.stream:
            return WHOLE_ANSWER_INTERVAL
        return req.sampling_params.stream_interval or self.server_args.stream_interval

    # --- results --------------------------------------------------------------------------------------------------

    def _fail_step(self, planned: Planned) -> None:
        """A forward pass raised: whoever it fails with alone ends with an error, all others go on.

        Concerned are also those that it did not compute for but had news of: what the device knows of them now is
        unknown. A device that is broken ends the process.
        """
        self._end_plan(planned, num_failed=1)
        if planned.plan.masks is not None:
            planned.plan.masks.wait()
        reqs = [req for req in (self.table.reqs[slot] for slot in planned.concerned_slots) if req is not None]
        if reqs:  # else it was launched before the one that failed was known to have
            self.counters.failed_steps += 1
            logger.exception("Step %d failed, with %d requests in it", planned.plan.step_id, len(reqs))
        # Whoever has left since the step was launched may be to blame as well: their rows were computed all the same.
        if len(reqs) == 1 and not planned.left:
            reason = FinishReason("abort", message="the forward pass failed", status_code=500)
            self.stream_output([self.output.cut_short(reqs[0], reason, keep=False)])
            self._clear_suspects()
        elif reqs:
            suspects = {req: int(self.table.planned_len[req.slot]) for req in reqs}
            self._retract_all()
            self.trials.accuse(suspects)
        self._probe_device()

    def _clear_suspects(self) -> None:
        """After a step: whoever is on trial next gets the memory of all others."""
        others_hold = self.requests.num_holding > 0
        if self.trials.running and self.trials.clear(self.requests.num_computed, others_hold=others_hold):
            self._retract_all()

    def pause(self) -> None:
        """Launch nothing from now on, also for requests that come, until :meth:`resume`.

        Steps in flight are the loop's to process, as always: a device that is broken ends it.
        """
        self.paused = True

    def settle_pause(self, mode: PauseMode) -> None:
        """Pause, when nothing is in flight any more.

        Args:
            mode: what becomes of requests that are here: ``abort`` ends them, ``retract`` takes their memory (what is
                in the prefix cache stays there), ``in_place`` leaves them as they are.
        """
        assert not self.requests.in_flight, "retraction frees what a step in flight writes to"
        self.pause()  # again, for somebody may have ended it while this call waited
        if mode == "abort":
            self.abort_request(AbortReq(abort_all=True))
        elif mode == "retract":
            self._retract_all()
        else:
            self._end_complete()
        self.log.on_idle()

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        if self.paused:
            self.log.on_idle()
        self.paused = False

    def _end_complete(self) -> None:
        """End the requests that have come to their end, of which the next step would tell."""
        ended = [req for req in self.table.reqs if req is not None and self.requests.is_complete(req)]
        self.stream_output([self.output.finish(req, FinishReason("stop")) for req in ended])

    def _retract_all(self) -> None:
        """Everybody waits; whoever may goes on from what is cached."""
        self._end_complete()
        for req in self.table.reqs:
            if req is not None:
                self.requests.retract(req)

    def _probe_device(self) -> None:
        """After a failure: end the process unless the device can still compute something harmless."""
        while self.requests.in_flight:
            self.process_batch_result()
        token = np.zeros(1, dtype=np.int32)
        place = self.kv.begin(token, None, 0)
        slots = self.kv.extend(place, 1) if place is not None else None
        if place is None:
            return
        if slots is not None:
            probe_device(self._timed_worker, place.req_slot, slots)
        self.kv.finish(place, token, 0, keep=False)

    def _on_idle(self) -> None:
        """Nothing is alive any more: everything must be back where it came from."""
        self.ratio.reset()
        self.log.on_idle()
        discrepancy = self.kv.check_idle()
        if discrepancy is None:
            return
        if self._strict_accounting:
            raise RuntimeError(f"KV accounting does not add up: {discrepancy}")
        self.counters.repairs += 1
        logger.error("KV accounting does not add up, starting over with an empty cache: %s", discrepancy)
        self.kv.repair()

    def _handle_shutdown(self, _: ShutdownReq) -> list[ControlReply]:
        self.shutting_down = True
        return []

    # --- profiles ---------------------------------------------------------------------------------------------------

    def start_profile(self, params: dict[str, Any]) -> None:
        """Begin to record what is done; see :class:`~bough.scheduler.profiler.ProfileSettings`."""
        mark = self.profiler.start(params)

        def record(event: str, planned: Planned | None, seconds: float) -> None:
            mark(event, planned, seconds)
            if event == "processed" and self.profiler.is_complete:
                try:
                    self.stop_profile()
                except BoughError as error:
                    logger.error("%s", error.message)

        self.on_event = record

    def stop_profile(self) -> list[str]:
        """End the profile; returns the paths of its files."""
        self.on_event = None
        self.announce(PROFILE_SECONDS)
        return self.profiler.stop()

    # --- what others ask ------------------------------------------------------------------------------------------

    def init_info(self) -> dict[str, Any]:
        """What the front end must know, once."""
        return init_info_of(self)

    def stats(self) -> SchedulerStats:
        """Load and counters, for heartbeats and metrics."""
        return stats_of(self)

    def internal_state(self) -> dict[str, Any]:
        """Everything worth knowing about the scheduler now; ``kv_discrepancy`` is meaningful when idle."""
        return internal_state_of(self)
