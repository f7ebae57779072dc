"""Arguments and results of calls on workers as MessagePack: plain values, and what trainers send of torch's types.

Nothing is unpickled: extension types carry the name of a dtype or a device, sizes, or raw numbers, and functions come
only as names of a fixed list. torch is imported when a value needs it, so that a front end can do without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from bough.errors import BadRequest

_DTYPE, _SIZE, _DEVICE, _TUPLE, _TENSOR, _LISTED, _ARRAY = range(1, 8)
"""Codes of the extension types."""

LISTED = {
    "rebuild_cuda_tensor": ("torch.multiprocessing.reductions", "rebuild_cuda_tensor"),
    "Tensor": ("torch", "Tensor"),
    "Parameter": ("torch.nn", "Parameter"),
    "TypedStorage": ("torch.storage", "TypedStorage"),
    "UntypedStorage": ("torch.storage", "UntypedStorage"),
}
"""All that a handle of memory on a CUDA device, as ``torch.multiprocessing.reductions`` makes it, has besides plain
values, by the name that it is sent under."""

MAX_DEPTH = 64
"""Deepest nesting of lists and dictionaries."""

_LONGEST_INT = 2**63

_encode = msgspec.msgpack.encode
_Ext = msgspec.msgpack.Ext


def encode_values(values: Any, name: str) -> bytes:
    """Return MessagePack of what a call is given, or returns.

    Args:
        values: ``None``, bools, numbers, texts, bytes; lists, tuples and dictionaries of them; of torch dtypes, sizes,
            devices and tensors (copied to the host); numpy's numbers and arrays of numbers; handles of CUDA memory.
        name: of the value, for errors.

    Raises:
        BadRequest: naming the part that is of another type.
    """
    try:
        return _encode(_wire(values, name, 0))
    except UnicodeEncodeError:
        raise BadRequest(f"{name} has text with a lone surrogate", param=name) from None


def encode_arguments(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> bytes:
    """Return the arguments of a call as they are sent; raises as :func:`encode_values`, naming the argument."""
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise BadRequest("args must be a list or a tuple", param="args")
    if kwargs is not None and not (isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs)):
        raise BadRequest("kwargs must be a dictionary with texts as keys", param="kwargs")
    positional = [_wire(each, f"args[{i}]", 0) for i, each in enumerate(args)]
    by_name = {key: _wire(each, f"kwargs[{key!r}]", 0) for key, each in (kwargs or {}).items()}
    try:
        return _encode((positional, by_name))
    except UnicodeEncodeError:
        raise BadRequest("args have text with a lone surrogate", param="args") from None


class WorkerResult(NamedTuple):
    """Outcome of a call on one worker."""

    num_loaded: int
    """Weights that it has loaded, which are not written yet."""
    digest: str
    """Digest of their names, shapes and dtypes."""
    value: bytes
    """What it returned, encoded."""


def encode_result(result: WorkerResult) -> bytes:
    """Return a result as it is sent."""
    return _encode(result)


def decode_result(data: bytes) -> WorkerResult:
    """Return what :func:`encode_result` was given."""
    return msgspec.msgpack.decode(data, type=WorkerResult)


def decode_values(data: bytes | memoryview, *, as_text: bool = False) -> Any:
    """Return what :func:`encode_values` was given.

    Args:
        as_text: have only what JSON has: names of dtypes and devices, lists of sizes, numbers of tensors. Needs no
            torch.

    Raises:
        BadRequest: if these are no such bytes.
    """
    try:
        return msgspec.msgpack.decode(data, ext_hook=_text_of if as_text else _object_of)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise BadRequest(f"these values cannot be read: {error}") from None


def _wire(value: Any, name: str, depth: int) -> Any:
    """Return a value of which all parts are what MessagePack has."""
    if value is None or type(value) in (bool, float, bytes, str):
        return value
    if type(value) is int:
        if not -_LONGEST_INT <= value < 2 * _LONGEST_INT:
            raise BadRequest(f"{name} must have at most 64 bits", param=name)
        return value
    if depth > MAX_DEPTH:
        raise BadRequest(f"{name} is nested too deeply", param=name)
    special = _special(value)
    if special is not None:
        return special
    if isinstance(value, Mapping):
        return {_key(key, name): _wire(each, f"{name}[{str(key)[:64]!r}]", depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_wire(each, f"{name}[{i}]", depth + 1) for i, each in enumerate(value)]
        return parts if isinstance(value, list) else _Ext(_TUPLE, _encode(parts))
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise BadRequest(f"{name} is a {kind}, which cannot be sent", param=name, code="unsupported_value")


def _key(key: Any, name: str) -> Any:
    if isinstance(key, (str, int)) and not isinstance(key, bool):
        return key
    raise BadRequest(f"{name} has the key {key!r}, and keys must be texts or integers", param=name)


def _special(value: Any) -> Any:
    """Return what stands for a value of torch or numpy; ``None`` if it is none of these."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None:
        if isinstance(value, torch.dtype):
            return _Ext(_DTYPE, _encode(str(value).removeprefix("torch.")))
        if isinstance(value, torch.Size):
            return _Ext(_SIZE, _encode(list(value)))
        if isinstance(value, torch.device):
            return _Ext(_DEVICE, _encode(str(value)))
        if isinstance(value, torch.Tensor):
            host = value.detach().to("cpu").contiguous()
            raw = host.flatten().view(torch.uint8).numpy().tobytes() if host.numel() else b""
            return _Ext(_TENSOR, _encode((str(host.dtype).removeprefix("torch."), list(host.shape), raw)))
        for listed, (module, attribute) in LISTED.items():
            if value is getattr(sys.modules.get(module), attribute, _Ext):
                return _Ext(_LISTED, _encode(listed))
    if numpy is not None:
        if isinstance(value, numpy.generic) and value.dtype.kind in "biuf":
            return value.item()
        if isinstance(value, numpy.ndarray) and value.dtype.kind in "biuf":
            return _Ext(_ARRAY, _encode((value.dtype.str, list(value.shape), value.tobytes())))
    return None


