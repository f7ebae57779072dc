"""Mixtures of experts, natively: close to what torch computes, and the same bits whatever is computed beside a row."""

from __future__ import annotations

import pytest
import torch

from bough.config.model_facts import ExpertFacts, RoutingFacts
from bough.kernels.buffers import Buffer, padded_columns
from bough.kernels.packed_weights import WeightFormat
from bough.kernels.program import NormWeight, Program
from bough.kernels.structures import ProgramLimits, Step
from bough.kernels.thread_pool import ThreadPool
from bough.layers.linear_method import TORCH
from bough.layers.moe.experts import Experts
from bough.layers.moe.router import Router
from bough.layers.packed_method import PackedMethod
from bough.layers.recorded_ops import expert_matrices
from tests.layers.moe.test_router import KINDS
from tests.tables import table

MOST_ROWS = 300
HIDDEN, WIDTH = 90, 52
"""No whole panels, and no whole groups of quantised inputs."""

FORMATS: dict[str, tuple[torch.dtype, WeightFormat, float]] = {
    "float32": (torch.float32, "native", 1e-5),
    "bfloat16": (torch.bfloat16, "native", 0.02),
    "int8": (torch.float32, "int8", 0.03),
    "int4": (torch.float32, "int4", 0.04),
    "uint4": (torch.float32, "uint4", 0.04),
}
"""Type of inputs, format of weights, and the error that rounding of activations leaves."""


class Layer:
    """A layer's experts in a program, whose inputs and router's products are set by hand."""

    def __init__(self, facts: RoutingFacts, form: str, num_threads: int, seed: int = 0) -> None:
        dtype, stored, self.tolerance = FORMATS[form]
        torch.manual_seed(seed)
        self.threads = ThreadPool(num_threads)
        method = PackedMethod(self.threads, stored)
        self.facts = facts
        self.router = Router(HIDDEN, facts, dtype, TORCH)
        for parameter in self.router.parameters():
            parameter.data.normal_(0.0, 0.3)
        of_layer = ExpertFacts(width=WIDTH, activation="silu", routing=facts, bias=True)
        self.experts, self.reference = (Experts(HIDDEN, of_layer, dtype, each) for each in (method, TORCH))
        for (_, packed), (_, plain) in zip(self.experts.each(), self.reference.each(), strict=True):
            for part in ("gate_up_proj", "down_proj"):
                ours, theirs = getattr(packed, part), getattr(plain, part)
                for (_, weight), (_, other) in zip(ours.checkpoint_weights(), theirs.checkpoint_weights(), strict=True):
                    weight.write(torch.randn(weight.shape) * 0.2)
                    other.write(weight.read())
        limits = ProgramLimits(max_tokens=MOST_ROWS, max_rows=1, max_context=MOST_ROWS, vocab_size=1, num_slots=1)
        self.program = Program(self.threads, limits, dtype)
        self._table = torch.zeros(1, HIDDEN)
        self.stream = self.program.embed(self._table)
        self.x = Buffer(torch.zeros(MOST_ROWS, padded_columns(HIDDEN, dtype), dtype=dtype), HIDDEN)
        self.products = Buffer(torch.zeros(MOST_ROWS, facts.num_experts), facts.num_experts)
        self.program.add_experts(self.x, self.products, expert_matrices(self.router, self.experts), self.stream)
        self._norm = torch.ones(HIDDEN)
        self.program.finish(self.stream, NormWeight(self._norm, 1e-6), None)

    def run(self, x: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
        rows = len(x)
        self.x.memory[:rows, :HIDDEN] = x
        self.products.memory[:rows] = products
        whole = {
            name: torch.tensor([value], dtype=torch.int32) for name, value in (("slot", 0), ("none", 0), ("n", rows))
        }
        ids, nothing = torch.zeros(rows, dtype=torch.int32), torch.zeros(1, dtype=torch.uint8)
        requests, last = torch.zeros(1, MOST_ROWS, dtype=torch.int32), torch.zeros(1, dtype=torch.int64)
        self.program.run(
            Step(
                num_rows=1,
                req_slots=whole["slot"].data_ptr(),
                prefix_lens=whole["none"].data_ptr(),
                extend_lens=whole["n"].data_ptr(),
                input_ids=ids.data_ptr(),
                out_slots=ids.data_ptr(),
                wanted=nothing.data_ptr(),
                req_to_token=requests.data_ptr(),
                table_stride=MOST_ROWS,
                last_tokens=last.data_ptr(),
                next_tokens=whole["slot"].data_ptr(),
                finite=nothing.data_ptr(),
            )
        )
        return self.stream.memory[:rows, :HIDDEN].clone()

    def expected(self, x: torch.Tensor, products: torch.Tensor) -> torch.Tensor:
        routed = self.router.choose(products)
        self.reference.take_note(routed, torch.ones(len(x), dtype=torch.int64))
        return self.reference(x, routed)


def inputs(layer: Layer, rows: int, skew: str = "even") -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(rows, HIDDEN).to(layer.x.memory.dtype)
    products = torch.randn(rows, layer.facts.num_experts)
    if skew == "one":  # all rows go to the same experts
        products = products[:1].expand(rows, -1).contiguous()
    elif skew == "few":  # most experts have no rows
        products[:, layer.facts.experts_per_token + 1 :] -= 50.0
    return x, products


@table("kind", KINDS)
def test_every_kind_of_routing_is_that_of_torch(kind: str) -> None:
    layer = Layer(KINDS[kind], "float32", 2)
    for rows in (1, 40):
        x, products = inputs(layer, rows)
        torch.testing.assert_close(layer.run(x, products), layer.expected(x, products), rtol=0, atol=1e-4)
    assert layer.experts.loads.tolist() == layer.reference.loads.tolist()
    assert int(layer.experts.loads.sum()) == 41 * layer.facts.experts_per_token


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("skew", ["even", "one", "few"])
def test_results_are_those_of_torch_and_bits_depend_on_nothing_but_the_row(form: str, skew: str) -> None:
    layers = [Layer(KINDS["renormalised"], form, threads) for threads in (1, 2, 3)]
    x, products = inputs(layers[0], MOST_ROWS, skew)
    whole = layers[0].run(x, products)
    expected = layers[0].expected(x, products).float()
    error = float((whole - expected).norm() / expected.norm())
    assert error < layers[0].tolerance
    for layer in layers:
        for start, end in ((0, MOST_ROWS), (0, 1), (7, 9), (30, 47), (100, 233)):
            assert torch.equal(layer.run(x[start:end], products[start:end]), whole[start:end])


def test_a_row_that_is_not_finite_spoils_itself_alone() -> None:
    layer = Layer(KINDS["grouped"], "float32", 2)
    x, products = inputs(layer, 20)
    expected = layer.run(x, products)
    x[3], products[3] = torch.nan, torch.nan
    found = layer.run(x, products)
    assert not found[3].isfinite().any()
    others = [row for row in range(20) if row != 3]
    assert torch.equal(found[others], expected[others])
