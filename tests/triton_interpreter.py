"""What tests of bits need of Triton's interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch


@pytest.fixture
def same_bits_in_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds products of the interpreter once, at their end, for tests that compare bits of different rows.

    It lets numpy multiply, whose sums of float32 are of another order in other rows of a matrix where a processor has
    AVX2 and not AVX-512: nothing that a kernel could do about, and nothing that a GPU does. Those of float64 are of
    another order, too, of which rounding to float32 leaves next to nothing.
    """
    if torch.cuda.is_available():
        return
    interpreter = pytest.importorskip("triton.runtime.interpreter", exc_type=ImportError)
    multiply = interpreter.InterpreterBuilder.create_dot

    def multiply_in_float64(self: Any, a: Any, b: Any, d: Any, *options: Any) -> Any:
        if a.data.dtype.kind != "f" or b.data.dtype.kind != "f" or d.data.dtype != np.float32:
            return multiply(self, a, b, d, *options)
        product = np.matmul(a.data.astype(np.float64), b.data.astype(np.float64)).astype(np.float32)
        return interpreter.TensorHandle(product + d.data, d.dtype.scalar)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", multiply_in_float64)
