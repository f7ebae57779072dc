"""The random numbers of sampling: a pure function of a request's seed and of which output token is drawn.

Nothing is drawn from a shared generator, so a request's numbers depend neither on its neighbours in the batch nor on
whether it was retracted meanwhile. The function is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014, figure 16) used as a counter-based generator: output ``i`` of a stream is the finaliser
of ``key + (i + 1) * GAMMA``. The key is itself a finalised seed, so that the streams of neighbouring seeds, which
parallel samples of one prompt have, are unrelated rather than shifted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_MIX_A = 0xBF58476D1CE4E5B9
_MIX_B = 0x94D049BB133111EB

_GAMMA_U64 = np.uint64(_GAMMA)
_MIX_A_U64 = np.uint64(_MIX_A)
_MIX_B_U64 = np.uint64(_MIX_B)
_SHIFT_30, _SHIFT_27, _SHIFT_31, _SHIFT_24 = (np.uint64(bits) for bits in (30, 27, 31, 24))


def stream_key(seed: int) -> int:
    """The 64-bit unsigned key of a seed's stream. Any integer is a seed; it counts modulo 2**64."""
    x = (seed + _GAMMA) & _MASK
    x = ((x ^ (x >> 30)) * _MIX_A) & _MASK
    x = ((x ^ (x >> 27)) * _MIX_B) & _MASK
    return x ^ (x >> 31)


def mix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser, a bijection of 64-bit words, element by element. Overwrites ``x`` and returns it."""
    x ^= x >> _SHIFT_30
    x *= _MIX_A_U64
    x ^= x >> _SHIFT_27
    x *= _MIX_B_U64
    x ^= x >> _SHIFT_31
    return x


def uniforms(keys: npt.NDArray[np.uint64], indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Uniform numbers from 0 to ``1 - 2**-40``, with 40 random bits: of the streams ``keys`` ``[S]``, those at
    ``indices`` ``[S]``.

    The distance from 1 makes products with integers up to ``2**60`` stay below these when rounded to float64.
    """
    x = indices.astype(np.uint64)
    x += np.uint64(1)
    x *= _GAMMA_U64
    x += keys
    bits: npt.NDArray[np.float64] = (mix64(x) >> _SHIFT_24).astype(np.float64)
    return bits * 2.0**-40
