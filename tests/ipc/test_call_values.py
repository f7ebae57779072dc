"""Arguments of calls on workers as MessagePack."""

from __future__ import annotations

import msgspec
import pytest
import torch

from bough.errors import BadRequest
from bough.ipc.call_values import MAX_DEPTH, decode_values, encode_arguments, encode_values

Ext = msgspec.msgpack.Ext


def packed(code: int, value: object) -> bytes:
    return msgspec.msgpack.encode(Ext(code, msgspec.msgpack.encode(value)))


def test_tensors_of_all_types_cross() -> None:
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool):
        for shape in ((), (0,), (2, 3)):
            tensor = torch.ones(shape).to(dtype)
            found = decode_values(encode_values(tensor, "tensor"))
            assert found.dtype == dtype
            assert torch.equal(found, tensor)
    strided = torch.arange(12.0).reshape(3, 4).t()
    assert torch.equal(decode_values(encode_values(strided, "tensor")), strided)


def test_texts_stand_for_what_json_has_not() -> None:
    values = [torch.bfloat16, torch.Size([2]), torch.device("cpu"), (1, 2), torch.tensor([1.5], dtype=torch.bfloat16)]
    assert decode_values(encode_values(values, "values"), as_text=True) == ["bfloat16", [2], "cpu", [1, 2], [1.5]]


def test_what_is_no_value_is_refused() -> None:
    hostile = (
        b"",
        b"\xc1",
        packed(99, 1),
        packed(1, "load"),
        packed(1, "no_such_dtype"),
        packed(1, 3),
        packed(3, "no device"),
        packed(5, ["float32", [2], b"abc"]),
        packed(6, "os.system"),
        packed(7, ["O", [1], b"12345678"]),
        b"\x91" * 5000 + b"\xc0",
    )
    for data in hostile:
        with pytest.raises(BadRequest):
            decode_values(data)


def test_arguments_that_cannot_be_sent_are_named() -> None:
    deep: object = 1
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    for args, kwargs, param in (
        ((1, {"a": object()}), None, "args[1]['a']"),
        ((), {"key": {1.5: 2}}, "kwargs['key']"),
        ((deep,), None, "args[0]" + "[0]" * (MAX_DEPTH + 1)),
        ("text", None, "args"),
        ((), {1: 2}, "kwargs"),
        ((eval,), None, "args[0]"),
    ):
        with pytest.raises(BadRequest) as refused:
            encode_arguments(args, kwargs)  # type: ignore[arg-type]
        assert refused.value.param == param
