"""Deltas that cannot be sent yet are folded into fewer, so that memory grows with the text and not with its pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bough.ipc.messages import OutputDelta

FOLD_LENGTH = 64
"""Deltas of one output that may pile up before they are folded into one. Folding each new one at once would copy the
text so far for every token."""


def merge_deltas(deltas: Sequence[OutputDelta]) -> OutputDelta:
    """One delta that says what several successive ones of the same output say, oldest first; only the last may have a
    finish reason.

    What is new in each (ids, text, logprobs) is joined; what only the first has (``decode`` and times) is kept; of
    counts and the finish reason the latest hold. If one still has to be decoded (its text is ``None``), so has the
    result. The arguments are not changed; the result may share their lists.
    """
    if len(deltas) == 1:
        return deltas[0]
    last = deltas[-1]
    texts = [delta.text for delta in deltas if delta.text is not None]
    logprobs = [delta.logprobs for delta in deltas if delta.logprobs is not None]
    input_logprobs = [delta.input_logprobs for delta in deltas if delta.input_logprobs is not None]
    return OutputDelta(
        rid=last.rid,
        token_ids=[token for delta in deltas for token in delta.token_ids],
        text="".join(texts) if len(texts) == len(deltas) else None,
        finish_reason=last.finish_reason,
        completion_tokens=last.completion_tokens,
        prompt_tokens=last.prompt_tokens,
        cached_tokens=last.cached_tokens,
        logprobs=[entry for entries in logprobs for entry in entries] if logprobs else None,
        input_logprobs=[entry for entries in input_logprobs for entry in entries] if input_logprobs else None,
        decode=next((delta.decode for delta in deltas if delta.decode is not None), None),
        num_retractions=last.num_retractions,
        queue_time=next((delta.queue_time for delta in deltas if delta.queue_time is not None), None),
        embedding=last.embedding,
        first_token_delay=next((d.first_token_delay for d in deltas if d.first_token_delay is not None), None),
        last_token_delay=last.last_token_delay,
        dp_rank=next((delta.dp_rank for delta in deltas if delta.dp_rank is not None), None),
        routed_experts=last.routed_experts,
    )


class DeltaBacklog:
    """Deltas that wait to be sent, at most :data:`FOLD_LENGTH` per output.

    Outputs come out in the order in which their first waiting delta came in. An id that ends and is used again is
    two outputs.
    """

    def __init__(self) -> None:
        self._outputs: list[list[OutputDelta]] = []
        self._open: dict[str, list[OutputDelta]] = {}

    def __bool__(self) -> bool:
        return bool(self._outputs)

    def add(self, deltas: Iterable[OutputDelta]) -> None:
        """Append deltas, oldest first."""
        for delta in deltas:
            waiting = self._open.get(delta.rid)
            if waiting is None:
                waiting = self._open[delta.rid] = []
                self._outputs.append(waiting)
            elif len(waiting) >= FOLD_LENGTH:
                waiting[:] = [merge_deltas(waiting)]
            waiting.append(delta)
            if delta.finish_reason is not None:
                del self._open[delta.rid]

    def merged(self) -> list[OutputDelta]:
        """One delta per output; the backlog keeps them until :meth:`clear`."""
        for waiting in self._outputs:
            if len(waiting) > 1:
                waiting[:] = [merge_deltas(waiting)]
        return [waiting[0] for waiting in self._outputs]

    def clear(self) -> None:
        """Forget everything: it has been sent."""
        self._outputs.clear()
        self._open.clear()
