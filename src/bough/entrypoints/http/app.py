"""The HTTP application."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Match
from starlette.routing import Route as StarletteRoute

from bough.entrypoints.http.access import Access, Gate
from bough.entrypoints.http.asgi import HTML_TYPE, AsgiApp, Call, Endpoint, Front, Handler, Response
from bough.entrypoints.http.bodies import BodyIntake
from bough.entrypoints.http.cors import CrossOrigin
from bough.entrypoints.http.errors import dialect_of
from bough.entrypoints.http.native.live import LiveView
from bough.entrypoints.http.openapi import openapi_schema
from bough.entrypoints.http.playground import EVENTS_PATH, PlaygroundParts
from bough.entrypoints.http.route import OPENAI, Api, Route
from bough.entrypoints.http.routes import make_handlers
from bough.errors import BoughError, NotFound
from bough.managers.held_answers import HeldAnswers
from bough.managers.tokenizer_manager import TokenizerManager
from bough.observability.request_context import REQUEST_ID_HEADER, request_id_of
from bough.other_engines import ROUTES as UNSUPPORTED_ROUTES
from bough.other_engines import not_supported

if TYPE_CHECKING:
    from bough.observability.otel import OtelTracer


_SIMILARITY = 0.85
"""Likeness to a route at which a path is taken for a misspelling of it (difflib's ratio)."""

_MAX_CHARS = 256
"""Length of a path up to which it is compared: the time that takes grows with it."""


class Application(Starlette):
    """Starlette with a shortcut: our own endpoints are called directly.

    Starlette brings the answers to what is not an endpoint. Its layers of routing and middleware
    would otherwise be resumed for every streamed token, which costs more than writing the token.
    """

    def __init__(self, front: Front, cross_origin: CrossOrigin) -> None:
        super().__init__()
        self.router.redirect_slashes = False
        self.front = front
        self._cross_origin = cross_origin
        self._endpoints: dict[tuple[str, str], Endpoint] = {}

    def answer(self, route: Route, handler: Handler, *, is_counted: bool = True) -> None:
        """Have ``handler`` answer a route; requests to it may be left out of metrics, traces and bounds."""
        front = self.front if is_counted else Front(self.front.intake, self.front.gate)
        endpoint = Endpoint(handler, route, front)
        for path in route.paths:
            self.router.routes.append(StarletteRoute(path, endpoint, methods=list(route.methods)))
            if "{" not in path:
                self._endpoints.update({(path, method): endpoint for method in route.methods})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request (ASGI)."""
        app: AsgiApp = super().__call__
        if scope["type"] == "http":
            app = self._endpoints.get((scope["path"], scope["method"])) or self._tidied(scope) or app
            if self._cross_origin.is_open:
                await self._cross_origin.call(app, scope, receive, send)
                return
        await app(scope, receive, send)

    def _tidied(self, scope: Any) -> Endpoint | None:
        """Return the endpoint of a path that has slashes too many, and remove them from the path.

        Control routes are left out: a proxy that keeps clients from them compares exact paths.
        """
        path = tidy_path(scope["path"])
        endpoint = self._endpoints.get((path, scope["method"]))
        if endpoint is not None and endpoint.is_control:
            return None
        # The name of a model may have any slashes, but at its end.
        scope["path"] = scope["path"].rstrip("/") if path.startswith(_ONE_MODEL) else path
        return endpoint

    @property
    def paths(self) -> list[str]:
        """Paths of all endpoints that take no parameter in them."""
        return list(dict.fromkeys(path for path, _ in self._endpoints))


_ONE_MODEL = "/v1/models/"


def create_app(manager: TokenizerManager, gate: Gate | None = None, tracer: OtelTracer | None = None) -> Application:
    """The application that serves everything that ``manager`` can do.

    Args:
        gate: who may call; made from the manager's options if there is none yet.

    Raises:
        ConfigError: if the keys of the options cannot be read.
    """
    args = manager.server_args
    intake = BodyIntake(
        args.max_body_size,
        args.max_pending_body_size,
        allow_unknown=not args.strict_fields,
        max_tokens=manager.limits.max_prompt_tokens,
    )
    front = Front(intake, gate or Gate(args), manager.metrics, tracer, HeldAnswers(args.max_pending_answer_size))
    app = Application(front, CrossOrigin(args))
    for path, page, access in _pages(manager):
        app.answer(Route(f"GET {path}", OPENAI, access=access), page, is_counted=False)
    for route, handler in make_handlers(manager).items():
        app.answer(route, handler)
    for path in UNSUPPORTED_ROUTES:
        api = Api("unsupported", dialect_of(path, ()))
        app.answer(Route(f"GET,POST,PUT,DELETE {path}", api), unsupported_route)
    app.add_exception_handler(HTTPException, _render_routing_error)
    return app


def _pages(manager: TokenizerManager) -> list[tuple[str, Handler, Access]]:
    """Pages for people, and what they load, with the permission that each needs."""
    args = manager.server_args
    # Once, and not for each client that asks: it is large.
    schema = openapi_schema()
    if args.root_path is not None:
        schema["servers"] = [{"url": args.root_path}]
    description = Response(msgspec.json.encode(schema))

    async def openapi(call: Call) -> Response:
        return description

    pages: list[tuple[str, Handler, Access]] = [
        ("/docs", docs_page, Access.OPEN),
        ("/openapi.json", openapi, Access.OPEN),
    ]
    if not args.disable_playground:
        parts = PlaygroundParts()
        pages += [(path, parts.part, Access.OPEN) for path in parts.paths]
        # It shows how other clients' prompts begin.
        pages.append((EVENTS_PATH, LiveView(manager), Access.CONTROL))
    return pages


async def unsupported_route(call: Call) -> Response:
    """Refuse a route of another engine; a status of 500 and above would have OpenAI's clients try again."""
    raise NotFound(not_supported(call.path, UNSUPPORTED_ROUTES[call.path]), code="not_supported")


async def docs_page(call: Call) -> Response:
    """``GET /docs``: a page that shows ``/openapi.json``; it loads nothing from elsewhere."""
    return Response(_DOCS_PAGE.read_bytes(), content_type=HTML_TYPE, headers=_PAGE_HEADERS)


_DOCS_PAGE = Path(__file__).resolve().parents[2] / "assets" / "docs.html"
_PAGE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
)


