"""Arrays as native code takes them."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


def address_of(array: npt.NDArray[Any]) -> int:
    """Where the elements of an array begin, for the field of a structure; who keeps that keeps the array."""
    address: int = array.__array_interface__["data"][0]
    return address
