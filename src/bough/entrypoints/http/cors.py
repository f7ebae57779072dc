"""Which web pages may call the server from a browser (CORS: Fetch standard, 3.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from bough.config.rules import split_origins
from bough.config.server_args import ServerArgs

if TYPE_CHECKING:
    from bough.entrypoints.http.asgi import Receive, Scope, Send

PREFLIGHT_SECONDS = 600
"""How long a browser may remember what it was told before a request."""

_READABLE = b"retry-after, traceresponse, www-authenticate, x-request-id"
"""Headers that pages may read besides those that they always may."""


class CrossOrigin:
    """Tells browsers that pages of some origins may call the server, and answers what they ask before they do.

    Nothing is said of credentials: keys are sent by programs, in a header, and cookies there are none.

    Args:
        args: for ``cors_allow_origins``.
    """

    def __init__(self, args: ServerArgs) -> None:
        self._any = args.cors_allow_origins == "*"
        self._origins = frozenset(each.encode() for each in split_origins(args.cors_allow_origins or ""))

    @property
    def is_open(self) -> bool:
        """Whether pages of any other origin may call at all."""
        return bool(self._origins)

    def allows(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request comes from a page of one of the origins."""
        origin = _header(headers, b"origin")
        return origin is not None and (self._any or origin in self._origins)

    def is_foreign(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a browser says that a request comes from a page of another site, none of these.

        It does so in Fetch metadata, if it thinks the connection safe; else the page's origin is not where it asks.
        """
        site = _header(headers, b"sec-fetch-site")
        if site is not None:
            is_foreign = site == b"cross-site"
        else:
            origin = _header(headers, b"origin")
            if origin is None:
                return False
            asked = (_header(headers, b"host"), _header(headers, b"x-forwarded-host"))
            is_foreign = origin.partition(b"://")[2] not in asked
        return is_foreign and not self._any and not self.allows(headers)

    async def call(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request (ASGI), by ``app`` unless a browser asks whether it may send it."""
        if not self.allows(scope["headers"]):
            await app(scope, receive, self._marking(send, [(b"vary", b"origin")]))
            return
        origin = b"*" if self._any else _header(scope["headers"], b"origin")
        headers = [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        method = _header(scope["headers"], b"access-control-request-method")
        if scope["method"] != "OPTIONS" or method is None:
            headers.append((b"access-control-expose-headers", _READABLE))
            await app(scope, receive, self._marking(send, headers))
            return
        wanted = _header(scope["headers"], b"access-control-request-headers")
        headers.append((b"access-control-allow-methods", method))
        if wanted is not None:  # a * would leave out Authorization
            headers.append((b"access-control-allow-headers", wanted))
        headers.append((b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS))
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    @staticmethod
    def _marking(send: Send, headers: list[tuple[bytes, Any]]) -> Send:
        """``send`` that adds ``headers`` to the answer."""

        async def marked(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        return marked


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    return next((value for key, value in headers if key == name), None)
