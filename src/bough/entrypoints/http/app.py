"""The HTTP application."""

from __future__ import annotations

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


def create_app(manager: TokenizerManager) -> FastAPI:
    """The application that serves everything that ``manager`` can do.

    FastAPI brings the routing and ``/docs``; bodies and answers do not pass through it, because a streamed token must
    not cost more than it has to.
    """
    app = FastAPI(title="Bough", version=__version__, docs_url="/docs", redoc_url=None)
    handlers = make_handlers(manager)
    for info in ROUTES:
        endpoint = Endpoint(
            handlers[info.path],
            info.path,
            dialect=info.dialect,
            metrics=None if info.is_probe else manager.metrics,
            max_body_size=manager.server_args.max_body_size,
            takes_body=info.body is not None,
        )
        for path in (info.path, *info.aliases):
            app.router.routes.append(Route(path, endpoint, methods=list(info.methods)))
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
