"""Answers to questions about a scheduler: its limits, its load, its state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import asdict, replace

from bough.merging import Merge
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.observability.stats import STATS, SchedulerStats
from bough.scheduler.control import ControlHandler
from bough.scheduler.pause import Pause
from bough.scheduler.planner import StepPlanner
from bough.scheduler.req import Req
from bough.scheduler.step_log import StepLog
from bough.scheduler.waiting_queue import CACHE_AWARE_QUEUE_LIMIT

LONG_STEP_SECONDS = 10.0
"""A step that is expected to take longer is announced before it begins, lest it be taken for a hang."""

SILENCE_FACTOR = 3.0
"""Factor by which such a step may take longer than expected; the first ones are foretold from short ones."""

MAX_LOOKED_UP_TOKENS = 65_536
"""Tokens of waiting prompts that are looked up to count the cached ones, for each question."""


_MERGES: dict[str, Merge] = {
    **{name: stat.merge for name, stat in STATS.items()},
    "max_req_len": "min",
    "max_req_input_len": "min",
    "max_running_requests": "sum",
    "weight_bytes": "sum",
    "kv_bytes": "sum",
    "num_waiting_uncached_tokens": "sum",
    "effective_max_running_requests_per_dp": "sum",
    "last_gen_throughput": "sum",
    "idle": "min",
    "expert_loads": "sums",
}
"""Rules for the fields of internal state, and of the report at the start."""

_INIT_FIELDS = (
    "max_total_num_tokens",
    "max_running_requests",
    "max_req_len",
    "max_req_input_len",
    "context_len",
    "vocab_size",
    "page_size",
    "device",
    "dtype",
    "num_parameters",
    "weight_bytes",
    "kv_bytes",
    "embedding_dim",
)


def init_info(info: WorkerInfo, max_steps: int, timings: dict[str, float]) -> dict[str, Any]:
    """Return what the front end must know, once."""
    fields = {name: getattr(info, name) for name in _INIT_FIELDS}
    if info.maps_weights:
        fields["weight_bytes"] = 0
    merge = {name: rule for name, rule in _MERGES.items() if name in fields}
    further = {"num_continuous_decode_steps": max_steps, "timings": timings, "merge": merge}
    return {"status": "ready", **fields, **further}


class Reports:
    """Collects what the owners of a scheduler's numbers have counted."""

    def __init__(self, worker: Worker, planner: StepPlanner, log: StepLog, pause: Pause) -> None:
        self._worker, self._info = worker, worker.get_worker_info()
        self._requests = planner.requests
        self._planner = planner
        self._log = log
        self._pause = pause
        # Steps that were run to measure the device are no load.
        self._expert_loads_before = worker.expert_loads()

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handler of ``get_internal_state``."""
        return {"get_internal_state": ControlHandler(lambda params: self.internal_state(), merge=_MERGES)}

    def stats(self) -> SchedulerStats:
        """Return load and counters, for heartbeats and metrics."""
        requests, kv, kernels = self._requests, self._requests.kv, self._worker.kernel_counts()
        return replace(
            requests.stats,
            num_running_reqs=requests.num_holding,
            num_queue_reqs=requests.num_waiting,
            num_waiting_tokens=sum(req.fill_len for req in requests if req.slot < 0),
            num_retracted_reqs=self._num_retracted_waiting(),
            num_compiling_reqs=len(requests.compiling),
            num_used_tokens=self._info.max_total_num_tokens - kv.available_tokens,
            evictable_tokens=kv.prefix_cache.evictable_size,
            max_total_num_tokens=self._info.max_total_num_tokens,
            paused=self._pause.is_on,
            new_token_ratio=self._planner.ratio.value,
            evicted_tokens_total=kv.evicted_tokens,
            kv_accounting_repairs_total=kv.num_repairs,
            kernel_runs_total=kernels.runs,
            kernel_joins_total=kernels.joined,
            kernel_recomputed_total=kernels.recomputed,
            expert_imbalance=_imbalance(self._expert_loads()) if self._info.expert_share else 0.0,
        )

    def expected_silence(self) -> float:
        """Seconds that the steps in flight may take until the loop runs again; 0.0 if not long."""
        seconds = 0.0
        for planned in self._requests.in_flight:
            plan = planned.plan
            has_prompt = plan.num_decode_rows < plan.num_rows
            step = self._planner.cost_model.seconds(plan.num_tokens, planned.token_context, has_prompt)
            seconds += step * (plan.num_steps - planned.num_run)
        return SILENCE_FACTOR * seconds if seconds > LONG_STEP_SECONDS else 0.0

    def internal_state(self) -> dict[str, Any]:
        """Return everything worth knowing about the scheduler now; ``kv_discrepancy`` is meaningful when idle."""
        requests, costs, log, info = self._requests, self._planner.cost_model, self._log, self._info
        idle = not requests.are_unfinished
        waiting = [req for req in requests if req.slot < 0]
        state = asdict(self.stats())
        state.update(
            effective_max_running_requests_per_dp=info.max_running_requests,
            num_waiting_uncached_tokens=self._num_uncached_tokens(waiting),
            decode_moments=log.decode_moments,
            last_gen_throughput=state["gen_throughput"],
            cost_model={
                "base_seconds": costs.base,
                "seconds_per_token": costs.per_token,
                "seconds_per_token_context": costs.per_token_context,
                "prompt_base_seconds": costs.prompt_base,
            },
            expert_loads=self._expert_loads().tolist(),
            memory_usage={
                "weight": info.weight_bytes,
                "kvcache": info.kv_bytes,
                "token_capacity": info.max_total_num_tokens,
            },
            idle=idle,
            kv_discrepancy=requests.kv.check_idle() if idle else None,
        )
        return state

    def _expert_loads(self) -> npt.NDArray[np.int64]:
        return self._worker.expert_loads() - self._expert_loads_before

    def _num_retracted_waiting(self) -> int:
        """Number of requests that have lost their slot and wait for another."""
        if not self._requests.stats.num_retracted_total:
            return 0
        return sum(req.slot < 0 and req.num_retractions > 0 for req in self._requests)

    def _num_uncached_tokens(self, waiting: list[Req]) -> int:
        """Number of tokens that have yet to be computed before their requests decode.

        Of ``waiting`` requests only the first tokens are looked up in the prefix cache; the others count in full.
        """
        requests = self._requests
        cached, left = 0, MAX_LOOKED_UP_TOKENS
        for req in waiting[:CACHE_AWARE_QUEUE_LIMIT]:
            beginning = req.fill_ids[:left]
            cached += min(requests.kv.match(beginning, req.extra_key), req.max_prefix_len)
            left -= len(beginning)
            if left == 0:
                break
        started = sum(req.fill_len - req.computed_len for req in requests.unfinished)
        return sum(req.fill_len for req in waiting) - cached + started


def _imbalance(loads: npt.NDArray[np.int64]) -> float:
    """Tokens of the busiest expert to the mean of its layer, of the layer where that is most."""
    means = loads.mean(axis=1)
    return float((loads.max(axis=1) / np.maximum(means, 1e-9)).max()) if means.any() else 0.0
