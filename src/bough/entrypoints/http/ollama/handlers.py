"""Ollama's routes."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.constraints import ANY_OBJECT, Constraint
from bough.entrypoints.chat.core import ChatCore, ChatRun
from bough.entrypoints.chat.job import NO_TOOLS, ChatJob, Message, ToolUse, template_call
from bough.entrypoints.chat.sampling import RequestSampling
from bough.entrypoints.chat.tools import template_variables
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.direct import chat_sink
from bough.entrypoints.http.logprobs import TokenNames
from bough.entrypoints.http.ollama.models import ModelCard
from bough.entrypoints.http.ollama.options import SAMPLING_OPTIONS, sampling_values
from bough.entrypoints.http.ollama.protocol import (
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    OLLAMA_SHOW,
    OllamaChatRequest,
    OllamaGenerateRequest,
    OllamaMessage,
    OllamaShared,
)
from bough.entrypoints.http.ollama.render import OllamaWriter, timestamp
from bough.entrypoints.http.openai.fill_in_middle import find_gap_format
from bough.entrypoints.http.openai.tools import tool_use
from bough.entrypoints.http.route import OLLAMA, Count, GeneratedTokens, Handlers, Model, PromptTokens, Route
from bough.entrypoints.http.unknown_fields import Unknown
from bough.errors import BadRequest
from bough.managers.io_struct import new_request_id
from bough.managers.tokenizer_manager import TokenizerManager
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.chat_template import reads_text_only
from bough.tokenization.tokenizer import TokenIds

API_VERSION = "0.12.0"
"""The version of Ollama whose interface this is: clients refuse servers that are older than what they need."""

_NAMES = {engine: f"options.{name}" for name, engine in SAMPLING_OPTIONS.items()}
_LINES = b"application/x-ndjson"


class OllamaAnswer(msgspec.Struct):
    """Answer, or line of the answer, of ``/api/chat`` (``message``) and ``/api/generate`` (``response``)."""

    model: Model
    created_at: Annotated[str, Meta(description="Time of creation.", examples=["2026-11-21T19:27:07.872801Z"])]
    done: Annotated[bool, Meta(description="True in the last line.", examples=[True])]
    done_reason: Annotated[
        str | UnsetType,
        Meta(description="Reason why the output ended: `stop`, `length`, or `load` if there was nothing to do."),
    ] = UNSET
    message: Annotated[
        dict[str, Any] | UnsetType,
        Meta(
            description="The assistant's message, or what is new of it.",
            examples=[{"role": "assistant", "content": "The oak is a tree."}],
        ),
    ] = UNSET
    response: Annotated[str | UnsetType, Meta(description="The text, or what is new of it.")] = UNSET
    total_duration: Annotated[Count | UnsetType, Meta(description="Time from arrival to end, in nanoseconds.")] = UNSET
    prompt_eval_count: PromptTokens | UnsetType = UNSET
    eval_count: GeneratedTokens | UnsetType = UNSET


class OllamaModels(msgspec.Struct):
    """The models that there are, or that are loaded."""

    models: Annotated[list[dict[str, Any]], Meta(description="The models.")]


class OllamaModel(msgspec.Struct):
    """About the model."""

    details: Annotated[dict[str, Any], Meta(description="Format, family and size of the model.")]
    model_info: Annotated[dict[str, Any], Meta(description="Members of the checkpoint's configuration.")]
    capabilities: Annotated[list[str], Meta(description="Abilities of the model, such as `completion` and `tools`.")]
    template: Annotated[str, Meta(description="The chat template.")]
    parameters: Annotated[str, Meta(description="How tokens are chosen by default, a line for each.")]


class VersionAnswer(msgspec.Struct):
    """The version of Ollama whose interface is offered."""

    version: Annotated[str, Meta(description="The version.", examples=["0.1.0"])]


_Prepared = tuple[ChatRun, OllamaWriter]
"""A request that is ready to go."""


class OllamaHandlers(Handlers):
    """Answers in Ollama's dialect."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._sampling = RequestSampling(manager, is_ollama=True)
        self._names = None if manager.tokenizer is None else TokenNames(manager.tokenizer)
        self._gap_format = None if manager.tokenizer is None else find_gap_format(manager.tokenizer)
        self._card = ModelCard(manager, core, fills_gaps=self._gap_format is not None)

    @Route("POST /api/chat", OLLAMA, OLLAMA_CHAT, OllamaAnswer, OllamaAnswer)
    async def chat(self, call: Call) -> Response | EventStream:
        """Answer a conversation, in Ollama's words."""
        return await self._answer(call, await self._prepare_chat(call))

    async def _prepare_chat(self, call: Call) -> _Prepared | Response:
        """Read a request, of which nothing is left but what is returned; or what it is answered with at once."""
        started = time.monotonic()
        body = await call.parse(OLLAMA_CHAT)
        self.require_tokenizer("model")
        messages = [_to_template(message, f"messages[{index}]") for index, message in enumerate(body.messages)]
        job = self._job(body, call.unknown, messages=messages, tools=tool_use(body.tools, None, call.unknown))
        if not messages:
            return _loaded({"message": {"role": "assistant", "content": ""}}, body)
        run = await self._core.prepare(job)
        return run, self._writer(body, run, started, is_chat=True)

    @Route("POST /api/generate", OLLAMA, OLLAMA_GENERATE, OllamaAnswer, OllamaAnswer)
    async def generate(self, call: Call) -> Response | EventStream:
        """Answer a prompt, in Ollama's words."""
        return await self._answer(call, await self._prepare_text(call))

    async def _prepare_text(self, call: Call) -> _Prepared | Response:
        """The same for a prompt."""
        started = time.monotonic()
        body = await call.parse(OLLAMA_GENERATE)
        self.require_tokenizer("model")
        if not body.prompt and not body.suffix:
            self._job(body, call.unknown, messages=[])  # which checks the other fields
            return _loaded({"response": ""}, body)
        messages: list[Message] = []
        ids: TokenIds | None = None
        if body.raw or body.suffix or self._manager.chat_template is None:
            ids = await self._plain_prompt(body)
        else:
            if body.system:
                messages.append({"role": "system", "content": body.system})
            messages.append({"role": "user", "content": body.prompt})
        run = await self._core.prepare(self._job(body, call.unknown, messages=messages, input_ids=ids))
        return run, self._writer(body, run, started, is_chat=False)

    @Route("POST /api/show", OLLAMA, OLLAMA_SHOW, OllamaModel)
    async def show(self, call: Call) -> Response:
        """About the model, for Ollama's clients."""
        await call.parse(OLLAMA_SHOW)
        return Response(msgspec.json.encode(self._card.shown()))

    @Route("GET /api/tags", OLLAMA, answer=OllamaModels)
    async def tags(self, call: Call) -> Response:
        """The models that there are, for Ollama's clients."""
        return Response(msgspec.json.encode({"models": [self._card.listed()]}))

    @Route("GET /api/ps", OLLAMA, answer=OllamaModels)
    async def running(self, call: Call) -> Response:
        """The models that are loaded, for Ollama's clients."""
        return Response(msgspec.json.encode({"models": [self._card.running()]}))

    @Route("GET /api/version", OLLAMA, answer=VersionAnswer)
    async def version(self, call: Call) -> Response:
        """The version of Ollama whose interface is offered, for its clients."""
        return Response(msgspec.json.encode(VersionAnswer(API_VERSION)))

    async def _plain_prompt(self, body: OllamaGenerateRequest) -> TokenIds:
        text = body.prompt
        if body.suffix:
            if self._gap_format is None:
                raise BadRequest("suffix: this model has no tokens for filling gaps", param="suffix")
            text = self._gap_format.prompt(text, body.suffix)
        encoder = self._manager.prompt_encoder
        assert encoder is not None, "there is a tokenizer"
        (ids,) = await encoder.encode([text], ["prompt"])
        return ids

    def _job(
        self,
        body: OllamaShared,
        unknown: Unknown | None,
        *,
        messages: list[Message],
        tools: ToolUse = NO_TOOLS,
        input_ids: TokenIds | None = None,
    ) -> ChatJob:
        if body.top_logprobs and not body.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
        effort = body.think if isinstance(body.think, str) else None
        return ChatJob(
            messages=messages,
            params=self._params(body, unknown),
            constraint_param="format" if body.format else None,
            rids=[new_request_id()],
            tools=tools,
            input_ids=input_ids,
            prompt_param="messages" if isinstance(body, OllamaChatRequest) else "prompt",
            template_kwargs=template_variables(None, effort, None, None if effort else body.think),
            continue_final_message=bool(messages) and _is_unfinished(messages[-1]),
            separate_reasoning=input_ids is None,
            stream=body.stream,
            logprobs=body.logprobs,
            top_logprobs=body.top_logprobs,
            extras=body.routing,
        )

    def _params(self, body: OllamaShared, unknown: Unknown | None) -> SamplingParams:
        values = sampling_values(body.options, unknown)
        constraint = None
        if body.format:
            if isinstance(body.format, str) and body.format != "json":
                raise BadRequest("format must be json or a JSON schema", param="format")
            schema = ANY_OBJECT if isinstance(body.format, str) else body.format
            constraint = Constraint("json_schema", schema, "format")
        return self._sampling.params(values, None, "options.num_predict", constraint, _NAMES)

    def _writer(self, body: OllamaShared, run: ChatRun, started: float, *, is_chat: bool) -> OllamaWriter:
        return OllamaWriter(
            body.model,
            is_chat=is_chat,
            names=self._names if body.logprobs else None,
            top_logprobs=body.top_logprobs,
            skip_special_tokens=run.request.sampling_params.skip_special_tokens,
            started=started,
        )

    async def _answer(self, call: Call, prepared: _Prepared | Response) -> Response | EventStream:
        if isinstance(prepared, Response):
            return prepared
        run, writer = prepared
        if run.request.stream:
            sink = None if run.request.return_logprob else chat_sink(call.writer, run, writer.plain_lines)
            return EventStream(writer.lines(self._core.deltas(run, sink)), end=b"", content_type=_LINES)
        return Response(await writer.whole(self._core.deltas(run)))


def _is_unfinished(message: Message) -> bool:
    """Whether the answer goes on with this message, which is the last."""
    return message["role"] == "assistant" and bool(message["content"]) and "tool_calls" not in message


def _to_template(message: OllamaMessage, where: str) -> Message:
    if message.images:
        raise reads_text_only(f"{where}.images", "images")
    values: dict[str, Any] = {"role": message.role, "content": message.content or ""}
    if message.thinking:
        values["reasoning_content"] = message.thinking
    if message.tool_calls:
        values["tool_calls"] = [
            template_call(each.id, each.function.name, each.function.arguments) for each in message.tool_calls
        ]
    name = message.name if message.tool_name is None else message.tool_name
    if name is not None:
        values["name"] = name
    if message.tool_call_id is not None:
        values["tool_call_id"] = message.tool_call_id
    return values


def _loaded(answer: dict[str, Any], body: OllamaShared) -> Response:
    """The answer to a request that says nothing: the model is loaded."""
    values = {"model": body.model, "created_at": timestamp(), **answer, "done": True, "done_reason": "load"}
    content_type = (b"content-type", _LINES if body.stream else b"application/json")
    return Response(msgspec.json.encode(values) + (b"\n" if body.stream else b""), content_type=content_type)
