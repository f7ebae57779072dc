"""Events that are written the moment their delta arrives, without a turn of their request's task.

Most events of a stream are of this kind. The first and the last, errors, what takes long, and all that comes while the
client does not keep up are the task's, which waits meanwhile and is the only one who waits for the client.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bough.entrypoints.chat.core import ChatRun, ChoiceDelta
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.pacing import SLICE_POSITIONS
from bough.ipc.messages import OutputDelta
from bough.managers.req_state import Outbox, ReqState, Sink

_encode = msgspec.json.encode


class _EventSink:
    """Makes events of deltas; see :func:`direct_sink`."""

    __slots__ = ("_event_of", "_writer", "ready")

    def __init__(self, writer: ChunkWriter, event_of: Callable[[ReqState, OutputDelta], bytes | None]) -> None:
        self._writer = writer
        self._event_of = event_of
        self.ready = writer.ready

    def take(self, state: ReqState, delta: OutputDelta, outbox: Outbox) -> bool:
        writer = self._writer
        if not writer.is_open or delta.input_logprobs is not None or len(delta.token_ids) > SLICE_POSITIONS:
            return False
        event = self._event_of(state, delta)
        if event:
            outbox.append((writer.connection, writer.frame(event)))
        return event is not None


class _TextSink:
    """Puts the text of deltas into events that are the same otherwise; see :func:`text_sink`."""

    __slots__ = ("_edges_of", "_templates", "_writer", "ready")

    def __init__(
        self, writer: ChunkWriter, edges_of: Callable[[int], tuple[bytes, bytes] | None], outputs: int
    ) -> None:
        self._writer = writer
        self._edges_of = edges_of
        self._templates: list[tuple[bytes, int] | None] = [None] * outputs
        self.ready = writer.ready

    def take(self, state: ReqState, delta: OutputDelta, outbox: Outbox) -> bool:
        writer = self._writer
        if not writer.is_open or delta.input_logprobs is not None or len(delta.token_ids) > SLICE_POSITIONS:
            return False
        template = self._templates[state.index] or self._make_template(state.index)
        if template is None:
            return False
        if delta.text:
            text = _encode(delta.text)
            outbox.append((writer.connection, template[0] % (template[1] + len(text), text)))
        return True

    def _make_template(self, index: int) -> tuple[bytes, int] | None:
        edges = self._edges_of(index)
        if edges is not None:
            self._templates[index] = self._writer.template(*edges)
        return self._templates[index]


def direct_sink(writer: ChunkWriter | None, event_of: Callable[[ReqState, OutputDelta], bytes | None]) -> Sink | None:
    """What writes the events of a stream as their deltas arrive; ``None`` where that is not possible.

    Args:
        event_of: makes the events that a short delta is due, perhaps none; ``None``, with nothing changed, leaves them
            to the task.
    """
    return None if writer is None else _EventSink(writer, event_of)


def text_sink(
    writer: ChunkWriter | None, edges_of: Callable[[int], tuple[bytes, bytes] | None], outputs: int
) -> Sink | None:
    """The same where the events of an output differ in nothing but their text.

    Args:
        edges_of: what stands in an output's events before the JSON string of the text and after it; ``None`` until its
            first event is written.
    """
    return None if writer is None else _TextSink(writer, edges_of, outputs)


def chat_sink(writer: ChunkWriter | None, run: ChatRun, write: Callable[[ChoiceDelta], bytes]) -> Sink | None:
    """The same for an answer to a conversation."""

    def event_of(state: ReqState, delta: OutputDelta) -> bytes | None:
        reader = run.readers[state.index]
        events = reader.read_now(delta)
        return None if events is None else write(ChoiceDelta(state, events, delta, reader))

    return direct_sink(writer, event_of)
