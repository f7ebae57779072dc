"""The channels of each process: what it may receive, what it may send, and over which socket.

=================  =====================================  =======================================================
process            receives                               sends
=================  =====================================  =======================================================
main               results, control replies, heartbeats   requests and control, to the scheduler (to the
                                                          controller where there are several)
controller         requests and control, heartbeats of    requests and control to schedulers, heartbeats
                   schedulers
scheduler          requests and control                   results to the detokenizer (to the main process where
                                                          there is none), the rest to the main process
detokenizer        results as token ids                   results as text, heartbeats
=================  =====================================  =======================================================
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import zmq

from bough.config.port_args import PortArgs
from bough.config.ranks import ONE_SCHEDULER, SCHEDULER, ParallelLayout, ProcessKey
from bough.errors import BadRequest, EngineDead, Overloaded
from bough.ipc.codec import MessageDecoder, encode
from bough.ipc.context import ChannelContext
from bough.ipc.messages import (
    BatchEmbeddingOutput,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    Heartbeat,
    OutputDelta,
    ShutdownReq,
    ToDetokenizer,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
    ToScheduler,
    ToTokenizer,
)
from bough.ipc.routing import RequestShape
from bough.ipc.sockets import (
    REQUESTS_HWM,
    RESULTS_HWM,
    ResultsBatch,
    ResultsSender,
    readable,
    receive_all,
    try_send,
)
from bough.process_usage import resident_bytes

M = TypeVar("M")

HEARTBEAT_INTERVAL_S = 1.0
"""Seconds between two heartbeats of a process."""

FINISH_TIMEOUT_S = 2.0
"""Seconds that a process waits at its end for its last results to be taken."""

MAX_MESSAGES = 64
"""Most messages that the scheduler gets at once, so that it can stop when taking them in has taken long enough."""

_RETRY_INTERVAL_S = 0.02

REQUESTS = (TokenizedGenerateReqInput, TokenizedEmbeddingReqInput)
"""Messages that are requests."""


class ChildChannels(Generic[M]):
    """Frame of what connects a child with the others. Belongs to one thread.

    ``batch`` makes the message that carries deltas to the main process.

    Raises:
        zmq.ZMQError: if the endpoint cannot be bound.
    """

    def __init__(
        self, port_args: PortArgs, endpoint: str, hwm: int, message_type: Any, batch: Callable[..., ResultsBatch]
    ) -> None:
        self._context = ChannelContext(port_args)
        self._input = self._context.receiver(endpoint, hwm)
        self._decoder: MessageDecoder[M] = MessageDecoder(message_type, endpoint.rpartition("/")[2].rpartition("-")[0])
        to_tokenizer = self._context.sender(port_args.tokenizer_ipc_name, RESULTS_HWM)
        self._to_tokenizer = ResultsSender(to_tokenizer, batch)
        self._outputs = [self._to_tokenizer]
        self._results = self._to_tokenizer
        """Sender of deltas."""
        self._next_heartbeat = 0.0

    @property
    def lag_total(self) -> int:
        """Number of times that results could not be sent immediately."""
        return sum(each.lag_total for each in self._outputs)

    @property
    def malformed_total(self) -> int:
        """Messages dropped because they did not fit the schema."""
        return self._decoder.num_malformed

    @property
    def heartbeat_due(self) -> bool:
        """True if it is time for the next :class:`Heartbeat`; cheap enough to ask on every turn of the loop."""
        return time.monotonic() >= self._next_heartbeat

    def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
        """Send anything but results. Never blocks; a heartbeat is dropped if the receiver lags."""
        if isinstance(message, Heartbeat):
            self._next_heartbeat = time.monotonic() + HEARTBEAT_INTERVAL_S
            message.lag_total = self.lag_total
            message.malformed_total = self.malformed_total
            message.cpu_seconds = time.process_time()
            message.resident_bytes = resident_bytes()
        self._to_tokenizer.send(message)

    def send_deltas(self, deltas: list[OutputDelta]) -> None:
        """Send the results of one step; takes the deltas over. Never blocks."""
        if deltas:
            self._results.send_deltas(deltas)

    def close(self) -> None:
        """Deliver what waits and close the sockets. Waits a bounded time."""
        if self._context.closed:
            return
        self._to_tokenizer.finish(FINISH_TIMEOUT_S)
        for socket in (self._input, *(each.socket for each in self._outputs)):
            socket.close()
        self._context.term()


class SchedulerChannels(ChildChannels[ToScheduler]):
    """Channels of the scheduler ``key``.

    Results go to the detokenizer; to the main process where there is none, or they are vectors (``has_embeddings``).
    """

    def __init__(
        self,
        port_args: PortArgs,
        key: ProcessKey = SCHEDULER,
        *,
        has_detokenizer: bool = True,
        has_embeddings: bool = False,
    ) -> None:
        batch = BatchEmbeddingOutput if has_embeddings else BatchTokenIDOutput
        super().__init__(port_args, port_args.scheduler_input(key), REQUESTS_HWM, ToScheduler, batch)
        self._has_detokenizer = has_detokenizer and not has_embeddings
        if self._has_detokenizer:
            to_detokenizer = self._context.sender(port_args.detokenizer_ipc_name, RESULTS_HWM)
            self._results = ResultsSender(to_detokenizer, BatchTokenIDOutput)
            self._outputs.append(self._results)
        self._clock_offset = 0.0 if port_args.network is None else port_args.network.clock_offset
        self._to_controller: zmq.Socket[bytes] | None = None
        if key.dp is not None:
            self._to_controller = self._context.sender(port_args.scheduler_input_ipc_name, RESULTS_HWM)

    def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
        """Send anything but results; heartbeats also to the controller, where there is one."""
        super().send_to_tokenizer(message)
        if self._to_controller is not None and isinstance(message, Heartbeat):
            try_send(self._to_controller, encode(message))  # the next one makes up for one that was not sent

    @property
    def descriptors(self) -> list[int]:
        """Can be read from once messages have arrived after :meth:`recv` found none; also without any."""
        return [self._input.fileno()]

    def recv(self, timeout_s: float = 0.0) -> list[ToScheduler]:
        """Messages that have arrived, oldest first; waits at most ``timeout_s`` seconds for the first. Also sends what
        could not be sent before."""
        for output in self._outputs:
            if output.lagging:
                output.flush()
        messages = self._drain()
        if not messages and timeout_s > 0:
            self._wait(timeout_s)
            messages = self._drain()
        return messages

    def close(self) -> None:
        """Deliver what waits, tell the detokenizer that nothing follows, and close. Waits a bounded time."""
        if self._has_detokenizer and not self._context.closed and self._results.finish(FINISH_TIMEOUT_S):
            self._results.send_last(ShutdownReq(), FINISH_TIMEOUT_S)
        if self._to_controller is not None:
            self._to_controller.close()
        super().close()

    def _drain(self) -> list[ToScheduler]:
        if not readable(self._input):
            return []
        messages = self._decoder.decode_all(receive_all(self._input, MAX_MESSAGES))
        if self._clock_offset:
            for each in messages:
                if isinstance(each, REQUESTS) and each.arrival_time is not None:
                    each.arrival_time += self._clock_offset
        return messages

    def _wait(self, timeout_s: float) -> None:
        poller = zmq.Poller()
        poller.register(self._input, zmq.POLLIN)
        for output in self._outputs:
            if output.lagging:
                poller.register(output.socket, zmq.POLLOUT)
        poller.poll(math.ceil(timeout_s * 1000))


class DetokenizerChannels(ChildChannels[ToDetokenizer]):
    """Channels of the detokenizer."""

    def __init__(self, port_args: PortArgs) -> None:
        super().__init__(port_args, port_args.detokenizer_ipc_name, RESULTS_HWM, ToDetokenizer, BatchStrOutput)

    def recv(self, timeout_s: float) -> ToDetokenizer | None:
        """The next message; ``None`` if none has come within ``timeout_s`` seconds.

        None is taken in while the main process lags: its lag becomes the scheduler's, which can coalesce most.
        """
        caught_up = self._to_tokenizer.flush()
        if caught_up and readable(self._input):
            return self._take()
        poller = zmq.Poller()
        poller.register(*((self._input, zmq.POLLIN) if caught_up else (self._to_tokenizer.socket, zmq.POLLOUT)))
        poller.poll(math.ceil(timeout_s * 1000))
        return self._take() if caught_up or self._to_tokenizer.flush() else None

    def _take(self) -> ToDetokenizer | None:
        return next(iter(self._decoder.decode_all(receive_all(self._input, 1))), None)


class TokenizerChannels:
    """Channels of the main process. Belong to one event loop, except for construction.

    Reads the sockets' file descriptor with the event loop itself: cheaper than ``zmq.asyncio``, which goes through
    several futures per message.
    """

    def __init__(self, port_args: PortArgs, layout: ParallelLayout = ONE_SCHEDULER) -> None:
        self._context = ChannelContext(port_args)
        self._input = self._context.receiver(port_args.tokenizer_ipc_name, RESULTS_HWM)
        self._decoder: MessageDecoder[ToTokenizer] = MessageDecoder(ToTokenizer, "tokenizer input")
        self._to_scheduler = self._context.sender(port_args.scheduler_input_ipc_name, REQUESTS_HWM)
        self._has_controller = bool(layout.controllers)
        self._inbox: deque[ToTokenizer] = deque()
        self._unsent: deque[list[bytes]] = deque()
        self._retry: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._reading_on: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def malformed_total(self) -> int:
        """Messages dropped because they did not fit the schema."""
        return self._decoder.num_malformed

    async def recv(self) -> ToTokenizer:
        """The next message; waits for it. One task at a time may wait. Raises :class:`EngineDead` if the channels are
        closed."""
        while not self._inbox:
            if self._closed:
                raise EngineDead("the engine was shut down")
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            if self._reading_on is None:
                self._reading_on = loop
                loop.add_reader(self._input.fileno(), self._on_readable)
                # The descriptor tells of changes; what came before is not a change.
                self._on_readable()
            await self._waiter
        return self._inbox.popleft()

    @property
    def lagging(self) -> bool:
        """True if the next message is there already."""
        return bool(self._inbox)

    def send(self, message: ToScheduler) -> None:
        """Hand a message to the schedulers, a request to one of them. Never blocks.

        Raises:
            BadRequest: if a string in it is not valid Unicode, or a value has no place in MessagePack.
            Overloaded: if it is a request and the scheduler is very far behind. Other messages wait their turn.
            EngineDead: if the channels are closed.
        """
        if self._closed:
            raise EngineDead("the engine was shut down")
        try:
            frame = encode(message)
        except UnicodeEncodeError:
            raise BadRequest("a string in the request holds a lone surrogate, which is not valid Unicode") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRequest(f"a value in the request cannot be sent: {error}") from None
        request = message if isinstance(message, REQUESTS) else None
        frames = [frame]
        if self._has_controller:
            frames.insert(0, b"" if request is None else encode(RequestShape.of(request)))
        if not self._unsent and try_send(self._to_scheduler, *frames):
            return
        if request is not None:
            raise Overloaded("the scheduler is far behind; try again later")
        self._unsent.append(frames)
        self._schedule_retry()

    def close(self) -> None:
        """Close the sockets; on the event loop if one is in use. What has not been sent is given up."""
        if self._closed:
            return
        self._closed = True
        if self._reading_on is not None:
            self._reading_on.remove_reader(self._input.fileno())
        if self._retry is not None:
            self._retry.cancel()
        self._wake()
        self._input.close()
        self._to_scheduler.close()
        self._context.term()

    def _on_readable(self) -> None:
        """Take in what has arrived.

        The descriptor signals edges: unless everything is taken, it may stay silent.
        """
        if self._closed:
            return
        arrived = receive_all(self._input, RESULTS_HWM)
        self._inbox.extend(self._decoder.decode_all(arrived))
        if len(arrived) == RESULTS_HWM and self._reading_on is not None:
            self._reading_on.call_soon(self._on_readable)
        if self._inbox:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _schedule_retry(self) -> None:
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(_RETRY_INTERVAL_S, self._send_waiting)

    def _send_waiting(self) -> None:
        self._retry = None
        while self._unsent and try_send(self._to_scheduler, *self._unsent[0]):
            self._unsent.popleft()
        if self._unsent:
            self._schedule_retry()
