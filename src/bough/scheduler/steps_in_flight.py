"""Steps from their launch to their results, failures included."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np

from bough.ipc.messages import FinishReason
from bough.scheduler.executor import StepExecutor
from bough.scheduler.heartbeats import Heartbeats
from bough.scheduler.output_processor import OutputProcessor
from bough.scheduler.planned import Planned
from bough.scheduler.profiler import Profiler
from bough.scheduler.trials import Trials
from bough.scheduler.warmup import probe_device

logger = logging.getLogger(__name__)


class StepsInFlight:
    """Launches steps, and applies their results in the order of the launches."""

    def __init__(
        self,
        executor: StepExecutor,
        output: OutputProcessor,
        heartbeats: Heartbeats,
        profiler: Profiler,
        on_plan: Sequence[Callable[[Planned], None]],
    ) -> None:
        """Begin with none; ``on_plan`` are called with each plan that has run, or as much of it as was to."""
        self._requests = output.requests
        self.executor = executor
        self._output = output
        self._endings = output.endings
        self._on_plan = on_plan
        self._heartbeats = heartbeats
        self._profiler = profiler
        self.trials = Trials(self._requests.waiting_queue)

    @property
    def plan_goes_on(self) -> bool:
        """True if the oldest plan has another step to be run, unless messages arrive before."""
        return self.executor.depth == 0 and bool(self._requests.in_flight)

    def run_batch(self, planned: Planned) -> None:
        """Launch a step."""
        self._profiler.mark("launch", planned)
        self._requests.in_flight.append(planned)
        self._heartbeats.announce_if_long()
        self.executor.submit(planned.plan)
        self._profiler.mark("launched", planned)

    def process_batch_result(self) -> None:
        """Wait for the oldest step in flight and apply its result; another of the same plan may follow."""
        planned = self._requests.in_flight[0]
        self._profiler.mark("wait", planned)
        try:
            result = self.executor.resolve_batch_result()
        except Exception:
            self._fail(planned)
            return
        planned.add(result)
        self._profiler.mark("process", planned, result.seconds)
        if not result.goes_on:
            self.end_plan()
        self._endings.stream_output(self._output.apply(planned, result))
        if result.goes_on and not planned.all_alive:
            self.end_plan()
        self._clear_suspects()
        self._profiler.mark("processed", planned)

    def end_plan(self, *, num_failed: int = 0) -> None:
        """Run no further step of the oldest plan, of which ``num_failed`` steps (0 or 1) have begun and failed."""
        planned = self._requests.in_flight.popleft()
        num_left = planned.plan.num_steps - planned.num_run - num_failed
        if num_left:
            self._requests.take_back(planned, num_left)
        if planned.num_run:
            for notify in self._on_plan:
                notify(planned)

    def _fail(self, planned: Planned) -> None:
        """End the request with which a forward pass fails alone; all others continue.

        Suspects include requests that the step did not compute for but had news of: their state on the device is
        unknown now. A broken device ends the process.
        """
        self.end_plan(num_failed=1)
        if planned.plan.masks is not None:
            planned.plan.masks.wait()
        table = self._requests.table
        reqs = [req for req in (table.reqs[slot] for slot in planned.concerned_slots) if req is not None]
        if reqs:  # else it was launched before the failure of an earlier one was known
            self._requests.stats.failed_steps_total += 1
            logger.exception("Step %d failed, with %d requests in it", planned.plan.step_id, len(reqs))
        # Requests that have left since the launch may be to blame as well: their rows were computed all the same.
        if len(reqs) == 1 and not planned.left:
            reason = FinishReason("abort", message="the forward pass failed", status_code=500)
            self._endings.stream_output([self._endings.cut_short(reqs[0], reason, keep=False)])
            self._clear_suspects()
        elif reqs:
            suspects = {req: int(table.planned_len[req.slot]) for req in reqs}
            self._endings.stream_output(self._endings.retract_all())
            self.trials.accuse(suspects)
        self._probe_device()

    def _clear_suspects(self) -> None:
        """After a step: give the memory of all others to the requests that are on trial next."""
        others_hold = self._requests.num_holding > 0
        if self.trials.running and self.trials.clear(self._requests.table.num_computed, others_hold=others_hold):
            self._endings.stream_output(self._endings.retract_all())

    def skip_trial(self) -> None:
        """Go on with other requests where nothing could be computed for those on trial."""
        if not self.trials.clear(self._requests.table.num_computed):
            self.trials.adjourn()

    def _probe_device(self) -> None:
        """After a failure: end the process unless the device can still compute something harmless."""
        while self._requests.in_flight:
            self.process_batch_result()
        kv = self._requests.kv
        token = np.zeros(1, dtype=np.int32)
        request_kv = kv.begin(token, None, 0)
        if request_kv is None:
            return
        slots = kv.extend(request_kv, 1)
        if slots is not None:
            probe_device(self.executor.worker, request_kv.req_slot, slots)
        kv.finish(request_kv, token, 0, keep=False)
