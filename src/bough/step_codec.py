"""Step plans as frames of bytes: a MessagePack header, and behind it each array as it lies in memory.

The structs of :mod:`bough.step_plan` are the schema. A receiver that knows other members than the sender refuses a plan
instead of running another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Annotated, Any, Union, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from bough.constrained.base import MaskWords
from bough.constrained.masks import StepMasks, TokenMasks
from bough.step_plan import IntArray, StepPlan

Frame = Union[bytes, memoryview]  # noqa: UP007
"""One part of a message."""


class _Wire(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Base of what stands in a header for a value that MessagePack does not know."""


class _Array(_Wire):
    frame: Annotated[int, msgspec.Meta(ge=1)]
    """Index of the frame with the elements, in C order."""
    dtype: str
    """Type and byte order of the elements, as numpy writes it."""
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]


class _Masks(_Wire):
    rows: IntArray
    bits: MaskWords | None
    """``None``: they are sent later."""
    has_failed: bool = False
    ended: tuple[int, ...] = ()


class OwedMasks(StepMasks):
    """Masks that the sender of a plan sends later; ``receive`` waits for the frames of :func:`encode_masks`."""

    def __init__(self, rows: npt.NDArray[np.int32], receive: Callable[[], Sequence[Frame]]) -> None:
        self.rows, self.has_failed, self.ended = rows, False, ()
        self._receive = receive
        self._bits: MaskWords | None = None

    @property
    def bits(self) -> MaskWords:
        """See :class:`StepMasks`; waits for them."""
        if self._bits is None:
            settled = decode_masks(self._receive())
            self._bits, self.has_failed, self.ended = settled.bits, settled.has_failed, settled.ended
        return self._bits


def encode_plan(plan: StepPlan, *, owes_masks: bool = False) -> list[Frame]:
    """Encode a plan. Masks that are not computed yet are waited for, unless they are owed: :func:`encode_masks`.

    Frames may be views of the plan's arrays.

    Raises:
        TypeError: if a member has a value that cannot be sent.
        Exception: what computing the masks has raised.
    """
    return _encode(plan, owes_masks=owes_masks)


def encode_masks(masks: StepMasks) -> list[Frame]:
    """Encode the masks that a plan has owed; waits for them and raises as :func:`encode_plan`."""
    return _encode(masks, owes_masks=False)


def decode_plan(frames: Sequence[Frame], receive_masks: Callable[[], Sequence[Frame]] | None = None) -> StepPlan:
    """Decode a plan, whose arrays are new ones. ``receive_masks`` waits for the masks if the plan owes them.

    Raises:
        msgspec.DecodeError: if a member is unknown or missing, or is not of its type; if the frames are not those of
            the header; or if masks are owed and there is no ``receive_masks``.
    """
    plan: StepPlan = _decode(StepPlan, frames, receive_masks)
    return plan


def decode_masks(frames: Sequence[Frame]) -> StepMasks:
    """Decode the result of :func:`encode_masks`; raises as :func:`decode_plan`."""
    masks: StepMasks = _decode(StepMasks, frames, None)
    return masks


def _encode(value: Any, *, owes_masks: bool) -> list[Frame]:
    frames: list[Frame] = [b""]

    def to_wire(part: Any) -> _Wire:
        if isinstance(part, np.ndarray):
            frames.append(np.ascontiguousarray(part).data)
            return _Array(len(frames) - 1, part.dtype.str, part.shape)
        if not isinstance(part, StepMasks):
            raise TypeError(f"a plan cannot be sent with a {type(part).__name__}")
        if owes_masks:
            return _Masks(part.rows, None)
        bits = part.bits  # what is wrong with them is known once they are there
        return _Masks(part.rows, bits, part.has_failed, part.ended)

    frames[0] = msgspec.msgpack.encode(value, enc_hook=to_wire)
    return frames


def _decode(kind: type, frames: Sequence[Frame], receive_masks: Callable[[], Sequence[Frame]] | None) -> Any:
    num_arrays = 0

    def from_wire(kind: Any, part: Any) -> Any:
        nonlocal num_arrays
        if kind is not StepMasks:
            num_arrays += 1
            return _array(kind, msgspec.convert(part, _Array), frames)
        masks = msgspec.convert(part, _Masks, dec_hook=from_wire)
        if masks.bits is not None:
            return TokenMasks(masks.rows, masks.bits, masks.has_failed, masks.ended)
        if receive_masks is None:
            raise ValueError("its masks are owed, and nothing receives them")
        return OwedMasks(masks.rows, receive_masks)

    value: Any = msgspec.msgpack.decode(frames[0], type=kind, dec_hook=from_wire)
    if num_arrays != len(frames) - 1:
        raise msgspec.ValidationError(f"{len(frames) - 1} arrays are sent, and {num_arrays} are those of the header")
    return value


def _array(kind: Any, array: _Array, frames: Sequence[Frame]) -> npt.NDArray[Any]:
    """Copy an array, aligned and writable, out of its frame; ``kind`` is the type of the member that it is for."""
    dtype = _dtype(kind)
    if array.dtype != dtype.str:
        raise ValueError(f"an array of {dtype.str} is expected, got {array.dtype}")
    frame = memoryview(frames[array.frame] if array.frame < len(frames) else b"")
    if frame.nbytes != prod(array.shape) * dtype.itemsize:
        raise ValueError(f"frame {array.frame} has {frame.nbytes} bytes, which are not {array.shape} of {dtype.str}")
    received: npt.NDArray[Any] = np.ndarray(array.shape, dtype, frame).copy()
    return received


@cache
def _dtype(kind: Any) -> np.dtype[Any]:
    """Type of the elements of an array type such as ``IntArray``."""
    dtype: np.dtype[Any] = np.dtype(get_args(get_args(kind)[1])[0])
    return dtype
