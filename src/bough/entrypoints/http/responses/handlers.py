"""``/v1/responses``: create, retrieve, delete, cancel, and the items that went in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.constraints import constraint_param
from bough.entrypoints.chat.core import ChatCore, ChatRun
from bough.entrypoints.chat.job import ChatJob, Message
from bough.entrypoints.chat.tools import template_variables
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.direct import chat_sink
from bough.entrypoints.http.errors import INTERNAL_ERROR
from bough.entrypoints.http.logprobs import TokenNames, chat_logprobs
from bough.entrypoints.http.openai.sampling import CLIENT_NAMES, sampling_values
from bough.entrypoints.http.responses import convert
from bough.entrypoints.http.responses.build import Describe, ResponseBuilder
from bough.entrypoints.http.responses.protocol import RESPONSES, WITH_LOGPROBS, ResponsesRequest
from bough.entrypoints.http.responses.store import EventLog, ResponseStore, StoredResponse, items_at, page_of
from bough.entrypoints.http.responses.tools import OfferedTools, offered_tools
from bough.entrypoints.http.route import OPENAI, Count, Created, Handlers, Model, ObjectId, QueryParameter, Route
from bough.entrypoints.http.shared_fields import check_obfuscation
from bough.entrypoints.http.unknown_fields import Unknown, note_unknown
from bough.errors import BadRequest, BoughError, RequestFailed
from bough.ipc.messages import PositionLogprobs
from bough.managers.conversations import text_size
from bough.managers.io_struct import new_request_id
from bough.managers.tokenizer_manager import TokenizerManager
from bough.sampling.sampling_params import SamplingParams

logger = logging.getLogger(__name__)

_ECHOED = (
    *("instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "previous_response_id", "store"),
    "background",
)

MAX_ITEMS_LISTED = 100
_ITEMS_QUERY = (
    QueryParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS_LISTED, "default": 20}, "Most items."
    ),
    QueryParameter("order", {"enum": ["asc", "desc"], "default": "desc"}, "Newest last, or first."),
    QueryParameter("after", {"type": "string"}, "Id of an item: what comes behind it."),
)
_FOLLOW_QUERY = (
    QueryParameter(
        "stream",
        {"type": "boolean", "default": False},
        "The events of a response that was made with `background` and `stream`, those to come included.",
    ),
    QueryParameter("starting_after", {"type": "integer", "minimum": 0}, "Only the events behind this one."),
)
"""Most items of a page of ``input_items``, as at OpenAI."""


MIN_INPUT_SHARE = 2
"""One part in so many of the context is left to a conversation that may be shortened, whatever the output may take."""

CHARS_PER_ITEM = 64
"""What one item of a conversation takes, compared with the characters of a text."""


class ResponseAnswer(msgspec.Struct):
    """A response, complete or not."""

    id: ObjectId
    object: Literal["response"]
    created_at: Created
    status: Annotated[
        Literal["completed", "incomplete", "failed", "queued", "in_progress", "cancelled"],
        Meta(description="State of the work.", examples=["completed"]),
    ]
    model: Model
    output: Annotated[
        list[dict[str, Any]],
        Meta(
            description="Messages, thoughts and calls of the model.",
            examples=[[{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]],
        ),
    ]
    usage: Annotated[dict[str, Any] | None, Meta(description="Token counts.")]
    error: Annotated[dict[str, Any] | None, Meta(description="What went wrong, if something did.")]
    incomplete_details: Annotated[dict[str, Any] | None, Meta(description="Why the output ended early, if it did.")]


class DeletedAnswer(msgspec.Struct):
    """A response that is forgotten."""

    id: ObjectId
    object: Literal["response"]
    deleted: Annotated[bool, Meta(description="True: the response is forgotten.", examples=[True])]


class ResponseEvent(msgspec.Struct):
    """Event of ``/v1/responses``; other members depend on its type. An error is the event `response.failed`."""

    type: Annotated[str, Meta(description="Kind of the event.")]
    sequence_number: Annotated[Count, Meta(description="Position in the stream, from 0.")]


class ItemsAnswer(msgspec.Struct):
    """The items that went into a response."""

    object: Literal["list"]
    data: Annotated[
        list[dict[str, Any]],
        Meta(
            description="The items.",
            examples=[[{"id": "msg_1", "type": "message", "role": "user", "content": [{"type": "input_text"}]}]],
        ),
    ]
    first_id: Annotated[str | None, Meta(description="Id of the first item.", examples=["msg_1"])]
    last_id: Annotated[str | None, Meta(description="Id of the last item.", examples=["msg_1"])]
    has_more: Annotated[bool, Meta(description="True if there are items behind these.")]


class ResponsesHandlers(Handlers):
    """Answers in the dialect of OpenAI's responses."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        args = manager.server_args
        self._names = None if manager.tokenizer is None else TokenNames(manager.tokenizer)
        self.store = ResponseStore(args.max_stored_responses, args.max_stored_response_bytes)

    @Route(
        "POST /v1/responses",
        OPENAI,
        RESPONSES,
        ResponseAnswer,
        ResponseEvent,
        statuses=(404,),
        has_named_events=True,
        has_error_events=True,
    )
    async def create(self, call: Call) -> Response | EventStream:
        """Answer a conversation, and keep the answer for a while."""
        builder, run, entry, in_background = await self._prepare(call)
        if entry is not None and in_background:
            if run.request.stream:
                entry.log = EventLog()
            queued = self._start(entry, builder, run, call)
            return Response(queued) if entry.log is None else EventStream(entry.log.follow(0), end=b"")
        if run.request.stream:
            return EventStream(self._events(entry, builder, run, call.writer), end=b"")
        await self._run(builder, run)
        self._keep(entry, builder)
        return Response(builder.final)

    async def _prepare(self, call: Call) -> tuple[ResponseBuilder, ChatRun, StoredResponse | None, bool]:
        """Read a request, of which nothing is left but what is returned: what makes the response, what the engine is
        to do, what is kept of it, and whether it is made in the background.
        """
        encoder = self._manager.prompt_encoder
        self.require_tokenizer("input")
        assert encoder is not None, "there is a tokenizer"
        body, given = await call.parse_given(RESPONSES)
        if body.background and not (body.store and self.store.is_enabled):
            raise BadRequest("background needs a response that is stored", param="background")
        if body.stream_options is not None:
            check_obfuscation(body.stream_options.include_obfuscation)
        previous: StoredResponse | None = None
        if body.previous_response_id is not None:
            previous = self.store.get(body.previous_response_id, "previous_response_id")
            if previous.is_running:
                raise BadRequest("previous_response_id: that response is not complete", param="previous_response_id")
        keep = body.store and self.store.is_enabled
        if body.request_id is not None:
            give_back = self.store.reserve(body.request_id, "request_id")
            if keep:
                _when_over(call, give_back)
            else:
                give_back()
        num_chars = self.store.size_of(convert.referred_ids(body)) + text_size(body.input)
        left_out: Unknown = {}
        read = partial(convert.input_items, body, self.store.finder(), call.unknown, left_out)
        items = await encoder.run(num_chars, read)
        tools = offered_tools(body, call.unknown, left_out)
        if body.text is not None and body.text.verbosity not in (None, "medium"):
            left_out["text.verbosity"] = None
        note_unknown(left_out)
        constraint = convert.constraint(body, call.unknown)
        earlier: list[convert.Item] = []
        if previous is not None:
            earlier = await encoder.run(sum(part.size for part in previous.chain()), previous.conversation)
        values, most = sampling_values(body, given), body.max_output_tokens
        params = self._core.sampling.params(values, most, "max_output_tokens", constraint, CLIENT_NAMES)
        job = _job(body, tools, params, constraint_param(constraint))
        if previous is not None:
            job = msgspec.structs.replace(job, extras=msgspec.structs.replace(job.extras, goes_on=True))
        run = await self._ready(body, [*earlier, *items], tools, job)
        response_id = body.request_id or f"resp_{job.rids[0]}"
        blank = _response(response_id, body, job, tools, self.model_name(body.model))
        builder = ResponseBuilder(blank, self._describe(job, run), tells=body.stream, call_names=tools.call_names())
        entry = StoredResponse(response_id, blank, items, previous) if keep else None
        call.keep(len(msgspec.json.encode(blank)) if entry is None else entry.size)
        return builder, run, entry, body.background

    @Route(
        "GET /v1/responses/{response_id}",
        OPENAI,
        None,
        ResponseAnswer,
        ResponseEvent,
        query=_FOLLOW_QUERY,
        has_named_events=True,
        has_error_events=True,
    )
    async def get(self, call: Call) -> Response | EventStream:
        """A response that is kept."""
        entry = self.store.get(call.path_params["response_id"])
        if call.query.get("stream", "false").lower() in ("false", "0"):
            return Response(entry.to_json())
        if entry.log is None:
            raise BadRequest("stream: only what was made with background and stream can be followed", param="stream")
        after = call.query.get("starting_after")
        if after is not None and not (after.isascii() and after.isdigit() and len(after) < 10):
            raise BadRequest("starting_after must be the number of an event", param="starting_after")
        return EventStream(entry.log.follow(0 if after is None else int(after) + 1), end=b"")

    @Route("DELETE /v1/responses/{response_id}", OPENAI, answer=DeletedAnswer)
    async def delete(self, call: Call) -> Response:
        """Forget a response that is kept."""
        response_id = call.path_params["response_id"]
        self.store.delete(response_id)
        return Response(msgspec.json.encode(DeletedAnswer(response_id, "response", deleted=True)))

    @Route("POST /v1/responses/{response_id}/cancel", OPENAI, answer=ResponseAnswer)
    async def cancel(self, call: Call) -> Response:
        """End the work on a background response."""
        entry = self.store.get(call.path_params["response_id"])
        if entry.task is None:
            raise BadRequest("only responses that are made in the background can be cancelled", param="response_id")
        if entry.is_running:
            entry.task.cancel()
            await asyncio.wait([entry.task])
        return Response(entry.to_json())

    @Route("GET /v1/responses/{response_id}/input_items", OPENAI, answer=ItemsAnswer, query=_ITEMS_QUERY)
    async def input_items(self, call: Call) -> Response:
        """The items that went into a response."""
        entry = self.store.get(call.path_params["response_id"])
        query = call.query
        order, after = query.get("order", "desc"), query.get("after")
        limit = query.get("limit", "20")
        if order not in ("asc", "desc"):
            raise BadRequest("order must be asc or desc", param="order")
        is_number = limit.isascii() and limit.isdigit() and len(limit) < 10
        if not is_number or not 1 <= int(limit) <= MAX_ITEMS_LISTED:
            raise BadRequest(f"limit must be between 1 and {MAX_ITEMS_LISTED}", param="limit")
        encoder = self._manager.prompt_encoder
        assert encoder is not None, "there are responses only with a tokenizer"
        page, has_more = await page_of(entry, after, int(limit), newest_first=order == "desc")
        num_bytes = sum(part.size for part in {id(place.entry): place.entry for place in page}.values())

        def work() -> bytes:
            data = [_listed(item) for item in items_at(page)]
            first_id, last_id = (data[0]["id"], data[-1]["id"]) if data else (None, None)
            return msgspec.json.encode(ItemsAnswer("list", data, first_id, last_id, has_more))

        return Response(await encoder.run(num_bytes, work))

    async def _run(self, builder: ResponseBuilder, run: ChatRun, entry: StoredResponse | None = None) -> None:
        """Make a response whole; ``entry``, if it is made in the background, has its events and what it takes.

        Raises:
            BoughError: if it fails.
        """
        builder.begin()
        async with aclosing(self._core.deltas(run)) as deltas:
            async for delta in deltas:
                await builder.add(delta)
                if entry is not None:
                    if entry.log is not None:
                        entry.log.add(builder.take())
                    entry.growth = builder.num_bytes
                    self.store.note_growth(entry)

    async def _events(
        self, entry: StoredResponse | None, builder: ResponseBuilder, run: ChatRun, writer: ChunkWriter | None
    ) -> AsyncGenerator[bytes, None]:
        """Make a response and tell how; what fails before the first delta is raised, later it is an event."""
        started = False
        sink = chat_sink(writer, run, builder.plain_events)
        try:
            async with aclosing(self._core.deltas(run, sink)) as deltas:
                async for delta in deltas:
                    if not started:
                        started = True
                        builder.begin()
                    await builder.add(delta)
                    if builder.final:
                        self._keep(entry, builder)
                    events = builder.take()
                    if events:
                        yield b"".join(events)
        except Exception as error:
            if not started:
                raise
            _fail(builder, error)
            self._keep(entry, builder)
            yield b"".join(builder.take())

    def _start(self, entry: StoredResponse, builder: ResponseBuilder, run: ChatRun, call: Call) -> bytes:
        """Begin to work on a response in the background; returns it as it is now."""
        builder.body["status"] = "queued"
        self.store.put(entry, must_fit=True)
        entry.task = asyncio.create_task(self._work(entry, builder, run))
        entry.task.add_done_callback(lambda _: self._settle_if_never_begun(entry, builder))
        on_over, call.on_over = call.on_over, None
        if on_over is not None:
            entry.task.add_done_callback(lambda _: on_over())
        return entry.to_json()

    async def _work(self, entry: StoredResponse, builder: ResponseBuilder, run: ChatRun) -> None:
        try:
            await self._run(builder, run, entry)
        except asyncio.CancelledError:
            builder.cancel()
        except Exception as error:
            _fail(builder, error)
        self._settle(entry, builder)

    def _settle_if_never_begun(self, entry: StoredResponse, builder: ResponseBuilder) -> None:
        """A task that is cancelled before its first step runs nothing of its own."""
        if not builder.final:
            builder.cancel()
            self._settle(entry, builder)

    def _settle(self, entry: StoredResponse, builder: ResponseBuilder) -> None:
        if entry.log is not None:
            entry.log.add(builder.take())
            entry.log.close()
        if self.store.holds(entry):
            self._keep(entry, builder)

    def _keep(self, entry: StoredResponse | None, builder: ResponseBuilder) -> None:
        """Keep a response that is complete."""
        if entry is not None:
            entry.complete(builder.final)
            self.store.put(entry)

    async def _ready(
        self, body: ResponsesRequest, items: list[convert.Item], tools: OfferedTools, job: ChatJob
    ) -> ChatRun:
        """Everything that it takes to run a job; with ``truncation``, of as many turns as there is room for.

        Raises:
            BadRequest: naming what cannot be done.
        """
        encoder = self._manager.prompt_encoder
        assert encoder is not None, "checked before"
        dropped, turns = 0, convert.num_turns(items) if body.truncation == "auto" else 1
        limits = self._manager.limits
        for_output = min(body.max_output_tokens or 1, limits.context_len // MIN_INPUT_SHARE)
        room = min(limits.max_prompt_tokens, limits.context_len - for_output)
        while True:
            rest = convert.without_beginning(items, dropped) if dropped else items
            messages = await encoder.run(CHARS_PER_ITEM * len(rest), partial(_messages, body, rest, tools))
            left = turns - dropped
            try:
                run = await self._core.prepare(msgspec.structs.replace(job, messages=messages))
            except BadRequest as error:
                if error.code != "context_length_exceeded" or left <= 1:
                    raise
                dropped += left // 2
                continue
            excess = len(run.prompt) - room
            if excess <= 0 or left <= 1:
                return run
            # A third of what would do if all turns were as long: what is dropped too early is missed.
            dropped += max(1, left * excess // (3 * len(run.prompt)))

    def _describe(self, job: ChatJob, run: ChatRun) -> Describe | None:
        names, num_top = self._names, job.top_logprobs
        if not job.logprobs or names is None:
            return None
        skip_special = run.request.sampling_params.skip_special_tokens

        def describe(entries: Sequence[PositionLogprobs]) -> list[bytes]:
            return chat_logprobs(entries, names, skip_special, num_top)

        return describe


def _fail(builder: ResponseBuilder, error: Exception) -> None:
    if not isinstance(error, BoughError):
        logger.exception("A response failed")
        error = RequestFailed(INTERNAL_ERROR, code="internal_error")
    builder.fail(error)


def _when_over(call: Call, callback: Callable[[], None]) -> None:
    """Call ``callback``, too, when the request is over."""
    on_over = call.on_over

    def over() -> None:
        callback()
        if on_over is not None:
            on_over()

    call.on_over = over


def _messages(body: ResponsesRequest, items: list[convert.Item], tools: OfferedTools) -> list[Message]:
    messages = convert.conversation(items, tools)
    if not messages:
        raise BadRequest("input has nothing that can be shown to the model", param="input")
    return [{"role": "system", "content": body.instructions}, *messages] if body.instructions else messages


def _job(body: ResponsesRequest, tools: OfferedTools, params: SamplingParams, constraint_field: str | None) -> ChatJob:
    """The job of a request, without its messages."""
    wants_logprobs = bool(body.top_logprobs) or WITH_LOGPROBS in (body.include or ())
    if wants_logprobs and tools.use.callable:
        raise BadRequest(
            "logprobs cannot be combined with tools here; use /v1/chat/completions",
            param="top_logprobs" if body.top_logprobs else "include",
        )
    effort = body.reasoning.effort if body.reasoning is not None else None
    return ChatJob(
        messages=(),
        params=params,
        constraint_param=constraint_field,
        rids=[new_request_id()],
        tools=tools.use,
        prompt_param="input",
        template_kwargs=template_variables(body.chat_template_kwargs, effort, None, None),
        stream=body.stream,
        logprobs=wants_logprobs,
        top_logprobs=body.top_logprobs or 0,
        extras=body.extras,
    )


def _response(
    response_id: str, body: ResponsesRequest, job: ChatJob, tools: OfferedTools, model: str
) -> dict[str, Any]:
    """The response object as it is before anything is generated."""
    params = job.params
    reasoning = body.reasoning
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "completed_at": None,
        "model": model,
        "output": [],
        "usage": None,
        "error": None,
        "incomplete_details": None,
        **{name: getattr(body, name) for name in _ECHOED},
        "reasoning": {
            "effort": None if reasoning is None else reasoning.effort,
            "summary": None if reasoning is None else reasoning.summary,
        },
        "text": {"format": (body.text.format if body.text is not None else None) or {"type": "text"}},
        "tools": tools.in_force,
        "tool_choice": tools.choice if tools.choice is not None else "auto",
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_logprobs": body.top_logprobs or 0,
        "truncation": body.truncation,
        "service_tier": "default",
        "metadata": body.metadata or {},
        "user": body.user,
    }


def _listed(item: convert.Item) -> convert.Item:
    """An item as lists show it: with its content in parts."""
    content = item.get("content")
    if item["type"] != "message" or not isinstance(content, str):
        return item
    kind = "output_text" if item["role"] == "assistant" else "input_text"
    part = {"type": kind, "text": content, **({"annotations": []} if kind == "output_text" else {})}
    return {**item, "content": [part]}
