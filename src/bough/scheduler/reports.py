"""What others ask of a scheduler: what it can do, its load, its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from bough.ipc.messages import SchedulerStats

if TYPE_CHECKING:
    from bough.scheduler.scheduler import Scheduler


LONG_STEP_SECONDS = 10.0
"""A step that is expected to take longer is told of before it begins, lest it be taken for a hang."""

SILENCE_FACTOR = 3.0
"""How many times longer than expected such a step may take; the first ones are foretold from short ones."""


@dataclass(slots=True)
class Counters:
    """What has happened so far that nobody else counts."""

    aborted: int = 0
    queue_timeouts: int = 0
    timeouts: int = 0
    failed_steps: int = 0
    repairs: int = 0


def init_info_of(scheduler: Scheduler) -> dict[str, Any]:
    """What the front end must know, once."""
    info = scheduler.info
    return {
        "status": "ready",
        "max_total_num_tokens": info.max_total_num_tokens,
        "max_running_requests": info.max_running_requests,
        "max_req_len": info.max_req_len,
        "max_req_input_len": info.max_req_input_len,
        "context_len": info.context_len,
        "vocab_size": info.vocab_size,
        "page_size": info.page_size,
        "device": info.device,
        "dtype": info.dtype,
        "num_parameters": info.num_parameters,
        "weight_bytes": info.weight_bytes,
        "kv_bytes": info.kv_bytes,
        "embedding_dim": info.embedding_dim,
        "num_continuous_decode_steps": scheduler.max_steps,
        "timings": {**info.timings, "warm-up": scheduler.warmup_seconds, "grammar engine": scheduler.grammar_seconds},
    }


def stats_of(scheduler: Scheduler) -> SchedulerStats:
    """Load and counters, for heartbeats and metrics."""
    free_and_evictable = scheduler.kv.available_tokens
    return SchedulerStats(
        num_running_reqs=scheduler.requests.num_holding,
        num_queue_reqs=scheduler.requests.num_waiting,
        num_used_tokens=scheduler.info.max_total_num_tokens - free_and_evictable,
        max_total_num_tokens=scheduler.info.max_total_num_tokens,
        evictable_tokens=scheduler.kv.prefix_cache.evictable_size,
        prefill_tokens_total=scheduler.log.prefill_tokens,
        prefill_seconds_total=scheduler.log.prefill_seconds,
        cached_tokens_total=scheduler.log.cached_tokens,
        decode_tokens_total=scheduler.output.generated_tokens,
        num_retracted_total=scheduler.requests.num_retracted,
        num_aborted_total=scheduler.counters.aborted,
        num_queue_timeouts_total=scheduler.counters.queue_timeouts,
        num_timeouts_total=scheduler.counters.timeouts,
        failed_steps_total=scheduler.counters.failed_steps,
        kv_accounting_repairs_total=scheduler.counters.repairs,
        steps_total=scheduler.log.steps,
        gen_throughput=scheduler.log.gen_throughput,
        num_retracted_reqs=scheduler.requests.num_retracted_waiting,
        num_compiling_reqs=len(scheduler.requests.compiling),
        new_token_ratio=scheduler.ratio.value,
        evicted_tokens_total=scheduler.kv.evicted_tokens,
        step_seconds_total=scheduler.log.step_seconds,
        paused=scheduler.paused,
    )


def expected_silence_of(scheduler: Scheduler) -> float:
    """Seconds that the steps in flight may take until there is a turn of the loop again; 0.0 if not long."""
    seconds = 0.0
    for planned in scheduler.requests.in_flight:
        plan = planned.plan
        has_prompt = plan.num_decode_rows < plan.num_rows
        step = scheduler.cost_model.seconds(plan.num_tokens, planned.token_context, has_prompt)
        seconds += step * (plan.num_steps - planned.num_run)
    return SILENCE_FACTOR * seconds if seconds > LONG_STEP_SECONDS else 0.0


def internal_state_of(scheduler: Scheduler) -> dict[str, Any]:
    """Everything worth knowing about the scheduler now; ``kv_discrepancy`` is meaningful when idle."""
    idle = not scheduler.has_unfinished_requests()
    state: dict[str, Any] = msgspec.to_builtins(msgspec.structs.asdict(stats_of(scheduler)))
    state.update(
        effective_max_running_requests_per_dp=scheduler.info.max_running_requests,
        num_waiting_tokens=scheduler.requests.num_waiting_tokens,
        num_waiting_uncached_tokens=scheduler.requests.num_uncached_tokens,
        decode_moments=scheduler.log.decode_moments,
        last_gen_throughput=scheduler.log.gen_throughput,
        forced_tokens_total=scheduler.output.forced_tokens,
        cost_model={
            "base_seconds": scheduler.cost_model.base,
            "seconds_per_token": scheduler.cost_model.per_token,
            "seconds_per_token_context": scheduler.cost_model.per_token_context,
            "prompt_base_seconds": scheduler.cost_model.prompt_base,
        },
        memory_usage={
            "weight": scheduler.info.weight_bytes,
            "kvcache": scheduler.info.kv_bytes,
            "token_capacity": scheduler.info.max_total_num_tokens,
        },
        idle=idle,
        kv_discrepancy=scheduler.kv.check_idle() if idle else None,
    )
    return state
