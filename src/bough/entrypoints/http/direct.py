"""Events that are written the moment their delta arrives, without a turn of their request's task.

Most events of a stream are of this kind. The first and the last, errors, what takes long, and all that comes while the
client does not keep up are the task's, which waits meanwhile and is the only one who waits for the client.
"""

from __future__ import annotations

from collections.abc import Callable

from bough.entrypoints.chat.core import ChatRun, ChoiceDelta
from bough.entrypoints.http.asgi import BodyWriter
from bough.entrypoints.http.pacing import SLICE_POSITIONS
from bough.ipc.messages import OutputDelta
from bough.managers.req_state import ReqState, Sink


def direct_sink(writer: BodyWriter | None, event_of: Callable[[ReqState, OutputDelta], bytes | None]) -> Sink | None:
    """What writes the events of a stream as their deltas arrive; ``None`` where that is not possible.

    Args:
        writer: of the answer.
        event_of: makes the events that a short delta is due, perhaps none; ``None``, with nothing changed, leaves them
            to the task.
    """
    if writer is None:
        return None
    ready, write = writer.ready, writer.write

    def sink(state: ReqState, delta: OutputDelta) -> bool:
        if not ready() or delta.input_logprobs is not None or len(delta.token_ids) > SLICE_POSITIONS:
            return False
        event = event_of(state, delta)
        if event:
            write(event)
        return event is not None

    return sink


def chat_sink(writer: BodyWriter | None, run: ChatRun, write: Callable[[ChoiceDelta], bytes]) -> Sink | None:
    """The same for an answer to a conversation.

    Args:
        writer: of the answer.
        run: what is answered.
        write: makes the events for a delta in the middle.
    """

    def event_of(state: ReqState, delta: OutputDelta) -> bytes | None:
        reader = run.readers[state.index]
        events = reader.read_now(delta)
        return None if events is None else write(ChoiceDelta(state, events, delta, reader))

    return direct_sink(writer, event_of)
