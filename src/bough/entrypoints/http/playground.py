"""The playground: a page to talk to the model and to watch the engine. It loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.route import HTML, NATIVE, Handlers, Route
from bough.managers.tokenizer_manager import TokenizerManager

PREFIX = "/playground/"
"""Where the page's parts are."""

EVENTS_PATH = PREFIX + "events"

_ASSETS = Path(__file__).resolve().parents[2] / "assets" / "playground"
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)


class Playground(Handlers):
    """Answers ``/``."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._page = None if manager.server_args.disable_playground else _read(_ASSETS / "index.html")

    @Route("GET /", NATIVE, answer=str, access=Access.OPEN, also=(HTML,))
    async def root(self, call: Call) -> Response:
        """Report that the server is running; a browser, which accepts HTML, gets the playground."""
        if self._page is not None and b"text/html" in (call.header(b"accept") or b""):
            return self._page
        return Response(msgspec.json.encode("Bough is running"))


class PlaygroundParts:
    """Answers with what the page loads, read once."""

    def __init__(self) -> None:
        self._parts = {PREFIX + path.name: _read(path) for path in sorted(_ASSETS.iterdir())}
        del self._parts[PREFIX + "index.html"]

    @property
    def paths(self) -> list[str]:
        """Paths of all parts."""
        return list(self._parts)

    async def part(self, call: Call) -> Response:
        """Answer ``GET /playground/{name}``, only for what was there when the server started."""
        return self._parts[call.path]


def _read(path: Path) -> Response:
    return Response(path.read_bytes(), content_type=(b"content-type", _TYPES[path.suffix]), headers=_HEADERS)
