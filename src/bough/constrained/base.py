"""Values that the scheduler and the grammar engine exchange.

:class:`~bough.constrained.llguidance_backend.LLGuidanceBackend` compiles a
:class:`~bough.sampling.sampling_params.GrammarSpec` to a grammar, which may take long and happens on a thread of its
own; a matcher follows one output through it, token by token, on the scheduler's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bough.errors import BadRequest

MaskWords = npt.NDArray[np.int32]
"""Bits of tokens, 32 a word, lowest first: token ``t`` is bit ``t % 32`` of word ``t // 32``."""

INVALID_GRAMMAR = "invalid_grammar"
"""Code of the error that a request gets for a grammar which cannot be used."""


class GrammarError(BadRequest):
    """A grammar that is wrong, not supported, or too large; ``param`` is the name of its field."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(f"{kind}: {message}", param=kind, code=INVALID_GRAMMAR)


def mask_words(vocab_size: int) -> int:
    """Words of a mask over a vocabulary."""
    return -(-vocab_size // 32)


class Judgement(NamedTuple):
    """What a token means for its output."""

    outcome: Literal["goes on", "masked", "refused", "ended", "forced"]
    """There is a choice of what follows; there is one and its mask has been written; the grammar does not allow the
    token; the output is complete; or some text has to follow"""
    forced: Sequence[int] = ()
    """tokens that can be taken without asking the model, because the grammar leaves no other text"""


GOES_ON: Final = Judgement("goes on")
MASKED: Final = Judgement("masked")
REFUSED: Final = Judgement("refused")
ENDED: Final = Judgement("ended")


class MaskTime(Enum):
    """When the mask of the next token is wanted, if not now."""

    LATER = "later"
    """:meth:`~bough.constrained.llguidance_backend.GrammarMatcher.fill_masks` will be asked for it"""


LATER: Final = MaskTime.LATER

MaskPlace = tuple[int, int] | MaskTime | None
"""Where the mask of the next token is to be written: address and bytes; ``None`` if it is not wanted at all."""
