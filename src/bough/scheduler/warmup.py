"""Measures what steps cost on this machine, before the first request."""

from __future__ import annotations

import logging
import time

import numpy as np
from msgspec.structs import replace

from bough.model_executor.capacity import round_up
from bough.model_executor.worker_info import Worker
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.cost_model import CostModel, StepCost
from bough.step_plan import FUTURE_TOKEN, ForwardMode, NewRequest, ReqSlot, StepPlan

logger = logging.getLogger(__name__)

MAX_PROBE_SECONDS = 0.15
"""Sizes grow until a step is expected to take longer than this: every server waits for the probes when it starts."""

MAX_PROBING_SECONDS = 0.5
"""After this long, no further probe begins that may be left out."""

_PREFILL_TOKENS = (16, 64, 256)
_MORE_PREFILL_TOKENS = {"cpu": (), "cuda": (1024,)}
"""Larger sizes, as far as steps may have them: where launches take longer than what they launch, few tokens say nothing
of the cost of one."""

_ID_STEP = 7919
"""From one token of a probe to the next; a prime."""

_DECODE_ROWS = (1, 8, 32)
_DECODE_CONTEXT = 16


def measure_step_costs(worker: Worker, max_step_tokens: int = 2**30) -> CostModel:
    """Run a few synthetic steps, of at most ``max_step_tokens`` with prompts, and fit the cost model to them.

    Every shape runs twice and the faster run counts, so that this also warms up caches and lazily made kernels. KV
    written here is never read: no request knows of its slots.
    """
    info = worker.get_worker_info()
    longest = min(info.max_req_len - 1, info.max_total_num_tokens // 2)
    measurements: list[StepCost] = []
    last, largest = 0.0, 1
    # On CUDA steps of few tokens are over soon, and without them nothing tells launches from tokens.
    launches = info.device == "cuda"
    # The first pass of all makes and loads what every later one finds there, however long that takes.
    _run(worker, [0], [1], np.array([info.page_size]), is_decode=False)
    deadline = time.perf_counter() + MAX_PROBING_SECONDS
    more = [tokens for tokens in _MORE_PREFILL_TOKENS[info.device] if tokens <= max_step_tokens]
    for tokens in (*_PREFILL_TOKENS, *more):
        may_skip = not launches or tokens > _PREFILL_TOKENS[-1]
        if tokens > longest or (may_skip and (last * 4 > MAX_PROBE_SECONDS or time.perf_counter() > deadline)):
            break
        last, largest = _measure(worker, info.page_size, [(0, tokens)], measurements), tokens
    if info.keeps_kv and last * 2 < MAX_PROBE_SECONDS and 2 * largest <= longest:
        _measure(worker, info.page_size, [(largest, largest)], measurements)
    row = (_DECODE_CONTEXT, 1)
    if info.embedding_dim is not None:
        # All its steps are of prompts: many short ones beside a long one tell what a token costs from its context.
        row = (0, _PREFILL_TOKENS[0])
    for rows in _DECODE_ROWS:
        if not launches and (last >= MAX_PROBE_SECONDS or time.perf_counter() > deadline):
            break
        page_rounded = round_up(sum(row), info.page_size)
        if rows <= info.max_running_requests and rows * page_rounded <= longest:
            _measure(worker, info.page_size, [row] * rows, measurements)
    if len(measurements) < 2:
        _measure(worker, info.page_size, [(0, 1)], measurements)
        _measure(worker, info.page_size, [(0, 2)], measurements)
    if info.embedding_dim is not None:
        # Every later step is of prompts, and says as much as a probe: what a busy machine spoilt is made good.
        model = CostModel.fit(measurements, least_share=0.0)
    else:
        model = CostModel.fit(measurements, knows_prompts=launches, expert_share=info.expert_share)
    logger.info(
        "Step cost: %.0f us + %.1f us per token + %.2f us per token and 1000 tokens of context%s%s",
        model.base * 1e6,
        model.per_token * 1e6,
        model.per_token_context * 1e9,
        f", {model.prompt_base * 1e6:.0f} us with a prompt" if launches else "",
        f", {model.experts * 1e6:.0f} us for all experts" if info.expert_share else "",
    )
    return model


def probe_device(worker: Worker, req_slot: int, slots: np.ndarray) -> None:
    """Run a step of one token that is not read, in a request slot and a KV slot ``[1]`` that are not used; raises what
    the device raises if it is broken."""
    plan = _plan([0], [1], [slots], is_decode=False)
    req_slots, sample = np.array([req_slot], dtype=np.int32), np.zeros(1, dtype=np.bool_)
    worker.forward_batch_generation(replace(plan, req_slots=req_slots, sample=sample, new_requests=()))


def _measure(worker: Worker, page_size: int, rows: list[tuple[int, int]], measurements: list[StepCost]) -> float:
    """Time one step of ``rows`` (context, new tokens each); the first page of the pool is reserved."""
    contexts = [context for context, _ in rows]
    news = [new for _, new in rows]
    starts = page_size + np.arange(len(rows)) * round_up(max(contexts) + max(news), page_size)
    if any(contexts):
        # The context must be in the pool, or the probed step would read KV that was never written.
        _run(worker, [0] * len(rows), contexts, starts, is_decode=False)
    is_decode = any(contexts) and max(news) == 1
    seconds = min(_run(worker, contexts, news, starts + contexts, is_decode=is_decode) for _ in range(2))
    token_context = sum(new * (context + new / 2) for context, new in rows)
    measurements.append(StepCost(sum(news), token_context, seconds, has_prompt=not is_decode))
    return seconds


def _run(worker: Worker, contexts: list[int], news: list[int], starts: np.ndarray, *, is_decode: bool) -> float:
    """One step whose row ``r`` writes its new tokens to the slots from ``starts[r]`` on; returns its seconds."""
    slots = [np.arange(start, start + new, dtype=np.int32) for start, new in zip(starts, news, strict=True)]
    plan, info = _plan(contexts, news, slots, is_decode=is_decode), worker.get_worker_info()
    if info.embedding_dim is not None:
        plan = replace(plan, sample=np.zeros(plan.num_rows, dtype=np.bool_))
    elif not is_decode:
        # Of equal tokens all would have the same experts: fewer weights would be read than of others.
        plan = replace(plan, input_ids=np.arange(len(plan.input_ids), dtype=np.int32) * _ID_STEP % info.vocab_size)
    result = worker.forward_batch_generation(plan)
    return max(result.seconds, 1e-7)


def _plan(contexts: list[int], news: list[int], slots: list[np.ndarray], *, is_decode: bool) -> StepPlan:
    num_rows, num_tokens = len(news), sum(news)
    first_piece = not any(contexts)
    return StepPlan(
        step_id=0,
        mode=ForwardMode.DECODE if is_decode else ForwardMode.EXTEND,
        num_decode_rows=num_rows if is_decode else 0,
        req_slots=np.arange(num_rows, dtype=np.int32),
        prefix_lens=np.array(contexts, dtype=np.int32),
        extend_lens=np.array(news, dtype=np.int32),
        # As the scheduler writes it: recorded decode steps know no other tokens than those that were sampled.
        input_ids=np.full(num_tokens, FUTURE_TOKEN if is_decode else 0, dtype=np.int32),
        out_slots=np.concatenate(slots),
        sample=np.ones(num_rows, dtype=np.bool_),
        new_requests=tuple(
            NewRequest(ReqSlot(row), SamplingParams(temperature=0.0), 0, (), 1, np.zeros(0, dtype=np.int32))
            for row in range(num_rows)
        )
        if first_piece
        else (),
    )
