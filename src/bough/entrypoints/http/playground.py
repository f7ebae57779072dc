"""The playground: a page to talk to the model and to watch the engine. It loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from bough.entrypoints.http.asgi import Call, Handler, Response

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


class Playground:
    """Answers with the page and its parts, read once.

    Args:
        root: answers ``GET /`` of programs.
    """

    def __init__(self, root: Handler) -> None:
        self._root = root
        files = {path.name: path for path in sorted(_ASSETS.iterdir())}
        self._parts = {
            name: Response(path.read_bytes(), content_type=(b"content-type", _TYPES[path.suffix]), headers=_HEADERS)
            for name, path in files.items()
        }

    @property
    def paths(self) -> list[str]:
        """Of all parts but the page itself."""
        return [PREFIX + name for name in self._parts if name != "index.html"]

    async def page(self, call: Call) -> Response:
        """``GET /``: the page for browsers; programs, which do not ask for HTML, get what they always got."""
        if b"text/html" not in (call.header(b"accept") or b""):
            answer = await self._root(call)
            assert isinstance(answer, Response), "the server's word is no stream"
            return answer
        return self._parts["index.html"]

    async def part(self, call: Call) -> Response:
        """``GET /playground/{name}``, only of what was there when the server started."""
        return self._parts[call.path.removeprefix(PREFIX)]
