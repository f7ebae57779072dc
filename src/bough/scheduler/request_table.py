"""Per-request counters of the requests that hold a slot, as arrays indexed by request slot.

A decode step touches every running request; arrays let it do so in a handful of numpy calls, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bough.constrained.base import LATER, MaskPlace, MaskWords
from bough.scheduler.req import Req
from bough.step_plan import IntArray

_NO_SLOTS = np.zeros(0, dtype=np.int32)


class RequestTable:
    """State of requests by slot. All lengths are in tokens and int32.

    Attributes:
        tokens: [max_running_requests, max_len], prompt and output ids; virtual memory, committed as it is used.
        planned_len: tokens whose KV is computed or planned.
        known_len: tokens known to the host: prompt and processed output.
        planned_out: output tokens sampled or planned.
        out_len: output tokens processed.
        max_new: most output tokens.
        horizon: output tokens beyond which nothing is planned: ``max_new``, or fewer while thoughts are bounded.
        min_new: output tokens before which some are banned.
        next_send: output length from which the next delta is due.
        send_interval: output tokens per delta.
        decoding: the request's prompt is wholly computed or planned.
        checks_eos: the model's end-of-sequence ids end the request.
        judged: each token may end the request in a way that only Python detects (stop tokens, text stops, a grammar).
        careful: Python must look at each token: it is judged, or has logprobs.
        is_plain: native code can choose token after token (no masks, no banned sequences, no moving window of
            penalties).
        logprobs: number of logprobs per token, including alternatives.
        constrained: the request has a grammar: its next token cannot be planned before its last one is known.
        masked: some tokens must not be sampled, because of a grammar or otherwise.
        masks: int32 [max_running_requests, words], masks of the next tokens as written by grammars.
        mask_places: address and size in bytes of each mask; ``LATER`` if masks are not written here.
        has_mask: the mask is that of the next token.
        edits_mask: the request changes the mask written by its grammar.
    """

    def __init__(self, max_running_requests: int, max_len: int, mask_words: int = 0) -> None:
        shape = (max_running_requests,)
        self.tokens: IntArray = np.zeros((max_running_requests, max_len), dtype=np.int32)
        self.planned_len: IntArray = np.zeros(shape, dtype=np.int32)
        self.known_len: IntArray = np.zeros(shape, dtype=np.int32)
        self.planned_out: IntArray = np.zeros(shape, dtype=np.int32)
        self.out_len: IntArray = np.zeros(shape, dtype=np.int32)
        self.max_new: IntArray = np.zeros(shape, dtype=np.int32)
        self.horizon: IntArray = np.zeros(shape, dtype=np.int32)
        self.min_new: IntArray = np.zeros(shape, dtype=np.int32)
        self.next_send: IntArray = np.zeros(shape, dtype=np.int32)
        self.send_interval: IntArray = np.ones(shape, dtype=np.int32)
        self.decoding = np.zeros(shape, dtype=np.bool_)
        self.checks_eos = np.zeros(shape, dtype=np.bool_)
        self.judged = np.zeros(shape, dtype=np.bool_)
        self.careful = np.zeros(shape, dtype=np.bool_)
        self.is_plain = np.zeros(shape, dtype=np.bool_)
        self.streams = np.zeros(shape, dtype=np.bool_)
        self.logprobs = np.zeros(shape, dtype=np.int64)
        self.constrained = np.zeros(shape, dtype=np.bool_)
        self.masked = np.zeros(shape, dtype=np.bool_)
        self.masks: MaskWords = np.zeros((max_running_requests, mask_words), dtype=np.int32)
        first, size = self.masks.ctypes.data, self.masks.strides[0]
        self.mask_places: list[MaskPlace] = [
            (first + slot * size, size) if mask_words else LATER for slot in range(max_running_requests)
        ]
        self.has_mask = np.zeros(shape, dtype=np.bool_)
        self.edits_mask = np.zeros(shape, dtype=np.bool_)
        self.reqs: list[Req | None] = [None] * max_running_requests
        self.num_constrained = 0

    def occupy(self, req: Req, *, prefix_len: int) -> None:
        """Enter a request that has just got ``req.slot``, with ``prefix_len`` tokens found in the prefix cache."""
        slot = req.slot
        fill = req.fill_ids
        out_len = len(req.output_before_slot)
        self.tokens[slot, : len(fill)] = fill
        self.planned_len[slot] = prefix_len
        self.known_len[slot] = len(fill)
        self.planned_out[slot] = out_len
        self.out_len[slot] = out_len
        self.max_new[slot] = req.max_new_tokens
        # No output has more tokens, and sums with it fit.
        self.send_interval[slot] = send_interval = min(req.send_interval, max(req.max_new_tokens, 1))
        # The first token goes out at once whatever the interval: it is what time-to-first-token measures.
        self.next_send[slot] = 1 if out_len == 0 else req.sent_len + send_interval
        self.decoding[slot] = False
        self.checks_eos[slot] = not req.sampling_params.ignore_eos
        own_stops = bool(req.sampling_params.stop_token_ids)
        self.constrained[slot] = constrained = req.matcher is not None
        self.num_constrained += constrained
        self.has_mask[slot] = False
        self.judged[slot] = judged = own_stops or req.text_stops is not None or constrained
        self.careful[slot] = judged or req.return_logprob
        self.min_new[slot] = req.sampling_params.min_new_tokens if req.masked_until_min else 0
        self.streams[slot] = req.stream
        self.logprobs[slot] = req.logprobs_per_token if req.return_logprob else 0
        self.reqs[slot] = req
        self.bound(req)

    def bound(self, req: Req) -> None:
        """Enter what a request's thoughts leave the steps that follow: how many there may be, and of which tokens."""
        slot = req.slot
        check_at = req.max_new_tokens if req.thinking is None else req.thinking.check_at
        self.horizon[slot] = min(req.max_new_tokens, check_at)
        edits_mask = req.allowed is not None or req.forced is not None
        self.masked[slot] = masked = edits_mask or req.matcher is not None
        self.edits_mask[slot] = edits_mask or bool(req.extra_ends)
        self.is_plain[slot] = not (masked or req.banned_sequences or req.sampling_params.has_moving_window)

    def vacate(self, slot: int) -> None:
        """Forget the request in ``slot``."""
        self.num_constrained -= int(self.constrained[slot])
        self.reqs[slot] = None
        self.decoding[slot] = self.constrained[slot] = self.masked[slot] = False

    def running_slots(self) -> tuple[IntArray, IntArray]:
        """Slots of requests that go on, ascending: those that may take one more decode step, and those that *jump*.

        The latter have got output without sampling, whose KV is to be computed. Requests whose last token is already
        planned are left out: the step would compute nothing that anyone reads. So are those with a grammar while their
        last token is unknown: it decides what may come next. The same goes for those at their horizon.
        """
        able = self.decoding & (self.planned_out < self.horizon)
        if not self.num_constrained:
            return able.nonzero()[0].astype(np.int32), _NO_SLOTS
        unplanned = self.known_len - self.planned_len
        unplanned[self.planned_out != self.out_len] = 0
        others = able & self.constrained & (unplanned != 1)
        able ^= others
        jumping = np.flatnonzero(others & (unplanned > 1)).astype(np.int32) if others.any() else _NO_SLOTS
        return np.flatnonzero(able).astype(np.int32), jumping

    def waits_for_token(self) -> bool:
        """Return whether a request only waits for its last token: it has a grammar, and a step in flight."""
        if not self.num_constrained:
            return False
        waiting = self.decoding & self.constrained & (self.planned_out < self.max_new)
        return bool((waiting & (self.planned_out > self.out_len)).any())

    def append(self, slot: int, token_ids: Sequence[int]) -> None:
        """Add output that was not sampled."""
        start, count = int(self.known_len[slot]), len(token_ids)
        self.tokens[slot, start : start + count] = token_ids
        for lengths in (self.known_len, self.planned_out, self.out_len):
            lengths[slot] += count

    def drop_last(self, slot: int, count: int) -> None:
        """Take back the tokens at the end of the output, behind one that has ended it."""
        self.known_len[slot] -= count
        self.out_len[slot] -= count

    def num_computed(self, req: Req) -> int:
        """Return how many tokens of a request have been computed and hold their KV."""
        if req.slot < 0:
            return 0
        if int(self.out_len[req.slot]) > len(req.output_before_slot):
            # The token sampled last has no KV: it is the input of the step that follows.
            return int(self.known_len[req.slot]) - 1
        return req.computed_len

    def num_valid(self, req: Req) -> int:
        """Return how many of the first tokens of a request with a slot have valid KV."""
        slot, valid = req.slot, self.num_computed(req)
        new_output = int(self.out_len[slot]) > len(req.output_before_slot)
        if new_output and self.constrained[slot]:
            # Nor have those that were not sampled, until a step has computed them.
            valid = min(valid, int(self.planned_len[slot]) if req.jump_from < 0 else req.jump_from)
        return valid

    def output_ids(self, req: Req) -> IntArray:
        """Copy of the processed output tokens of a request, with or without a slot."""
        if req.slot < 0:
            return req.output_before_slot
        start = req.prompt_len
        output: IntArray = self.tokens[req.slot, start : start + int(self.out_len[req.slot])].copy()
        return output
