from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import torch

from bough.kernels.library import Isa, best_isa, set_isa
from bough.kernels.thread_pool import ThreadPool
from bough.layers.logprobs import GatheredLogprobs, gather_logprobs
from tests.native import needs_native
from tests.tables import table

Gather = Callable[..., GatheredLogprobs]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Tensors here are small, and threads that wait for each other are slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["torch", *(pytest.param(isa, marks=needs_native, id=isa.name.lower()) for isa in Isa)])
def gather(request: pytest.FixtureRequest) -> Iterator[Gather]:
    """The reference and the native kernel with each instruction set that this machine has."""
    if request.param == "torch":
        yield gather_logprobs
        return
    if not set_isa(request.param):
        pytest.skip(f"this machine lacks {request.param.name}")
    yield partial(gather_logprobs, threads=ThreadPool(2))
    set_isa(best_isa())


@table("vocab_size", [5, 64, 1000, 8191])
@table("scale", [0.1, 3.0, 300.0])
def test_values_are_those_of_log_softmax(gather: Gather, vocab_size: int, scale: float) -> None:
    logits = torch.randn(7, vocab_size) * scale
    before = logits.clone()
    targets = torch.randint(0, vocab_size, (7,))
    ids = (vocab_size - 1, 0, 3)
    got = gather(logits, targets, 4, ids)
    expected = torch.log_softmax(logits.double(), -1)
    assert torch.equal(logits, before)
    for values, at in ((got.targets[:, None], targets[:, None]), (got.top_values, got.top_ids)):
        torch.testing.assert_close(values.double(), expected.gather(1, at), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(got.chosen.double(), expected[:, list(ids)], rtol=1e-6, atol=1e-5)
    for row, top in zip(logits.numpy(), got.top_ids.tolist(), strict=True):
        assert top == np.lexsort((np.arange(vocab_size), -row))[:4].tolist()


def test_top_lists_are_cut_to_the_vocabulary_and_ties_go_by_id(gather: Gather) -> None:
    got = gather(torch.zeros(2, 5), torch.zeros(2, dtype=torch.int64), 20)
    assert got.top_ids.tolist() == [[0, 1, 2, 3, 4]] * 2
    np.testing.assert_allclose(got.top_values.numpy(), np.log(0.2), rtol=1e-6)
    assert got.chosen.shape == (2, 0)


def test_nothing_asked_gives_empty_columns(gather: Gather) -> None:
    got = gather(torch.randn(3, 100), torch.tensor([1, 2, 3]))
    assert got.top_values.shape == got.top_ids.shape == got.chosen.shape == (3, 0)
    empty = gather(torch.randn(0, 100), torch.zeros(0, dtype=torch.int64), 2, (1, 2, 3))
    assert [tuple(part.shape) for part in (empty.targets, empty.top_ids, empty.chosen)] == [(0,), (0, 2), (0, 3)]


def test_each_row_may_have_its_own_ids(gather: Gather) -> None:
    logits = torch.randn(2, 100)
    got = gather(logits, torch.tensor([0, 0]), 0, torch.tensor([[5, 6], [7, 5]]))
    expected = torch.log_softmax(logits, -1)
    torch.testing.assert_close(got.chosen, torch.stack((expected[0, [5, 6]], expected[1, [7, 5]])))


@table("vocab_size", [1000, 8191, 151_936])
def test_a_row_reads_the_same_alone_and_among_others(gather: Gather, vocab_size: int) -> None:
    logits = torch.randn(9, vocab_size) * 4
    targets = torch.randint(0, vocab_size, (9,))
    together = gather(logits, targets, 5, (1, 2))
    for row in range(9):
        alone = gather(logits[row : row + 1].clone(), targets[row : row + 1], 5, (1, 2))
        assert torch.equal(alone.targets[0], together.targets[row])
        assert torch.equal(alone.top_values[0], together.top_values[row])
        assert torch.equal(alone.chosen[0], together.chosen[row])


def test_banned_tokens_have_no_probability(gather: Gather) -> None:
    logits = torch.randn(1, 100)
    logits[0, 7] = -torch.inf
    got = gather(logits, torch.tensor([3]), 100, (7,))
    assert got.chosen.item() == -torch.inf
    assert got.top_ids[0, -1] == 7
    assert got.targets.isfinite().all()


def test_every_token_may_be_asked_for_in_order(gather: Gather) -> None:
    logits = torch.randn(3, 1000).round(decimals=1)  # many ties
    logits[0, :10] = -torch.inf
    logits[1, ::2] = -0.0
    logits[1, 1::2] = 0.0
    got = gather(logits, torch.tensor([1, 2, 3]), 1000)
    for row, top in zip(logits.numpy(), got.top_ids.tolist(), strict=True):
        assert top == np.lexsort((np.arange(1000), -row)).tolist()


def test_rows_that_are_not_numbers_give_valid_ids(gather: Gather) -> None:
    logits = torch.randn(3, 200)
    logits[0] = torch.nan
    logits[1, 17] = -torch.nan
    logits[2] = -torch.inf
    got = gather(logits, torch.tensor([1, 2, 3]), 7, (5,))
    assert ((got.top_ids >= 0) & (got.top_ids < 200)).all()
