"""ZeroMQ sockets as the channels use them: nothing blocks, nothing grows without bound.

The receiver of a channel binds it and the senders connect, so that what is sent before the other end exists waits in
the sender's socket. Sockets are not safe to share between threads; each belongs to the thread that uses it.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import zmq

from bough.ipc.coalescing import DeltaBacklog
from bough.ipc.codec import encode
from bough.ipc.messages import BatchEmbeddingOutput, BatchStrOutput, BatchTokenIDOutput, Heartbeat, OutputDelta

ResultsBatch = BatchTokenIDOutput | BatchStrOutput | BatchEmbeddingOutput

RESULTS_HWM = 64
"""Messages that wait on either side of a channel of results, one per step, before they are coalesced."""

REQUESTS_HWM = 65_536
"""Messages that wait on either side of the channel of requests before new requests are refused. Much more than what
one step may take to work off, and a bound all the same."""


MAX_MESSAGE_BYTES = 2**30
"""A sender that announces more than this is disconnected; no message comes near it."""


def _as_it_is(socket: zmq.Socket[bytes]) -> None:
    pass


def receiver(
    context: zmq.Context[Any], endpoint: str, hwm: int, configure: Callable[[zmq.Socket[bytes]], None] = _as_it_is
) -> zmq.Socket[bytes]:
    """A PULL socket bound to ``endpoint``, after ``configure`` has set further options."""
    socket: zmq.Socket[bytes] = context.socket(zmq.PULL)
    configure(socket)
    socket.setsockopt(zmq.RCVHWM, hwm)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
    socket.setsockopt(zmq.LINGER, 0)
    socket.bind(endpoint)
    return socket


def sender(
    context: zmq.Context[Any], endpoint: str, hwm: int, configure: Callable[[zmq.Socket[bytes]], None] = _as_it_is
) -> zmq.Socket[bytes]:
    """A PUSH socket connected to ``endpoint``, after ``configure`` has set further options."""
    socket: zmq.Socket[bytes] = context.socket(zmq.PUSH)
    configure(socket)
    socket.setsockopt(zmq.SNDHWM, hwm)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(endpoint)
    return socket


def try_send(socket: zmq.Socket[bytes], *frames: bytes) -> bool:
    """Send one message, unless the receiver is too far behind; returns whether it was sent."""
    try:
        if len(frames) == 1:
            socket.send(frames[0], zmq.NOBLOCK)
        else:
            socket.send_multipart(frames, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def receive_all(socket: zmq.Socket[bytes], limit: int) -> list[list[bytes]]:
    """Receive up to ``limit`` messages that have arrived, each with all of its frames; does not wait."""
    messages: list[list[bytes]] = []
    with contextlib.suppress(zmq.Again):
        while len(messages) < limit:
            frames = [socket.recv(zmq.NOBLOCK)]
            while socket.getsockopt(zmq.RCVMORE):
                frames.append(socket.recv())
            messages.append(frames)
    return messages


def readable(socket: zmq.Socket[bytes]) -> bool:
    """True if something has arrived; half as dear as trying to receive in vain."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def writable(socket: zmq.Socket[bytes]) -> bool:
    """True if the receiver has caught up so far that a message can be sent."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT)


class ResultsSender:
    """The sending side (a PUSH socket) of a channel of results; ``batch`` makes the message that carries deltas.

    When the receiver lags, deltas are coalesced per output and sent when it has caught up; other messages wait in
    order, except heartbeats, whose use is to be fresh.

    Attributes:
        lag_total: number of times that something could not be sent immediately.
    """

    def __init__(self, socket: zmq.Socket[bytes], batch: Callable[[list[OutputDelta]], ResultsBatch]) -> None:
        self.socket = socket
        self.lag_total = 0
        self._batch = batch
        self._backlog = DeltaBacklog()
        self._unsent: deque[bytes] = deque()

    @property
    def lagging(self) -> bool:
        """True if something waits to be sent."""
        return bool(self._backlog) or bool(self._unsent)

    def send_deltas(self, deltas: list[OutputDelta]) -> None:
        """Send the deltas of one step, together with what waits.

        Takes the deltas over: their owner must not change them any more.
        """
        if self._backlog and not self.flush():
            self._backlog.add(deltas)
            return
        if not try_send(self.socket, encode(self._batch(deltas))):
            self.lag_total += 1
            self._backlog.add(deltas)

    def send(self, message: Any) -> None:
        """Send another message; in no particular order with deltas."""
        frame = encode(message)
        if not (self._unsent and not self.flush()) and try_send(self.socket, frame):
            return
        self.lag_total += 1
        if not isinstance(message, Heartbeat):
            self._unsent.append(frame)

    def flush(self) -> bool:
        """Send what waits, as far as the receiver takes it; returns whether all is sent."""
        if (
            self._backlog
            and writable(self.socket)
            and try_send(self.socket, encode(self._batch(self._backlog.merged())))
        ):
            self._backlog.clear()
        while self._unsent and try_send(self.socket, self._unsent[0]):
            self._unsent.popleft()
        return not self.lagging

    def finish(self, timeout_s: float) -> bool:
        """Wait until all is sent, at most ``timeout_s`` seconds; returns whether it is.

        What is sent may still be on its way; closing the socket afterwards waits as long for it to be taken by the
        system, which is not all the way (:meth:`send_last`).
        """
        self.socket.setsockopt(zmq.LINGER, int(timeout_s * 1000))
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLOUT)
        while not self.flush():
            if not poller.poll(int(timeout_s * 1000)):
                return False
        return True

    def send_last(self, message: Any, timeout_s: float) -> None:
        """Send what ends the receiver, and wait until it has closed its end, at most ``timeout_s`` seconds each.

        Closing this end earlier may lose what is under way, whatever it lingers: a receiver of libzmq that has no place
        left for messages gives up a connection that the other end has closed, with all that it has not read from it.
        """
        monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.send(message)
        if self.finish(timeout_s):  # the last result may have taken the last place
            monitor.poll(int(timeout_s * 1000))
        self.socket.disable_monitor()
        monitor.close()
