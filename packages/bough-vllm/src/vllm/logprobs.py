"""Logprobs of tokens, as vLLM has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Logprob:
    """Logprob of one token at a position.

    Attributes:
        rank: how many tokens are at least as likely, itself included; ``None``: more than were asked for.
        decoded_token: its text.
    """

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


LogprobsOnePosition = dict[int, Logprob]
"""By token id: the token that is there, and the likeliest ones."""


def position(own: Sequence[Any], top: Sequence[Sequence[Any]], num_top: int) -> LogprobsOnePosition:
    """Return the logprobs of one position.

    Args:
        own: triple of logprob, token id and text of the token that is there.
        top: the same of the likeliest tokens, in order.
        num_top: how many of these to return; the others only tell the rank of the token that is there.
    """
    logprob, token_id, text = own
    ranks = {each[1]: rank for rank, each in enumerate(top, 1)}
    found = {token_id: Logprob(logprob, ranks.get(token_id), text)}
    for rank, (logprob, token_id, text) in enumerate(top[:num_top], 1):
        found.setdefault(token_id, Logprob(logprob, rank, text))
    return found
