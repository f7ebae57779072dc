"""Allocator of KV slots, which it hands out in pages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bough.step_plan import IntArray

PageArray = npt.NDArray[np.intp]
"""Page ids, in the integer type that numpy indexes with, which spares a conversion per use."""

_HANDED_OUT = -1


class SlotAllocator:
    """Hands out KV slots, in pages of ``page_size`` slots; slot ``s`` is on page ``s // page_size``.

    Page 0 is reserved: rows that pad a batch write there. A sequence uses its pages one after the other, each from
    its first slot on, so token ``i`` is at offset ``i % page_size`` of its page, and only the last page may be partly
    used. All sizes are in tokens.

    Pages come from a stack. ``_place[page]`` is a page's place in the stack while it is free and ``-1`` while it is
    handed out, which shows a double free, within one call too, at the price of two array lookups.
    """

    def __init__(self, num_tokens: int, page_size: int) -> None:
        """Manage ``num_tokens`` usable slots, rounded down to whole pages; raises ``ValueError`` if the page size is no
        power of two, or there is not even one page."""
        if page_size < 1 or page_size & (page_size - 1):
            raise ValueError(f"page size {page_size} is not a power of two")
        if num_tokens < page_size:
            raise ValueError(f"{num_tokens} tokens are less than one page of {page_size}")
        self.page_size = page_size
        self._shift = page_size.bit_length() - 1
        self._num_pages = num_tokens >> self._shift
        self._offsets: IntArray = np.arange(page_size, dtype=np.int32)
        self._stack: PageArray = np.empty(self._num_pages, dtype=np.intp)
        self._place: PageArray = np.empty(self._num_pages + 1, dtype=np.intp)
        self._num_free = 0
        self.reset()

    @property
    def total_size(self) -> int:
        """Tokens that the allocator manages, without the reserved page."""
        return self._num_pages << self._shift

    @property
    def num_slots(self) -> int:
        """Slots that the KV pool must have: those managed, and the reserved page."""
        return (self._num_pages + 1) << self._shift

    @property
    def available_size(self) -> int:
        """Tokens that fit into the free pages."""
        return self._num_free << self._shift

    def num_new_pages_extend(self, num_new: int, seq_len: int) -> int:
        """Pages that ``num_new`` tokens need after ``seq_len`` existing ones."""
        last = self.page_size - 1
        return ((seq_len + num_new + last) >> self._shift) - ((seq_len + last) >> self._shift)

    def num_new_pages_decode(self, seq_lens: IntArray) -> int:
        """Pages that one more token for each sequence of ``seq_lens`` [R] existing ones needs."""
        if self.page_size == 1:
            return len(seq_lens)
        return len(seq_lens) - int(np.count_nonzero(seq_lens & (self.page_size - 1)))

    def num_new_pages_steps(self, num_steps: int, seq_lens: IntArray) -> npt.NDArray[np.int64]:
        """Pages that 1, 2, … ``num_steps`` more tokens for each of ``seq_lens`` [R] need: [num_steps], ascending."""
        positions = seq_lens + np.arange(num_steps, dtype=np.int32)[:, np.newaxis]
        pages: npt.NDArray[np.int64] = np.count_nonzero((positions & (self.page_size - 1)) == 0, axis=1).cumsum()
        return pages

    def alloc_extend(self, num_new: int, seq_len: int, last_slot: int) -> IntArray | None:
        """Hand out slots ``[num_new]`` for tokens after ``seq_len`` existing ones, whose last is at ``last_slot``;
        ``None``, with nothing changed, without enough free pages.

        The rest of a partly used last page comes first, then whole pages. ``last_slot`` is not used where the last page
        is full, and is -1 by convention where there is none. Raises ``ValueError`` for a negative count, or a partly
        used page with no ``last_slot``.
        """
        if num_new < 0 or seq_len < 0:
            raise ValueError(f"cannot extend {seq_len} tokens by {num_new}")
        num_pages = self.num_new_pages_extend(num_new, seq_len)
        if num_pages > self._num_free:
            return None
        if self.page_size == 1:
            return self._pop(num_pages).astype(np.int32)
        in_last_page = min(-seq_len & (self.page_size - 1), num_new)
        if in_last_page and last_slot < 0:
            raise ValueError(f"{seq_len} tokens end inside a page, but their last slot is {last_slot}")
        slots = np.empty(num_new, dtype=np.int32)
        slots[:in_last_page] = self._offsets[:in_last_page] + (last_slot + 1)
        if num_pages:
            first_slots = self._pop(num_pages).astype(np.int32) << self._shift
            slots[in_last_page:] = (first_slots[:, None] + self._offsets).ravel()[: num_new - in_last_page]
        return slots

    def alloc_decode(self, seq_lens: IntArray, last_slots: IntArray) -> IntArray | None:
        """Hand out a slot for one more token of each of R sequences, which have ``seq_lens`` ``[R]`` tokens, the last
        at ``last_slots`` ``[R]``.

        ``last_slots`` are read only where the last page is partly used. Returns ``[R]``, or ``None`` if there are not
        enough free pages for all; then nothing has changed.
        """
        if self.page_size == 1:
            if len(seq_lens) > self._num_free:
                return None
            return self._pop(len(seq_lens)).astype(np.int32)
        starts_page = (seq_lens & (self.page_size - 1)) == 0
        num_pages = int(np.count_nonzero(starts_page))
        if num_pages > self._num_free:
            return None
        slots: IntArray = (last_slots + 1).astype(np.int32, copy=False)
        if num_pages:
            slots[starts_page] = self._pop(num_pages) << self._shift
        return slots

    def alloc_steps(self, num_steps: int, seq_lens: IntArray, last_slots: IntArray) -> IntArray | None:
        """Hand out slots ``[num_steps, R]`` for more tokens of each of R sequences, otherwise as
        :meth:`alloc_decode`."""
        positions = seq_lens + np.arange(num_steps, dtype=np.int32)[:, np.newaxis]
        offsets = positions & (self.page_size - 1)
        starts_page = offsets == 0
        num_pages = int(np.count_nonzero(starts_page))
        if num_pages > self._num_free:
            return None
        # The first slot of each token's page: that of the last one there is, until another page is begun.
        first_slots = np.zeros_like(positions)
        first_slots[0] = last_slots - ((seq_lens - 1) & (self.page_size - 1))
        first_slots[starts_page] = self._pop(num_pages) << self._shift
        begun = np.maximum.accumulate(np.where(starts_page, np.arange(num_steps)[:, np.newaxis], 0), axis=0)
        slots: IntArray = np.take_along_axis(first_slots, begun, axis=0) + offsets
        return slots

    def free(self, slots: IntArray) -> None:
        """Take back every page that has a slot in ``slots``, as a whole.

        So pass slots only of pages that are given up entirely, of each at least one, and those of one page next to each
        other, as they are in a sequence: for its end from token ``start`` on, a multiple of the page size, the slots of
        all tokens from there on. Raises ``ValueError`` for a slot that does not exist, or is on the reserved page;
        ``RuntimeError`` if a page is free already, or comes twice. In both cases nothing has changed.
        """
        if len(slots) == 0:
            return
        pages: PageArray = slots.astype(np.intp) >> self._shift
        if self.page_size > 1:
            begins = np.empty(len(pages), dtype=np.bool_)
            begins[0] = True
            np.not_equal(pages[1:], pages[:-1], out=begins[1:])
            pages = pages[begins]
        if pages.min() < 1 or pages.max() > self._num_pages:
            raise ValueError(
                f"slots {int(slots.min())} to {int(slots.max())} are not all within "
                f"{self.page_size} to {self.num_slots - 1}"
            )
        if (self._place[pages] != _HANDED_OUT).any():
            again = pages[self._place[pages] != _HANDED_OUT]
            raise RuntimeError(f"double free of {len(again)} of {len(pages)} pages, the first is page {int(again[0])}")
        num_free = self._num_free + len(pages)
        places = np.arange(self._num_free, num_free)
        self._place[pages] = places
        if (self._place[pages] != places).any():
            self._place[pages] = _HANDED_OUT
            raise RuntimeError(f"double free: {len(pages)} pages are only {len(np.unique(pages))} distinct ones")
        self._stack[self._num_free : num_free] = pages
        self._num_free = num_free

    def is_free(self, slots: IntArray) -> npt.NDArray[np.bool_]:
        """Return for each slot whether its page is free."""
        free: npt.NDArray[np.bool_] = self._place[slots >> self._shift] != _HANDED_OUT
        return free

    def reset(self) -> None:
        """Take back every page, also those handed out. Low pages are handed out first."""
        self._stack[:] = np.arange(self._num_pages, 0, -1)
        self._num_free = self._num_pages
        self._place[0] = _HANDED_OUT
        self._place[self._stack] = np.arange(self._num_pages)

    def check_integrity(self) -> None:
        """Compare the stack of free pages with what is noted of each page; raises ``RuntimeError`` if they disagree."""
        noted = int(np.count_nonzero(self._place != _HANDED_OUT))
        stack = self._stack[: self._num_free]
        if noted != self._num_free or (self._place[stack] != np.arange(self._num_free)).any():
            raise RuntimeError(f"{self._num_free} pages in the free stack, {noted} pages noted as free")

    def _pop(self, num_pages: int) -> PageArray:
        """Take ``num_pages`` off the stack, the top one first. The result is valid until the next :meth:`free`."""
        num_free = self._num_free - num_pages
        pages = self._stack[num_free : self._num_free][::-1]
        self._place[pages] = _HANDED_OUT
        self._num_free = num_free
        return pages
