"""The application of a server whose model loads."""

from __future__ import annotations

from typing import Any

from bough.entrypoints.http.asgi import HTML_TYPE, TEXT_TYPE, AsgiApp, Response
from bough.entrypoints.http.errors import dialect_of, error_headers
from bough.errors import Overloaded
from bough.observability.request_context import REQUEST_ID_HEADER, request_id_of

_PROBES = ("/health", "/ready", "/health_generate", "/ping")
# In the colours of the playground, light or dark as the system is unless somebody chose there (theme.js): what follows
# shall not flash.
_PAGE = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="1">'
    b'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Bough</title>'
    b"<style>:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif;"
    b" background: light-dark(#fbfaf7, #131715); color: light-dark(#1c2420, #e6ebe7); }"
    b" p { margin: 40vh 1rem 0; text-align: center; }</style>"
    b'<script>try { document.documentElement.style.colorScheme = localStorage.getItem("bough.theme") ?? ""; }'
    b" catch { }</script>"
    b"<p>The server is starting. This page goes on by itself."
)


class StartingApp:
    """An ASGI application that answers 503 until it is given the real one.

    So a load balancer hears "not ready" from the first second, instead of waiting in the backlog of a socket.

    Args:
        root_path: under which a proxy shows the server; what it leaves of it in paths is taken off.

    Attributes:
        app: the real application, as soon as there is one.
    """

    def __init__(self, root_path: str | None = None) -> None:
        self.app: AsgiApp | None = None
        self._root_path = root_path

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        root, path = self._root_path, scope["path"]
        if root is not None and path == root:
            # Addresses in the page are relative to a path that ends with a slash.
            headers = ((b"location", root.encode() + b"/"),)
            await Response(status=307, content_type=TEXT_TYPE, headers=headers).send(send)
            return
        if root is not None and path.startswith(f"{root}/"):
            scope["path"] = path[len(root) :]
        if self.app is not None:
            await self.app(scope, receive, send)
            return
        error = Overloaded("the server is starting", code="starting")
        if scope["path"] in _PROBES:
            response = Response(f"{error.message}\n".encode(), error.status_code, TEXT_TYPE, ((b"retry-after", b"1"),))
        elif scope["path"] == "/" and any(
            name == b"accept" and b"text/html" in value for name, value in scope["headers"]
        ):
            response = Response(_PAGE, error.status_code, HTML_TYPE, ((b"retry-after", b"1"),))
        else:
            body = dialect_of(scope["path"], scope["headers"]).body(error)
            response = Response(body, error.status_code, headers=tuple(error_headers(error)))
        await response.send(send, more_headers=[(REQUEST_ID_HEADER, request_id_of(scope["headers"]).encode())])
