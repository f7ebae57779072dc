"""Properties of a request by which its replica is chosen: a frame before its message, which is forwarded undecoded."""

from __future__ import annotations

import zlib

import msgspec

from bough.ipc.messages import TokenizedEmbeddingReqInput, TokenizedGenerateReqInput

PAGE_TOKENS = 64
"""Tokens of a page, by which prefixes are compared. Shorter common prefixes are not worth a detour."""

MAX_PAGES = 512
"""Pages at the beginning of a prompt that are compared."""

_TOKEN_BYTES = 4
_PAGE_BYTES = PAGE_TOKENS * _TOKEN_BYTES


class RequestShape(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Properties of a request that decide about its replica."""

    num_tokens: int
    """Tokens of the prompt."""
    num_outputs: int = 1
    """Parallel samples; all of them are computed by one replica."""
    pages: tuple[int, ...] = ()
    """As :func:`page_hashes` returns them."""
    dp_rank: int | None = None
    """Replica that the request names."""
    goes_on: bool = False
    """True if a replica is known to have had its beginning."""

    @classmethod
    def of(cls, message: TokenizedGenerateReqInput | TokenizedEmbeddingReqInput) -> RequestShape:
        """Return the shape of a request."""
        num_tokens, extras = len(message.input_ids) // _TOKEN_BYTES, message.extras
        num_outputs = len(message.rids) if isinstance(message, TokenizedGenerateReqInput) else 1
        pages = page_hashes(message.input_ids, extras.extra_key)
        return cls(num_tokens, num_outputs, pages, extras.routed_dp_rank, extras.goes_on)


def page_hashes(input_ids: bytes, extra_key: str | None = None) -> tuple[int, ...]:
    """Return a hash of each prefix of whole pages, the shortest first.

    Args:
        input_ids: prompt, int32 little-endian.
        extra_key: namespace of the prefix cache; prefixes of different ones are different.

    A hash covers all pages before its own. That two prefixes have the same is unlikely, and costs time only.
    """
    running = zlib.crc32((extra_key or "").encode("utf-8", "surrogatepass"))
    pages, end = memoryview(input_ids), min(len(input_ids) // _PAGE_BYTES, MAX_PAGES) * _PAGE_BYTES
    hashes = []
    for start in range(0, end, _PAGE_BYTES):
        running = zlib.crc32(pages[start : start + _PAGE_BYTES], running)
        hashes.append(running)
    return tuple(hashes)
