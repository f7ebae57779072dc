"""The block types of GGUF files: from stored bytes to numbers, or to codes and scales.

The layouts are those of ggml (``ggml-common.h``). A row is a sequence of blocks; a block has its scales in half
precision and the codes of 32 numbers, in the ``K`` types of 256 numbers in sub-blocks with small scales of their own.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from bough.config.gguf_file import BLOCKS, TensorType
from bough.layers.quantized_rows import QuantizedRows
from bough.model_loader.microscaling import microscaled_rows

_FLOATS = {TensorType.F32: torch.float32, TensorType.F16: torch.float16, TensorType.BF16: torch.bfloat16}

_LEVELS = torch.tensor(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], dtype=torch.int8, device="cpu"
)
"""What the codes of the ``IQ4`` types stand for, before the scale."""


def read_numbers(kind: TensorType, stored: torch.Tensor) -> torch.Tensor:
    """Numbers of a floating-point type (``F32``, ``F16``, ``BF16``) in uint8 ``[rows, row_bytes]``: a view ``[rows,
    inputs]``.
    """
    return stored.view(_FLOATS[kind])


def read_quantized(kind: TensorType, stored: torch.Tensor) -> QuantizedRows:
    """Codes and scales of a quantised type.

    Args:
        kind: any quantised type of :data:`~bough.config.gguf_file.BLOCKS`.
        stored: uint8 ``[rows, row_bytes]``.
    """
    return _READERS[kind](_split(stored, -1, BLOCKS[kind].num_bytes))  # [rows, blocks, bytes]


def _split(x: torch.Tensor, *sizes: int) -> torch.Tensor:
    """The last dimension as several."""
    return x.reshape(*x.shape[:-1], *sizes)


def _half(blocks: torch.Tensor, start: int) -> torch.Tensor:
    """The float16 at byte ``start`` of each block, in float32: ``[rows, blocks]``."""
    return blocks[..., start : start + 2].contiguous().view(torch.float16)[..., 0].float()


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """Low halves of all bytes, then high halves."""
    return torch.cat((packed & 15, packed >> 4), dim=-1)


def _signed(codes: torch.Tensor, offset: int) -> torch.Tensor:
    return codes.view(torch.int8) - offset


def _q4_0(blocks: torch.Tensor) -> QuantizedRows:
    codes = _signed(_nibbles(blocks[..., 2:]), 8)
    return QuantizedRows(4, 32, codes.flatten(1), _half(blocks, 0))


def _q4_1(blocks: torch.Tensor) -> QuantizedRows:
    return QuantizedRows(4, 32, _nibbles(blocks[..., 4:]).flatten(1), _half(blocks, 0), _half(blocks, 2))


def _q5_0(blocks: torch.Tensor) -> QuantizedRows:
    codes = _signed(_nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6]), 16)
    return QuantizedRows(8, 32, codes.flatten(1), _half(blocks, 0))


def _q5_1(blocks: torch.Tensor) -> QuantizedRows:
    codes = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return QuantizedRows(8, 32, codes.flatten(1), _half(blocks, 0), _half(blocks, 2))


def _fifth_bits(packed: torch.Tensor) -> torch.Tensor:
    """32 bits in 4 bytes, the lowest first, as 16 or 0."""
    return ((packed[..., None] >> torch.arange(8, dtype=torch.uint8)) & 1).flatten(-2) << 4


def _q8_0(blocks: torch.Tensor) -> QuantizedRows:
    return QuantizedRows(8, 32, blocks[..., 2:].view(torch.int8).flatten(1), _half(blocks, 0))


def _q2_k(blocks: torch.Tensor) -> QuantizedRows:
    scales, minimums = blocks[..., :16] & 15, blocks[..., :16] >> 4
    scale, minimum = _half(blocks, 80)[..., None], _half(blocks, 82)[..., None]
    codes = _pairs(_split(blocks[..., 16:80], 2, 32))
    return QuantizedRows(8, 16, codes.flatten(1), (scale * scales).flatten(1), (-minimum * minimums).flatten(1))


def _q3_k(blocks: torch.Tensor) -> QuantizedRows:
    # Bit i of byte j of the mask belongs to number j of the i-th 32, and takes 4 away where it is not set.
    third = (blocks[..., None, :32] >> torch.arange(8, dtype=torch.uint8)[:, None]) & 1
    codes = _signed(_pairs(_split(blocks[..., 32:96], 2, 32)).flatten(-3) | (third << 2).flatten(-2), 4)
    # 16 scales of 6 bits: low halves in 8 bytes, the upper two bits of each fourth of them in 4 more.
    upper = (blocks[..., None, 104:108] >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]) & 3
    scales = _signed(_nibbles(blocks[..., 96:104]) | (upper << 4).flatten(-2), 32) * _half(blocks, 108)[..., None]
    return QuantizedRows(8, 16, codes.flatten(1), scales.flatten(1))


def _pairs(packed: torch.Tensor) -> torch.Tensor:
    """The lowest two bits of all bytes, then the next two …: ``[..., n]`` to ``[..., 4, n]``."""
    return (packed[..., None, :] >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8)[:, None]) & 3


def _iq4_nl(blocks: torch.Tensor) -> QuantizedRows:
    return QuantizedRows(8, 32, _LEVELS[_nibbles(blocks[..., 2:]).int()].flatten(1), _half(blocks, 0))


def _iq4_xs(blocks: torch.Tensor) -> QuantizedRows:
    codes = _LEVELS[_nibbles(_split(blocks[..., 8:], 8, 16)).int()]
    low = torch.stack((blocks[..., 4:8] & 15, blocks[..., 4:8] >> 4), dim=-1).flatten(-2)
    upper = (blocks[..., 2:4, None] >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8)) & 3
    scales = _signed(low | (upper << 4).flatten(-2), 32) * _half(blocks, 0)[..., None]
    return QuantizedRows(8, 32, codes.flatten(1), scales.flatten(1))


def _mxfp4(blocks: torch.Tensor) -> QuantizedRows:
    codes = _nibbles(blocks[..., 1:]).flatten(1)
    return microscaled_rows(codes[:, ::2] | codes[:, 1::2] << 4, blocks[..., 0])


def _q4_k(blocks: torch.Tensor) -> QuantizedRows:
    codes = _nibbles(_split(blocks[..., 16:], 4, 32))
    return QuantizedRows(4, 32, codes.flatten(1), *_sub_scales(blocks))


def _q5_k(blocks: torch.Tensor) -> QuantizedRows:
    # Bit i of byte j is the fifth one of number j in sub-block i.
    fifth = (blocks[..., None, 16:48] >> torch.arange(8, dtype=torch.uint8)[:, None]) & 1  # [rows, blocks, 8, 32]
    low = _nibbles(_split(blocks[..., 48:], 4, 32))
    codes = low.flatten(-2) | (fifth << 4).flatten(-2)
    return QuantizedRows(8, 32, codes.flatten(1), *_sub_scales(blocks))


def _sub_scales(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and minimums of the 8 sub-blocks of ``Q4_K`` and ``Q5_K``: ``[rows, 8 * blocks]`` each.

    12 bytes hold 8 scales and 8 minimums of 6 bits: the first four of either in the low bits of bytes 0-3 and 4-7, of
    the last four the low halves in bytes 8-11 and the upper two bits at the top of bytes 0-3 and 4-7.
    """
    first, second, low = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    scales = torch.cat((first & 63, (low & 15) | (first >> 6 << 4)), dim=-1)
    minimums = torch.cat((second & 63, (low >> 4) | (second >> 6 << 4)), dim=-1)
    scale, minimum = _half(blocks, 0)[..., None], _half(blocks, 2)[..., None]
    return (scale * scales).flatten(1), (-minimum * minimums).flatten(1)


def _q6_k(blocks: torch.Tensor) -> QuantizedRows:
    low = _nibbles(_split(blocks[..., :128], 2, 64))  # [rows, blocks, halves, 128]
    high = _pairs(_split(blocks[..., 128:192], 2, 32)).flatten(-2)
    codes = _signed(low | (high << 4), 32)
    scales = blocks[..., 192:208].view(torch.int8) * _half(blocks, 208)[..., None]
    return QuantizedRows(8, 16, codes.flatten(1), scales.flatten(1))


_READERS: dict[TensorType, Callable[[torch.Tensor], QuantizedRows]] = {
    TensorType.Q4_0: _q4_0,
    TensorType.Q4_1: _q4_1,
    TensorType.Q5_0: _q5_0,
    TensorType.Q5_1: _q5_1,
    TensorType.Q8_0: _q8_0,
    TensorType.IQ4_NL: _iq4_nl,
    TensorType.IQ4_XS: _iq4_xs,
    TensorType.MXFP4: _mxfp4,
    TensorType.Q2_K: _q2_k,
    TensorType.Q3_K: _q3_k,
    TensorType.Q4_K: _q4_k,
    TensorType.Q5_K: _q5_k,
    TensorType.Q6_K: _q6_k,
}
