"""A scheduler on a fake device, without sockets, and everything it said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from bough.config.ranks import SCHEDULER, ProcessKey
from bough.config.server_args import ServerArgs, resolve
from bough.constrained.compiler import GrammarCompiler
from bough.ipc.messages import (
    AbortReq,
    FinishReason,
    OutputDelta,
    PositionLogprobs,
    RequestExtras,
    TokenizedGenerateReqInput,
)
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.model_executor.worker_info import Launched, Worker
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.executor import AheadExecutor, InlineExecutor, StepExecutor
from bough.scheduler.planned import Planned
from bough.scheduler.scheduler import Scheduler
from bough.step_plan import StepPlan, StepResult
from bough_fake.model import expected_tokens
from bough_fake.runner import StepDuration
from bough_fake.worker import FakeWorker

VOCAB_SIZE = 1000
SHORT_STEPS = StepDuration(per_step=1e-4, clock="virtual")
"""By a clock of the device's own: how a prompt is cut must not depend on how busy the machine is."""


class RecordingWorker(Worker):
    """Passes steps on and remembers plans and results."""

    def __init__(self, worker: FakeWorker, device: str = "cpu") -> None:
        self.worker = worker
        self.device = device
        self.steps: list[tuple[StepPlan, StepResult]] = []
        self.recording = False

    def get_worker_info(self) -> Any:
        return replace(self.worker.get_worker_info(), device=self.device)

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        self.worker.interrupt_on(descriptors)

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        result = self.worker.forward_batch_generation(plan)
        if self.recording:
            self.steps.append((plan, result))
        return result

    def forward_further(self) -> StepResult:
        result = self.worker.forward_further()
        if self.recording:
            self.steps.append((self.steps[-1][0], result))
        return result


class LateWorker:
    """Launches steps whose results somebody has to ask for."""

    def __init__(self, worker: Worker) -> None:
        self.forward_batch_generation = worker.forward_batch_generation

    def launch(self, plan: StepPlan) -> Launched:
        result = self.forward_batch_generation(plan)
        return SimpleNamespace(result=lambda: result)


_EXECUTORS: dict[bool | str, Callable[[Worker], StepExecutor]] = {
    False: InlineExecutor,
    True: TpModelWorkerClient,
    "ahead": lambda worker: AheadExecutor(LateWorker(worker)),
}
"""By what a test says of overlap."""


class Output:
    """All deltas of one request, joined."""

    def __init__(self) -> None:
        self.token_ids: list[int] = []
        self.text = ""
        self.finish_reason: FinishReason | None = None
        self.logprobs: list[PositionLogprobs] = []
        self.input_logprobs: list[PositionLogprobs] | None = None
        self.deltas: list[OutputDelta] = []

    def add(self, delta: OutputDelta) -> None:
        assert self.finish_reason is None, "a delta after the last one"
        self.deltas.append(delta)
        self.token_ids += delta.token_ids
        self.text += delta.text or ""
        self.logprobs += delta.logprobs or []
        if delta.input_logprobs is not None:
            assert len(self.token_ids) == len(delta.token_ids), "prompt logprobs came after the first token"
            self.input_logprobs = [*(self.input_logprobs or ()), *delta.input_logprobs]
        self.finish_reason = delta.finish_reason

    @property
    def cached_tokens(self) -> int:
        return self.deltas[-1].cached_tokens


class Harness:
    """Drives a :class:`Scheduler` step by step."""

    def __init__(
        self,
        *,
        overlap: bool | str = False,
        max_total_num_tokens: int = 4096,
        max_running_requests: int = 8,
        context_len: int = 1024,
        eos_token_ids: Sequence[int] = (),
        eos_only_at_end: bool = False,
        tokenizer: Any = None,
        vocab_size: int = VOCAB_SIZE,
        page_size: int = 1,
        verify: bool = True,
        duration: StepDuration = SHORT_STEPS,
        device: str = "cpu",
        max_steps: int = 1,
        make_compiler: Callable[[], GrammarCompiler] | None = None,
        key: ProcessKey = SCHEDULER,
        **options: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.worker = RecordingWorker(
            FakeWorker(
                vocab_size=vocab_size,
                max_total_num_tokens=max_total_num_tokens,
                max_running_requests=max_running_requests,
                context_len=context_len,
                page_size=page_size,
                verify=verify,
                eos_token_ids=tuple(eos_token_ids) if eos_only_at_end else (),
                duration=duration,
                max_steps=max_steps,
            ),
            device,
        )
        self.worker.worker.model_runner.end_token_ids = tuple(eos_token_ids)
        self.events: list[tuple[str, int]] = []
        self.outputs: dict[str, Output] = {}
        self.scheduler = Scheduler(
            resolve(ServerArgs(random_seed=0, **options)),
            SimpleNamespace(eos_token_ids=tuple(eos_token_ids)),  # type: ignore[arg-type]
            self.worker,
            tokenizer,
            key=key,
            send_to_detokenizer=self._take,
            make_executor=_EXECUTORS[overlap],
            make_compiler=make_compiler,
            on_event=self._on_event,
            strict_accounting=True,
        )
        self.worker.recording = True
        self._count = 0

    def _on_event(self, name: str, planned: Planned | None, seconds: float) -> None:
        if name in ("launch", "process"):
            assert planned is not None
            self.events.append((name, planned.plan.step_id))

    def _take(self, deltas: list[OutputDelta]) -> None:
        for delta in deltas:
            self.outputs.setdefault(delta.rid, Output()).add(delta)

    def submit(self, prompt: Sequence[int], *, rid: str | None = None, **fields: Any) -> list[str]:
        """Hand in a request; sampling parameters and message fields may be mixed."""
        extras = {name: fields.pop(name) for name in RequestExtras.__struct_fields__ if name in fields}
        message_fields = {
            name: fields.pop(name)
            for name in list(fields)
            if name in TokenizedGenerateReqInput.__struct_fields__ and name != "sampling_params"
        }
        params = SamplingParams(**{"temperature": 0.0, "max_new_tokens": 8, **fields})
        base = rid if rid is not None else f"r{self._count}"
        self._count += 1
        rids = [base] if params.n == 1 else [f"{base}_{i}" for i in range(params.n)]
        message = TokenizedGenerateReqInput(
            rids=rids,
            input_ids=np.array(prompt, dtype="<i4").tobytes(),
            sampling_params=params,
            extras=RequestExtras(**extras),
            **{"stream": True, **message_fields},
        )
        self.scheduler.process_input_requests([message])
        return rids

    def abort(self, rid: str = "", **fields: Any) -> None:
        self.scheduler.process_input_requests([AbortReq(rid, **fields)])

    def step(self) -> bool:
        return self.scheduler.step()

    def run(self, max_steps: int = 100_000) -> int:
        """Step until idle; returns the number of steps."""
        steps = 0
        while self.scheduler.has_unfinished_requests():
            self.step()
            steps += 1
            assert steps < max_steps, "the scheduler does not come to an end"
        self.step()  # the idle turn, which checks the accounting
        return steps

    def expected(self, prompt: Sequence[int], count: int) -> list[int]:
        return expected_tokens(prompt, count, self.vocab_size)

    def computed_prompt_tokens(self) -> int:
        return sum(plan.num_tokens - plan.num_decode_rows for plan, _ in self.worker.steps)

    def close(self) -> None:
        self.scheduler.executor.close()
        self.scheduler.grammars.close()


def prompt_of(length: int, seed: int = 0, vocab_size: int = VOCAB_SIZE) -> list[int]:
    return np.random.default_rng(seed).integers(0, vocab_size, length).tolist()
