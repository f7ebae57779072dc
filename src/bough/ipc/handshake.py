"""How a child process learns what to do and tells how it gets on: MessagePack over two inherited pipes.

The parent writes one :class:`ChildConfig` into the first pipe and keeps it open: for the child, its end of file means
that the parent has died. A server's main process goes on to write a byte about once a second, which shows that its
event loop turns. The child writes its status into the second pipe and keeps it open: for the parent, its end
of file means that the child has died. Neither needs polling, and both hold for SIGKILL.

Each message is preceded by its length, 4 bytes, little-endian.
"""

from __future__ import annotations

import os
from typing import Any, Union

import msgspec

from bough.config.network import Network
from bough.config.ranks import ONE_SCHEDULER, WHOLE_MACHINE, MachineShare, ParallelLayout, ProcessKey

_LENGTH_BYTES = 4
MAX_MESSAGE_BYTES = 16 * 2**20


class ChildConfig(msgspec.Struct):
    """Everything that a child is told."""

    key: ProcessKey
    """Identity of this child."""
    parent_pid: int
    started_by_main_thread: bool
    """True if the kernel's parent-death signal means the parent's death: it is sent when the *thread* ends."""
    server_args: dict[str, Any]
    port_args: dict[str, str] | None = None
    """Endpoints of the channels; ``None`` for a child that has none."""
    network: Network | None = None
    """Sockets that stand for the endpoints; ``None`` if all processes are on one machine."""
    tidies_up: bool = False
    """True if this child removes the directory of the endpoints when the parent dies. The kernel may then not kill it
    together with the parent, as it does with the others."""
    parent_limits: tuple[float, float] | None = None
    """Seconds without a byte from the parent after which it counts as hung and is killed: until the first one, and
    from then on. ``None`` if it sends none: the host of an engine must not be killed."""
    layout: ParallelLayout = ONE_SCHEDULER
    """Layout of the engine that it belongs to."""
    share: MachineShare = WHOLE_MACHINE
    """Cores, memory and device that it may use."""
    listener_fd: int | None = None
    """An inherited listening socket, for a child that is a server."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors that the child inherits."""
        listeners = () if self.network is None else self.network.listeners.values()
        extra = () if self.listener_fd is None else (self.listener_fd,)
        return (*self.share.descriptors, *listeners, *extra)


class ChildReady(msgspec.Struct, tag_field="status", tag="ready"):
    """The child can do its work."""

    info: dict[str, Any] = {}


class ChildFailed(msgspec.Struct, tag_field="status", tag="error"):
    """The child cannot start."""

    message: str
    """One line that says what to do."""
    is_config_error: bool = False
    """True if an option is at fault."""


ChildStatus = Union[ChildReady, ChildFailed]  # noqa: UP007 (evaluated by msgspec on Python 3.10)


def encode_message(message: msgspec.Struct) -> bytes:
    """One message as it is written to a pipe. Raises :class:`OverflowError` or :class:`UnicodeEncodeError` if it holds
    a number or a text that MessagePack cannot."""
    return framed(msgspec.msgpack.encode(message))


def framed(body: bytes) -> bytes:
    """Return an encoded message as it is written to a pipe."""
    return len(body).to_bytes(_LENGTH_BYTES, "little") + body


def write_message(fd: int, encoded: bytes) -> None:
    """Write what :func:`encode_message` has made to a pipe; blocks while the pipe is full. Raises
    :class:`BrokenPipeError` if it has no reader any more."""
    data = memoryview(encoded)
    while data:
        data = data[os.write(fd, data) :]


def read_message(fd: int) -> bytes | None:
    """Read one message from a pipe, waiting for it; ``None`` at the end of the file, be it in the middle. Raises
    ``ValueError`` if what is there cannot be a message."""
    head = _read_exactly(fd, _LENGTH_BYTES)
    if head is None:
        return None
    length = int.from_bytes(head, "little")
    if length > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {length} bytes in a pipe between processes")
    return _read_exactly(fd, length)


def _read_exactly(fd: int, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = os.read(fd, count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
