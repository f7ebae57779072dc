"""``/collective_rpc``: methods of the workers, where the operator has opened them to HTTP."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.errors import NotFound


class CollectiveCall(msgspec.Struct, kw_only=True):
    """Body of ``/collective_rpc``."""

    method: Annotated[
        Annotated[str, Meta(min_length=1, max_length=256)],
        Meta(description="Name of a public method of the workers, as `--worker-extension-cls` brings them."),
    ]
    args: Annotated[list[Any], Meta(description="Its arguments.")] = []
    kwargs: Annotated[dict[str, Any], Meta(description="Its arguments by name.")] = {}
    timeout: Annotated[
        Annotated[float, Meta(gt=0, le=86_400)] | None, Meta(description="Seconds that it may take; 600 if absent.")
    ] = None


COLLECTIVE_CALL = BodySpec(CollectiveCall, is_strict=True, example={"method": "check_health"})


class CollectiveAnswer(msgspec.Struct):
    """Results of a method."""

    results: Annotated[list[Any], Meta(description="What it returned on each rank, in their order.", examples=[[None]])]


class WorkerCallHandlers(Handlers):
    """Answers the route that calls methods of the workers."""

    @Route("POST /collective_rpc", NATIVE, COLLECTIVE_CALL, CollectiveAnswer, access=Access.CONTROL, statuses=(404,))
    async def call_workers(self, call: Call) -> Response:
        """Call a method of the worker of each rank, by vLLM's name.

        Only on a server that was started with `--enable-collective-rpc`. Dtypes, sizes and devices come as texts and
        lists.
        """
        body = await call.parse(COLLECTIVE_CALL)
        if not self._manager.server_args.enable_collective_rpc:
            raise NotFound("methods of workers are not open to HTTP; see --enable-collective-rpc", code="not_enabled")
        results = await self._manager.workers.call(body.method, body.timeout, body.args, body.kwargs, as_text=True)
        return Response(msgspec.json.encode(CollectiveAnswer(results)))
