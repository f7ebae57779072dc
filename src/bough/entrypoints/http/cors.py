"""Which web pages may call the server from a browser (CORS: Fetch standard, 3.3)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from bough.config.rules import split_origins
from bough.config.server_args import ServerArgs

if TYPE_CHECKING:
    from bough.entrypoints.http.chunk_writer import Headers, Receive, Scope, Send

PREFLIGHT_SECONDS = 600
"""How long a browser may remember what it was told before a request."""

_READABLE = b"retry-after, traceresponse, www-authenticate, x-bough-ignored-fields, x-request-id"
"""Headers that pages may read besides those that they always may."""

_LOCAL_ORIGIN = re.compile(
    rb"https?://(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?"
    rb"|(?:app|tauri|vscode-file|vscode-webview)://[!-~]*"
)
"""Pages that this machine serves or that belong to a program installed on it. A site cannot have such an origin, while
``null``, a saved file's, can be had by any page in a frame."""


class CrossOrigin:
    """Tells browsers that pages of some origins may call the server, and answers what they ask before they do.

    Nothing is said of credentials: keys are sent by programs, in a header, and cookies there are none.

    Args:
        args: for ``cors_allow_origins``, and for the address: on a loopback address, pages of the machine itself may
            use the model, too.
    """

    def __init__(self, args: ServerArgs) -> None:
        self._any = args.cors_allow_origins == "*"
        self._origins = frozenset(each.encode() for each in split_origins(args.cors_allow_origins or ""))
        self._hosts = frozenset(each.partition(b"://")[2] for each in self._origins)
        self._is_private = is_loopback(args.host)

    @property
    def is_open(self) -> bool:
        """Pages of some other origin may call."""
        return self._is_private or bool(self._origins)

    def allows(self, origin: bytes | None, *, is_control: bool = False) -> bool:
        """Decide about a page of an origin; routes for control are for those alone that the options name."""
        if origin is None:
            return False
        is_named = self._any or origin in self._origins
        return is_named or (self._is_private and not is_control and _LOCAL_ORIGIN.fullmatch(origin) is not None)

    def is_foreign(self, headers: Headers, *, is_control: bool = False) -> bool:
        """Find out whether a browser sends a request for a page of another site that may not call.

        It says so in Fetch metadata, if it thinks the connection safe; else the page's origin is not where it asks.
        Ports are no part of a site, so on this machine any page is of the same one: for control that is not enough.
        """
        origin, site = _header(headers, b"origin"), _header(headers, b"sec-fetch-site")
        if self._any or self.allows(origin, is_control=is_control):
            return False
        if site is not None:
            return site == b"cross-site" or (is_control and site == b"same-site")
        if origin is None:
            return False
        host = _header(headers, b"host")
        if origin.partition(b"://")[2] not in (host, _header(headers, b"x-forwarded-host")):
            return True
        return self._is_private and self._is_renamed(host)

    def _is_renamed(self, host: bytes | None) -> bool:
        """Find out whether a page can have made the name of a server that only this machine reaches lead here.

        Names are a site's to give (DNS rebinding), addresses are not. A browser does not send Fetch metadata to such a
        name: without a certificate for it, the connection is not safe.
        """
        name = host_name(host)
        return not is_loopback(name) and not _is_address(name) and host not in self._hosts

    async def call(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer one request (ASGI), by ``app`` unless a browser asks whether it may send it."""
        origin = _header(scope["headers"], b"origin")
        if origin is None and not self._origins:
            await app(scope, receive, send)
            return
        if not self.allows(origin):
            await app(scope, receive, self._marking(send, [(b"vary", b"origin")]))
            return
        headers = [(b"access-control-allow-origin", b"*" if self._any else origin), (b"vary", b"origin")]
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


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_name(host: bytes | None) -> str:
    """The name in a header ``Host``, without the port; ``localhost`` where there is no header."""
    text = "localhost" if host is None else host.decode("latin-1")
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _header(headers: Headers, name: bytes) -> bytes | None:
    for key, value in headers:  # several times a request, and twice as fast as a generator
        if key == name:
            return value
    return None
