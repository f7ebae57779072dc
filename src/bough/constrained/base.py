"""What the scheduler needs of a grammar engine.

A backend compiles a :class:`~bough.sampling.sampling_params.GrammarSpec`, which may take long and happens on a thread
of its own; a matcher follows one output through the compiled grammar, token by token, on the scheduler's thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bough.errors import BadRequest
from bough.sampling.sampling_params import GrammarSpec

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
    """:meth:`GrammarMatcher.fill_masks` will be asked for it"""


LATER: Final = MaskTime.LATER

MaskPlace = tuple[int, int] | MaskTime | None
"""Where the mask of the next token is to be written: address and bytes; ``None`` if it is not wanted at all."""


class GrammarMatcher(Protocol):
    """One output on its way through a grammar. Not for several threads at once."""

    @property
    def error(self) -> str | None:
        """Why the grammar cannot be followed any further, for instance because it has become too ambiguous."""

    @property
    def is_accepting(self) -> bool:
        """Whether the output may end here."""

    @property
    def is_terminated(self) -> bool:
        """Whether the output is complete: nothing may follow, or an end-of-sequence token has been accepted."""

    @staticmethod
    def fill_masks(matchers: Sequence[Any], bits: MaskWords) -> Sequence[int]:
        """Write which tokens may come next.

        End-of-sequence tokens are among them where the output may end; after an error there are none.

        Args:
            matchers: ``[G]``, of this class.
            bits: int32 ``[G, mask_words]``, contiguous zeros.

        Returns:
            which of the outputs are complete, however often that is asked; their masks allow ends of sequence at most.
        """

    def accept(self, token_id: int) -> bool:
        """Go on by one token.

        Returns:
            False if the grammar does not allow it; then the matcher is of no more use.
        """

    def judge(self, token_id: int, look_ahead: bool, mask_place: MaskPlace) -> Judgement:
        """Go on by one token, and find out what is asked next.

        If the mask is asked for later, a token that most likely is one of many may be looked at then: the answer is
        that the output goes on, and a token that ends it, or is refused, is found out by whatever is asked next, mostly
        :meth:`fill_masks`.

        Args:
            token_id: the token.
            look_ahead: whether to find out what is forced after it.
            mask_place: where to write the mask of the token after it, if the output goes on.
        """

    def rollback(self, num_tokens: int) -> None:
        """Take back the tokens accepted last."""


class Grammar(Protocol):
    """A compiled grammar; may be shared by any number of requests."""

    @property
    def num_bytes(self) -> int:
        """Size in memory, which may grow with use."""

    @property
    def is_worn(self) -> bool:
        """Whether new requests should get another one, compiled anew, since this one has grown with use."""

    @property
    def failure(self) -> str | None:
        """Reason why the grammar failed after so few tokens that compiling it again would not help."""

    def matcher(self) -> GrammarMatcher:
        """A matcher at the beginning. Cheap."""


class GrammarBackend(Protocol):
    """A grammar engine with a tokenizer."""

    def compile(self, spec: GrammarSpec) -> Grammar:
        """Compile. May take seconds; holds the GIL only shortly. For several threads.

        Raises:
            GrammarError: the grammar is wrong, not supported or too large.
        """
