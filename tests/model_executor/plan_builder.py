"""A scheduler by hand: tests say which sequences advance by how many tokens, and get valid plans."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bough.config.engine_args import EngineArgs
from bough.config.model_config import ModelConfig
from bough.distributed.rank_group import ALONE_IN_GROUP, RankGroup
from bough.model_executor.launched_step import StepOutcome
from bough.model_executor.model_runner import ModelRunner
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import (
    FUTURE_TOKEN,
    ForwardMode,
    FurtherSteps,
    IntArray,
    NewRequest,
    ReqSlot,
    RowLogprobs,
    StepPlan,
    StepResult,
    TableWrite,
)
from tests.step_runs import joined, runs_of

GREEDY = SamplingParams(temperature=0.0)


def int32(*values: int) -> IntArray:
    return np.array(values, dtype=np.int32)


class RecordingRunner(ModelRunner):
    """Keeps the logits that the last step sampled from, unless it is told not to."""

    last_logits: torch.Tensor
    recording = True

    def rows_that_need_logits(self, plan: StepPlan, rows: Any) -> Any:
        if not self.recording:
            return super().rows_that_need_logits(plan, rows)
        return np.ones(len(rows), dtype=np.bool_)

    def forward_decode(self, plan: StepPlan) -> StepOutcome | None:
        return None if self.recording else super().forward_decode(plan)

    def sample(self, plan: StepPlan, logits: torch.Tensor, rows: Any) -> Any:
        self.last_logits = logits.clone()
        return super().sample(plan, logits, rows)


def make_runner(
    path: Path | str,
    *,
    dtype: str = "auto",
    context_length: int | None = None,
    threads: int = 1,
    native: bool = True,
    model_impl: str = "auto",
    ranks: RankGroup = ALONE_IN_GROUP,
    **options: Any,
) -> RecordingRunner:
    torch.set_num_threads(threads)
    config = ModelConfig.from_path(
        str(path), dtype=dtype, device="cpu", context_length=context_length, model_impl=model_impl
    )
    options.setdefault("max_running_requests", 8)
    options.setdefault("max_total_tokens", 4096)
    options.setdefault("max_prefill_tokens", 1024)
    return RecordingRunner(config, torch.device("cpu"), EngineArgs(**options), native=native, ranks=ranks)


@dataclass
class Sequence:
    slot: int
    tokens: list[int]
    """Prompt, then every sampled token."""
    prompt_len: int
    kv_slots: list[int] = field(default_factory=list)
    """Where the KV of the first tokens is; its length is how many are computed."""
    entered: int = 0
    """How many of ``kv_slots`` the request table knows."""
    admitted: bool = False
    logits: list[torch.Tensor] = field(default_factory=list)
    """Those of each sampled token, ``[vocab_size]``."""

    @property
    def output(self) -> list[int]:
        return self.tokens[self.prompt_len :]


class PlanBuilder:
    """Makes plans for a runner, runs them and keeps track. Pages come in random order."""

    def __init__(self, runner: RecordingRunner, seed: int = 0) -> None:
        self.runner = runner
        self.page_size = runner.page_size
        num_pages = runner.kv_pool.num_slots // runner.page_size
        rng = np.random.default_rng(seed)
        self.free_pages = [int(page) for page in rng.permutation(np.arange(1, num_pages))]
        self.free_slots = [int(slot) for slot in rng.permutation(runner.max_running_requests)]
        self.step_id = 0

    def add(self, prompt: list[int], *, prefix_of: Sequence | None = None, prefix_len: int = 0) -> Sequence:
        """A new sequence, whose first ``prefix_len`` tokens (whole pages) are found in the KV of another one."""
        assert prefix_len % self.page_size == 0
        sequence = Sequence(self.free_slots.pop(), list(prompt), len(prompt))
        if prefix_of is not None:
            assert prefix_of.tokens[:prefix_len] == prompt[:prefix_len]
            sequence.kv_slots = prefix_of.kv_slots[:prefix_len]
        return sequence

    def drop(self, sequence: Sequence) -> None:
        """Give back the request slot; its KV stays where it is."""
        self.free_slots.append(sequence.slot)

    def plan(
        self,
        work: list[tuple[Sequence, int]],
        *,
        new_params: SamplingParams = GREEDY,
        logprobs: tuple[RowLogprobs, ...] = (),
        guessed: bool = False,
        further: int = 0,
        checks_eos: bool = True,
        seconds: float = 60.0,
        reports_each: bool = False,
    ) -> StepPlan:
        """A plan that advances each sequence by that many tokens: decode rows first.

        With ``guessed``, a token that the step before has still to sample counts as known. So many ``further`` steps
        follow one that only decodes.
        """
        rows = sorted(work, key=lambda item: not self._is_decode(item[0], guessed))
        num_decode = sum(self._is_decode(sequence, guessed) for sequence, _ in rows)
        new_requests, writes, ids, out_slots, sample = [], [], [], [], []
        for index, (sequence, count) in enumerate(rows):
            computed = len(sequence.kv_slots)
            if not sequence.admitted:
                sequence.admitted = True
                prompt = int32(*sequence.tokens[: sequence.prompt_len]) if new_params.penalises_prompt else None
                new_requests.append(
                    NewRequest(
                        ReqSlot(sequence.slot), new_params, 7, (), sequence.prompt_len, int32(), prompt_ids=prompt
                    )
                )
            if sequence.entered < computed:
                writes.append(
                    TableWrite(ReqSlot(sequence.slot), sequence.entered, int32(*sequence.kv_slots[sequence.entered :]))
                )
            if index < num_decode:
                ids.append(FUTURE_TOKEN)
            else:
                assert computed + count <= len(sequence.tokens)
                ids.extend(sequence.tokens[computed : computed + count])
            for _ in range(count):
                sequence.kv_slots.append(self._next_slot(sequence))
            out_slots.extend(sequence.kv_slots[computed:])
            sequence.entered = len(sequence.kv_slots)
            sample.append(index < num_decode or computed + count == len(sequence.tokens))
        self.step_id += 1
        mode = ForwardMode.MIXED
        if num_decode in (0, len(rows)):
            mode = ForwardMode.DECODE if num_decode else ForwardMode.EXTEND
        self._rows = [sequence for sequence, _ in rows]
        counts = [count for _, count in rows]
        prefix_lens = int32(*(len(sequence.kv_slots) - count for sequence, count in rows))
        following = None
        if further:
            assert num_decode == len(rows)
            for sequence in self._rows:
                for _ in range(further):
                    sequence.kv_slots.append(self._next_slot(sequence))
            places = [sequence.kv_slots[-further:] for sequence in self._rows]
            out_slots_of_steps = np.array(places, dtype=np.int32).T.copy()
            following = FurtherSteps(out_slots_of_steps, np.full(len(rows), checks_eos), seconds, reports_each)
        return StepPlan(
            step_id=self.step_id,
            mode=mode,
            num_decode_rows=num_decode,
            req_slots=int32(*(sequence.slot for sequence, _ in rows)),
            prefix_lens=prefix_lens,
            extend_lens=int32(*counts),
            input_ids=int32(*ids),
            out_slots=int32(*out_slots),
            sample=np.array(sample),
            new_requests=tuple(new_requests),
            table_writes=tuple(writes),
            logprobs=logprobs,
            further=following,
        )

    def step(self, work: list[tuple[Sequence, int]], *, most_reports: int = sys.maxsize, **options: Any) -> StepResult:
        """Plan, run and record a step, and those that follow; of what is reported each, so many are put together."""
        plan = self.plan(work, **options)
        result = self.runner.forward_batch_generation(plan)
        results = [result]
        while result.goes_on and result.num_steps < most_reports:
            assert plan.further is not None
            assert plan.further.reports_each
            results.append(self.runner.forward_further())
            result = joined(results)
        for sequence in self._rows if plan.further is not None else ():
            # What was set aside for steps that did not run is taken again.
            sequence.entered = len(sequence.kv_slots) - (plan.num_steps - result.num_steps)
            del sequence.kv_slots[sequence.entered :]
        sampled = 0
        for row, (sequence, run) in enumerate(zip(self._rows, runs_of(result), strict=True)):
            assert len(run) == (result.num_steps - (row in result.failed_rows) if plan.sample[row] else 0)
            sequence.tokens += run
            if plan.sample[row] and self.runner.recording:
                sequence.logits.append(self.runner.last_logits[sampled])
            sampled += bool(plan.sample[row])
        return result

    def generate(self, sequence: Sequence, count: int, *, chunks: list[int] | None = None) -> list[int]:
        """Compute what is missing of the prompt, in the given chunks, and decode until there are ``count`` tokens."""
        for chunk in chunks or []:
            self.step([(sequence, chunk)])
        if not sequence.output:
            self.step([(sequence, len(sequence.tokens) - len(sequence.kv_slots))])
        while len(sequence.output) < count:
            self.step([(sequence, 1)])
        return sequence.output

    def _is_decode(self, sequence: Sequence, guessed: bool) -> bool:
        known = len(sequence.tokens) + guessed
        return known > sequence.prompt_len and len(sequence.kv_slots) == known - 1

    def _next_slot(self, sequence: Sequence) -> int:
        position = len(sequence.kv_slots)
        if position % self.page_size:
            return sequence.kv_slots[-1] + 1
        return self.free_pages.pop() * self.page_size
