"""The token masks of one step."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bough.constrained.base import MaskWords, mask_words
from bough.kernels.library import set_ready

if TYPE_CHECKING:
    from bough.constrained.llguidance_backend import GrammarMatcher

logger = logging.getLogger(__name__)

MIN_LATE_VOCAB = 2**10
"""From this vocabulary on, masks are computed beside the layers. Smaller ones, a few words each, are computed right
after the token before them, since waking a thread takes longer; with 4,096 tokens the thread is the faster way."""

IDLE_SECONDS = 1.0
"""How long the thread that computes masks waits for more of them before it ends."""


def are_masks_late(vocab_size: int) -> bool:
    """True if masks over a vocabulary are computed beside the layers, not right after the token before them."""
    return vocab_size >= MIN_LATE_VOCAB


class StepMasks(ABC):
    """Tokens that some rows of a step may sample.

    Attributes:
        rows: ``[G]``, rows of the plan, ascending; each of them samples.
        has_failed: True if the grammar engine has failed: no row whose mask it was to compute has any token.
        ended: rows of the plan whose output was complete before the step; what they sample is of no use.
    """

    rows: npt.NDArray[np.int32]
    has_failed: bool
    ended: tuple[int, ...]

    @property
    @abstractmethod
    def bits(self) -> MaskWords:
        """int32 ``[G, mask_words(vocab_size)]``; a row without any token belongs to a matcher with an error."""

    @property
    def memory(self) -> MaskWords:
        """Where :attr:`bits` are going to be."""
        return self.bits

    @property
    def ready(self) -> npt.NDArray[np.int32] | None:
        """Flag that is not 0 once :attr:`bits` are there; ``None`` if they are."""
        return None

    def begin(self) -> None:  # noqa: B027 (masks that are there need nothing)
        """Have :attr:`bits` computed, if they are not there."""

    def wait(self) -> None:  # noqa: B027
        """Wait until no thread computes them."""


class TokenMasks(StepMasks):
    """Masks as a plain value."""

    def __init__(
        self,
        rows: npt.NDArray[np.int32],
        bits: MaskWords,
        has_failed: bool = False,
        ended: tuple[int, ...] = (),
    ) -> None:
        self.rows, self._bits, self.has_failed, self.ended = rows, bits, has_failed, ended

    @property
    def bits(self) -> MaskWords:
        """See :class:`StepMasks`."""
        return self._bits


class PendingMasks(StepMasks):
    """Masks that are computed when :attr:`bits` is first asked for, or from :meth:`begin` on.

    On an accelerator the model runner asks for them after it has started the forward pass: the host computes them while
    the device is busy. Native kernels on a CPU return when they are done, so their runner begins the masks before it
    calls them: those of small vocabularies are computed at once, others by a thread while the kernels run without the
    GIL.
    """

    def __init__(
        self,
        rows: npt.NDArray[np.int32],
        matchers: Sequence[GrammarMatcher | None],
        vocab_size: int,
        extra_ends: Mapping[int, Sequence[int]] | None = None,
        allowed: Mapping[int, MaskWords] | None = None,
        early: tuple[MaskWords, npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        """Remember what to compute.

        Args:
            matchers: ``[G]``, in no other use until the step is over; ``None``: all tokens, if not ``early``.
            extra_ends: by index, token ids that end a row's output and may come wherever it may end.
            allowed: by index, what is left of the tokens of a row.
            early: masks ``[G, words]``, changed here, and which of them matchers have written already.
        """
        self.rows, self.has_failed, self.ended = rows, False, ()
        self._allowed = allowed or {}
        self._matchers = matchers
        self._extra_ends = extra_ends or {}
        self._is_late = are_masks_late(vocab_size)
        self._has_mask = None if early is None else early[1]
        self._memory = np.zeros((len(rows), mask_words(vocab_size)), dtype=np.int32) if early is None else early[0]
        self._ready = np.zeros(1, dtype=np.int32)
        self._bits: MaskWords | None = None
        self._error: BaseException | None = None
        self._begun = False
        self._over = threading.Lock()
        self._over.acquire()

    @property
    def memory(self) -> MaskWords:
        """See :class:`StepMasks`."""
        return self._memory

    def begin(self) -> None:
        """Compute the masks, or let a thread do it if they are worth waking it."""
        if self._is_late:
            self._begun = True
            _mask_thread.put(self)
        else:
            self._bits = self._compute()

    @property
    def ready(self) -> npt.NDArray[np.int32] | None:
        """See :class:`StepMasks`; what a thread that has begun sets, for native kernels to see."""
        if not self._begun:
            self._bits = self.bits
        return None if self._bits is not None else self._ready

    @property
    def bits(self) -> MaskWords:
        """See :class:`StepMasks`."""
        if self._bits is None:
            self.wait()
            if self._error is not None:
                raise self._error
            if self._bits is None:
                self._bits = self._compute()
        return self._bits

    def wait(self) -> None:
        """Wait until no thread computes the masks, whatever has come of that: then their matchers are free."""
        if self._begun:
            self._over.acquire()
            self._begun = False

    def run(self) -> None:
        """Compute the masks for :attr:`bits` to find, which raises whatever goes wrong; for the thread."""
        try:
            self._bits = self._compute()
        except BaseException as error:
            self._error = error
        finally:
            try:
                set_ready(self._ready)
            finally:
                self._over.release()

    def _compute(self) -> MaskWords:
        bits = self._memory
        late = [*range(len(bits))] if self._has_mask is None else np.flatnonzero(~self._has_mask).tolist()
        matchers = [matcher for i in late if (matcher := self._matchers[i]) is not None]
        if len(matchers) == len(bits):
            self.ended = tuple(int(self.rows[i]) for i in self._fill(matchers, bits))
        elif late:
            bits[late] = -1
            if matchers:
                at = [i for i in late if self._matchers[i] is not None]
                filled = np.zeros((len(matchers), bits.shape[1]), dtype=np.int32)
                self.ended = tuple(int(self.rows[at[i]]) for i in self._fill(matchers, filled))
                bits[at] = filled
        if not self.has_failed:
            for i, ends in self._extra_ends.items():
                matcher = self._matchers[i]
                if matcher is not None and matcher.is_accepting:
                    for token in ends:
                        bits.view(np.uint32)[i, token >> 5] |= np.uint32(1 << (token & 31))
        for i, allowed in self._allowed.items():
            bits[i] &= allowed
        return bits

    def _fill(self, matchers: Sequence[GrammarMatcher], bits: MaskWords) -> Sequence[int]:
        """Have the engine compute masks; if it fails, that is the end of its requests and of no others."""
        try:
            return matchers[0].fill_masks(matchers, bits)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a panic of the engine is not an Exception
            logger.exception("The grammar engine has failed")
            bits[:] = 0
            self.has_failed = True
            return ()


def mask_of(token_ids: Iterable[int], vocab_size: int) -> MaskWords:
    """The mask ``[mask_words(vocab_size)]`` that allows these tokens."""
    allowed = np.zeros(mask_words(vocab_size) * 32, dtype=np.bool_)
    allowed[list(token_ids)] = True
    return np.packbits(allowed, bitorder="little").view(np.int32)


def unpack(bits: MaskWords, vocab_size: int) -> npt.NDArray[np.bool_]:
    """Masks ``[G, mask_words(vocab_size)]`` as booleans ``[G, vocab_size]``."""
    flat = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little", count=vocab_size)
    return flat.view(np.bool_)


class _MaskThread:
    """The thread of this process that computes masks beside native kernels, while there are any and a moment longer.

    A queue and a lock wake a thread in a third of the time that an executor and its futures take.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[PendingMasks | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, masks: PendingMasks) -> None:
        """Have masks computed."""
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="bough-masks", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # an interpreter that ends starts no threads, from 3.12 on
                    masks.run()
                    return
                self._thread = thread
            self._queue.put(masks)

    def end(self) -> None:
        """Wait for what has been put, and for the end of the thread."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join()

    def _work(self) -> None:
        while True:
            try:
                masks = self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                masks = None
            if masks is None:
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return
                continue
            masks.run()
            del masks  # and with them the matchers of requests that may be over


_mask_thread = _MaskThread()
# An interpreter that ends must find no thread in the middle of the engine. What is registered first runs last: steps
# that workers still have to finish, who come after this module, find the thread alive.
atexit.register(_mask_thread.end)
