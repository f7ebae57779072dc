"""The detokenizer process: turns the ids that the scheduler sends into text. Never imports torch.

Everything a request needs is in one :class:`DecodeStatus`; a failure while handling a delta ends its request and no
other.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from bough.child_main import Child, run_child
from bough.config.ranks import DETOKENIZER
from bough.ipc.channels import HEARTBEAT_INTERVAL_S, DetokenizerChannels
from bough.ipc.coalescing import merge_deltas
from bough.ipc.messages import (
    BatchStrOutput,
    BatchTokenIDOutput,
    FinishReason,
    Heartbeat,
    OutputDelta,
    ShutdownReq,
)
from bough.tokenization.incremental_decoder import IncrementalDecoder, incremental_decoder
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

MAX_DECODE_STATUSES = 1 << 16
"""Requests that can be in the middle of their output at once: far more than a scheduler runs."""


@dataclass(slots=True)
class DecodeStatus:
    """State of one request between its deltas."""

    decoder: IncrementalDecoder
    no_stop_trim: bool
    completion_tokens: int = 0
    prompt_tokens: int = 0
    held: OutputDelta | None = None
    """Ids whose text is not complete, with all that belongs to them; goes out with the delta that completes it."""


class LimitedCapacityDict(dict[str, "DecodeStatus | None"]):
    """Statuses by request id, oldest first; ``None`` for a failed request, of which only the end is passed on."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def evict_if_full(self) -> tuple[str, DecodeStatus | None] | None:
        """Remove the oldest entry and return it, if there is no room for another."""
        if len(self) < self.capacity:
            return None
        oldest = next(iter(self))
        return oldest, self.pop(oldest)


