"""The backend against attention written down naively."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from bough.config.model_facts import KVLayout
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.softmax_attention import attend, attend_explicitly
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.layers.forward_batch import ForwardBatch
from bough.mem_cache.kv_pool import KVPool
from bough.step_plan import ForwardMode, StepPlan
from tests.tables import table

CPU = torch.device("cpu")
HEADS, KV_HEADS, HEAD_DIM = 6, 2, 20


@dataclass
class Rows:
    """A batch of rows with random keys and values in a pool, on shuffled pages."""

    pool: KVPool
    table: torch.Tensor
    plan: StepPlan
    batch: ForwardBatch
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def make_rows(
    prefix_lens: list[int],
    extend_lens: list[int],
    num_decode: int,
    *,
    page_size: int,
    window: int | None,
    dtype: torch.dtype = torch.float32,
) -> Rows:
    rng = np.random.default_rng(0)
    totals = [p + e for p, e in zip(prefix_lens, extend_lens, strict=True)]
    pages_needed = [-(-total // page_size) for total in totals]
    num_pages = sum(pages_needed) + 3
    pool = KVPool(
        max_total_tokens=num_pages * page_size,
        page_size=page_size,
        layout=KVLayout(1, KV_HEADS, HEAD_DIM),
        dtype=dtype,
        device=CPU,
    )
    generator = torch.Generator().manual_seed(0)
    for buffer in (pool.get_key_buffer(0), pool.get_value_buffer(0)):
        # Everything that nobody wrote is poison, so that reading it shows; the reserved page stays zero.
        buffer[page_size:].copy_(torch.randn(buffer[page_size:].shape, generator=generator) * 100)
    pages = rng.permutation(np.arange(1, num_pages))
    table = torch.full((len(totals), max(totals) + 5), 1, dtype=torch.int32)
    used = 0
    for row, (total, needed) in enumerate(zip(totals, pages_needed, strict=True)):
        slots = (pages[used : used + needed, None] * page_size + np.arange(page_size)).reshape(-1)[:total]
        table[row, :total] = torch.from_numpy(slots)
        used += needed
        for buffer in (pool.get_key_buffer(0), pool.get_value_buffer(0)):
            buffer[slots] = torch.randn(total, KV_HEADS, HEAD_DIM, generator=generator).to(dtype)
    num_tokens = sum(extend_lens)
    out_slots = np.concatenate(
        [table[row, p : p + e].numpy() for row, (p, e) in enumerate(zip(prefix_lens, extend_lens, strict=True))]
    )
    plan = StepPlan(
        step_id=0,
        mode=ForwardMode.MIXED,
        num_decode_rows=num_decode,
        req_slots=np.arange(len(totals), dtype=np.int32),
        prefix_lens=np.array(prefix_lens, dtype=np.int32),
        extend_lens=np.array(extend_lens, dtype=np.int32),
        input_ids=np.zeros(num_tokens, dtype=np.int32),
        out_slots=out_slots,
        sample=np.ones(len(totals), dtype=np.bool_),
    )
    backend = TorchNativeBackend(pool, [window])
    batch = ForwardBatch.from_plan(plan, backend, table, torch.zeros(len(totals), dtype=torch.int64))
    q, k, v = (
        torch.randn(num_tokens, heads, HEAD_DIM, generator=generator).to(dtype) for heads in (HEADS, KV_HEADS, KV_HEADS)
    )
    return Rows(pool, table, plan, batch, q, k, v)


def naive(rows: Rows, window: int | None, cap: float | None = None, sinks: torch.Tensor | None = None) -> torch.Tensor:
    """One query, one head at a time, in float64, from the pool after the step's tokens were stored."""
    keys, values = (buffer(0).double() for buffer in (rows.pool.get_key_buffer, rows.pool.get_value_buffer))
    outputs = []
    token = 0
    for row, (prefix, extend) in enumerate(zip(rows.plan.prefix_lens, rows.plan.extend_lens, strict=True)):
        for position in range(prefix, prefix + extend):
            first = 0 if window is None else max(position - window + 1, 0)
            slots = rows.table[row, first : position + 1].long()
            heads = []
            for head in range(HEADS):
                kv_head = head // (HEADS // KV_HEADS)
                scores = keys[slots, kv_head] @ rows.q[token, head].double() / HEAD_DIM**0.5
                if cap is not None:
                    scores = (scores / cap).tanh() * cap
                if sinks is not None:
                    scores = torch.cat((scores, sinks[head : head + 1].double()))
                heads.append(scores.softmax(0)[: len(slots)] @ values[slots, kv_head])
            outputs.append(torch.cat(heads))
            token += 1
    return torch.stack(outputs)


