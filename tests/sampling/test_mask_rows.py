from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bough.sampling import mask_rows
from tests.sampling.naive import masks_of


@pytest.mark.parametrize("vocab_size", [7, 64, 1000])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3, 4], [1, 2], [0, 3, 4]])
def test_tokens_that_are_not_allowed_lose_whatever_their_logits(
    vocab_size: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_rows, "_TILE_LOGITS", 2 * vocab_size)
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.standard_normal((5, vocab_size)).astype(np.float32))
    logits[3, ::3] = math.nan
    logits[4, 1::3] = math.inf
    allowed = rng.random((len(rows), vocab_size)) < 0.3
    expected = logits.clone()
    for row, each in zip(rows, allowed, strict=True):
        expected[row, torch.from_numpy(~each)] = -math.inf
    masks_of(allowed, rows).apply(logits)
    # A token that is allowed and has no number is as good as one that is not finite.
    lost = expected.isnan() & torch.isin(torch.arange(5), torch.tensor(rows)).unsqueeze(1)
    assert logits[lost].isinf().all()
    torch.testing.assert_close(logits[~lost], expected[~lost], rtol=0, atol=0, equal_nan=True)