class DetokenizerManager:
    """Fills in the text of deltas.

    For each request, what has come out is consistent after every delta: the ids so far, their logprobs, and their text.
    An id whose text is unfinished (part of a character) waits for the rest, and comes out with the last byte of its
    text, or when the request ends.

    A request that is given up here while the scheduler still works on it gets a last delta without text (``text`` is
    ``None``), as nothing else that leaves here. The scheduler has to be told; its own last word follows. When more than
    ``capacity`` requests are remembered, the oldest is given up: it ends at once with an error.
    """

    def __init__(self, tokenizer: Tokenizer, *, capacity: int = MAX_DECODE_STATUSES) -> None:
        self._tokenizer = tokenizer
        self._statuses = LimitedCapacityDict(capacity)
        self.num_failed = 0
        """Requests that were ended here, because of an exception or for want of room."""

    def __len__(self) -> int:
        return len(self._statuses)

    def event_loop(self, channels: DetokenizerChannels, num_schedulers: int = 1) -> None:
        """Decode what arrives until each scheduler has sent a :class:`~bough.ipc.messages.ShutdownReq`, its last."""
        while True:
            message = channels.recv(HEARTBEAT_INTERVAL_S)
            if isinstance(message, ShutdownReq):
                num_schedulers -= 1
                if num_schedulers == 0:
                    return
            elif message is not None:
                channels.send_deltas(self.handle_batch(message).deltas)
            if channels.heartbeat_due:
                channels.send_to_tokenizer(Heartbeat(DETOKENIZER, num_failed_total=self.num_failed))

    def handle_batch(self, batch: BatchTokenIDOutput) -> BatchStrOutput:
        """Decode one step's deltas.

        The deltas of ``batch`` are changed and handed on. Those with a text already are not touched. There may be
        fewer deltas in the result (ids wait for the rest of a character) or more (a request was given up).
        """
        out: list[OutputDelta] = []
        statuses = self._statuses
        for delta in batch.deltas:
            if delta.text is not None:
                out.append(delta)
                continue
            try:
                status = statuses.get(delta.rid)
                if status is None or delta.decode is not None:
                    status = self._status_of(delta, out)
                if status is None:
                    continue
                if delta.finish_reason is not None:
                    out.append(self._finish(status, delta))
                    continue
                status.completion_tokens, status.prompt_tokens = delta.completion_tokens, delta.prompt_tokens
                text, num_pending = status.decoder.push(delta.token_ids)
                if num_pending or status.held is not None:
                    self._hold(status, delta, text, num_pending, out)
                else:
                    delta.text = text
                    out.append(delta)
            except Exception as error:
                # Whatever it is, it concerns one request, and the others must go on.
                logger.exception("Could not decode the output of request %r", delta.rid)
                out.append(self._fail(delta, f"the output could not be decoded: {type(error).__name__}: {error}"))
        return BatchStrOutput(out)

    def _status_of(self, delta: OutputDelta, out: list[OutputDelta]) -> DecodeStatus | None:
        """The status of a request that begins, or is not in order; ``None`` if there is nothing to decode."""
        rid = delta.rid
        init = delta.decode
        if init is not None:
            self._statuses.pop(rid, None)
            evicted = self._statuses.evict_if_full()
            if evicted is not None and evicted[1] is not None:
                out.append(self._give_up(evicted[0], evicted[1]))
            delta.decode = None  # not needed behind this process
            decoder = incremental_decoder(
                self._tokenizer, init.prompt_tail, init.skip_special_tokens, init.spaces_between_special_tokens
            )
            status = self._statuses[rid] = DecodeStatus(decoder, init.no_stop_trim)
            return status
        if rid in self._statuses:  # it has failed, and its waiter knows; the id is taken until the scheduler is done
            if delta.finish_reason is not None:
                del self._statuses[rid]
                out.append(OutputDelta(rid, [], "", delta.finish_reason))
        elif delta.token_ids:
            self.num_failed += 1
            out.append(_aborted(delta, "the detokenizer does not know this request (any more)"))
        else:  # it ended before it had a token
            delta.text = ""
            out.append(delta)
        return None

    def _finish(self, status: DecodeStatus, delta: OutputDelta) -> OutputDelta:
        assert delta.finish_reason is not None
        text, _ = status.decoder.push(trim_eos(delta.token_ids, delta.finish_reason, status.no_stop_trim))
        delta.text = text + status.decoder.flush()
        del self._statuses[delta.rid]
        return delta if status.held is None else merge_deltas([status.held, delta])

    def _hold(
        self, status: DecodeStatus, delta: OutputDelta, text: str, num_pending: int, out: list[OutputDelta]
    ) -> None:
        """Send what is complete of the held ids and the new ones, and keep the last ``num_pending`` ids.

        Text that precedes the unfinished part of an id waits as well unless another id is complete: a delta carries
        at least one id.
        """
        delta.text = text
        if status.held is not None:
            delta = merge_deltas([status.held, delta])
            status.held = None
        complete = len(delta.token_ids) - num_pending
        if complete <= 0:
            status.held = delta
            return
        if num_pending:
            status.held = OutputDelta(
                rid=delta.rid,
                token_ids=delta.token_ids[complete:],
                text="",
                completion_tokens=delta.completion_tokens,
                prompt_tokens=delta.prompt_tokens,
                cached_tokens=delta.cached_tokens,
                logprobs=None if delta.logprobs is None else delta.logprobs[complete:],
                num_retractions=delta.num_retractions,
            )
            delta.token_ids = delta.token_ids[:complete]
            delta.completion_tokens -= num_pending
            delta.logprobs = None if delta.logprobs is None else delta.logprobs[:complete]
        out.append(delta)

    def _give_up(self, rid: str, status: DecodeStatus) -> OutputDelta:
        self.num_failed += 1
        logger.error("Gave up request %r: more than %d outputs at the same time", rid, self._statuses.capacity)
        counts = OutputDelta(rid, [], completion_tokens=status.completion_tokens, prompt_tokens=status.prompt_tokens)
        return _aborted(status.held or counts, "too many outputs at once", status_code=503)

    def _fail(self, delta: OutputDelta, message: str) -> OutputDelta:
        """End a request with an error, together with the ids that it has not sent yet."""
        self.num_failed += 1
        status = self._statuses.get(delta.rid)
        held = None if status is None else status.held
        if delta.finish_reason is None:
            self._statuses[delta.rid] = None
        else:
            self._statuses.pop(delta.rid, None)
        return _aborted(delta if held is None else merge_deltas([held, delta]), message)


def trim_eos(token_ids: Sequence[int], finish_reason: FinishReason, no_stop_trim: bool) -> Sequence[int]:
    """The ids whose text belongs to the output: without the stop token that ended it, unless that is to be kept."""
    matched = finish_reason.matched
    if finish_reason.type == "stop" and not no_stop_trim and token_ids and token_ids[-1] == matched:
        return token_ids[:-1]
    return token_ids


def _aborted(delta: OutputDelta, message: str, status_code: int = 500) -> OutputDelta:
    """The delta as the end of its request; without text, unless it is the scheduler's last."""
    delta.text = None if delta.finish_reason is None else delta.text or ""
    delta.finish_reason = FinishReason("abort", message=message, status_code=status_code)
    return delta


def run_detokenizer_process(child: Child) -> int:
    """Load the tokenizer, report, and decode until the end; returns the exit status."""
    args = child.server_args
    manager = DetokenizerManager(load_tokenizer(args.tokenizer_path or args.model_path))
    channels = DetokenizerChannels(child.port_args)
    child.ready()
    gc.freeze()
    manager.event_loop(channels, len(child.config.layout.leaders))
    channels.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_child(run_detokenizer_process, sys.argv[1:]))
