"""``/invocations``: the one route that Amazon SageMaker knows, for whatever kind of request its body is."""

from __future__ import annotations

from typing import Any

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.asgi import Call, EventStream, Handler, Response
from bough.entrypoints.http.json_body import split_object
from bough.entrypoints.http.native.generate import GenerateHandler
from bough.entrypoints.http.native.protocol import GENERATE
from bough.entrypoints.http.openai.chat import ChatHandler
from bough.entrypoints.http.openai.completions import CompletionHandler
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.entrypoints.http.openai.vector_protocol import EMBEDDINGS
from bough.entrypoints.http.openai.vectors import VectorHandlers
from bough.entrypoints.http.route import NATIVE, OPENAI, Api, Handlers, Route
from bough.errors import BadRequest
from bough.managers.tokenizer_manager import TokenizerManager

_SPECS = (CHAT, COMPLETIONS, EMBEDDINGS, GENERATE)


class InvocationsHandler(Handlers):
    """Hands a request to the handler that its body is meant for."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        generate = GenerateHandler(manager, core).generate
        self._kinds: dict[str, tuple[Handler, Api]] = {
            "messages": (ChatHandler(manager, core).chat, OPENAI),
            "prompt": (CompletionHandler(manager, core).complete, OPENAI),
            "input": (VectorHandlers(manager, core).embeddings, OPENAI),
            "text": (generate, NATIVE),
            "input_ids": (generate, NATIVE),
        }
        """Handlers by the name of the field that such a body must have; the first that is there decides."""

    @Route("POST /invocations", OPENAI, one_of=_SPECS, answer=Any, events=Any)
    async def invoke(self, call: Call) -> Response | EventStream:
        """SageMaker's name for a chat completion, a completion, embeddings or `/generate`: `messages`, `prompt`,
        `input`, or `text` and `input_ids` in the body tell which.
        """
        members = await split_object(call.body, self._element_limit)
        for name, (handler, api) in self._kinds.items():
            if name in members:
                call.keep_members(members)
                call.dialect = api.errors
                return await handler(call)
        raise BadRequest(
            f"the body must have one of {', '.join(self._kinds)}, by which the kind of request is known",
            code="missing_required_parameter",
        )

    @staticmethod
    def _element_limit(name: str, beginning: bytes) -> int | None:
        """The widest bound among the kinds of requests that have this field."""
        limits = [spec.element_limit(name, beginning) for spec in _SPECS if spec.knows(name)]
        bounded = [limit for limit in limits if limit is not None]
        return max(bounded) if limits and len(bounded) == len(limits) else None
