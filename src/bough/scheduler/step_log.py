"""Counters of what was computed, and the log lines that operators read."""

from __future__ import annotations

import logging
import time

from bough.scheduler.requests import Requests
from bough.scheduler.step_builder import Planned
from bough.step_plan import StepResult

logger = logging.getLogger(__name__)


class StepLog:
    """Counts tokens and logs one line per prefill step and one per ``decode_log_interval`` decode steps."""

    def __init__(self, requests: Requests, decode_log_interval: int) -> None:
        self._requests = requests
        self._interval = decode_log_interval
        self.steps = 0
        self.prefill_tokens = 0
        """Prompt tokens computed."""
        self.prefill_seconds = 0.0
        """Duration of the steps that computed them."""
        self.cached_tokens = 0
        """Prompt tokens taken from the prefix cache."""
        self.gen_throughput = 0.0
        """Decoded tokens per second over the last interval."""
        self.decode_moments = [0, 0, 0.0, 0, 0.0, 0]
        """Sums over the steps that only decoded, from which their time as a line over the batch can be fitted: steps,
        rows, microseconds, rows², rows * microseconds, tokens."""
        self._decode_steps = 0
        self._decoded = 0
        self._since = time.monotonic()

    def on_step(self, planned: Planned, result: StepResult) -> None:
        """Account for a finished step."""
        plan = planned.plan
        self.steps += 1
        end = plan.num_decode_rows + len(planned.extend_reqs)
        new_tokens = int(plan.extend_lens[plan.num_decode_rows : end].sum())
        if new_tokens:
            cached, self.cached_tokens = (
                self._requests.num_cached_tokens - self.cached_tokens,
                (self._requests.num_cached_tokens),
            )
            self.prefill_tokens += new_tokens
            self.prefill_seconds += result.seconds
            if logger.isEnabledFor(logging.INFO):
                logger.info(
                    "Prefill batch. #new-seq: %d, #new-token: %d, #cached-token: %d, token usage: %.2f, "
                    "#running-req: %d, #queue-req: %d",
                    len(plan.new_requests),
                    new_tokens,
                    cached,
                    self._token_usage(),
                    self._requests.num_holding,
                    self._requests.num_waiting,
                )
        if plan.num_decode_rows or planned.jump_reqs:
            self._decode_steps += 1
            decoded = plan.num_decode_rows + int(plan.extend_lens[end:].sum())
            self._decoded += decoded
            if not new_tokens:
                rows, micros = plan.num_decode_rows + len(planned.jump_reqs), result.seconds * 1e6
                added = (1, rows, micros, rows * rows, rows * micros, decoded)
                self.decode_moments = [total + each for total, each in zip(self.decode_moments, added, strict=True)]
            if self._decode_steps % self._interval == 0:
                self._log_decode()

    def on_idle(self) -> None:
        """Nothing runs: the next interval starts with the next step."""
        self.gen_throughput = 0.0
        self._decoded, self._since = 0, time.monotonic()

    def _log_decode(self) -> None:
        now = time.monotonic()
        self.gen_throughput = self._decoded / max(now - self._since, 1e-9)
        self._decoded, self._since = 0, now
        logger.info(
            "Decode batch. #running-req: %d, #token: %d, token usage: %.2f, gen throughput (token/s): %.2f, "
            "#queue-req: %d",
            self._requests.num_holding,
            self._used(),
            self._token_usage(),
            self.gen_throughput,
            self._requests.num_waiting,
        )

    def _used(self) -> int:
        return self._requests.kv.allocator.total_size - self._requests.kv.available_tokens

    def _token_usage(self) -> float:
        return self._used() / max(self._requests.kv.allocator.total_size, 1)
