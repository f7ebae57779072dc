"""The function from histories to tokens that stands for a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bough.sampling.random_stream import mix64, stream_key, uniforms

UintArray = npt.NDArray[np.uint64]

NO_TOKEN = -1

_TOKEN_FACTOR = np.uint64(0xD1342543DE82EF95)
_TOKEN_OFFSET = np.uint64(0x2545F4914F6CDD1D)
_POSITION_BASE = 0x9E6C63D0876A9A35  # odd, so that no power of it is 0
_LOG_2 = math.log(2.0)
_UNSET = -1


@dataclass(frozen=True)
class FakeModel:
    """The function from histories to tokens that stands for a model.

    The state after the tokens ``t_0 … t_p`` is the polynomial hash ``sum(value(t_i) * BASE**i)`` modulo 2**64, so it
    follows from the state at ``p - 1`` and the new token alone, as KV does. Scrambled, it names the likeliest next
    token; the tokens after that one, in cyclic order of id, are each half as likely as the one before.

    Attributes:
        vocab_size: number of token ids.
        eos_token_ids: ids that never come up but as the end of sequence; may be empty.
        eos_probability: how often the next token is the first of them.
        shift: added to the place of every next token: models that differ in it alone have different weights, and the
            same states.
    """

    vocab_size: int
    eos_token_ids: tuple[int, ...] = ()
    eos_probability: float = 0.0
    shift: int = 0
    # The ids that may come up, and where in this list an id is
    _ordinary: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)
    _place: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordinary = np.setdiff1d(np.arange(self.vocab_size), np.array(self.eos_token_ids, dtype=np.int64))
        if not ordinary.size:
            raise ValueError(f"no ordinary token among {self.vocab_size}")
        if self.eos_probability and not self.eos_token_ids:
            raise ValueError("eos_probability needs an end-of-sequence id")
        place = np.full(self.vocab_size, _UNSET, dtype=np.int64)
        place[ordinary] = np.arange(len(ordinary))
        object.__setattr__(self, "_ordinary", ordinary)
        object.__setattr__(self, "_place", place)

    @staticmethod
    def powers(count: int) -> UintArray:
        """``BASE**i`` for the positions ``i < count``."""
        factors = np.full(count, _POSITION_BASE, dtype=np.uint64)
        factors[:1] = 1
        return np.cumprod(factors)

    @staticmethod
    def terms(tokens: npt.NDArray[Any], powers: UintArray) -> UintArray:
        """What tokens add to the state at the positions that ``powers`` belong to; shapes agree."""
        terms = tokens.astype(np.uint64)
        terms *= _TOKEN_FACTOR
        terms += _TOKEN_OFFSET
        terms *= powers
        return terms

    def next_tokens(self, states: UintArray, ranks: npt.NDArray[np.int64] | int = 0) -> npt.NDArray[np.int64]:
        """The token of each rank, 0 for the likeliest, after each state ``[n]``."""
        tokens: npt.NDArray[np.int64] = self._ordinary[self._places(states, ranks)]
        if self.eos_probability:
            tokens[self._ends(states)] = self.eos_token_ids[0]
        return tokens

    def allowed_tokens(
        self, states: UintArray, allowed: npt.NDArray[np.bool_], ranks: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """The token of each rank, or the least likely one, among those allowed, ``[n, vocab_size]``; -1 if none is.

        End-of-sequence ids are the least likely ones.
        """
        tokens = np.full(len(states), NO_TOKEN, dtype=np.int64)
        for i, first in enumerate(self._places(states, 0).tolist()):
            in_order = np.concatenate((np.roll(self._ordinary, -first), np.array(self.eos_token_ids, dtype=np.int64)))
            able = in_order[allowed[i, in_order]]
            if able.size:
                tokens[i] = able[min(int(ranks[i]), able.size - 1)]
        return tokens

    def logprobs(self, states: UintArray, tokens: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Natural logarithms of the probabilities of ``tokens`` ``[n]`` or ``[n, k]`` after ``states`` ``[n]``."""
        count = len(self._ordinary)
        first = self._places(states, 0)
        if tokens.ndim > first.ndim:
            first = first[:, np.newaxis]
        ranks = np.where(self._place[tokens] == _UNSET, count, (self._place[tokens] - first) % count)
        return (-_LOG_2 * (ranks + 1)).astype(np.float32)

    def top_tokens(self, states: UintArray, top_n: int) -> npt.NDArray[np.int64]:
        """The likeliest ordinary tokens after each state, ``[n, top_n]``, likeliest first."""
        places = self._places(states, 0)[:, np.newaxis] + np.arange(top_n)
        tops: npt.NDArray[np.int64] = self._ordinary[places % len(self._ordinary)]
        return tops

    def expected_tokens(self, prompt: Sequence[int], n: int, *, seed: int | None = None) -> list[int]:
        """What a request with this prompt must answer with, ``n`` tokens, ended by nothing.

        Args:
            prompt: token ids, at least one.
            n: number of tokens.
            seed: of a request that is not greedy.
        """
        powers = self.powers(len(prompt) + n)
        state = self.terms(np.array(prompt), powers[: len(prompt)]).sum(keepdims=True)
        keys = np.array([0 if seed is None else stream_key(seed)], dtype=np.uint64)
        output: list[int] = []
        for position in range(len(prompt), len(prompt) + n):
            ranks = 0 if seed is None else sampled_ranks(keys, np.array([len(output)]))
            token = self.next_tokens(state, ranks)
            output.append(int(token[0]))
            state = state + self.terms(token, powers[position])
        return output

    def _places(self, states: UintArray, ranks: npt.NDArray[np.int64] | int) -> npt.NDArray[np.int64]:
        scrambled = mix64(states.copy())
        scrambled %= np.uint64(len(self._ordinary))
        places: npt.NDArray[np.int64] = (scrambled.astype(np.int64) + self.shift + ranks) % len(self._ordinary)
        return places

    def _ends(self, states: UintArray) -> npt.NDArray[np.bool_]:
        chance = mix64(states + _TOKEN_OFFSET) >> np.uint64(11)
        ends: npt.NDArray[np.bool_] = chance < np.uint64(self.eos_probability * 2**53)
        return ends


def sampled_ranks(keys: UintArray, num_outputs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Which rank requests draw for their next token: ``r`` with probability ``2**-(r + 1)``.

    Args:
        keys: ``[n]``, of the requests' random streams.
        num_outputs: ``[n]``, tokens that they have.
    """
    return np.floor(-np.log2(1.0 - uniforms(keys, num_outputs))).astype(np.int64)


def expected_tokens(prompt: Sequence[int], n: int, vocab: int) -> list[int]:
    """What a greedy request must answer with on a fake model without end-of-sequence ids."""
    return FakeModel(vocab).expected_tokens(prompt, n)
