"""Receives request bodies: how large one may be, how long it may take, and what all of them may occupy together, until
what they ask for is taken, or answered where some of them is needed until then."""

from __future__ import annotations

import asyncio
import sys

from bough.entrypoints.http.chunk_writer import Receive
from bough.errors import BoughError, Overloaded, PayloadTooLarge, RequestFailed

BODY_TIMEOUT = 60.0
"""Seconds within which a body must be complete, or have brought another :data:`MIN_PROGRESS` bytes."""

MIN_PROGRESS = 64 * 1024

SMALL_BODY_BYTES = 64 * 1024
"""What any connection may hold: bodies up to this size do not count against what all may occupy together."""

PATIENCE = 5.0
"""Seconds after which an upload may be ended in favour of others, when together they are too large."""


class ClientLeft(Exception):
    """The client has left in the middle of its body."""


class BodyIntake:
    """Receives the bodies of all requests of a server.

    When those that are incomplete, wait to be parsed or encoded, or are kept exceed ``max_pending_size`` together, the
    slowest of the uploads that have taken longer than :data:`PATIENCE` is given up; if there is none, the one that
    grows. A single one is always taken.

    Args:
        max_body_size: bytes of one body.
        max_pending_size: bytes of all bodies larger than :data:`SMALL_BODY_BYTES`.
        allow_unknown: read them with fields that are not known, which are ignored.
        max_tokens: longest prompt that is read.
    """

    def __init__(
        self, max_body_size: int, max_pending_size: int, *, allow_unknown: bool = True, max_tokens: int = sys.maxsize
    ) -> None:
        self.allow_unknown = allow_unknown
        self.max_tokens = max_tokens
        self._max_body_size = max_body_size
        self.small_body_size = min(max_body_size, SMALL_BODY_BYTES)
        """Bytes of a body that need not be received here if it is complete."""
        self._max_pending_size = max_pending_size
        self.pending_bytes = 0
        """Bytes that large bodies occupy now."""
        self._uploads: set[Upload] = set()

    async def receive(self, declared: bytes | None, receive: Receive) -> Upload:
        """Receive a body, at most as much as is allowed.

        Args:
            declared: value of the header ``content-length``, if there is one.

        Raises:
            PayloadTooLarge: without reading the rest.
            RequestFailed: (408) if the body comes too slowly.
            Overloaded: if there is no room for it beside the others.
            ClientLeft: if the client leaves.
        """
        limit = self._max_body_size
        if declared is not None and declared.isdigit() and (len(declared) > 19 or int(declared) > limit):
            raise _too_large(limit)
        upload = Upload(self)
        self._uploads.add(upload)
        parts: list[bytes] = []
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientLeft
                part = message.get("body", b"")
                if upload.size + len(part) > limit:
                    raise _too_large(limit)
                self._grow(upload, len(part))
                parts.append(part)
                if not message.get("more_body", False):
                    upload.body = parts[0] if len(parts) == 1 else b"".join(parts)
                    return upload
        except asyncio.CancelledError:
            if upload.failure is not None:
                raise upload.failure from None
            raise
        finally:
            self._uploads.discard(upload)
            upload.stop_timer()
            if upload.body is None:
                upload.release()

    def _grow(self, upload: Upload, num_bytes: int) -> None:
        upload.size += num_bytes
        upload.note_progress(num_bytes)
        if upload.size <= SMALL_BODY_BYTES:
            return
        self.reserve(upload, upload.size)
        while self.pending_bytes > self._max_pending_size and self.pending_bytes > upload.reserved:
            slow = [each for each in self._uploads if each.reserved and each.age > PATIENCE and each is not upload]
            if not slow:
                raise self._no_room()
            min(slow, key=lambda each: each.size / each.age).fail(self._no_room())

    def reserve(self, upload: Upload, num_bytes: int) -> None:
        """Account for so many bytes of an upload."""
        self.pending_bytes += num_bytes - upload.reserved
        upload.reserved = num_bytes

    def _no_room(self) -> Overloaded:
        return Overloaded(
            f"request bodies that are being received or read exceed {self._max_pending_size} bytes together "
            f"(--max-pending-body-size)"
        )


class Upload:
    """One body, while it is coming and until its bytes are :meth:`released <release>`.

    Attributes:
        body: complete; ``None`` before and afterwards.
        size: bytes received.
        reserved: bytes accounted for.
        kept: how many of them count until the answer is complete.
        failure: why it was given up, by others.
    """

    def __init__(self, intake: BodyIntake) -> None:
        self.body: bytes | None = None
        self.size = 0
        self.reserved = 0
        self.kept = 0
        self.failure: BoughError | None = None
        self._intake = intake
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None, "called by a coroutine"
        self._task = task
        self._started = self._loop.time()
        self._progress = 0
        self._timer = self._loop.call_later(BODY_TIMEOUT, self._expire)

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return self._loop.time() - self._started

    def note_progress(self, num_bytes: int) -> None:
        """Something has come."""
        self._progress += num_bytes
        if self._progress >= MIN_PROGRESS:
            self._progress = 0
            self._timer.cancel()
            self._timer = self._loop.call_later(BODY_TIMEOUT, self._expire)

    def stop_timer(self) -> None:
        """It is complete, or nobody waits for it any more."""
        self._timer.cancel()

    def fail(self, error: BoughError) -> None:
        """Give it up: whoever waits for it gets ``error``."""
        self.failure = error
        self.release()
        self._task.cancel()

    def take(self) -> bytes:
        """The body, which is no longer held here. Its bytes go on counting: they become a conversation or a prompt."""
        body, self.body = self.body or b"", None
        return body

    def taken(self) -> None:
        """What it asks for counts elsewhere now, and what is kept besides goes on counting here."""
        self._intake.reserve(self, min(self.reserved, self.kept))

    def release(self) -> None:
        """Its bytes count no more. Doing it twice does nothing."""
        self._intake.reserve(self, 0)

    def _expire(self) -> None:
        self.fail(
            RequestFailed(
                f"the request body was not complete within {BODY_TIMEOUT:g} s, nor had it brought {MIN_PROGRESS} more "
                f"bytes",
                status_code=408,
                code="request_timeout",
            )
        )


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"the request body is larger than {limit} bytes (--max-body-size)")