async def _render_routing_error(request: Request, error: Exception) -> StarletteResponse:
    """No such path, or not with this method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.scope["path"]
    meant = right_path(path, request.app.paths) if status == 404 else None
    reason = _reason(status) if meant is None else f"there is nothing here; {_hint(meant)}"
    described = BoughError(f"{request.method} {path}: {reason}", code=_CODES.get(status))
    described.status_code = status
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == 405:  # of the routes that share the path, Starlette names the methods of the first
        sharing = (each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE)
        headers["Allow"] = ", ".join(sorted({method for each in sharing for method in each.methods}))
    headers[REQUEST_ID_HEADER.decode()] = request_id_of(request.scope["headers"])
    body = dialect_of(path, request.scope["headers"]).body(described)
    return StarletteResponse(body, status, headers, media_type="application/json")


_CODES = {404: "not_found", 405: "method_not_allowed"}


def _hint(path: str) -> str:
    """Name the path to call instead, and how to have a library do so."""
    suffix = next((each for each in ("/v1", "/api") if path.startswith(f"{each}/")), None)
    base = (
        "" if suffix is None else f"; a base URL for it ends with {suffix} once, or with nothing, as the client adds it"
    )
    return f"did you mean {path}?{base}"


def _reason(status: int) -> str:
    return {404: "there is nothing here; see /docs", 405: "this method is not allowed here"}.get(status, "not possible")


def tidy_path(path: str) -> str:
    """A path without doubled slashes and without one at its end."""
    return "/" + "/".join(filter(None, path.split("/")))


def right_path(path: str, known: Collection[str]) -> str | None:
    """The route that a client has probably meant by a path that is none; ``None`` if it resembles none.

    A client's base URL often has a prefix too many (``/v1/v1/chat/completions``, ``/api/v1/models``) or lacks one
    (``/chat/completions``).

    Args:
        path: without superfluous slashes.
        known: paths of all routes; of those that fit equally well, the first is returned.
    """
    if len(path) > _MAX_CHARS:
        return None
    if longer := [each for each in known if each != "/" and path.endswith(each)]:
        return max(longer, key=len)
    if path != "/" and (shorter := [each for each in known if each.endswith(path)]):
        return min(shorter, key=len)
    return next(iter(difflib.get_close_matches(path, known, 1, _SIMILARITY)), None)
