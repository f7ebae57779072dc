from __future__ import annotations

import pytest
import torch

from bough.layers import embedding
from bough.layers.embedding import LMHead
from tests.tables import table


def make_head() -> LMHead:
    head = LMHead(40, 16, torch.float32, tied_to=None)
    head.weight.copy_(torch.randn(40, 16, generator=torch.Generator().manual_seed(0)))
    return head


@table("rows", [0, 1, 7, 8, 9])
def test_padding_changes_no_logit(rows: int) -> None:
    head = make_head()
    states = torch.randn(rows, 16, generator=torch.Generator().manual_seed(1))
    expected = states.double() @ head.weight.double().T
    for min_rows in (1, 8):
        head.min_rows = min_rows
        logits = head(states)
        assert logits.is_contiguous()
        torch.testing.assert_close(logits.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("seconds_of_eight", "min_rows"), [(0.5, 8), (0.9, 1), (3.0, 1)])
def test_rows_are_padded_where_that_is_faster(
    seconds_of_eight: float, min_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = make_head()
    monkeypatch.setattr(embedding, "_LARGE_HEAD", 1)
    monkeypatch.setattr(embedding, "_timed", lambda states, _: 1.0 if len(states) == 1 else seconds_of_eight)
    head.measure()
    assert head.min_rows == min_rows


def test_small_head_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    head = make_head()
    monkeypatch.setattr(embedding, "_timed", lambda states, _: 1.0 if len(states) == 1 else 0.1)
    head.measure()
    assert head.min_rows == 1
