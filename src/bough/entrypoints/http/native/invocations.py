"""``/invocations``: the one route that Amazon SageMaker knows, for whatever kind of request its body is."""

from __future__ import annotations

from collections.abc import Mapping

from bough.entrypoints.http.asgi import Call, EventStream, Handler, Response
from bough.entrypoints.http.json_body import split_object
from bough.errors import BadRequest


class InvocationsHandler:
    """Hands a request to the handler that its body is meant for.

    Args:
        handlers: by the name of the field that such a body must have; the first that is there decides.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    async def __call__(self, call: Call) -> Response | EventStream:
        """Answer one request."""
        members = await split_object(call.body)
        for name, handler in self._handlers.items():
            if name in members:
                return await handler(call)
        raise BadRequest(
            f"the body must have one of {', '.join(self._handlers)}, by which the kind of request is known",
            code="missing_required_parameter",
        )
