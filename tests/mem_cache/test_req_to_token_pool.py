from __future__ import annotations

import numpy as np
import pytest

from bough.mem_cache.req_to_token_pool import ReqToTokenPool
from bough.step_plan import ReqSlot


def test_rows_are_handed_out_once_and_lowest_first() -> None:
    pool = ReqToTokenPool(3, 8)
    assert pool.table.shape == (3, 8)
    assert pool.table.dtype == np.int32
    assert [pool.alloc() for _ in range(4)] == [0, 1, 2, None]
    assert pool.available_size == 0
    pool.free(ReqSlot(1))
    assert pool.available_size == 1
    assert pool.alloc() == 1


def test_double_free_raises() -> None:
    pool = ReqToTokenPool(2, 8)
    slot = pool.alloc()
    assert slot is not None
    pool.free(slot)
    with pytest.raises(RuntimeError, match="double free of request slot 0"):
        pool.free(slot)
    assert pool.available_size == 2


def test_rows_that_do_not_exist_are_refused() -> None:
    for slot in [-1, 2]:
        with pytest.raises(ValueError, match="not one of 2"):
            ReqToTokenPool(2, 8).free(ReqSlot(slot))


def test_an_empty_table_is_refused() -> None:
    for shape in [(0, 8), (8, 0)]:
        with pytest.raises(ValueError, match="no table"):
            ReqToTokenPool(*shape)


def test_reset_takes_every_row_back() -> None:
    pool = ReqToTokenPool(2, 8)
    pool.alloc()
    pool.alloc()
    pool.reset()
    assert [pool.alloc(), pool.alloc(), pool.alloc()] == [0, 1, None]
