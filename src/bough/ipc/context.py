"""Sockets of one process's channels: Unix sockets on one machine, and encrypted TCP between machines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import zmq

from bough.config.network import Network
from bough.config.port_args import PortArgs
from bough.ipc.sockets import receiver, sender

if TYPE_CHECKING:
    from zmq.auth.thread import ThreadAuthenticator

_DOMAIN = "bough"


class ChannelContext:
    """Makes the sockets of channels.

    Between machines each end proves that it belongs to the engine, by the keys of :class:`Network`, before anything
    that it sends is looked at.

    Raises:
        StartupError: if the directory of the sockets is not private.
    """

    def __init__(self, port_args: PortArgs) -> None:
        self._network = port_args.network
        if self._network is None:
            port_args.check_private()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._guard: ThreadAuthenticator | None = None

    @property
    def closed(self) -> bool:
        """True after :meth:`term`."""
        return self._context.closed

    def receiver(self, endpoint: str, hwm: int) -> zmq.Socket[bytes]:
        """Make a PULL socket that listens on an endpoint, with room for ``hwm`` messages.

        Raises:
            zmq.ZMQError: if the endpoint cannot be bound.
        """
        network = self._network
        if network is None:
            return receiver(self._context, endpoint, hwm)
        if self._guard is None:
            from zmq.auth.thread import ThreadAuthenticator  # brings asyncio, which few processes need

            self._guard = ThreadAuthenticator(self._context)
            self._guard.start()
            self._guard.configure_curve_callback(_DOMAIN, _Members(network))

        def encrypt(socket: zmq.Socket[bytes]) -> None:
            _set_keys(socket, network)
            socket.setsockopt(zmq.CURVE_SERVER, 1)
            socket.setsockopt_string(zmq.ZAP_DOMAIN, _DOMAIN)
            # Without the guard connections are refused.
            socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
            socket.setsockopt(zmq.USE_FD, os.dup(network.listeners[endpoint]))  # the socket closes its own

        return receiver(self._context, network.addresses[endpoint].url, hwm, encrypt)

    def sender(self, endpoint: str, hwm: int) -> zmq.Socket[bytes]:
        """Make a PUSH socket that connects to an endpoint, with room for ``hwm`` messages."""
        network = self._network
        if network is None:
            return sender(self._context, endpoint, hwm)
        address = network.addresses[endpoint]

        def encrypt(socket: zmq.Socket[bytes]) -> None:
            _set_keys(socket, network)
            socket.setsockopt(zmq.CURVE_SERVERKEY, address.key)

        return sender(self._context, address.url, hwm, encrypt)

    def term(self) -> None:
        """End the context, after all of its sockets have been closed."""
        if self._guard is not None:
            self._guard.stop()
        self._context.term()


class _Members:
    """Keys of an engine's processes, as ``ThreadAuthenticator`` asks for them."""

    def __init__(self, network: Network) -> None:
        self._keys = frozenset(network.members)

    def callback(self, domain: str, key: bytes) -> bool:
        """Return whether the owner of a key, in Z85, may connect."""
        return key in self._keys


def _set_keys(socket: zmq.Socket[bytes], network: Network) -> None:
    socket.setsockopt(zmq.CURVE_PUBLICKEY, network.keys.public)
    socket.setsockopt(zmq.CURVE_SECRETKEY, network.keys.secret)
    socket.setsockopt(zmq.IPV6, 1)
