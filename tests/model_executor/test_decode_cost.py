"""Guards against slow decode steps, by count and not by time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, Sequence, make_runner
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

MAX_OPERATIONS_PER_LAYER = 40
MAX_OPERATIONS_PER_STEP = 100


class CountOperations(TorchDispatchMode):
    """Counts what torch executes, views included."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


def decode_operations(path: Path, num_layers: int, rows: int, *, native: bool = False) -> int:
    save_checkpoint(path, "Llama", num_hidden_layers=num_layers)
    runner = make_runner(path, max_running_requests=64, native=native)
    builder = PlanBuilder(runner)
    sequences = [builder.add([1] * (3 + row % 7)) for row in range(rows)]
    builder.step([(sequence, sequence.prompt_len) for sequence in sequences])
    return operations_of_next_step(builder, runner, sequences)


def operations_of_next_step(builder: PlanBuilder, runner: RecordingRunner, sequences: list[Sequence]) -> int:
    plan = builder.plan([(sequence, 1) for sequence in sequences])
    runner.recording = False
    with CountOperations() as operations:
        runner.forward_step(plan)
    return operations.count


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], int]:
    shapes = [(1, 2), (1, 64), (2, 2), (2, 64)]
    return {shape: decode_operations(tmp_path_factory.mktemp("checkpoint"), *shape) for shape in shapes}


def test_decode_costs_the_same_number_of_operations_for_any_number_of_rows(
    operations: dict[tuple[int, int], int],
) -> None:
    assert operations[1, 64] == operations[1, 2]
    assert operations[2, 64] == operations[2, 2]


def test_layer_costs_a_bounded_number_of_operations(operations: dict[tuple[int, int], int]) -> None:
    per_layer = operations[2, 64] - operations[1, 64]
    assert 0 < per_layer <= MAX_OPERATIONS_PER_LAYER
    assert operations[1, 64] - per_layer <= MAX_OPERATIONS_PER_STEP


@needs_native
def test_native_step_of_greedy_rows_leaves_nothing_to_torch(tmp_path: Path) -> None:
    assert decode_operations(tmp_path, 3, 8, native=True) == 0
