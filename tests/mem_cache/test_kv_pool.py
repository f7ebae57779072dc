from __future__ import annotations

import pytest
import torch

from bough.config.model_facts import KVLayout
from bough.mem_cache.kv_pool import KVPool, kv_bytes_per_token

LAYOUT = KVLayout(num_layers=3, num_kv_heads=2, head_dim=4)


def make_pool(max_total_tokens: int = 32, page_size: int = 8, dtype: torch.dtype = torch.float32) -> KVPool:
    return KVPool(
        max_total_tokens=max_total_tokens,
        page_size=page_size,
        layout=LAYOUT,
        dtype=dtype,
        device=torch.device("cpu"),
    )


def test_bytes_are_those_of_all_slots_with_the_reserved_page() -> None:
    for dtype in [torch.float32, torch.bfloat16]:
        pool = make_pool(dtype=dtype)
        per_token = kv_bytes_per_token(LAYOUT, dtype)
        assert per_token == 2 * 3 * 2 * 4 * dtype.itemsize
        assert pool.num_slots == 40
        assert pool.num_bytes == 40 * per_token


def test_stored_tokens_are_read_back_from_their_layer_only() -> None:
    pool = make_pool()
    pool.touch()
    k, v = torch.randn(2, 3, 2, 4)
    slots = torch.tensor([9, 39, 20])
    pool.set_kv_buffer(1, slots, k, v)
    torch.testing.assert_close(pool.get_key_buffer(1)[slots], k, rtol=0, atol=0)
    torch.testing.assert_close(pool.get_value_buffer(1)[slots], v, rtol=0, atol=0)
    others = [slot for slot in range(pool.num_slots) if slot not in (9, 39, 20)]
    assert not pool.get_key_buffer(1)[others].any()
    assert not pool.get_key_buffer(0).any()
    assert not pool.get_value_buffer(2).any()


def test_scrub_removes_what_is_not_finite_and_nothing_else() -> None:
    pool = make_pool()
    pool.touch()
    k = torch.ones(2, 2, 4)
    k[0, 0, 0], k[0, 1, 2] = float("nan"), float("-inf")
    slots = torch.tensor([8, 9])
    pool.set_kv_buffer(2, slots, k, k)
    pool.scrub(slots)
    expected = torch.ones(2, 2, 4)
    expected[0, 0, 0] = expected[0, 1, 2] = 0.0
    torch.testing.assert_close(pool.get_key_buffer(2)[slots], expected, rtol=0, atol=0)
    torch.testing.assert_close(pool.get_value_buffer(2)[slots], expected, rtol=0, atol=0)


def test_scales_of_layers_lie_where_kernels_expect_them() -> None:
    pool = make_pool(dtype=torch.float8_e4m3fn)
    pool.set_layer_scales({1: (0.5, 0.25), 7: (9.0, 9.0)})
    scales = [pool.get_layer_scales(layer) for layer in range(3)]
    assert [each.tolist() for each in scales if each is not None] == [[1.0, 1.0], [0.5, 0.25], [1.0, 1.0]]
    addresses = [each.data_ptr() for each in scales if each is not None]
    assert all((address - addresses[0]) % 16 == 0 for address in addresses), "else they are compiled for twice"


def test_whole_numbers_have_a_scale_for_each_head_of_a_token() -> None:
    pool = make_pool(dtype=torch.int8)
    per_token = kv_bytes_per_token(LAYOUT, torch.int8)
    assert per_token == 2 * 3 * 2 * (4 + 4)
    assert pool.num_bytes == 40 * per_token
    layer = pool.kernel_layer(1)
    assert layer.value_scales - layer.key_scales == 40 * 2 * 4
    with pytest.raises(TypeError, match=r"holds torch.int8, not torch.float32"):
        pool.set_kv_buffer(0, torch.tensor([9]), torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))


def test_scrub_removes_scales_that_are_not_finite() -> None:
    pool = make_pool(dtype=torch.int8)
    pool.touch()
    scales = pool._scales
    assert scales is not None
    scales.fill_(0.5)
    scales[2, 0, 8, 1] = torch.nan
    pool.scrub(torch.tensor([8, 9]))
    assert scales[2, 0, 8, 1] == 0.0
    assert (scales == 0.5).sum() == scales.numel() - 1


def test_pool_is_whole_pages() -> None:
    for tokens in [0, 7, 12]:
        with pytest.raises(ValueError, match="whole number of pages"):
            make_pool(tokens)
