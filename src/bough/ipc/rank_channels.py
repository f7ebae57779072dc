"""Channels between the first rank of a replica, which plans, and the others, which follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import zmq

from bough.config.port_args import PortArgs
from bough.config.ranks import ProcessKey
from bough.ipc.channels import HEARTBEAT_INTERVAL_S
from bough.ipc.codec import encode
from bough.ipc.context import ChannelContext
from bough.ipc.messages import Heartbeat, Message
from bough.ipc.sockets import RESULTS_HWM, try_send
from bough.process_usage import resident_bytes

Frame = bytes | memoryview
"""Part of a message."""

_PLAN, _END = b"plan", b"end"


class RankCall(Message):
    """Something else than a step that all ranks do at the same time."""

    method: str
    params: dict[str, Any]


class RankReply(Message):
    """Result of a :class:`RankCall` on a follower."""

    process: ProcessKey
    error: str | None = None
    """Reason for a failure."""
    param: str | None = None
    """Name of the parameter that the error is about, if there is one."""
    status_code: int = 400
    """HTTP status of the error."""
    result: bytes = b""
    """Result of a call that has one, as :mod:`bough.ipc.call_values` encodes it."""


class LeaderChannel:
    """The first rank's end: sends plans and calls to its followers, in one order.

    Raises:
        zmq.ZMQError: if the endpoint cannot be bound.
    """

    def __init__(self, port_args: PortArgs, key: ProcessKey, followers: Sequence[ProcessKey]) -> None:
        self._context = ChannelContext(port_args)
        self._replies = self._context.receiver(port_args.rank_replies(key), RESULTS_HWM)
        self._followers = [self._context.sender(port_args.scheduler_input(each), RESULTS_HWM) for each in followers]

    def send_plan(self, frames: Sequence[Frame]) -> None:
        """Send a plan; waits for followers that are far behind."""
        self._send([_PLAN, *frames])

    def send_call(self, call: RankCall) -> None:
        """Send a call; :meth:`take_replies` has to follow."""
        self._send([b"", encode(call)])

    def take_replies(self) -> list[RankReply]:
        """Wait for the replies of all followers to the last call. If one dies, so does the engine."""
        return [msgspec.msgpack.decode(self._replies.recv(), type=RankReply) for _ in self._followers]

    def close(self) -> None:
        """Tell the followers that nothing follows."""
        for socket in self._followers:
            try_send(socket, _END)
            socket.setsockopt(zmq.LINGER, 1000)
            socket.close()
        self._replies.close()
        self._context.term()

    def _send(self, frames: Sequence[Frame]) -> None:
        for socket in self._followers:
            socket.send_multipart(frames)


class FollowerChannel:
    """A follower's end, with its heartbeats.

    These come from a thread: a step that hangs keeps the first rank from its own heartbeats.

    Args:
        port_args: endpoints.
        key: of this process, and ``leader`` of the first rank.
    """

    def __init__(self, port_args: PortArgs, key: ProcessKey, leader: ProcessKey) -> None:
        self._key = key
        self._context = ChannelContext(port_args)
        self._input = self._context.receiver(port_args.scheduler_input(key), RESULTS_HWM)
        self._to_leader = self._context.sender(port_args.rank_replies(leader), RESULTS_HWM)
        self._ends = threading.Event()
        self._heart = threading.Thread(
            target=self._beat, args=(port_args.tokenizer_ipc_name,), name="heartbeats", daemon=True
        )

    def begin_heartbeats(self) -> None:
        """Show from now on that this process is not stopped."""
        self._heart.start()

    def receive(self) -> list[bytes] | RankCall | None:
        """Wait for the frames of a plan, or for a call; ``None`` if nothing follows."""
        kind, *frames = self._input.recv_multipart()
        if kind == _END:
            return None
        if kind == _PLAN:
            return frames
        return msgspec.msgpack.decode(frames[0], type=RankCall)

    def reply(self, reply: RankReply) -> None:
        """Tell the first rank what has become of its call."""
        self._to_leader.send(encode(reply))

    def close(self) -> None:
        """Close the sockets."""
        self._ends.set()
        if self._heart.is_alive():
            self._heart.join()
        self._input.close()
        self._to_leader.close()
        self._context.term()

    def _beat(self, endpoint: str) -> None:
        socket = self._context.sender(endpoint, RESULTS_HWM)
        while not self._ends.wait(HEARTBEAT_INTERVAL_S):
            beat = Heartbeat(self._key, cpu_seconds=time.process_time(), resident_bytes=resident_bytes())
            try_send(socket, encode(beat))
        socket.close()
