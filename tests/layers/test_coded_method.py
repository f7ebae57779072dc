from __future__ import annotations

import pytest
import torch
from torch.nn import functional

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from bough.errors import ModelError
from bough.layers.coded_method import CodedMethod, Float8Method, IntegerMethod
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import MergedLinear
from bough.layers.quantize import quantize_float8, quantize_rows
from bough.layers.quantized_rows import QuantizedRows
from tests.tables import table

METHODS: dict[str, tuple[CodedMethod, float, float]] = {
    "int4": (IntegerMethod(4, 64), 0.10, 4.5),
    "int4 in small groups": (IntegerMethod(4, 32, minimums=True), 0.09, 6.0),
    "int8": (IntegerMethod(8, 128), 0.008, 8.25),
    "float8": (Float8Method(), 0.03, 8 + 32 / 256),
    "float8 in groups": (Float8Method(128), 0.03, 8.25),
}
"""With the error of normally distributed weights, relative, and the bits that one takes."""

INPUTS, PARTS = 256, {"a": 40, "b": 24}


def make_layer(method: CodedMethod) -> tuple[MergedLinear, torch.Tensor, torch.Tensor]:
    """With its weights and bias, as they were."""
    layer = MergedLinear(INPUTS, PARTS, bias=True, dtype=torch.float32, method=method)
    generator = torch.Generator().manual_seed(0)
    weights, biases = [], []
    for name, target in layer.checkpoint_weights():
        values = torch.randn(target.shape, generator=generator) * 0.05
        (weights if name.endswith("weight") else biases).append(values)
        target.write(values)
    return layer, torch.cat(weights), torch.cat(biases)


def held(layer: MergedLinear) -> torch.Tensor:
    return torch.cat([target.read() for name, target in layer.checkpoint_weights() if name.endswith("weight")])


@table("name", METHODS)
def test_weights_lose_no_more_than_their_format_must_and_take_its_bits(name: str) -> None:
    method, bound, bits = METHODS[name]
    layer, weight, bias = make_layer(method)
    assert float((held(layer) - weight).norm() / weight.norm()) <= bound
    taken = sum(each.nbytes for each in layer.parameters()) - layer.get_parameter("bias").nbytes
    assert taken * 8 == bits * weight.numel()
    x = torch.randn(3, INPUTS, generator=torch.Generator().manual_seed(1))
    exact = functional.linear(x, weight, bias)
    # Inputs lose as much again where they are quantised.
    assert float((layer(x) - exact).norm() / exact.norm()) <= 1.5 * bound


@table("name", METHODS)
def test_products_are_those_of_the_weights_as_they_are_held(name: str) -> None:
    layer, _, bias = make_layer(METHODS[name][0])
    x = torch.randn(3, INPUTS, generator=torch.Generator().manual_seed(1))
    bound = 0.05 if "float8" in name else 1e-5
    expected = functional.linear(x, held(layer), bias)
    assert float((layer(x) - expected).norm() / expected.norm()) <= bound


def test_an_exact_matrix_refuses_what_has_no_room() -> None:
    layer, _, _ = make_layer(IntegerMethod(4, 64))
    layer.method = IntegerMethod(4, 64, exact=True)
    weight = dict(layer.checkpoint_weights())["a.weight"]
    before = held(layer)
    numbers = torch.randn(40, INPUTS, generator=torch.Generator().manual_seed(1))
    four_bits = quantize_rows(numbers, 4, 64)
    with_minimums = QuantizedRows(4, 64, four_bits.codes + 8, four_bits.scales, four_bits.scales)
    for rows in (quantize_rows(numbers, 8, 64), quantize_rows(numbers, 4, 32), with_minimums):
        with pytest.raises(ModelError, match="is held as int4 in groups of 64"):
            weight.check(rows)
    with pytest.raises(ModelError, match="is held as int4 in groups of 64"):
        weight.check(numbers)
    assert torch.equal(held(layer), before)
    weight.check(four_bits)
    weight.write(four_bits)
    assert torch.equal(weight.read(), four_bits.dequantize())


def test_codes_of_a_checkpoint_stay_what_they_are() -> None:
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(-8, 8, (64, INPUTS), generator=generator).to(torch.int8)
    scales = torch.rand(64, 2, generator=generator)
    signed = QuantizedRows(4, 128, codes, scales)
    minimums = torch.rand(64, 2, generator=generator)
    unsigned = QuantizedRows(4, 128, (codes + 8).to(torch.uint8), scales, minimums)
    wide = QuantizedRows(8, 128, codes * 7, scales)
    float8 = quantize_float8(torch.randn(64, INPUTS, generator=generator), 128)
    cases: list[tuple[CodedMethod, QuantizedRows]] = [
        (IntegerMethod(4, 128), signed),
        (IntegerMethod(4, 64), signed),
        (IntegerMethod(4, 32, minimums=True), unsigned),
        (IntegerMethod(4, 32, minimums=True), signed),
        (IntegerMethod(8, 64), signed),
        (IntegerMethod(8, 128), wide),
        (Float8Method(128), float8),
        (Float8Method(64), float8),
    ]
    for method, rows in cases:
        layer = MergedLinear(INPUTS, {"a": 64}, bias=False, dtype=torch.float32, method=method)
        ((_, target),) = layer.checkpoint_weights()
        target.write(rows)
        torch.testing.assert_close(target.read(), rows.dequantize(), rtol=1e-6, atol=1e-5)


def test_what_a_format_cannot_hold_is_quantised_anew() -> None:
    weight = torch.randn(64, INPUTS, generator=torch.Generator().manual_seed(0))
    layer = MergedLinear(INPUTS, {"a": 64}, bias=False, dtype=torch.float32, method=IntegerMethod(8, 128))
    ((_, target),) = layer.checkpoint_weights()
    target.write(quantize_rows(weight, 8, 16))
    assert float((target.read() - weight).norm() / weight.norm()) <= 0.012


def test_tables_stay_what_they_are() -> None:
    method = IntegerMethod(4, 64)
    table = VocabEmbedding(50, 64, torch.float32, method=method)
    head = LMHead(50, 64, torch.float32, tied_to=table, method=method)
    values = torch.randn(50, 64)
    ((_, target),) = table.checkpoint_weights()
    target.write(values)
    assert torch.equal(table(torch.tensor([7, 3])), values[[7, 3]])
    torch.testing.assert_close(head(values[:2]), values[:2] @ values.T)


def test_weights_of_zeros_are_zeros() -> None:
    for method, _, _ in METHODS.values():
        layer = MergedLinear(INPUTS, PARTS, bias=False, dtype=torch.float32, method=method)
        for _, target in layer.checkpoint_weights():
            target.write(torch.zeros(target.shape))
        assert not held(layer).any()
        assert not layer(torch.ones(1, INPUTS)).any()
