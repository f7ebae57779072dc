"""Counters of what was computed, and the log lines that operators read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bough.model_executor.worker_info import KernelCounts
from bough.scheduler.planned import Planned
from bough.scheduler.requests import Requests

logger = logging.getLogger(__name__)

DEFAULT_INTERVAL = 40
"""Steps per line if ``--decode-log-interval`` is not given."""

QUIET_SECONDS = 10.0
"""Least time between two lines if ``--decode-log-interval`` is not given, for servers that run unattended."""

NOISE = 0.05
"""Pieces of work computed again per run of the kernels, up to which nothing is said: threads of any machine are
interrupted now and then."""

# Seconds of steps with prompts, after which there is a line of them.
_LONGEST_SILENCE = 5.0


@dataclass(slots=True)
class _Prefill:
    """Numbers for the next line about prompts."""

    new_seq: int = 0
    new_token: int = 0
    cached_token: int = 0
    step: int = 0
    """Steps that computed these tokens."""
    seconds: float = 0.0
    """Duration of these steps."""


class StepLog:
    """Counts tokens and logs the progress.

    A line is written for every step that begins a prompt, for every ``log_interval`` steps that continue prompts (or as
    many as take some seconds, or when no prompt is left), and for every ``log_interval`` decode steps. Next to running
    streams, a long prompt is computed in hundreds of pieces.

    Without an interval, and unless the log level is debug, at most one line per :data:`QUIET_SECONDS` is written,
    alternating between prompts and decoding. A prompt line covers all since the last.

    A decode line is followed by one about threads that had lost their cores, if they have since the last more often
    than :data:`NOISE`.
    """

    def __init__(
        self,
        requests: Requests,
        log_interval: int | None,
        kernel_counts: Callable[[], KernelCounts] = KernelCounts,
    ) -> None:
        self._requests = requests
        self._kernel_counts, self._kernels = kernel_counts, kernel_counts()
        self._interval = log_interval or DEFAULT_INTERVAL
        self._quiet_s = QUIET_SECONDS if log_interval is None else 0.0
        self._quiet_until = 0.0
        """Value of ``time.monotonic()`` before which no line is written."""
        self._last_was_prefill = False
        self._decode_is_due = False
        """True if a decode line was suppressed since the last line, which was about prompts."""
        self._stats = requests.stats
        self._cached_tokens = 0
        """Prompt tokens taken from the prefix cache before the last step that computed others."""
        self.decode_moments = [0, 0, 0.0, 0, 0.0, 0]
        """Sums over the steps that only decoded, from which their time as a line over the batch can be fitted: steps,
        rows, microseconds, rows², rows * microseconds, tokens."""
        self._prefill = _Prefill()
        self._decode_steps = 0
        self._decoded = 0
        self._since = time.monotonic()

    def on_plan(self, planned: Planned) -> None:
        """Account for a plan whose steps are done."""
        plan, num_steps, seconds, stats = planned.plan, planned.num_run, planned.seconds, self._stats
        stats.steps_total += num_steps
        stats.step_seconds_total += seconds
        end = plan.num_decode_rows + len(planned.prompts)
        new_tokens = int(plan.extend_lens[plan.num_decode_rows : end].sum())
        if new_tokens:
            cached_before, self._cached_tokens = self._cached_tokens, stats.cached_tokens_total
            stats.prefill_tokens_total += new_tokens
            stats.prefill_seconds_total += seconds
            told = self._prefill
            told.new_seq += len(plan.new_requests)
            told.new_token += new_tokens
            told.cached_token += self._cached_tokens - cached_before
            told.step += 1
            told.seconds += seconds
            if told.new_seq or told.step >= self._interval or told.seconds >= _LONGEST_SILENCE:
                self._log_prefill()
        elif self._prefill.step:
            self._log_prefill()
        if plan.num_decode_rows or planned.jumps:
            before, self._decode_steps = self._decode_steps, self._decode_steps + num_steps
            decoded = plan.num_decode_rows * num_steps + int(plan.extend_lens[end:].sum())
            self._decoded += decoded
            if not new_tokens:
                rows, micros = plan.num_decode_rows + len(planned.jumps), seconds * 1e6
                steps_rows = num_steps * rows
                added = (num_steps, steps_rows, micros, steps_rows * rows, rows * micros, decoded)
                self.decode_moments = [total + each for total, each in zip(self.decode_moments, added, strict=True)]
            if self._decode_steps // self._interval != before // self._interval:
                self._log_decode()

    def on_idle(self) -> None:
        """Start the next interval with the next step, because nothing is running."""
        if self._prefill.step:
            self._log_prefill()
        self._stats.gen_throughput = 0.0
        self._decoded, self._since = 0, time.monotonic()

    def _may_write(self, longer_s: float = 0.0) -> bool:
        """Claim the right to write a line, if enough time plus ``longer_s`` has passed since the last one."""
        now = time.monotonic()
        if now < self._quiet_until + longer_s and not logger.isEnabledFor(logging.DEBUG):
            return False
        self._quiet_until = now + self._quiet_s
        return True

    def _log_prefill(self) -> None:
        if not self._may_write(self._quiet_s if self._decode_is_due else 0.0):
            return
        self._last_was_prefill = True
        told, self._prefill = self._prefill, _Prefill()
        if logger.isEnabledFor(logging.INFO):
            logger.info(
                "Prefill batch. #new-seq: %(new_seq)d, #new-token: %(new_token)d, #cached-token: %(cached_token)d, "
                "token usage: %(token_usage).2f, #running-req: %(running_req)d, #queue-req: %(queue_req)d, "
                "#step: %(step)d",
                {**asdict(told), **self._load()},
                extra={"event": "prefill_batch"},
            )

    def _log_decode(self) -> None:
        now = time.monotonic()
        self._stats.gen_throughput = self._decoded / max(now - self._since, 1e-9)
        self._decoded, self._since = 0, now
        if not self._may_write():
            self._decode_is_due = self._last_was_prefill
            return
        self._last_was_prefill = self._decode_is_due = False
        logger.info(
            "Decode batch. #running-req: %(running_req)d, #token: %(token)d, token usage: %(token_usage).2f, "
            "gen throughput (token/s): %(gen_throughput).2f, #queue-req: %(queue_req)d",
            {"token": self._used(), "gen_throughput": self._stats.gen_throughput, **self._load()},
            extra={"event": "decode_batch"},
        )
        self._log_lost_cores()

    def _log_lost_cores(self) -> None:
        counts, before = self._kernel_counts(), self._kernels
        self._kernels = counts
        recomputed, runs = counts.recomputed - before.recomputed, max(counts.runs - before.runs, 1)
        if recomputed <= NOISE * runs:
            return
        logger.info(
            "Lost cores. #recomputed: %(recomputed)d, #threads: %(threads).2f",
            {
                "recomputed": recomputed,
                "threads": 1 + (counts.joined - before.joined) / runs,
            },
            extra={"event": "lost_cores"},
        )

    def _load(self) -> dict[str, float]:
        requests = self._requests
        usage = self._used() / max(requests.kv.allocator.total_size, 1)
        return {"token_usage": usage, "running_req": requests.num_holding, "queue_req": requests.num_waiting}

    def _used(self) -> int:
        return self._requests.kv.allocator.total_size - self._requests.kv.available_tokens
