"""Steps launched before the results of those before are known: the same answers, and one wait a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.ipc.messages import AbortReq, TokenizedGenerateReqInput
from bough.model_executor.tp_worker import TpModelWorker
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.executor import AheadExecutor, InlineExecutor, executor_for
from bough.scheduler.scheduler import Scheduler
from bough.step_plan import StepPlan, StepResult
from bough_fake.worker import FakeWorker
from tests.model_executor.deferring import DeferringLane, running_ahead
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.scheduler.harness import Output, prompt_of

GREEDY = {"temperature": 0.0}
SEEDED = {"temperature": 0.9, "sampling_seed": 11}
KINDS: list[dict[str, Any]] = [
    GREEDY,
    SEEDED,
    SEEDED | {"top_p": 0.7, "top_k": 20},
    SEEDED | {"min_p": 0.01, "frequency_penalty": 0.5, "repetition_penalty": 1.2},
    SEEDED | {"repetition_penalty": 1.4, "repetition_window": 4, "presence_penalty": 0.2},
    GREEDY | {"repetition_penalty": 1.4, "repetition_window": -1},
    GREEDY | {"stop_token_ids": tuple(range(0, VOCAB_SIZE, 9)), "min_new_tokens": 4},
    SEEDED | {"allowed_token_ids": tuple(range(3, 80)), "logit_bias": {5: 1.0}},
    GREEDY | {"max_new_tokens": 1},
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama", num_hidden_layers=1)


class Served:
    """A scheduler over a real worker, whose steps torch computes."""

    def __init__(self, path: Path, *, ahead: bool, **options: Any) -> None:
        args = resolve(
            ServerArgs(
                model_path=str(path), dtype="float32", device="cpu", cpu_threads=1, random_seed=0,
                skip_tokenizer_init=True, max_running_requests=8, **options,
            )
        )  # fmt: skip
        config = ModelConfig.from_path(args.model_path, dtype=args.dtype)
        worker = TpModelWorker(args, config)
        # What chooses tokens on a device, which never looks at what it chooses.
        worker.sampler._on_cpu = not ahead
        make_executor = running_ahead(worker, checked=True) if ahead else InlineExecutor
        self.lane = worker.lane
        self.outputs: dict[str, Output] = {}
        self.scheduler = Scheduler(
            args,
            config,
            worker,
            None,
            send_to_detokenizer=self._take,
            make_executor=make_executor,
            strict_accounting=True,
        )
        if isinstance(self.lane, DeferringLane):
            self.lane.events.clear()  # of the warm-up, whose steps are waited for one by one
            self.lane.copies.clear()

    def _take(self, deltas: list[Any]) -> None:
        for delta in deltas:
            self.outputs.setdefault(delta.rid, Output()).add(delta)

    def send(self, rid: str, prompt: list[int], **params: Any) -> None:
        ids = np.array(prompt, dtype="<i4").tobytes()
        sampling = SamplingParams(**{"max_new_tokens": 20, **params})
        message = TokenizedGenerateReqInput(
            [rid], ids, sampling, stream=True, return_logprob=len(rid) > 2, top_logprobs_num=2
        )
        self.scheduler.process_input_requests([message])

    def run(self) -> None:
        while self.scheduler.has_unfinished_requests():
            self.scheduler.step()
        self.scheduler.step()  # the idle turn, which checks the accounts
        self.scheduler.close()


@pytest.fixture(params=[{}, {"chunked_prefill_size": 16, "page_size": 4}, {"retracts": True}], ids=str)
def options(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setattr("bough.model_executor.execution_choice.native_threads", lambda *_: None)
    chosen: dict[str, Any] = {"max_total_tokens": 2048} | request.param
    if chosen.pop("retracts", False):
        chosen |= {"max_total_tokens": 120, "schedule_conservativeness": 0.05, "page_size": 4}
    return iter([chosen])


def serve_all(path: Path, options: dict[str, Any], *, ahead: bool) -> Served:
    served = Served(path, ahead=ahead, **options)
    for index, kind in enumerate(KINDS):
        served.send(f"r{index}", prompt_of(9 + 7 * index, index, VOCAB_SIZE), **kind)
        served.send(f"r{index}+", prompt_of(5 + index, 99, VOCAB_SIZE), **kind)
        served.scheduler.step()
    served.send("aborted", prompt_of(40, 7, VOCAB_SIZE), **GREEDY)
    for _ in range(4):
        served.scheduler.step()
    served.scheduler.process_input_requests([AbortReq("aborted")])
    served.run()
    return served


def test_answers_are_those_of_the_normal_loop(checkpoint: Checkpoint, options: Iterator[dict[str, Any]]) -> None:
    chosen = next(options)
    normal, ahead = (serve_all(checkpoint.path, chosen, ahead=each) for each in (False, True))
    if chosen["max_total_tokens"] == 120:
        assert ahead.scheduler.requests.stats.num_retracted_total > 0
    assert normal.outputs.keys() == ahead.outputs.keys()
    for rid, output in ahead.outputs.items():
        if rid == "aborted":
            continue
        expected = normal.outputs[rid]
        assert output.token_ids == expected.token_ids, rid
        assert output.finish_reason == expected.finish_reason
        assert [entry.token_id for entry in output.logprobs] == [entry.token_id for entry in expected.logprobs]
        ours, theirs = ([entry.logprob for entry in each.logprobs] for each in (output, expected))
        assert ours == pytest.approx(theirs, abs=1e-4)
    assert ahead.outputs["aborted"].finish_reason.type == "abort"  # type: ignore[union-attr]


def test_the_host_waits_once_a_step_and_only_after_the_next_is_launched(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.model_executor.execution_choice.native_threads", lambda *_: None)
    served = Served(checkpoint.path, ahead=True, max_total_tokens=2048)
    for index in range(3):
        served.send(f"r{index}", prompt_of(10, index, VOCAB_SIZE), **GREEDY, ignore_eos=True)
    served.run()
    lane = served.lane
    assert isinstance(lane, DeferringLane)
    steps = len(lane.copies)
    assert lane.waits() == list(range(steps)), "each step is waited for once, in order"
    assert set(lane.copies) == {2}, "tokens, and whether they are to be trusted"
    place = {event: index for index, event in enumerate(lane.events)}
    assert all(place["begin", step + 1] < place["wait", step] for step in range(steps - 1))


class Broken:
    def launch(self, plan: StepPlan) -> Any:
        if plan.step_id == 1:
            raise RuntimeError("no room")
        return self

    def result(self) -> StepResult:
        raise RuntimeError("the device is gone")


def test_what_goes_wrong_is_raised_where_the_result_is_asked_for(checkpoint: Checkpoint) -> None:
    executor = AheadExecutor(Broken())
    empty = np.empty(0, dtype=np.int32)
    for step_id in (1, 2):
        executor.submit(StepPlan(step_id, None, 0, empty, empty, empty, empty, empty, empty))  # type: ignore[arg-type]
    for problem in ("no room", "the device is gone"):
        with pytest.raises(RuntimeError, match=problem):
            executor.resolve_batch_result()


def test_how_steps_are_run() -> None:
    cases = [
        ("cuda:0", True, None, AheadExecutor),
        ("cuda:0", False, None, TpModelWorkerClient),
        ("cuda:0", True, False, InlineExecutor),
        ("cpu", False, None, InlineExecutor),
        ("cpu", False, True, TpModelWorkerClient),
    ]
    for device, ahead, overlap, chosen in cases:
        worker = FakeWorker(vocab_size=8, max_total_num_tokens=8, max_running_requests=1, context_len=8)
        info = replace(worker.get_worker_info(), device=device, runs_ahead=ahead)
        executor = executor_for(info, overlap=overlap)(worker)
        assert type(executor) is chosen
        executor.close()
