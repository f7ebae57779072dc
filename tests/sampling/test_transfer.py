from __future__ import annotations

import numpy as np
import torch

from bough.sampling.transfer import all_to_device, packed_arrays, unpacked_tensors

ARRAYS = [
    np.arange(5, dtype=np.int32),
    np.arange(6, dtype=np.int64).reshape(2, 3),
    np.empty(0, dtype=np.int64),
    np.arange(12, dtype=np.float64).reshape(3, 4).T,
    np.arange(3, dtype=np.int32),
]


def test_what_goes_in_one_piece_comes_out_as_it_was() -> None:
    packed, begins = packed_arrays(ARRAYS)
    assert all(begin % 16 == 0 for begin in begins), "kernels are compiled for aligned addresses"
    tensors = unpacked_tensors(torch.from_numpy(packed), ARRAYS, begins)
    for array, tensor in zip(ARRAYS, tensors, strict=True):
        assert tensor.numpy().dtype == array.dtype
        assert np.array_equal(tensor.numpy(), array)


def test_a_cpu_shares_the_memory() -> None:
    (tensor,) = all_to_device(ARRAYS[:1], torch.device("cpu"))
    assert tensor.data_ptr() == ARRAYS[0].ctypes.data
