"""Weights that come quantised, in layers whose memory is packed."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from bough.errors import ModelError
from bough.kernels.packed_weights import WeightFormat
from bough.kernels.thread_pool import ThreadPool
from bough.layers.embedding import LMHead
from bough.layers.linear import MergedLinear, QKVLinear
from bough.layers.packed_method import PackedMethod, packed_formats, packed_method
from bough.layers.quantized_rows import QuantizedRows
from tests.native import needs_native
from tests.tables import table

pytestmark = needs_native

INPUTS = 200


def rows_of(bits: Literal[4, 8], group: int, *, minimums: bool = False, rows: int = 40) -> QuantizedRows:
    generator = torch.Generator().manual_seed(bits + min(group, INPUTS))
    low, high = (0, 16) if minimums else (-8, 8) if bits == 4 else (-127, 128)
    groups = -(-INPUTS // group)
    return QuantizedRows(
        bits,
        group,
        torch.randint(low, high, (rows, INPUTS), generator=generator, dtype=torch.int8),
        (torch.rand(rows, groups, generator=generator) * 0.01).half().float(),
        (torch.rand(rows, groups, generator=generator) * -0.1).half().float() if minimums else None,
    )


def layer_of(stored: WeightFormat, *, exact: bool = False) -> MergedLinear:
    method = PackedMethod(ThreadPool(2), stored, exact=exact)
    return MergedLinear(INPUTS, {"q": 40, "k": 8}, bias=False, dtype=torch.float32, method=method)


@table(
    "stored, bits, group, minimums",
    [
        *(("int4", 4, 32, False), ("int4", 4, 128, False), ("int8", 4, 64, False), ("int8", 8, 32, False)),
        *(
            ("int4", 4, INPUTS, False),
            ("int8", 8, INPUTS, False),
            ("uint4", 4, INPUTS, True),
            ("int4", 4, 10**12, False),
        ),
        *(("uint4", 4, 32, False), ("uint4", 4, 64, True), ("uint4", 4, 32, True)),
    ],
)
def test_codes_and_scales_stay_what_they_are_where_the_layout_has_room(
    stored: WeightFormat, bits: Literal[4, 8], group: int, minimums: bool
) -> None:
    rows = rows_of(bits, group, minimums=minimums)
    weight = dict(layer_of(stored).checkpoint_weights())["q.weight"]
    weight.write(rows)
    # A product and a sum in float32, in another order.
    torch.testing.assert_close(weight.read(), rows.dequantize(), rtol=0, atol=1e-7 if minimums else 0)


@table("stored, bits, group, minimums", [("int4", 8, 32, False), ("int8", 4, 32, True)])
def test_what_has_no_room_is_quantised_anew(
    stored: WeightFormat, bits: Literal[4, 8], group: int, minimums: bool
) -> None:
    rows = rows_of(bits, group, minimums=minimums)
    weights, others = (dict(layer_of(stored).checkpoint_weights()) for _ in range(2))
    weights["q.weight"].write(rows)
    others["q.weight"].write(rows.dequantize())
    assert torch.equal(weights["q.weight"].read(), others["q.weight"].read())
    assert not weights["k.weight"].read().any()


@table(
    "stored, bits, group, minimums",
    [("int4", 8, 32, False), ("int4", 4, 32, True), ("int4", 4, 16, False), ("uint4", 8, 32, True)],
)
def test_an_exact_matrix_refuses_what_has_no_room(
    stored: WeightFormat, bits: Literal[4, 8], group: int, minimums: bool
) -> None:
    weight = dict(layer_of(stored, exact=True).checkpoint_weights())["q.weight"]
    weight.write(rows_of(4, 32))
    before = weight.read()
    rows = rows_of(bits, group, minimums=minimums)
    with pytest.raises(ModelError, match=f"is held as {stored}"):
        weight.check(rows)
    with pytest.raises(ModelError, match=f"is held as {stored}"):
        weight.check(rows.dequantize())
    assert torch.equal(weight.read(), before)


@table("minimums", [True, False])
def test_bad_scales_far_down_leave_all_rows_as_they_were(minimums: bool) -> None:
    method = PackedMethod(ThreadPool(2), "uint4")
    layer = MergedLinear(INPUTS, {"q": 6000}, bias=False, dtype=torch.float32, method=method)
    weight = dict(layer.checkpoint_weights())["q.weight"]
    rows = rows_of(4, 32, minimums=minimums, rows=6000)
    (rows.scales if rows.minimums is None else rows.minimums)[5000, 1] = float("inf")
    with pytest.raises(ModelError, match="not finite"):
        weight.check(rows)
    assert not weight.read().any()


@table("stored, held, too_large", [("int8", 7800.0, 8400.0), ("int4", 440.0, 600.0)])
@table("dtype", [torch.float32, torch.bfloat16])
def test_numbers_too_large_for_a_scale_far_down_leave_all_rows_as_they_were(
    stored: WeightFormat, held: float, too_large: float, dtype: torch.dtype
) -> None:
    layer = MergedLinear(
        INPUTS, {"q": 6000}, bias=False, dtype=torch.float32, method=PackedMethod(ThreadPool(2), stored)
    )
    weight = dict(layer.checkpoint_weights())["q.weight"]
    tensor = torch.zeros(6000, INPUTS, dtype=dtype)
    tensor[0] = 1.0
    for number in (too_large, -too_large, float("inf"), float("nan")):
        tensor[5000, 3] = number
        with pytest.raises(ModelError, match="not finite"):
            weight.check(tensor)
        assert not weight.read().any()
    tensor[5000, 3] = held
    weight.write(tensor)
    assert bool(weight.read().isfinite().all())
    assert weight.read()[5000, 3] == pytest.approx(held, rel=0.01)


def test_numbers_too_large_to_be_quantised_anew_are_refused() -> None:
    weight = dict(layer_of("int4").checkpoint_weights())["q.weight"]
    rows = rows_of(8, 32)
    rows.scales[:] = 6.0
    rows.codes[:] = 10
    weight.write(rows)
    assert bool((weight.read() == 60).all())
    rows.codes[39, INPUTS - 1] = 127
    with pytest.raises(ModelError, match="too large for scales of int4"):
        weight.check(rows)
    assert bool((weight.read() == 60).all())


def test_small_matrices_of_one_format_share_huge_pages() -> None:
    formats = packed_formats(ThreadPool(1), lambda name: "int4" if "int4" in name else None)
    below = formats.below("layers.0")
    assert below.for_matrix(["int4"]) is formats.below("layers.1").for_matrix(["int4"])
    assert below.for_matrix(["int4", "other"]) is formats.for_matrix(["other"])


def test_in_int4_a_head_has_8_bits() -> None:
    method = packed_method(ThreadPool(1), "int4")
    head = LMHead(64, INPUTS, torch.float32, tied_to=None, method=method.for_matrix(("lm_head",)))
    rows = rows_of(8, 32, rows=64)
    weight = dict(head.checkpoint_weights())["weight"]
    weight.write(rows)
    assert torch.equal(weight.read(), rows.dequantize())


def test_in_int4_values_have_8_bits() -> None:
    parts = {"q_proj": 40, "k_proj": 8, "v_proj": 8}
    method = packed_method(ThreadPool(1), "int4").below("layers.0")
    layer = QKVLinear(INPUTS, parts, bias=True, dtype=torch.float32, method=method)
    weights = dict(layer.checkpoint_weights())
    assert list(weights) == [f"{part}.{name}" for part in parts for name in ("weight", "bias")]
    generator = torch.Generator().manual_seed(1)
    wanted, errors = [], {}
    x = torch.randn(3, INPUTS, generator=generator)
    for part, width in parts.items():
        rows, bias = torch.randn(width, INPUTS, generator=generator), torch.randn(width, generator=generator)
        weights[f"{part}.weight"].write(rows)
        weights[f"{part}.bias"].write(bias)
        held = weights[f"{part}.weight"].read()
        errors[part] = float((held - rows).norm() / rows.norm())
        wanted.append(x @ held.T + bias)
    assert errors["v_proj"] < 0.01
    assert min(errors["q_proj"], errors["k_proj"]) > 0.05
    exact = torch.cat(wanted, -1)
    assert float((layer(x) - exact).norm() / exact.norm()) < 0.01  # inputs have 8 bits, too


@table(
    "stored, minimums, scale, minimum",
    [
        ("int8", False, 64.0, 0.0),
        ("int4", False, float("nan"), 0.0),
        ("uint4", False, 8.0, 0.0),
        ("uint4", True, 1.0, -64.0),
    ],
)
def test_scales_without_room_in_half_precision_are_refused(
    stored: WeightFormat, minimums: bool, scale: float, minimum: float
) -> None:
    rows = rows_of(4, 32, minimums=minimums)
    rows.scales[7, 2] = scale
    if rows.minimums is not None:
        rows.minimums[7, 2] = minimum
    with pytest.raises(ModelError, match="not finite"):
        dict(layer_of(stored).checkpoint_weights())["q.weight"].check(rows)
