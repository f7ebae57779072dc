"""The answers that clients are still to read when a server ends."""

from __future__ import annotations

import contextlib
import fcntl
import struct
import termios
from typing import cast

from bough.entrypoints.http.connection import BoundedHttpProtocol
from bough.entrypoints.http.playground import EVENTS_PATH
from bough.entrypoints.http.routes import ROUTES
from bough.entrypoints.http.server import HttpServer

UNREAD_SECONDS = 3.0
"""A server that drains waits for clients to read their answers, but not for one that has read nothing for so long."""


class AnswersUnderWay:
    """The answers that a server was making, or that waited to be read, when this was made. Nobody misses the end of
    what probes are told, or of the playground's view of the engine.
    """

    def __init__(self, server: HttpServer) -> None:
        probes = (path for route in ROUTES if route.is_probe for path in route.paths)
        self._missed_by_nobody = frozenset((*probes, EVENTS_PATH))
        # With ws="none" there are no others.
        self._open = cast("set[BoundedHttpProtocol]", server.server_state.connections)
        self._last_read = {each: (0, 0.0) for each in self._open if self._is_under_way(each)}
        """What was unread on a connection when that changed last, in bytes, and the time of that."""

    def __len__(self) -> int:
        for connection in list(self._last_read):
            if connection not in self._open or not self._is_under_way(connection):
                del self._last_read[connection]
        return len(self._last_read)

    def are_read(self, now: float) -> bool:
        """Whether there are any left for which it is worth waiting; to be asked often.

        Args:
            now: seconds on a clock of the caller's.
        """
        is_worth_it = False
        for connection, (unread_before, since) in list(self._last_read.items() if len(self) else ()):
            unread = _unread_bytes(connection)
            if unread == 0 or unread != unread_before:
                self._last_read[connection] = (unread, now)
                is_worth_it = True
            elif now - since < UNREAD_SECONDS:
                is_worth_it = True
        return is_worth_it

    def _is_under_way(self, connection: BoundedHttpProtocol) -> bool:
        cycle = connection.cycle
        if cycle is None or cycle.scope["path"] in self._missed_by_nobody:
            return False
        if connection.pipeline:
            return True  # of these requests the last one is known, and the first one is being answered
        # What has not come as a whole will be refused.
        is_made = not cycle.response_complete and (cycle.response_started or not cycle.more_body)
        return is_made or _unread_bytes(connection) > 0


def _unread_bytes(connection: BoundedHttpProtocol) -> int:
    """What was written to a connection and has not reached the client, in bytes; what the system holds of it, too, if
    that can be told: it takes megabytes in, and a slow client is not seen to read until a good part of them is gone.
    """
    in_system = struct.pack("i", 0)
    with contextlib.suppress(OSError, ValueError):
        in_system = fcntl.ioctl(connection.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, in_system)
    return connection.transport.get_write_buffer_size() + int(struct.unpack("i", in_system)[0])
