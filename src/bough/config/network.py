"""Endpoints of an engine with processes on several machines, and the keys that encrypt what goes between them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from bough.errors import StartupError

_BACKLOG = 64


class KeyPair(msgspec.Struct, frozen=True):
    """Keys of CURVE (CurveZMQ, rfc.zeromq.org/spec/26) that belong to the processes of one engine on one machine.

    They are made for each start of an engine, and a secret key never leaves its machine.
    """

    public: bytes
    """In Z85, 40 characters."""
    secret: bytes
    """In Z85, 40 characters."""

    @classmethod
    def make(cls) -> KeyPair:
        """Make new keys.

        Raises:
            StartupError: if ZeroMQ was built without encryption.
        """
        import zmq  # which describing an engine's processes does not need

        if not zmq.has("curve"):
            raise StartupError("pyzmq was built without CURVE, so sockets between machines cannot be encrypted")
        return cls(*zmq.curve_keypair())

    def __repr__(self) -> str:
        return f"KeyPair({self.public!r})"


class Address(msgspec.Struct, frozen=True):
    """A socket that another process listens on."""

    host: str
    """Numeric address."""
    port: int
    key: bytes
    """Public key of the process that listens."""

    @property
    def url(self) -> str:
        """The address as ZeroMQ writes it."""
        return f"tcp://[{self.host}]:{self.port}" if ":" in self.host else f"tcp://{self.host}:{self.port}"


class Network(msgspec.Struct, frozen=True):
    """An engine on several machines, as a process on one of them sees it."""

    host: str
    """Numeric address of this machine."""
    keys: KeyPair
    """Of this machine's processes."""
    addresses: dict[str, Address]
    """Sockets of all processes, by the endpoint that each stands for."""
    listeners: dict[str, int]
    """Inherited descriptors of the sockets that this process listens on, by endpoint."""
    members: tuple[bytes, ...]
    """Public keys of all processes of the engine; connections of others are refused."""
    clock_offset: float = 0.0
    """Seconds by which this machine's monotonic clock is ahead of that of the main process."""

    def of_process(self, endpoints: Iterable[str]) -> Network:
        """Return it as a child has it that listens on some of the endpoints."""
        return replace(self, listeners={each: self.listeners[each] for each in endpoints})


def listen(host: str) -> socket.socket:
    """Listen on a port of a numeric address; the system chooses the port.

    Raises:
        StartupError: if this machine does not have the address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        try:
            listener.bind((host, 0))
            listener.listen(_BACKLOG)
        except OSError as error:
            raise StartupError(f"cannot listen on {host} for the other machines: {error.strerror}") from None
        listener.setblocking(False)
        undo.pop_all()
    return listener
