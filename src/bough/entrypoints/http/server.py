"""uvicorn, set up for this application: bounded connections, no signal handlers, no logging of its own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import stat
from collections.abc import Generator
from typing import Any

import uvicorn

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.connection import BoundedConfig, BoundedHttpProtocol
from bough.errors import StartupError

HANDSHAKE_TIMEOUT = 15.0
"""Seconds that the handshake of a client may take, with HTTPS."""

KEEP_ALIVE = 75
"""Seconds that a connection stays open without a request. The rest of a body whose request was answered is none, but
every :data:`~bough.entrypoints.http.bodies.MIN_PROGRESS` bytes of it count like one."""

LISTEN_BACKLOG = 2048


class HttpServer(uvicorn.Server):
    """A uvicorn server that leaves signals to whoever started it.

    ``await serve(sockets=[...])`` runs until :meth:`end`; ``force_exit`` does not wait for open connections.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections; uvicorn would wait for handshakes as long as the event loop does, a minute."""
        loop, config = asyncio.get_running_loop(), self.config

        def protocol() -> BoundedHttpProtocol:
            return BoundedHttpProtocol(config=config, server_state=self.server_state, app_state={}, _loop=loop)

        patience = None if config.ssl is None else HANDSHAKE_TIMEOUT
        options: Any = {"ssl": config.ssl, "backlog": config.backlog, "ssl_handshake_timeout": patience}
        self.servers = [
            await (
                loop.create_unix_server(protocol, sock=sock, **options)
                if sock.family == socket.AF_UNIX
                else loop.create_server(protocol, sock=sock, **options)
            )
            for sock in sockets or []
        ]
        self.started = True

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn would look for it, and for the time of day, ten times a second."""
        await self.on_tick(0)
        await self._ending.wait()

    def end(self) -> None:
        """Have :meth:`serve` close connections as they become idle, and return."""
        self.should_exit = True
        self._ending.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the process's signal handlers alone."""
        yield

    def abort_connections(self) -> None:
        """Cut all connections, with whatever their clients have not read."""
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def bind_socket(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one.

    Raises:
        StartupError: if the address is unknown or in use.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise StartupError(f"cannot resolve --host {host}: {error.strerror}", param="host") from None
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        raise StartupError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port or --host", param="port"
        ) from None
    sock.setblocking(False)
    return sock


def bind_unix_socket(path: str) -> socket.socket:
    """A listening Unix socket that only this user may connect to; one that a server has left there is replaced.

    Raises:
        StartupError: if the path cannot be used, a server listens there, or what is there is no socket.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_stale(path)
        umask = os.umask(0o177)  # a mode that is set afterwards would come too late
        try:
            sock.bind(path)
        finally:
            os.umask(umask)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise StartupError(f"cannot listen on {path}: {reason}; choose another --uds", param="uds") from None
    sock.setblocking(False)
    return sock


def _remove_stale(path: str) -> None:
    """Remove a socket that no process listens on.

    Raises:
        OSError: if there is anything else.
    """
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "there is something that is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def make_server(app: Any, server_args: ServerArgs, tls: ssl.SSLContext | None) -> HttpServer:
    """The server for an ASGI application; the caller gives it sockets and runs it on an event loop."""
    config = BoundedConfig(
        app,
        server_args,
        tls,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning" if server_args.log_level != "debug" else "debug",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        backlog=LISTEN_BACKLOG,
    )
    return HttpServer(config)
