"""``/invocations``: the one route that Amazon SageMaker knows, for whatever kind of request its body is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bough.entrypoints.http.asgi import Call, EventStream, Handler, Response
from bough.entrypoints.http.errors import ErrorDialect
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.json_body import split_object
from bough.errors import BadRequest


@dataclass(frozen=True)
class Invocable:
    """A kind of request.

    Attributes:
        spec: its body.
        handler: answers it.
        dialect: how its errors look.
    """

    spec: BodySpec[Any]
    handler: Handler
    dialect: ErrorDialect


class InvocationsHandler:
    """Hands a request to the handler that its body is meant for.

    Args:
        kinds: by the name of the field that such a body must have; the first that is there decides.
    """

    def __init__(self, kinds: Mapping[str, Invocable]) -> None:
        self._kinds = kinds
        self._specs: Sequence[BodySpec[Any]] = list({id(kind.spec): kind.spec for kind in kinds.values()}.values())

    async def __call__(self, call: Call) -> Response | EventStream:
        """Answer one request."""
        members = await split_object(call.body, self._element_limit)
        for name, kind in self._kinds.items():
            if name in members:
                call.keep_members(members)
                call.dialect = kind.dialect
                return await kind.handler(call)
        raise BadRequest(
            f"the body must have one of {', '.join(self._kinds)}, by which the kind of request is known",
            code="missing_required_parameter",
        )

    def _element_limit(self, name: str, beginning: bytes) -> int | None:
        """The widest bound among the kinds of requests that have this field."""
        limits = [spec.element_limit(name, beginning) for spec in self._specs if spec.knows(name)]
        bounded = [limit for limit in limits if limit is not None]
        return max(bounded) if limits and len(bounded) == len(limits) else None
