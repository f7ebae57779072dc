"""Guards against slow decode steps, by count and not by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, Sequence, make_runner
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

MAX_OPERATIONS_PER_LAYER = 40
MAX_OPERATIONS_PER_STEP = 100
MAX_ALLOCATIONS_PER_LAYER = 15
MAX_ALLOCATIONS_PER_STEP = 50


class CountOperations(TorchDispatchMode):
    """Counts what torch executes, views included, and how often that takes fresh memory."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.allocations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        result = func(*args, **(kwargs or {}))
        self.allocations += len(_storages(result) - _storages((args, kwargs)))
        return result


def _storages(tree: Any) -> set[int]:
    return {each.untyped_storage()._cdata for each in tree_leaves(tree) if isinstance(each, torch.Tensor)}


def count_decode_step(path: Path, num_layers: int, rows: int, *, native: bool = False) -> CountOperations:
    save_checkpoint(path, "Llama", num_hidden_layers=num_layers)
    runner = make_runner(path, max_running_requests=64, native=native)
    builder = PlanBuilder(runner)
    sequences = [builder.add([1] * (3 + row % 7)) for row in range(rows)]
    builder.step([(sequence, sequence.prompt_len) for sequence in sequences])
    return count_next_step(builder, runner, sequences)


def count_next_step(builder: PlanBuilder, runner: RecordingRunner, sequences: list[Sequence]) -> CountOperations:
    plan = builder.plan([(sequence, 1) for sequence in sequences])
    runner.recording = False
    with CountOperations() as counted:
        runner.forward_batch_generation(plan)
    return counted


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], CountOperations]:
    shapes = [(1, 2), (1, 64), (2, 2), (2, 64)]
    return {shape: count_decode_step(tmp_path_factory.mktemp("checkpoint"), *shape) for shape in shapes}


def test_decode_costs_the_same_number_of_operations_for_any_number_of_rows(
    counted: dict[tuple[int, int], CountOperations],
) -> None:
    for num_layers in (1, 2):
        few, many = counted[num_layers, 2], counted[num_layers, 64]
        assert (many.count, many.allocations) == (few.count, few.allocations)


def test_layer_costs_a_bounded_number_of_operations(counted: dict[tuple[int, int], CountOperations]) -> None:
    per_layer = counted[2, 64].count - counted[1, 64].count
    assert 0 < per_layer <= MAX_OPERATIONS_PER_LAYER
    assert counted[1, 64].count - per_layer <= MAX_OPERATIONS_PER_STEP


def test_layer_allocates_a_bounded_number_of_times(counted: dict[tuple[int, int], CountOperations]) -> None:
    per_layer = counted[2, 64].allocations - counted[1, 64].allocations
    assert 0 < per_layer <= MAX_ALLOCATIONS_PER_LAYER
    assert counted[1, 64].allocations - per_layer <= MAX_ALLOCATIONS_PER_STEP


@needs_native
def test_native_step_of_greedy_rows_leaves_nothing_to_torch(tmp_path: Path) -> None:
    assert count_decode_step(tmp_path, 3, 8, native=True).count == 0
