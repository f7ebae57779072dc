"""Recorded decode steps, on a recorder that runs them again: everything but the recording itself."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from inspect import getclosurevars
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from bough.step_plan import FUTURE_TOKEN, ForwardMode, StepPlan
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner
from tests.model_executor.test_model_runner import prompt
from tests.models.checkpoints import Checkpoint, save_checkpoint

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from bough.layers.attention.triton import TritonBackend
from bough.model_executor.cuda_graph_runner import CudaGraphRunner, DecodeBuffers
from bough.model_executor.graph_runner import batch_sizes
from tests.model_executor.test_triton_backend import fused, triton_runner
from tests.tables import table
from tests.triton_interpreter import same_bits_in_every_row  # noqa: F401 (a fixture)

CPU = torch.device("cpu")

__all__ = ["fused"]


class Rerun:
    def __init__(self, step: Callable[[], None]) -> None:
        self.step, self.replays = step, 0

    def replay(self) -> None:
        self.replays += 1
        self.step()


class RerunRecorder:
    def __init__(self) -> None:
        self.recorded: list[Rerun] = []

    def record(self, step: Callable[[], None]) -> Rerun:
        step()
        self.recorded.append(Rerun(step))
        return self.recorded[-1]


@table("largest", [1, 2, 5, 31, 32, 33, 100, 256, 1000])
def test_ladder_ends_at_the_largest_size_and_pads_little(largest: int) -> None:
    sizes = batch_sizes(largest)
    assert sizes[-1] == largest
    assert sizes[0] == 1
    assert all(a < b for a, b in pairwise(sizes))
    for rows in range(1, largest + 1):
        padded = min(size for size in sizes if size >= rows)
        assert padded <= rows * (4 / 3 if rows < 32 else 1.15) + 1


def int32(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def test_rows_that_a_step_does_not_have_are_padding() -> None:
    buffers = DecodeBuffers(4, 8, (None, 100), CPU)
    buffers.fill(int32(3, 1, 2), int32(299, 0, 10), int32(50, 60, 70))
    buffers.fill(int32(5, 6), int32(511, 512), int32(80, 90))
    assert buffers.req_slots.tolist() == [5, 6, 0, 0]
    assert buffers.positions.tolist() == [511, 512, 0, 0]
    assert buffers.out_slots.tolist() == [80, 90, -1, -1]
    assert buffers.seq_lens.tolist() == [512, 513, 0, 0]
    whole, windowed = buffers.tables[None], buffers.tables[100]
    assert whole.num_pieces.tolist() == [5]
    assert whole.first_piece.tolist() == [0, 2, 5, 5, 5]
    assert whole.pieces[:5].tolist() == [[0, 0], [0, 256], [1, 0], [1, 256], [1, 512]]
    assert windowed.pieces[: int(windowed.num_pieces)].tolist() == [[0, 256], [1, 256], [1, 512]]


def test_more_pieces_than_there_is_room_for_are_not_entered() -> None:
    buffers = DecodeBuffers(2, 3, (None,), CPU)
    buffers.fill(int32(1), int32(0), int32(7))
    with pytest.raises(ValueError, match="shape"):
        buffers.fill(int32(2, 3), int32(512, 256), int32(8, 9))
    assert buffers.req_slots.tolist() == [1, 0]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    shape = {"head_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama", **shape)


class ForgettingRecorder:
    """Keeps nothing of a step, as a CUDA graph does."""

    def __init__(self) -> None:
        self.read: list[StorageWeakRef] = []

    def record(self, step: Callable[[], None]) -> Rerun:
        names = getclosurevars(step).nonlocals
        metadata = names["batch"].attn_metadata
        parts = [metadata, *(part for rows in metadata.decode for part in (rows, *rows.tables.values()))]
        read = [*names.values(), *(getattr(part, field.name) for part in parts for field in fields(part))]
        self.read += [StorageWeakRef(each.untyped_storage()) for each in read if isinstance(each, torch.Tensor)]
        step()
        return Rerun(lambda: None)


def with_graphs(path: Path, recorder: Any = None, **options: Any) -> tuple[RecordingRunner, Any]:
    runner = triton_runner(path, **options)
    recorder = recorder or RerunRecorder()
    assert isinstance(runner.attn_backend, TritonBackend)
    with torch.inference_mode():
        runner.step_runner.graph_runner = CudaGraphRunner(
            runner.model,
            runner.attn_backend,
            recorder,
            runner.config,
            sizes=(1, 3),
            req_to_token=runner.req_to_token,
            last_token=runner.sampling_state.last_token,
        )
    return runner, recorder


class _Broken(Exception):
    pass


class WatchingRecorder(RerunRecorder):
    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.fails_at, self.collects = fails_at, list[bool]()

    def record(self, step: Callable[[], None]) -> Rerun:
        self.collects.append(gc.isenabled())
        if len(self.collects) == self.fails_at:
            raise _Broken
        return super().record(step)


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_steps_are_recorded(
    collects: bool, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections: list[int] = []
    monkeypatch.setattr("bough.model_executor.cuda_graph_runner.gc.collect", lambda: collections.append(1))
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        for fails_at, error in ((0, nullcontext()), (2, pytest.raises(_Broken))):
            recorder = WatchingRecorder(fails_at)
            with error:
                with_graphs(checkpoint.path, recorder)
            assert recorder.collects == [False, False]
            assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
    assert len(collections) >= 2


@pytest.mark.usefixtures("fused")
def test_recorded_decode_rows_alone_and_beside_prompts_give_what_transformers_gives_and_touch_nothing_else(
    checkpoint: Checkpoint,
) -> None:
    builder = PlanBuilder(with_graphs(checkpoint.path)[0])
    runner = builder.runner
    first, second = builder.add(prompt(5)), builder.add(prompt(3, seed=1))
    builder.step([(first, 5), (second, 3)])
    before = runner.req_to_token.clone()
    builder.step([(second, 1), (first, 1)])
    changed = (runner.req_to_token != before).nonzero().tolist()
    assert sorted(changed) == sorted([[first.slot, 5], [second.slot, 3]])
    builder.step([(first, 1)])
    assert [each.replays for each in runner.step_runner.graph_runner._recorded.values()] == [1, 1]
    third = builder.add(prompt(4, seed=2))
    builder.step([(third, 2), (first, 1), (second, 1)])
    builder.step([(third, 2), (first, 1)])
    assert [each.replays for each in runner.step_runner.graph_runner._recorded.values()] == [2, 2]
    assert not runner.kv_pool.get_key_buffer(0)[: runner.page_size].any()
    for sequence in (first, second, third):
        reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
        assert sequence.output == reference.argmax(-1).tolist()
        assert float((torch.stack(sequence.logits) - reference).abs().max()) <= 1e-4


@pytest.mark.usefixtures("same_bits_in_every_row")
@pytest.mark.usefixtures("fused")
def test_recorded_steps_of_deterministic_inference_have_the_bits_of_those_that_are_not(checkpoint: Checkpoint) -> None:
    outputs = []
    for runner in (
        with_graphs(checkpoint.path, enable_deterministic_inference=True)[0],
        triton_runner(checkpoint.path, enable_deterministic_inference=True),
    ):
        builder = PlanBuilder(runner)
        first, second = builder.add(prompt(5)), builder.add(prompt(18, seed=1))
        builder.step([(first, 5)])
        builder.step([(first, 1)])
        builder.step([(second, 18), (first, 1)])
        builder.step([(second, 1), (first, 1)])
        outputs.append((first.output, second.output, torch.stack(first.logits), torch.stack(second.logits)))
    recorded, launched = outputs
    assert recorded[:2] == launched[:2]
    assert torch.equal(recorded[2], launched[2])
    assert torch.equal(recorded[3], launched[3])


@table("deterministic", [False, True])
@pytest.mark.usefixtures("fused")
def test_what_recorded_steps_read_outlives_their_recording(checkpoint: Checkpoint, deterministic: bool) -> None:
    runner, recorder = with_graphs(checkpoint.path, ForgettingRecorder(), enable_deterministic_inference=deterministic)
    assert runner.step_runner.graph_runner is not None
    gc.collect()
    assert len(recorder.read) > 2 * 6
    assert not any(storage.expired() for storage in recorder.read)


def decode_plan(prefix_lens: list[int], num_decode_rows: int) -> StepPlan:
    rows = len(prefix_lens)
    return StepPlan(
        step_id=0,
        mode=ForwardMode.DECODE if num_decode_rows == rows else ForwardMode.MIXED,
        num_decode_rows=num_decode_rows,
        req_slots=np.arange(rows, dtype=np.int32),
        prefix_lens=int32(*prefix_lens),
        extend_lens=np.ones(rows, dtype=np.int32),
        input_ids=np.full(rows, FUTURE_TOKEN, dtype=np.int32),
        out_slots=np.arange(rows, dtype=np.int32),
        sample=np.ones(rows, dtype=np.bool_),
    )


@pytest.mark.usefixtures("fused")
def test_steps_with_prompts_too_many_rows_or_too_many_keys_are_not_replayed(checkpoint: Checkpoint) -> None:
    runner = with_graphs(checkpoint.path)[0]
    graphs = runner.step_runner.graph_runner
    assert isinstance(graphs, CudaGraphRunner)
    assert isinstance(runner.attn_backend, TritonBackend)
    assert graphs.can_run(decode_plan([5, 6, 7], 3))
    assert [graphs.size_for(rows) for rows in (1, 2, 3)] == [1, 3, 3]
    assert not graphs.can_run(decode_plan([5, 6, 7], 2))
    assert not graphs.can_run(decode_plan([5, 6, 7, 8], 4))
    room = runner.attn_backend.max_pieces
    assert graphs.can_run(decode_plan([(room - 1) * 256 - 1, 6], 2))
    assert not graphs.can_run(decode_plan([(room - 1) * 256, 6], 2))
    assert not graphs.can_run(decode_plan([], 0))
