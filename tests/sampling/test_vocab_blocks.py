from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.sampling.vocab_blocks import BLOCK, block_maxima, first_maximum, gather_blocks, num_blocks, top_tokens
from tests.tables import table
from tests.thoroughness import examples

VOCAB_SIZES = [1, 50, 63, 64, 65, 128, 1000, 8192, 50257]


def naive_top(row: np.ndarray, k: int) -> np.ndarray:
    return np.lexsort((np.arange(len(row)), -row))[:k]


@table("vocab_size", VOCAB_SIZES)
def test_block_maxima_are_those_of_each_block(vocab_size: int) -> None:
    logits = torch.randn(3, vocab_size)
    maxima = block_maxima(logits)
    assert maxima.shape == (3, num_blocks(vocab_size))
    for block in range(num_blocks(vocab_size)):
        expected = logits[:, block * BLOCK : (block + 1) * BLOCK].max(-1).values
        assert torch.equal(maxima[:, block], expected)


@table("vocab_size", VOCAB_SIZES)
def test_the_largest_logit_with_the_lowest_id_is_found(vocab_size: int) -> None:
    logits = torch.randint(-3, 3, (40, vocab_size)).float()
    values, ids = first_maximum(logits, block_maxima(logits))
    assert torch.equal(values, logits.max(-1).values)
    assert ids.tolist() == [int(np.argmax(row)) for row in logits.numpy()]


@table("bad", [float("nan"), -float("nan"), float("inf")])
def test_nan_and_infinity_reach_the_largest_value(bad: float) -> None:
    logits = torch.randn(2, 1000)
    logits[1, 777] = bad
    values, ids = first_maximum(logits, block_maxima(logits))
    assert values.isfinite().tolist() == [True, False]
    assert ids[1] == 777


@table("vocab_size", VOCAB_SIZES)
def test_gathered_blocks_are_padded_with_minus_infinity(vocab_size: int) -> None:
    logits = torch.randn(3, vocab_size)
    blocks = torch.tensor([[num_blocks(vocab_size) - 1, 0]])
    gathered = gather_blocks(logits, blocks, torch.tensor([2]))
    padded = torch.nn.functional.pad(logits[2], (0, num_blocks(vocab_size) * BLOCK - vocab_size), value=-torch.inf)
    assert torch.equal(gathered[0], padded.view(-1, BLOCK)[blocks[0]])


@settings(max_examples=examples(100))
@given(
    vocab_size=st.sampled_from(VOCAB_SIZES),
    share=st.floats(0.0, 1.0),
    levels=st.integers(1, 2000),
    banned=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_top_tokens_agree_with_a_sort_also_among_ties(
    vocab_size: int, share: float, levels: int, banned: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    k = max(1, min(vocab_size, round(share * min(vocab_size, 300))))
    rows = ((rng.integers(0, levels, (3, vocab_size)) - levels // 2) / 7).astype(np.float32)
    rows[rng.random(rows.shape) < banned] = -np.inf
    rows[0, rng.integers(vocab_size)] = -0.0
    logits = torch.from_numpy(rows)
    values, ids = top_tokens(logits, block_maxima(logits), k)
    for row, got_values, got_ids in zip(rows, values.numpy(), ids.numpy(), strict=True):
        expected = naive_top(row, k)
        assert got_ids.tolist() == expected.tolist()
        assert got_values.tolist() == row[expected].tolist()


def test_rows_with_nan_yield_valid_ids_and_leave_others_alone() -> None:
    logits = torch.randn(3, 1001)
    expected = naive_top(logits[0].numpy(), 70)
    logits[1] = float("nan")
    logits[2] = -torch.tensor(float("nan"))
    _, ids = top_tokens(logits, block_maxima(logits), 70)
    assert ids[0].tolist() == expected.tolist()
    assert int(ids.min()) >= 0
    assert int(ids.max()) < 1001
