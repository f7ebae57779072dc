from __future__ import annotations

import gguf
import numpy as np
import torch

from bough.config.gguf_file import BLOCKS, TensorType
from bough.layers.quantized_rows import QuantizedRows
from bough.model_loader.gguf_blocks import read_numbers, read_quantized
from tests.tables import table

ROWS = 5
BLOCKS_PER_ROW = 3

HALVES = {
    **dict.fromkeys((TensorType.Q4_0, TensorType.Q5_0, TensorType.Q8_0, TensorType.IQ4_NL, TensorType.IQ4_XS), (0,)),
    **dict.fromkeys((TensorType.Q4_1, TensorType.Q5_1, TensorType.Q4_K, TensorType.Q5_K), (0, 2)),
    TensorType.Q2_K: (80, 82),
    TensorType.Q3_K: (108,),
    TensorType.Q6_K: (208,),
    TensorType.MXFP4: (),
}
"""Where blocks have numbers in half precision."""


def random_blocks(kind: TensorType, seed: int = 0) -> np.ndarray:
    """Any bits, except for exponents that make infinities."""
    size = BLOCKS[kind].num_bytes
    stored = np.random.default_rng(seed).integers(0, 256, (ROWS, BLOCKS_PER_ROW, size), dtype=np.uint8)
    for start in HALVES[kind]:
        stored[..., start + 1] &= 0b10111111
    if kind is TensorType.MXFP4:
        stored[..., 0] &= 0b01111111  # its exponent
    return stored.reshape(ROWS, -1)


@table("kind", [kind for kind, block in BLOCKS.items() if block.bits is not None])
@table("seed", range(3))
def test_random_blocks_are_read_as_the_formats_own_library_does(kind: TensorType, seed: int) -> None:
    stored = random_blocks(kind, seed)
    expected = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType[kind.name])
    rows = read_quantized(kind, torch.from_numpy(stored))
    assert rows.bits == BLOCKS[kind].bits
    assert rows.shape == (ROWS, BLOCKS_PER_ROW * BLOCKS[kind].elements)
    np.testing.assert_allclose(rows.dequantize().numpy(), expected, rtol=2e-7, atol=1e-5)


@table("kind", [kind for kind, block in BLOCKS.items() if block.bits is not None])
def test_codes_keep_to_their_range(kind: TensorType) -> None:
    rows = read_quantized(kind, torch.from_numpy(random_blocks(kind)))
    low, high = {4: (-8, 7), 8: (-128, 127)}[rows.bits]
    if rows.minimums is not None:
        assert rows.codes.dtype == torch.uint8
        low, high = 0, high - low
    assert isinstance(rows, QuantizedRows)
    assert low <= int(rows.codes.min()) <= int(rows.codes.max()) <= high


@table("kind", [TensorType.F32, TensorType.F16, TensorType.BF16])
def test_floating_point_numbers_are_taken_as_they_are(kind: TensorType) -> None:
    values = torch.randn(3, 8).to({0: torch.float32, 1: torch.float16, 30: torch.bfloat16}[int(kind)])
    assert torch.equal(read_numbers(kind, values.view(torch.uint8)), values)
