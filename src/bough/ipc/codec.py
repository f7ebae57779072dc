"""Messages to MessagePack and back. Whatever arrives is checked against the schema; what does not fit is dropped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

logger = logging.getLogger(__name__)

M = TypeVar("M")

COMPLAINT_INTERVAL_S = 10.0
"""Least time between two log lines about malformed messages on one channel."""

_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""All that msgspec raises for bytes that are not what they should be: the last two for invalid UTF-8 in a string
and for nesting deeper than the interpreter's stack."""

_encoder = msgspec.msgpack.Encoder()

encode: Callable[[Any], bytes] = _encoder.encode
"""MessagePack of a message. Raises ``UnicodeEncodeError`` for a string with a lone surrogate."""


class MessageDecoder(Generic[M]):
    """Decodes the messages of one type that arrive on a channel; ``num_malformed`` were dropped so far."""

    def __init__(self, message_type: Any, channel: str) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(message_type)
        self._channel = channel
        self._next_complaint = 0.0
        self.num_malformed = 0

    def decode(self, frame: bytes) -> M | None:
        """The message in ``frame``; ``None``, counted and logged, if there is none in it."""
        try:
            return self._decoder.decode(frame)
        except _DECODE_ERRORS as error:
            self.reject(f"{len(frame)} bytes: {error}")
            return None

    def decode_all(self, arrived: Iterable[Sequence[bytes]]) -> list[M]:
        """Return the messages among what has arrived, each of one frame; drop the rest as :meth:`decode`."""
        messages = []
        for frames in arrived:
            if len(frames) != 1:
                self.reject(f"{len(frames)} frames")
            elif (message := self.decode(frames[0])) is not None:
                messages.append(message)
        return messages

    def reject(self, reason: str) -> None:
        """Count a message that was dropped, and log it unless that was done a moment ago."""
        self.num_malformed += 1
        now = time.monotonic()
        if now >= self._next_complaint:
            self._next_complaint = now + COMPLAINT_INTERVAL_S
            logger.warning(
                "Dropped a malformed message on %s (%s); %d so far", self._channel, reason, self.num_malformed
            )
