"""``POST /v1/messages`` and ``POST /v1/messages/count_tokens``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.constraints import constraint_param
from bough.entrypoints.chat.core import ChatRun
from bough.entrypoints.chat.job import ChatJob
from bough.entrypoints.http.anthropic import convert
from bough.entrypoints.http.anthropic.protocol import COUNT_TOKENS, MESSAGES, CountTokensRequest, MessagesRequest
from bough.entrypoints.http.anthropic.render import MessageWriter
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.direct import chat_sink
from bough.entrypoints.http.route import ANTHROPIC, Handlers, Model, PromptTokens, QueryParameter, Route
from bough.entrypoints.http.unknown_fields import Unknown, note_unknown
from bough.errors import BadRequest
from bough.ipc.messages import RequestExtras
from bough.managers.io_struct import new_request_id
from bough.sampling.sampling_params import SamplingParams

_NAMES = {"stop": "stop_sequences", "thinking_token_budget": "thinking.budget_tokens"}
"""From the engine's names to the client's."""


class AnthropicMessage(msgspec.Struct):
    """Answer of ``/v1/messages``."""

    id: Annotated[str, Meta(description="Id of the message.", examples=["msg_e95e21146e0e4e6ebcc69289fb7a986e"])]
    type: Literal["message"]
    role: Literal["assistant"]
    model: Model
    content: Annotated[
        list[dict[str, Any]],
        Meta(description="Text, thoughts and calls.", examples=[[{"type": "text", "text": "The oak is a tree."}]]),
    ]
    stop_reason: Annotated[
        str | None,
        Meta(
            description="Reason why the output ended: `end_turn`, `max_tokens`, `stop_sequence` or `tool_use`.",
            examples=["end_turn"],
        ),
    ]
    stop_sequence: Annotated[str | None, Meta(description="The stop sequence that ended the output, if one did.")]
    usage: Annotated[
        dict[str, Any], Meta(description="Token counts.", examples=[{"input_tokens": 16, "output_tokens": 24}])
    ]


class AnthropicEvent(msgspec.Struct):
    """Event of ``/v1/messages``; other members depend on its type."""

    type: Annotated[str, Meta(description="Kind of the event.")]


class TokenCountAnswer(msgspec.Struct):
    """Answer of ``/v1/messages/count_tokens``."""

    input_tokens: PromptTokens


_BETA = (QueryParameter("beta", {"type": "string"}, "What Anthropic's clients add; it changes nothing."),)


class MessagesHandlers(Handlers):
    """Answers in Anthropic's dialect."""

    @Route(
        "POST /v1/messages", ANTHROPIC, MESSAGES, AnthropicMessage, AnthropicEvent, query=_BETA, has_named_events=True
    )
    async def messages(self, call: Call) -> Response | EventStream:
        """Answer a conversation, in Anthropic's words."""
        run, writer = await self._prepare(call)
        if run.request.stream:
            sink = chat_sink(call.writer, run, writer.plain_events)
            return EventStream(writer.events(self._core.deltas(run, sink)), end=b"")
        return Response(await writer.whole(self._core.deltas(run)))

    async def _prepare(self, call: Call) -> tuple[ChatRun, MessageWriter]:
        """Read a request, of which nothing is left but what is returned."""
        self.require_tokenizer("messages")
        body = await call.parse(MESSAGES)
        thinking = body.thinking
        if thinking is not None and (thinking.budget_tokens or 0) >= body.max_tokens:
            raise BadRequest(
                f"thinking.budget_tokens must be less than max_tokens ({body.max_tokens})",
                param="thinking.budget_tokens",
            )
        message_id = f"msg_{new_request_id()}"
        job = self._job(body, self._params(body), message_id, call.unknown, stream=body.stream)
        job = msgspec.structs.replace(job, extras=RequestExtras(routed_dp_rank=body.routed_dp_rank))
        run = await self._core.prepare(job)
        shows_thinking = thinking is None or thinking.display != "omitted"
        return run, MessageWriter(message_id, body.model, shows_thinking=shows_thinking)

    @Route("POST /v1/messages/count_tokens", ANTHROPIC, COUNT_TOKENS, TokenCountAnswer, query=_BETA)
    async def count_tokens(self, call: Call) -> Response:
        """Tokens of a conversation for `/v1/messages`."""
        self.require_tokenizer("messages")
        body = await call.parse(COUNT_TOKENS)
        prompt = await self._core.prompt(
            self._job(body, SamplingParams(), "", call.unknown, stream=False), bounded=False
        )
        return Response(msgspec.json.encode(TokenCountAnswer(len(prompt))))

    def _job(
        self, body: CountTokensRequest, params: SamplingParams, rid: str, unknown: Unknown | None, *, stream: bool
    ) -> ChatJob:
        conversion = convert.Conversion(unknown)
        messages, tools = conversion.conversation(body), conversion.tool_use(body)
        note_unknown(conversion.left_out)
        return ChatJob(
            messages=messages,
            params=params,
            constraint_param=constraint_param(convert.constraint(body)),
            rids=[rid],
            tools=tools,
            template_kwargs=convert.variables(body),
            continue_final_message=convert.continues(messages),
            stream=stream,
        )

    def _params(self, body: MessagesRequest) -> SamplingParams:
        # Clients send a budget to every model: one that is not known to think has no thoughts to bound.
        marks = self._manager.limits.marks_thoughts
        given = {
            "stop": body.stop_sequences,
            "temperature": body.temperature,
            "top_p": body.top_p,
            "top_k": body.top_k,
            "thinking_token_budget": body.thinking.budget_tokens if body.thinking is not None and marks else None,
        }
        values = {name: value for name, value in given.items() if value is not None}
        return self._core.sampling.params(values, body.max_tokens, "max_tokens", convert.constraint(body), _NAMES)
