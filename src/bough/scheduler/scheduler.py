"""The scheduler: receive, admit, plan, run, process."""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from bough.config.model_config import ModelConfig
from bough.config.ranks import SCHEDULER, ProcessKey
from bough.config.server_args import ServerArgs
from bough.constrained.compiler import GrammarCompiler
from bough.ipc.messages import (
    AbortReq,
    ControlReply,
    ControlReq,
    FinishReason,
    OutputDelta,
    ShutdownReq,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
    ToScheduler,
)
from bough.model_executor.worker_info import Worker
from bough.scheduler.arrivals import Arrivals
from bough.scheduler.cache_calls import cache_calls
from bough.scheduler.control import ControlCalls
from bough.scheduler.endings import Endings
from bough.scheduler.executor import StepExecutor, start_executor
from bough.scheduler.grammars import grammars_for
from bough.scheduler.heartbeats import Heartbeats, SchedulerMessages
from bough.scheduler.intake import RequestIntake
from bough.scheduler.output_processor import OutputProcessor
from bough.scheduler.pause import Pause
from bough.scheduler.planned import Planned
from bough.scheduler.planner import PlanOutcome, make_planner
from bough.scheduler.profiler import Profiler, StepEvent
from bough.scheduler.reports import Reports, init_info
from bough.scheduler.requests import make_requests
from bough.scheduler.sleep import Sleep
from bough.scheduler.step_log import StepLog
from bough.scheduler.steps_in_flight import StepsInFlight
from bough.scheduler.weights import Weights
from bough.scheduler.worker_calls import WorkerMethods
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

IDLE_POLL_SECONDS = 0.25
"""Longest wait for a message when there is nothing to do; only heartbeats and waiting control calls need a tick."""

INTAKE_SECONDS = 0.002
"""Longest time that taking in messages may hold up running requests; the rest is taken in after the next step."""

GRAMMAR_WAIT_SECONDS = 0.002
"""Longest wait for a grammar when there is nothing else to do: then it is time to look for messages."""


