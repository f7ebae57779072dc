"""Recorded forward passes of prompts, on a recorder that runs them again: everything but the recording itself."""

from __future__ import annotations

import gc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bough.model_executor.graph_runner import prompt_sizes
from bough.step_plan import FUTURE_TOKEN, ForwardMode, StepPlan
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner
from tests.model_executor.test_model_runner import prompt
from tests.models.checkpoints import Checkpoint, save_checkpoint

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from bough.layers.attention.triton import TritonBackend
from bough.model_executor.prompt_graph_runner import PromptGraphRunner
from tests.model_executor.test_cuda_graph_runner import ForgettingRecorder, RerunRecorder, int32, with_graphs
from tests.model_executor.test_triton_backend import fused, triton_runner
from tests.tables import table
from tests.triton_interpreter import same_bits_in_every_row  # noqa: F401 (a fixture)

__all__ = ["fused"]


@table("largest", [0, 1, 15, 16, 17, 100, 1000, 1024, 5000])
def test_ladder_of_prompts_ends_at_the_largest_size_and_pads_little(largest: int) -> None:
    sizes = prompt_sizes(largest)
    assert max(sizes, default=0) == largest
    assert all(a < b for a, b in pairwise(sizes))
    for tokens in range(1, largest + 1):
        padded = min(size for size in sizes if size >= tokens)
        assert padded <= max(tokens + 15, tokens * 9 / 8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    shape = {"head_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama", **shape)


def with_prompt_graphs(path: Path, recorder: Any = None, **options: Any) -> tuple[RecordingRunner, Any]:
    """With recorded decode steps as well."""
    runner = with_graphs(path, **options)[0]
    recorder = recorder or RerunRecorder()
    assert isinstance(runner.attn_backend, TritonBackend)
    with torch.inference_mode():
        runner.step_runner.prompt_runner = PromptGraphRunner(
            runner.model,
            runner.attn_backend,
            recorder,
            runner.config,
            sizes=(4, 8, 20),
            req_to_token=runner.req_to_token,
        )
    return runner, recorder


def replays(runner: RecordingRunner) -> dict[int, int]:
    assert runner.step_runner.prompt_runner is not None
    recorded: dict[int, Any] = runner.step_runner.prompt_runner._recorded
    return {size: each.replays for size, each in recorded.items()}


@pytest.mark.usefixtures("fused")
def test_recorded_prompts_alone_and_beside_decode_rows_give_what_transformers_gives_and_touch_nothing_else(
    checkpoint: Checkpoint,
) -> None:
    runner = with_prompt_graphs(checkpoint.path)[0]
    builder = PlanBuilder(runner)
    first, second, third = (builder.add(prompt(length, seed=length)) for length in (17, 3, 26))
    before = runner.req_to_token.clone()
    builder.step([(first, 17), (second, 3)])
    changed = (runner.req_to_token != before).nonzero().tolist()
    assert sorted(changed) == sorted([[first.slot, at] for at in range(17)] + [[second.slot, at] for at in range(3)])
    assert replays(runner) == {20: 1, 8: 0, 4: 0}
    builder.step([(third, 6), (first, 1), (second, 1)])
    assert replays(runner) == {20: 1, 8: 1, 4: 0}
    builder.step([(third, 20)])
    builder.step([(first, 1), (third, 1)])
    assert replays(runner) == {20: 2, 8: 1, 4: 0}
    assert not runner.kv_pool.get_key_buffer(0)[: runner.page_size].any()
    for sequence in (first, second, third):
        reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
        assert sequence.output == reference.argmax(-1).tolist()
        assert float((torch.stack(sequence.logits) - reference).abs().max()) <= 1e-4


@pytest.mark.slow
@pytest.mark.usefixtures("same_bits_in_every_row")
@pytest.mark.usefixtures("fused")
def test_recorded_prompts_of_deterministic_inference_have_the_bits_of_those_that_are_not(
    checkpoint: Checkpoint,
) -> None:
    outputs = []
    for runner in (
        with_prompt_graphs(checkpoint.path, enable_deterministic_inference=True)[0],
        triton_runner(checkpoint.path, enable_deterministic_inference=True),
    ):
        builder = PlanBuilder(runner)
        first, second = builder.add(prompt(5)), builder.add(prompt(18, seed=1))
        builder.step([(first, 5)])
        builder.step([(second, 11), (first, 1)])
        builder.step([(second, 7), (first, 1)])
        outputs.append((first.output, second.output, torch.stack(first.logits), torch.stack(second.logits)))
    recorded, launched = outputs
    assert recorded[:2] == launched[:2]
    assert torch.equal(recorded[2], launched[2])
    assert torch.equal(recorded[3], launched[3])


@pytest.mark.usefixtures("fused")
def test_what_recorded_prompts_read_outlives_their_recording(checkpoint: Checkpoint) -> None:
    runner, recorder = with_prompt_graphs(checkpoint.path, ForgettingRecorder())
    assert runner.step_runner.prompt_runner is not None
    gc.collect()
    assert len(recorder.read) > 3 * 6
    assert not any(storage.expired() for storage in recorder.read)


def prompt_plan(*extend_lens: int, num_decode_rows: int = 0, token: int = 1) -> StepPlan:
    rows, tokens = len(extend_lens), sum(extend_lens)
    return StepPlan(
        step_id=0,
        mode=ForwardMode.MIXED if num_decode_rows else ForwardMode.EXTEND,
        num_decode_rows=num_decode_rows,
        req_slots=np.arange(rows, dtype=np.int32),
        prefix_lens=np.zeros(rows, dtype=np.int32),
        extend_lens=int32(*extend_lens),
        input_ids=np.full(tokens, token, dtype=np.int32),
        out_slots=np.arange(tokens, dtype=np.int32),
        sample=np.ones(rows, dtype=np.bool_),
    )


@pytest.mark.usefixtures("fused")
def test_too_many_tokens_too_many_rows_and_tokens_that_nobody_knows_yet_are_not_replayed(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.model_executor.prompt_graph_runner._MORE_TILES", 2)
    graphs = with_prompt_graphs(checkpoint.path)[0].step_runner.prompt_runner
    assert graphs is not None
    assert graphs.can_run(prompt_plan(20))
    assert graphs.can_run(prompt_plan(1, 18, 1))
    assert not graphs.can_run(prompt_plan(21))
    assert not graphs.can_run(prompt_plan(1, 1, 1, 1))
    assert not graphs.can_run(prompt_plan(1, 3, num_decode_rows=1))
    assert not graphs.can_run(prompt_plan(3, token=FUTURE_TOKEN))
    assert not graphs.can_run(prompt_plan())
