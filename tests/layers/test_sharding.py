"""Layers of which each rank has a share: together they are the whole, however weights are held."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch.nn import functional

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from bough.config.sharding import ShardSpec, Span
from bough.errors import ModelError
from bough.layers.checkpoint_weight import TensorWeight
from bough.layers.coded_method import Float8Method, IntegerMethod
from bough.layers.collectives import Collectives
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import GatedLinear, Linear
from bough.layers.linear_method import TORCH, LinearMethod, MethodChoice
from bough.layers.quantize import quantize_rows
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.sharding import ShardedChoice, ShardedWeight
from bough.model_loader.microscaling import microscaled_rows
from tests.tables import table

METHODS: dict[str, LinearMethod] = {
    "torch": TORCH,
    "int8": IntegerMethod(8, 128),
    "int4": IntegerMethod(4, 64),
    "float8": Float8Method(),
    "float8 in groups": Float8Method(128),
}
WORLD, HIDDEN, WIDTH, VOCAB = 2, 64, 512, 100


class Parts(Collectives):
    """Collectives of ranks that are computed one after the other: what each would contribute is kept."""

    def __init__(self) -> None:
        self.parts: list[torch.Tensor] = []

    def add_up(self, x: torch.Tensor) -> torch.Tensor:
        self.parts.append(x.clone())
        return x

    def join_columns(self, x: torch.Tensor, widths: Sequence[int], out: torch.Tensor | None = None) -> torch.Tensor:
        assert x.shape[1] == widths[len(self.parts)]
        self.parts.append(x.clone())
        return x


def choices(method: LinearMethod, parts: Parts) -> list[MethodChoice]:
    return [ShardedChoice(method, ShardSpec(rank, WORLD, "reduce"), parts) for rank in range(WORLD)]


def fill(layers: Sequence[torch.nn.Module]) -> dict[str, torch.Tensor]:
    """Give all layers, of which each is a rank's, the weights of one checkpoint."""
    tensors: dict[str, torch.Tensor] = {}
    generator = torch.Generator().manual_seed(0)
    for layer in layers:
        for name, weight in layer.checkpoint_weights():  # type: ignore[operator]
            if name not in tensors:
                tensors[name] = torch.randn(weight.shape, generator=generator) * 0.05
            assert weight.shape == tensors[name].shape
            weight.write(tensors[name])
    return tensors


def network(choice: MethodChoice | None, method: LinearMethod) -> tuple[GatedLinear, Linear]:
    made = choice or method
    width = made.shard.rows(WIDTH)
    inputs, outputs = made.shard.to_stream(width, HIDDEN)
    gate_up = GatedLinear(HIDDEN, {"gate": width, "up": width}, bias=True, dtype=torch.float32, method=made)
    return gate_up, Linear("down", inputs, outputs, bias=True, dtype=torch.float32, method=made)


@table("name", METHODS)
def test_a_feed_forward_network_is_the_sum_of_its_shares(name: str) -> None:
    method, parts = METHODS[name], Parts()
    ranks = [network(choice, method) for choice in choices(method, parts)]
    whole = network(None, method)
    fill([*(gate_up for gate_up, _ in ranks), whole[0]])
    fill([*(down for _, down in ranks), whole[1]])
    x = torch.randn(5, HIDDEN, generator=torch.Generator().manual_seed(1))
    for gate_up, down in ranks:
        down(gate_up(x))
    wanted = whole[1](whole[0](x))
    # With one scale for all its inputs, or all its weights of a row, a rank quantises its own part of them.
    bound = 0.05 if name == "float8" else 1e-5
    assert float((sum(parts.parts) - wanted).norm() / wanted.norm()) <= bound  # type: ignore[operator]


def test_a_table_and_its_head_are_those_of_all_ranks_together() -> None:
    parts = Parts()
    tables = [VocabEmbedding(VOCAB, HIDDEN, torch.float32, method=choice) for choice in choices(TORCH, parts)]
    heads = [
        LMHead(VOCAB, HIDDEN, torch.float32, tied_to=held, method=choice)
        for held, choice in zip(tables, choices(TORCH, parts), strict=True)
    ]
    assert [held.rows for held in tables] == [Span(0, 64, VOCAB), Span(64, 36, VOCAB)]
    weight = fill(tables)["weight"]
    ids = torch.tensor([0, 63, 64, 99, 5])
    for held in tables:
        held(ids)
    torch.testing.assert_close(parts.parts[0] + parts.parts[1], weight[ids], atol=0.0, rtol=0.0)
    parts.parts.clear()
    states = torch.randn(3, HIDDEN)
    for head in heads:
        head(states)
    torch.testing.assert_close(torch.cat(parts.parts, 1), functional.linear(states, weight))


def test_codes_of_a_checkpoint_stay_what_they_are_and_groups_are_not_cut() -> None:
    parts = Parts()
    rows = quantize_rows(torch.randn(HIDDEN, WIDTH), 4, 64)
    for choice in choices(IntegerMethod(4, 64, exact=True), parts):
        _, down = network(choice, TORCH)
        ((_, weight),) = [each for each in down.checkpoint_weights() if each[0] == "down.weight"]
        weight.write(rows)
        held = down.inputs
        weight.read()
        assert torch.equal(parts.parts.pop()[:, held.start : held.stop], rows.dequantize()[:, held.start : held.stop])
        if held.start:
            with pytest.raises(ModelError, match="in groups of 384, which ranks cannot cut at 256"):
                weight.write(quantize_rows(torch.randn(HIDDEN, WIDTH), 4, 384))


def test_a_share_of_a_matrix_in_mxfp4_has_its_codes_and_their_scales() -> None:
    generator = torch.Generator().manual_seed(0)
    pairs, exponents = torch.randint(256, (8, 64), generator=generator), torch.randint(120, 130, (8, 4))
    numbers = microscaled_rows(pairs.to(torch.uint8), exponents.to(torch.uint8))
    whole = numbers.dequantize()
    for rows, columns in (
        (Span(0, 3, 8), Span.whole(128)),
        (Span(3, 5, 8), Span.whole(128)),
        (Span.whole(8), Span(0, 96, 128)),
        (Span.whole(8), Span(96, 32, 128)),
        (Span.whole(8), Span(0, 40, 128)),
    ):
        weight = ShardedWeight(TensorWeight(torch.empty(rows.size, columns.size)), rows, columns, Parts())
        ((_, own),) = weight.own(numbers)
        assert isinstance(own, QuantizedRows)
        assert own.is_e2m1
        assert torch.equal(own.dequantize(), whole[rows.start : rows.stop, columns.start : columns.stop])
    cut = ShardedWeight(TensorWeight(torch.empty(8, 88)), Span.whole(8), Span(40, 88, 128), Parts())
    with pytest.raises(ModelError, match="cannot cut at 40"):
        cut.check(numbers)