class Scheduler:
    """Decides what runs next, and runs it.

    Usable without sockets: :meth:`process_input_requests` takes messages, :meth:`step` advances everything by one
    step, and deltas go to ``send_to_detokenizer``.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        worker: Worker,
        tokenizer: Tokenizer | None,
        *,
        key: ProcessKey = SCHEDULER,
        send_to_detokenizer: Callable[[list[OutputDelta]], None],
        make_executor: Callable[[Worker], StepExecutor] | None = None,
        make_compiler: Callable[[], GrammarCompiler] | None = None,
        on_event: StepEvent | None = None,
        strict_accounting: bool = False,
    ) -> None:
        """Build the host side of a loaded model.

        Args:
            tokenizer: for stop strings; ``None`` if requests have ids only.
            key: identity of the scheduler in heartbeats and replies.
            send_to_detokenizer: takes the results of a step; must not block.
            make_executor: runs the steps; by default what ``disable_overlap_schedule`` and the device ask for.
            make_compiler: makes what compiles grammars; by default what the options ask for.
            on_event: notified of what the scheduler begins to do.
            strict_accounting: raise when KV accounting does not add up at idle, instead of repairing it.
        """
        self.info = info = worker.get_worker_info()
        self._strict_accounting = strict_accounting
        self.worker = worker
        eos_token_ids = frozenset(model_config.eos_token_ids)
        seed = server_args.random_seed
        # Replicas draw different seeds for their requests.
        rng = random.Random(seed if key.dp is None else f"{seed} {key.dp}")
        self.requests = requests = make_requests(server_args, info, queue_seed=rng.getrandbits(32))
        start = time.perf_counter()
        self.planner = make_planner(server_args, requests, worker)
        warm = time.perf_counter()
        self.endings = endings = Endings(requests, info.vocab_size, send_to_detokenizer, worker.routed_experts)
        self.output = OutputProcessor(requests, endings, eos_token_ids, info.vocab_size)
        self.executor, self.max_steps = start_executor(server_args, worker, make_executor)
        begin = time.perf_counter()
        # Here, since nothing else can run meanwhile: no stream is to wait for the vocabulary later.
        self.grammars = grammars_for(server_args, info, requests, tokenizer, eos_token_ids, make_compiler)
        timings = {**info.timings, "warm-up": warm - start, "grammar engine": time.perf_counter() - begin}
        self.init_info = init_info(info, self.max_steps, timings)
        intake = RequestIntake(server_args, info, tokenizer, eos_token_ids, rng, key.dp)
        self.log = log = StepLog(requests, server_args.decode_log_interval, worker.kernel_counts)
        self.arrivals = Arrivals(server_args, intake, self.grammars, self.planner, endings)
        self.pause = Pause(requests, endings, log)
        self.reports = Reports(worker, self.planner, log, self.pause)
        self.heartbeats = Heartbeats(key, self.reports, self.arrivals, self.pause)
        self.profiler = Profiler(key, requests, self.heartbeats.announce, on_event)
        on_plan = (self.planner.learn, log.on_plan)
        self.steps = StepsInFlight(self.executor, self.output, self.heartbeats, self.profiler, on_plan)
        rank = (key.dp or 0) * server_args.tp_size
        self.weights = Weights(worker, requests, self.pause, info.weight_bytes, self.heartbeats.announce, rank)
        self.sleep = Sleep(worker, requests, self.pause, endings, self.heartbeats.announce)
        workers = WorkerMethods(worker, requests, self.pause, self.heartbeats.announce)
        features = (self.pause, self.weights, self.sleep, workers, self.profiler, self.reports)
        self.control = ControlCalls(key, cache_calls(requests), *(feature.calls() for feature in features))
        self.shutting_down = False
        self._is_unchecked = False
        self._received: deque[ToScheduler] = deque()
        self._dispatch: dict[type, Callable[[Any], list[ControlReply] | None]] = {
            TokenizedGenerateReqInput: self.arrivals.handle_generate_request,
            TokenizedEmbeddingReqInput: self.arrivals.handle_embedding_request,
            AbortReq: self.arrivals.abort_request,
            ControlReq: self.control.submit,
            ShutdownReq: self._handle_shutdown,
        }

    def run_event_loop(self, messages: SchedulerMessages) -> None:
        """Serve until a :class:`ShutdownReq` arrives; raises :class:`EngineDead` if a control call has left an engine
        that cannot serve."""
        self.heartbeats.messages = messages
        self.worker.interrupt_on(messages.descriptors)
        if self.executor.depth:
            self.event_loop_overlap(messages)
        else:
            self.event_loop_normal(messages)
        self.close()

    def event_loop_normal(self, messages: SchedulerMessages) -> None:
        """Serve; the result of each step is processed before the next one is planned."""
        busy = False
        while not self.shutting_down:
            self.recv_requests(messages, busy)
            busy = self.step_normal()
            while self.steps.plan_goes_on:  # messages that arrive end it
                self.steps.process_batch_result()
            self._end_tick()

    def event_loop_overlap(self, messages: SchedulerMessages) -> None:
        """Serve; the result of each step is processed while the next one runs."""
        busy = False
        while not self.shutting_down:
            self.recv_requests(messages, busy)
            busy = self.step_overlap()
            self._end_tick()

    def _end_tick(self) -> None:
        self.heartbeats.send_news()
        if self.control.fatal is not None:
            raise self.control.fatal

    def step(self) -> bool:
        """Advance everything by one step; returns whether there was anything to do."""
        return self.step_overlap() if self.executor.depth else self.step_normal()

    def step_normal(self) -> bool:
        """Run a step and process its result, or the next step of a plan that has several."""
        if self.steps.plan_goes_on:
            self.steps.process_batch_result()
            return True
        planned = self._begin_step()
        if planned is not None:
            self.steps.run_batch(planned)
            self.steps.process_batch_result()
        return self._settle(busy=planned is not None)

    def step_overlap(self) -> bool:
        """Launch a step, and process the results of all that may not be in flight beside it."""
        planned = self._begin_step()
        if planned is not None:
            self.steps.run_batch(planned)
        may_overlap = planned is not None and not self.steps.trials.running and not self.control.wait_for_drain
        in_flight = self.requests.in_flight
        busy = bool(in_flight)
        while len(in_flight) > (self.executor.depth if may_overlap else 0):
            self.steps.process_batch_result()
        return self._settle(busy)

    def _begin_step(self) -> Planned | None:
        """End late requests, queue those whose grammar is ready, and plan the next step unless there may be none."""
        self.arrivals.end_late()
        self.arrivals.admit_compiled()
        self.profiler.mark("plan")
        return None if self.pause.holds_steps or self.control.has_promised else self.get_next_batch_to_run()

    def get_next_batch_to_run(self) -> Planned | None:
        """Plan the next step; ends requests that cannot continue."""
        while True:
            outcome = self.planner.plan(
                time.monotonic(),
                in_flight=bool(self.requests.in_flight),
                max_steps=1 if self._has_other_work else self.max_steps,
                seconds=self.arrivals.deadlines.seconds_left,
            )
            self._end_impossible(outcome)
            if outcome.is_final:
                return outcome.planned
            if outcome.needs_drain and self.requests.in_flight:
                self.steps.process_batch_result()

    def _end_impossible(self, outcome: PlanOutcome) -> None:
        """End requests that no plan can continue, or of which planning has found that they are complete."""
        endings, finish = self.endings, self.endings.finish
        deltas = [finish(req, FinishReason("stop")) for req in outcome.complete]
        for req in outcome.exhausted:
            deltas.append(finish(req, FinishReason("length", length=len(self.requests.table.output_ids(req)))))
        if outcome.unstartable is not None:
            message = "there is no room for the request, though nothing runs; try again"
            logger.error("Request %r cannot start: %s", outcome.unstartable.rid, message)
            deltas.append(endings.fail(outcome.unstartable, message, status_code=503))
        endings.stream_output(deltas)

    @property
    def _has_other_work(self) -> bool:
        """True if there is something to look at after each step, besides its results."""
        return bool(
            self.requests.in_flight
            or self.steps.trials.running
            or self.requests.compiling
            or self._received
            or self.control.are_waiting
        )

    def _settle(self, busy: bool) -> bool:
        """After a tick, ``busy`` with a step or not: let suspects of a failed step or grammars have their turn, or
        check the accounts at idle.

        Returns true if the loop should continue without waiting for messages.
        """
        if not busy and self.steps.trials.running and not (self.pause.holds_steps or self.control.has_promised):
            self.steps.skip_trial()
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

    def _on_idle(self) -> None:
        """Check that everything is back where it came from, now that no request is alive."""
        self.planner.ratio.reset()
        self.log.on_idle()
        discrepancy = self.requests.kv.check_idle()
        if discrepancy is None:
            return
        if self._strict_accounting:
            raise RuntimeError(f"KV accounting does not add up: {discrepancy}")
        logger.error("KV accounting does not add up, starting over with an empty cache: %s", discrepancy)
        self.requests.kv.repair()

    def recv_requests(self, messages: SchedulerMessages, busy: bool) -> None:
        """Take in the messages that have come, as many as there is time for; only an idle scheduler waits for them."""
        received = self._received
        if not received:
            received.extend(messages.recv(0.0 if busy else IDLE_POLL_SECONDS))
        deadline = time.monotonic() + INTAKE_SECONDS
        while received:
            self._handle(messages, [received.popleft()])
            if not received:
                # Until nothing is found: descriptors show only what comes after that.
                received.extend(messages.recv(0.0))
            if time.monotonic() >= deadline:
                break
        self._handle(messages, [])

    def _handle(self, messages: SchedulerMessages, received: Sequence[ToScheduler]) -> None:
        for reply in self.process_input_requests(received):
            self.heartbeats.send_news()  # first: a client that knows of a pause must find it in effect
            messages.send_to_tokenizer(reply)

    def process_input_requests(self, received: Sequence[ToScheduler]) -> list[ControlReply]:
        """Handle messages in order; returns the replies to control calls that are due."""
        if received and self.steps.plan_goes_on:
            self.steps.end_plan()
        # Calls that have waited go before those that come now.
        replies: list[ControlReply] = self.control.poll() if received else []
        for message in received:
            try:
                replies.extend(self._dispatch[type(message)](message) or ())
            except Exception:
                logger.exception("Could not handle a %s", type(message).__name__)
        replies.extend(self.control.poll())
        return replies

    def has_unfinished_requests(self) -> bool:
        """Return whether any request is alive or any step in flight."""
        return self.requests.are_unfinished

    def close(self) -> None:
        """End the threads beside the scheduler, after the steps in flight. Doing it twice does nothing."""
        self.executor.close()
        self.grammars.close()

    def _handle_shutdown(self, _: ShutdownReq) -> None:
        self.shutting_down = True
