from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from bough.errors import ModelError
from bough.layers.checkpoint_weight import TensorWeight
from bough.layers.quantize import QUANTIZED_AT_A_TIME, QUANTIZING_BYTES, quantize_float8, quantize_rows
from bough.layers.quantized_rows import QuantizedRows
from tests.tables import table

CODES = torch.tensor([[-8, 7, 0, 1, 2], [3, -4, 5, -6, 7]], dtype=torch.int8)
SCALES = torch.tensor([[0.5, 2.0], [1.0, -3.0]])


def test_an_element_is_its_code_times_the_scale_of_its_group() -> None:
    rows = QuantizedRows(4, 3, CODES, SCALES)
    expected = torch.tensor([[-4.0, 3.5, 0.0, 2.0, 4.0], [3.0, -4.0, 5.0, 18.0, -21.0]])
    assert torch.equal(rows.dequantize(), expected)
    assert torch.equal(rows.part(1, 2).dequantize(), expected[1:])


def test_a_group_far_longer_than_a_row_takes_no_memory() -> None:
    rows = QuantizedRows(4, 10**12, CODES, SCALES[:, :1])
    assert torch.equal(rows.dequantize(), CODES * SCALES[:, :1])


def test_minimums_are_added() -> None:
    rows = QuantizedRows(4, 3, CODES.abs().to(torch.uint8), SCALES, torch.tensor([[1.0, -1.0], [0.0, 2.0]]))
    expected = torch.tensor([[5.0, 4.5, 1.0, 1.0, 3.0], [3.0, 4.0, 5.0, -16.0, -19.0]])
    assert torch.equal(rows.dequantize(), expected)


def test_a_weight_that_is_held_otherwise_gets_the_numbers() -> None:
    held = torch.zeros(2, 5, dtype=torch.bfloat16)
    rows = QuantizedRows(4, 3, CODES, SCALES)
    TensorWeight(held).write(rows)
    assert torch.equal(held.float(), rows.dequantize())


@table(
    "codes, scales, message",
    [
        (CODES, SCALES[:, :1], r"scales of 2 rows of 5 codes in groups of 3 must be float32 \[2, 2\], got"),
        (CODES, SCALES.half(), r"must be float32 \[2, 2\], got torch.float16"),
        (CODES.int(), SCALES, "codes must be bytes in rows, got torch.int32"),
        (CODES[0], SCALES, r"codes must be bytes in rows, got torch.int8 \[5\]"),
    ],
)
def test_what_does_not_fit_together_is_refused(codes: torch.Tensor, scales: torch.Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        QuantizedRows(4, 3, codes, scales)


class LiveBytes(TorchDispatchMode):
    """The most memory that the results of operations have held at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, tuple) else (result,):
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                self._alive[storage.data_ptr()] = (StorageWeakRef(storage), storage.nbytes())
        self._alive = {place: entry for place, entry in self._alive.items() if not entry[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._alive.values()))
        return result


@table(
    "quantize",
    [
        partial(quantize_rows, bits=8, group=128),
        partial(quantize_rows, bits=4, group=64),
        partial(quantize_float8, group=None),
        partial(quantize_float8, group=128),
    ],
)
@table("inputs", [1000, 1024])
def test_quantising_takes_no_more_memory_than_is_set_aside(quantize: Any, inputs: int) -> None:
    weights = torch.randn(256, inputs).bfloat16()
    with LiveBytes() as live:
        rows = quantize(weights.to(torch.bfloat16, copy=True).float())
        rows.dequantize()
    assert live.most <= QUANTIZING_BYTES / QUANTIZED_AT_A_TIME * weights.numel()