def _object_of(code: int, data: memoryview) -> Any:
    inner = msgspec.msgpack.decode(data, ext_hook=_object_of)
    if code == _TUPLE:
        return tuple(inner)
    if code == _ARRAY:
        return _array(*inner)
    import torch

    makers: dict[int, Callable[[Any], Any]] = {
        _DTYPE: _dtype,
        _SIZE: torch.Size,
        _DEVICE: torch.device,
        _TENSOR: lambda parts: _tensor(*parts),
        _LISTED: _listed,
    }
    return makers[code](inner)


def _text_of(code: int, data: memoryview) -> Any:
    inner = msgspec.msgpack.decode(data, ext_hook=_text_of)
    if code == _ARRAY:
        return _array(*inner).tolist()
    if code == _TENSOR:
        dtype, shape, raw = inner
        if dtype == "bfloat16":
            import numpy as np

            wide = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
            return wide.reshape(shape).tolist()
        return _array(dtype, shape, raw).tolist()
    return inner


def _dtype(name: str) -> Any:
    import torch

    found = getattr(torch, name)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"torch.{name} is no dtype")
    return found


def _tensor(dtype: str, shape: list[int], raw: bytes) -> Any:
    import torch

    numbers = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
    return numbers.view(_dtype(dtype)).reshape(shape)


def _array(dtype: str, shape: list[int], raw: bytes) -> Any:
    import numpy as np

    found = np.dtype(dtype)
    if found.kind not in "biuf":
        raise TypeError(f"{dtype} is no type of numbers")
    return np.frombuffer(raw, found).reshape(shape).copy()


def _listed(name: str) -> Any:
    import importlib

    module, attribute = LISTED[name]
    return getattr(importlib.import_module(module), attribute)
