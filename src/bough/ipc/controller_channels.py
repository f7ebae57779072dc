"""Channels of the process between the front end and several schedulers."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import zmq

from bough.config.port_args import PortArgs
from bough.config.ranks import ProcessKey
from bough.ipc.channels import FINISH_TIMEOUT_S, MAX_MESSAGES, ChildChannels
from bough.ipc.codec import MessageDecoder
from bough.ipc.messages import BatchTokenIDOutput, Heartbeat
from bough.ipc.routing import RequestShape
from bough.ipc.sockets import REQUESTS_HWM, receive_all, try_send


class Routed(NamedTuple):
    """A message for schedulers, as it has arrived."""

    shape: RequestShape | None
    """Shape of a request; ``None`` for what is for all schedulers."""
    message: bytes


class ControllerChannels(ChildChannels[Heartbeat]):
    """Channels of the controller of ``replicas``.

    It receives heartbeats of schedulers, of one frame, and messages for schedulers, of two: the shape of a request, or
    nothing, and the message.
    """

    def __init__(self, port_args: PortArgs, replicas: Sequence[ProcessKey]) -> None:
        super().__init__(port_args, port_args.scheduler_input_ipc_name, REQUESTS_HWM, Heartbeat, BatchTokenIDOutput)
        self._shapes: MessageDecoder[RequestShape] = MessageDecoder(RequestShape, "controller")
        self._to_replicas = [self._context.sender(port_args.scheduler_input(key), REQUESTS_HWM) for key in replicas]
        self._unsent: deque[tuple[zmq.Socket[bytes], bytes]] = deque()

    @property
    def malformed_total(self) -> int:
        """Messages dropped because they did not fit the schema."""
        return self._decoder.num_malformed + self._shapes.num_malformed

    def recv(self, timeout_s: float) -> list[Heartbeat | Routed]:
        """Return what has arrived; wait at most ``timeout_s`` seconds for it.

        Nothing is received while a scheduler lags so far that it takes no more: its lag becomes the front end's, which
        can refuse requests.
        """
        self._to_tokenizer.flush()
        poller = zmq.Poller()
        if self._flush():
            poller.register(self._input, zmq.POLLIN)
        else:
            poller.register(self._unsent[0][0], zmq.POLLOUT)
        poller.poll(math.ceil(timeout_s * 1000))
        return self._taken() if self._flush() else []

    def forward(self, replicas: Iterable[int], message: bytes) -> None:
        """Send a message to replicas, by their indices. Never blocks."""
        for index in replicas:
            socket = self._to_replicas[index]
            if self._unsent or not try_send(socket, message):
                self._unsent.append((socket, message))

    def close(self) -> None:
        """Deliver what waits and close the sockets. Waits a bounded time."""
        deadline = time.monotonic() + FINISH_TIMEOUT_S
        while not self._flush() and (left := deadline - time.monotonic()) > 0:
            self._unsent[0][0].poll(math.ceil(left * 1000), zmq.POLLOUT)
        for socket in self._to_replicas:
            socket.setsockopt(zmq.LINGER, int(FINISH_TIMEOUT_S * 1000))
            socket.close()
        super().close()

    def _taken(self) -> list[Heartbeat | Routed]:
        arrived: list[Heartbeat | Routed] = []
        for frames in receive_all(self._input, MAX_MESSAGES):
            if len(frames) == 1:
                arrived += self._decoder.decode_all([frames])
            elif len(frames) == 2:
                header, message = frames
                shape = self._shapes.decode(header) if header else None
                if shape is not None or not header:
                    arrived.append(Routed(shape, message))
            else:
                self._decoder.reject(f"{len(frames)} frames")
        return arrived

    def _flush(self) -> bool:
        """Send what waits, as far as the schedulers take it; return whether all is sent."""
        while self._unsent and try_send(*self._unsent[0]):
            self._unsent.popleft()
        return not self._unsent
