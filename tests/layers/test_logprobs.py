from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from bough.layers.logprobs import gather_logprobs


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors here are small, and threads that wait for each other are slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("vocab_size", [5, 64, 1000, 8191])
@pytest.mark.parametrize("scale", [0.1, 3.0, 300.0])
def test_values_are_those_of_log_softmax(vocab_size: int, scale: float) -> None:
    logits = torch.randn(7, vocab_size) * scale
    before = logits.clone()
    targets = torch.randint(0, vocab_size, (7,))
    ids = (vocab_size - 1, 0, 3)
    got = gather_logprobs(logits, targets, 4, ids)
    expected = torch.log_softmax(logits.double(), -1)
    assert torch.equal(logits, before)
    for values, at in ((got.targets[:, None], targets[:, None]), (got.top_values, got.top_ids)):
        torch.testing.assert_close(values.double(), expected.gather(1, at), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(got.chosen.double(), expected[:, list(ids)], rtol=1e-6, atol=1e-5)
    for row, top in zip(logits.numpy(), got.top_ids.tolist(), strict=True):
        assert top == np.lexsort((np.arange(vocab_size), -row))[:4].tolist()


def test_top_lists_are_cut_to_the_vocabulary_and_ties_go_by_id() -> None:
    got = gather_logprobs(torch.zeros(2, 5), torch.zeros(2, dtype=torch.int64), 20)
    assert got.top_ids.tolist() == [[0, 1, 2, 3, 4]] * 2
    np.testing.assert_allclose(got.top_values.numpy(), np.log(0.2), rtol=1e-6)
    assert got.chosen.shape == (2, 0)


def test_nothing_asked_gives_empty_columns() -> None:
    got = gather_logprobs(torch.randn(3, 100), torch.tensor([1, 2, 3]))
    assert got.top_values.shape == got.top_ids.shape == got.chosen.shape == (3, 0)
    empty = gather_logprobs(torch.randn(0, 100), torch.zeros(0, dtype=torch.int64), 2, (1, 2, 3))
    assert [tuple(part.shape) for part in (empty.targets, empty.top_ids, empty.chosen)] == [(0,), (0, 2), (0, 3)]


def test_each_row_may_have_its_own_ids() -> None:
    logits = torch.randn(2, 100)
    got = gather_logprobs(logits, torch.tensor([0, 0]), 0, torch.tensor([[5, 6], [7, 5]]))
    expected = torch.log_softmax(logits, -1)
    torch.testing.assert_close(got.chosen, torch.stack((expected[0, [5, 6]], expected[1, [7, 5]])))


@pytest.mark.parametrize("vocab_size", [1000, 8191, 151_936])
def test_a_row_reads_the_same_alone_and_among_others(vocab_size: int) -> None:
    logits = torch.randn(9, vocab_size) * 4
    targets = torch.randint(0, vocab_size, (9,))
    together = gather_logprobs(logits, targets, 5, (1, 2))
    for row in range(9):
        alone = gather_logprobs(logits[row : row + 1].clone(), targets[row : row + 1], 5, (1, 2))
        assert torch.equal(alone.targets[0], together.targets[row])
        assert torch.equal(alone.top_values[0], together.top_values[row])
        assert torch.equal(alone.chosen[0], together.chosen[row])


def test_banned_tokens_have_no_probability() -> None:
    logits = torch.randn(1, 100)
    logits[0, 7] = -torch.inf
    got = gather_logprobs(logits, torch.tensor([3]), 100, (7,))
    assert got.chosen.item() == -torch.inf
    assert got.top_ids[0, -1] == 7
    assert got.targets.isfinite().all()
