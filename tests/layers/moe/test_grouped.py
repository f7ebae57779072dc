"""Experts in one launch compute what one after the other does, in Triton's interpreter or on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bough.config.model_facts import ExpertFacts
from bough.config.sharding import ShardSpec
from bough.layers.collectives import ALONE
from bough.layers.linear_method import TORCH, TorchMethod
from bough.layers.moe.experts import Experts
from bough.layers.moe.router import Routed
from bough.layers.sharding import ShardedChoice
from tests.layers.moe.test_router import KINDS
from tests.tables import table

pytest.importorskip("bough.kernels.triton.grouped_gemm", exc_type=ImportError)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HIDDEN, WIDTH = 70, 24


class Invariant(TorchMethod):
    batch_invariant = True


def coded(name: str) -> TorchMethod:
    from bough.layers.coded_method import Float8Method, IntegerMethod

    return {"int8": IntegerMethod(8, 32), "int4": IntegerMethod(4, 32, minimums=True), "fp8": Float8Method()}[name]


def make_experts(dtype: torch.dtype, method: TorchMethod = TORCH, rank: int | None = None) -> Experts:
    torch.manual_seed(3)
    facts = ExpertFacts(width=WIDTH, activation="silu", routing=KINDS["renormalised"], bias=True)
    choice = method if rank is None else ShardedChoice(method, ShardSpec(rank, 2, splits_experts=False), ALONE)
    with torch.device(DEVICE):
        experts = Experts(HIDDEN, facts, dtype, choice)
        if experts.grouped is None:
            experts.put_together()
        for _, weight in experts.checkpoint_weights():
            weight.write(torch.randn(weight.shape) * 0.3)
    return experts


def inputs(dtype: torch.dtype, rows: int, skew: str) -> tuple[torch.Tensor, Routed]:
    torch.manual_seed(rows)
    facts = KINDS["renormalised"]
    count, per_token = facts.num_experts, facts.experts_per_token
    chosen = {
        "even": torch.stack([torch.randperm(count)[:per_token].sort().values for _ in range(rows)]),
        "one": torch.arange(per_token).expand(rows, per_token),
        "last": torch.arange(count - per_token, count).expand(rows, per_token),
    }[skew]
    x = torch.randn(rows, HIDDEN, device=DEVICE).to(dtype)
    return x, Routed(chosen.to(DEVICE), torch.rand(rows, per_token, device=DEVICE))


@table("skew", ["even", "one", "last"])
def test_results_are_those_of_one_expert_after_the_other(skew: str) -> None:
    for dtype, tolerance in ((torch.float32, 5e-5), (torch.float16, 5e-3)):
        experts = make_experts(dtype)
        assert experts.grouped is not None
        for rows in (1, 5, 70):
            x, routed = inputs(dtype, rows, skew)
            found = experts.grouped.compute(x, routed)
            torch.testing.assert_close(found, experts._one_by_one(x, routed), rtol=0, atol=tolerance)


@table("name", ["int8", "int4", "fp8"])
def test_quantised_experts_are_computed_together(name: str) -> None:
    if name == "fp8" and DEVICE == "cpu":
        pytest.skip("Triton's interpreter does not multiply 8-bit floating point as tensor cores do")
    experts = make_experts(torch.float32 if name != "fp8" else torch.float16, coded(name))
    assert experts.grouped is not None
    for rows in (1, 40):
        x, routed = inputs(torch.float32 if name != "fp8" else torch.float16, rows, "even")
        found, expected = experts.grouped.compute(x, routed), experts._one_by_one(x, routed)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4 if name != "fp8" else 0.02)


def test_ranks_with_some_experts_make_up_the_whole() -> None:
    x, routed = inputs(torch.float32, 40, "even")
    whole = make_experts(torch.float32)
    total = torch.zeros(40, HIDDEN, device=DEVICE)
    for rank in range(2):
        experts = make_experts(torch.float32, rank=rank)
        for number, expert in experts.each():
            expert.load_state_dict(whole[str(number)].state_dict())
        assert experts.grouped is not None
        total += experts.grouped.compute(x, routed)
    torch.testing.assert_close(total, whole._one_by_one(x, routed), rtol=0, atol=5e-5)


def products_in_order(a: Any, b: Any, dtype: Any) -> Any:
    """``a @ b``, summed up alike in all rows: in numpy it depends on the processor and on the number of the row."""
    return (a[:, :, None].astype(dtype) * b[None].astype(dtype)).sum(axis=1)


def test_a_row_does_not_depend_on_the_others_where_it_must_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "matmul", products_in_order)  # Triton's interpreter multiplies by it
    experts = make_experts(torch.float16, Invariant())
    assert experts.grouped is not None
    x, routed = inputs(torch.float16, 70, "even")
    whole = experts.grouped.compute(x, routed)
    for rows in (slice(0, 1), slice(30, 47)):
        part = Routed(routed.experts[rows], routed.weights[rows])
        assert torch.equal(experts.grouped.compute(x[rows], part), whole[rows])


def test_weights_stay_those_of_their_layers() -> None:
    experts = make_experts(torch.float32)
    weights = dict(experts.checkpoint_weights())
    weights["2.down_proj.weight"].write(torch.full((HIDDEN, WIDTH), 2.0))
    x, routed = inputs(torch.float32, 9, "even")
    assert experts.grouped is not None
    found = experts.grouped.compute(x, routed)
    torch.testing.assert_close(found, experts._one_by_one(x, routed), rtol=0, atol=5e-5)