@table("page_size, window", [(1, None), (1, 1), (1, 700), (16, None), (16, 30)])
@table(
    "prefix_lens, extend_lens, num_decode",
    [
        ([9], [1], 1),
        ([0, 511, 512, 1300, 3], [1, 1, 1, 1, 1], 5),
        ([700, 20, 0, 0], [1, 1, 40, 1], 2),
        ([0], [800], 0),
        ([37, 600], [50, 530], 0),
        ([1, 2, 3, 1500], [1, 1, 1, 1], 0),
    ],
)
def test_equals_naive_attention(
    prefix_lens: list[int], extend_lens: list[int], num_decode: int, window: int | None, page_size: int
) -> None:
    torch.set_num_threads(1)
    rows = make_rows(prefix_lens, extend_lens, num_decode, page_size=page_size, window=window)
    layer = RadixAttention(HEADS, HEAD_DIM, KV_HEADS, 0, sliding_window=window)
    with torch.inference_mode():
        ours = rows.batch.attn_backend.forward(rows.q, rows.k, rows.v, layer, rows.batch)
    assert float((ours - naive(rows, window)).abs().max()) < 2e-6


@table("cap, has_sinks", [(0.7, False), (None, True), (2.0, True)])
@table("window", [None, 30])
@table(
    "prefix_lens, extend_lens, num_decode",
    [([9, 511, 1300], [1, 1, 1], 3), ([700, 20, 0], [1, 40, 41], 1), ([1500], [30], 0)],
)
def test_soft_caps_and_sinks(
    prefix_lens: list[int],
    extend_lens: list[int],
    num_decode: int,
    window: int | None,
    cap: float | None,
    has_sinks: bool,
) -> None:
    rows = make_rows(prefix_lens, extend_lens, num_decode, page_size=16, window=window)
    sinks = torch.nn.Parameter(torch.linspace(-2.0, 6.0, HEADS)) if has_sinks else None
    layer = RadixAttention(HEADS, HEAD_DIM, KV_HEADS, 0, sliding_window=window, logit_cap=cap, sinks=sinks)
    with torch.inference_mode():
        ours = rows.batch.attn_backend.forward(rows.q, rows.k, rows.v, layer, rows.batch)
        reference = naive(rows, window, cap, sinks)
    assert float((ours - reference).abs().max()) < 2e-6


def test_long_prompt_is_computed_in_tiles_and_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr("bough.layers.attention.kv_blocks._MAX_MASK_ELEMENTS", 1000)
    monkeypatch.setattr("bough.layers.attention.torch_native._WORKSPACE_BYTES", 1024)
    rows = make_rows([2100], [1100], 0, page_size=16, window=None)
    metadata = rows.batch.attn_metadata
    assert [len(tile.segments) for tile in metadata.extend[None]] == [3, 4]
    layer = RadixAttention(HEADS, HEAD_DIM, KV_HEADS, 0)
    with torch.inference_mode():
        ours = rows.batch.attn_backend.forward(rows.q, rows.k, rows.v, layer, rows.batch)
    assert float((ours - naive(rows, None)).abs().max()) < 2e-6


@pytest.mark.parametrize("window", [None, 300, 1000])
def test_where_scores_are_kept_long_prompts_are_cut(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setattr("bough.layers.attention.softmax_attention._FUSED_ON", ())
    monkeypatch.setattr("bough.layers.attention.kv_blocks._TILE_QUERIES", 128)
    monkeypatch.setattr("bough.layers.attention.torch_native._WORKSPACE_BYTES", 1024)
    most = 0

    def watched(q: torch.Tensor, k: torch.Tensor, *args: torch.Tensor, **options: Any) -> Any:
        nonlocal most
        most = max(most, q.shape[2] * k.shape[2])
        return attend(q, k, *args, **options)

    monkeypatch.setattr("bough.layers.attention.torch_native.attend", watched)
    rows = make_rows([0, 0, 40], [700, 100, 30], 0, page_size=16, window=window)
    layer = RadixAttention(HEADS, HEAD_DIM, KV_HEADS, 0, sliding_window=window)
    with torch.inference_mode():
        ours = rows.batch.attn_backend.forward(rows.q, rows.k, rows.v, layer, rows.batch)
    assert most <= 128 * 1024
    assert float((ours - naive(rows, window)).abs().max()) < 2e-6


def test_half_precision_stays_near() -> None:
    torch.set_num_threads(1)
    rows = make_rows([700, 20, 0, 40], [1, 1, 40, 60], 2, page_size=16, window=None, dtype=torch.bfloat16)
    layer = RadixAttention(HEADS, HEAD_DIM, KV_HEADS, 0)
    with torch.inference_mode():
        ours = rows.batch.attn_backend.forward(rows.q, rows.k, rows.v, layer, rows.batch)
    assert ours.dtype == torch.bfloat16
    assert float((ours.double() - naive(rows, None)).abs().max()) < 0.02


@table("causal", [False, True])
@table("masked", [False, True])
def test_explicit_attention_equals_the_fused_one(causal: bool, masked: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    q = torch.randn(2, 6, 5, 20, generator=generator)
    k, v = torch.randn(2, 2, 2, 7, 20, generator=generator)
    mask = None
    if masked:
        mask = torch.zeros(2, 1, 5, 7)
        mask[1, :, :, 3:6] = float("-inf")
    fused, fused_sums = attend(q, k, v, scale=0.3, mask=None if causal else mask, causal=causal)
    written, written_sums = attend_explicitly(q, k, v, scale=0.3, mask=None if causal else mask, causal=causal)
    torch.testing.assert_close(written, fused, rtol=0, atol=1e-6)
    torch.testing.assert_close(written_sums, fused_sums, rtol=0, atol=1e-5)
    assert written.transpose(1, 2).is_contiguous()
