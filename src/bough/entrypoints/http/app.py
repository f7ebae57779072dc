"""The HTTP application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response as StarletteResponse
from starlette.routing import Route

from bough import __version__
from bough.entrypoints.http.asgi import Endpoint
from bough.entrypoints.http.describe import openapi_schema
from bough.entrypoints.http.errors import OpenAIErrors
from bough.entrypoints.http.routes import ROUTES, make_handlers
from bough.errors import BoughError
from bough.managers.tokenizer_manager import TokenizerManager


class Application(FastAPI):
    """FastAPI with a shortcut: our own endpoints are called directly.

    FastAPI brings ``/docs`` and the answers to what is not an endpoint. Its layers of routing and middleware would
    otherwise be resumed for every streamed token, which costs more than writing the token.
    """

    def __init__(self) -> None:
        super().__init__(title="Bough", version=__version__, docs_url="/docs", redoc_url=None)
        self._endpoints: dict[tuple[str, str], Endpoint] = {}

    def add_endpoint(self, path: str, methods: Sequence[str], endpoint: Endpoint) -> None:
        """Add a route."""
        self.router.routes.append(Route(path, endpoint, methods=list(methods)))
        if "{" not in path:
            self._endpoints.update({(path, method): endpoint for method in methods})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request (ASGI)."""
        endpoint = self._endpoints.get((scope["path"], scope["method"])) if scope["type"] == "http" else None
        if endpoint is not None:
            await endpoint(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(manager: TokenizerManager) -> Application:
    """The application that serves everything that ``manager`` can do."""
    app = Application()
    handlers = make_handlers(manager)
    for info in ROUTES:
        endpoint = Endpoint(
            handlers[info.path],
            info.path,
            dialect=info.dialect,
            metrics=None if info.is_probe else manager.metrics,
            max_body_size=manager.server_args.max_body_size,
            takes_body=info.body is not None or info.takes_body,
        )
        for path in (info.path, *info.aliases):
            app.add_endpoint(path, info.methods, endpoint)
    app.add_exception_handler(HTTPException, _render_routing_error)
    schema = openapi_schema()

    def openapi() -> dict[str, Any]:
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # the way that FastAPI documents
    return app


async def _render_routing_error(request: Request, error: Exception) -> StarletteResponse:
    """No such path, or not with this method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    described = BoughError(f"{request.method} {request.url.path}: {_reason(status)}", code=_CODES.get(status))
    described.status_code = status
    headers = error.headers if isinstance(error, HTTPException) else None
    return StarletteResponse(OpenAIErrors().body(described), status, headers, media_type="application/json")


_CODES = {404: "not_found", 405: "method_not_allowed"}


def _reason(status: int) -> str:
    return {404: "there is nothing here; see /docs", 405: "this method is not allowed here"}.get(status, "not possible")
