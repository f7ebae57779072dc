"""Counters of what was computed, and the log lines that operators read."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass

from bough.scheduler.requests import Requests
from bough.scheduler.step_builder import Planned

logger = logging.getLogger(__name__)

# Seconds of steps with prompts, after which there is a line of them.
_LONGEST_SILENCE = 5.0


@dataclass(slots=True)
class _Prefill:
    """What the next line about prompts tells."""

    new_seq: int = 0
    new_token: int = 0
    cached_token: int = 0
    step: int = 0
    """Steps that computed these tokens."""
    seconds: float = 0.0
    """How long they took."""


class StepLog:
    """Counts tokens and logs what is going on.

    There is a line for every step that begins a prompt, one for ``log_interval`` steps that go on with some, or as many
    as take some seconds, or what there are of them when no prompt is left, and one for ``log_interval`` decode steps.
    Beside streams a long prompt is computed in hundreds of pieces.
    """

    def __init__(self, requests: Requests, log_interval: int) -> None:
        self._requests = requests
        self._interval = log_interval
        self.steps = 0
        self.step_seconds = 0.0
        """Duration of all steps on the device."""
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
        self._prefill = _Prefill()
        self._decode_steps = 0
        self._decoded = 0
        self._since = time.monotonic()

    def on_plan(self, planned: Planned) -> None:
        """Account for a plan whose steps are done."""
        plan, num_steps, seconds = planned.plan, planned.num_run, planned.seconds
        self.steps += num_steps
        self.step_seconds += seconds
        end = plan.num_decode_rows + len(planned.extend_reqs)
        new_tokens = int(plan.extend_lens[plan.num_decode_rows : end].sum())
        if new_tokens:
            cached, self.cached_tokens = (
                self._requests.num_cached_tokens - self.cached_tokens,
                (self._requests.num_cached_tokens),
            )
            self.prefill_tokens += new_tokens
            self.prefill_seconds += seconds
            told = self._prefill
            told.new_seq += len(plan.new_requests)
            told.new_token += new_tokens
            told.cached_token += cached
            told.step += 1
            told.seconds += seconds
            if told.new_seq or told.step >= self._interval or told.seconds >= _LONGEST_SILENCE:
                self._log_prefill()
        elif self._prefill.step:
            self._log_prefill()
        if plan.num_decode_rows or planned.jump_reqs:
            before, self._decode_steps = self._decode_steps, self._decode_steps + num_steps
            decoded = plan.num_decode_rows * num_steps + int(plan.extend_lens[end:].sum())
            self._decoded += decoded
            if not new_tokens:
                rows, micros = plan.num_decode_rows + len(planned.jump_reqs), seconds * 1e6
                steps_rows = num_steps * rows
                added = (num_steps, steps_rows, micros, steps_rows * rows, rows * micros, decoded)
                self.decode_moments = [total + each for total, each in zip(self.decode_moments, added, strict=True)]
            if self._decode_steps // self._interval != before // self._interval:
                self._log_decode()

    def on_idle(self) -> None:
        """Nothing runs, or nothing is to: the next interval starts with the next step."""
        if self._prefill.step:
            self._log_prefill()
        self.gen_throughput = 0.0
        self._decoded, self._since = 0, time.monotonic()

    def _log_prefill(self) -> None:
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
        self.gen_throughput = self._decoded / max(now - self._since, 1e-9)
        self._decoded, self._since = 0, now
        logger.info(
            "Decode batch. #running-req: %(running_req)d, #token: %(token)d, token usage: %(token_usage).2f, "
            "gen throughput (token/s): %(gen_throughput).2f, #queue-req: %(queue_req)d",
            {"token": self._used(), "gen_throughput": self.gen_throughput, **self._load()},
            extra={"event": "decode_batch"},
        )

    def _load(self) -> dict[str, float]:
        requests = self._requests
        usage = self._used() / max(requests.kv.allocator.total_size, 1)
        return {"token_usage": usage, "running_req": requests.num_holding, "queue_req": requests.num_waiting}

    def _used(self) -> int:
        return self._requests.kv.allocator.total_size - self._requests.kv.available_tokens
