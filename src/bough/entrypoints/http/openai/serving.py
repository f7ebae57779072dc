"""What completions and chat completions share: the frame around the choices."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.constraints import Constraint
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.direct import direct_sink, text_sink
from bough.entrypoints.http.logprobs import TokenNames
from bough.entrypoints.http.openai.protocol import SharedFields
from bough.entrypoints.http.openai.sampling import CLIENT_NAMES, sampling_values
from bough.entrypoints.http.route import (
    Count,
    Created,
    GeneratedTokens,
    Handlers,
    Id,
    Index,
    Model,
    PromptTokens,
    TokenId,
)
from bough.entrypoints.http.shared_fields import check_obfuscation
from bough.errors import BadRequest
from bough.ipc.messages import OutputDelta
from bough.managers.generation import failure_of
from bough.managers.io_struct import GenerateRequest, new_request_id
from bough.managers.native_output import meta_info, version_spans
from bough.managers.req_state import ReqState, Sink
from bough.managers.request_limits import RequestLimits
from bough.managers.tokenizer_manager import TokenizerManager
from bough.sampling.sampling_params import SamplingParams

_encode = msgspec.json.encode
_USAGE = (
    b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,'
    b'"prompt_tokens_details":{"cached_tokens":%d},"reasoning_tokens":%d,"completion_tokens_details":%b}'
)


class UsageAnswer(msgspec.Struct):
    """Token counts."""

    prompt_tokens: PromptTokens
    total_tokens: Annotated[Count, Meta(description="Prompt and output together.", examples=[40])]
    completion_tokens: GeneratedTokens
    reasoning_tokens: Annotated[Count, Meta(description="Tokens of thoughts among those that were generated.")]
    prompt_tokens_details: Annotated[
        dict[str, Count | None] | None, Meta(description="Tokens of the prompt whose computation was reused.")
    ]
    completion_tokens_details: Annotated[
        dict[str, Count | None] | None, Meta(description="Generated tokens that were reasoning.")
    ]


class CompletionFrame(msgspec.Struct, kw_only=True):
    """Members that answers and events of completions and of chat completions have."""

    id: Id
    created: Created
    model: Model
    sglext: Annotated[dict[str, Any] | UnsetType, Meta(description="Answers to SGLang's fields of a request.")] = UNSET


class ChoiceFrame(msgspec.Struct, kw_only=True):
    """Members that choices of completions and of chat completions have."""

    index: Index
    logprobs: Annotated[
        dict[str, Any] | None, Meta(description="Log-probabilities of tokens and of their alternatives, if asked for.")
    ]
    finish_reason: Annotated[
        str | None, Meta(description="Reason why the output ended; null while it has not.", examples=["stop"])
    ]
    matched_stop: Annotated[
        TokenId | str | None, Meta(description="Stop token, stop string or pattern that ended the output.")
    ]
    stop_reason: Annotated[
        TokenId | str | UnsetType | None, Meta(description="The same, by vLLM's name of `matched_stop`.")
    ] = UNSET


class ChoiceWriter(ABC):
    """Writes one choice: as a whole, or piece by piece.

    Attributes:
        parses: whether :meth:`parse` has to see every delta before it is written about.
        is_text_only: whether events in the middle say nothing but the text of their delta.
        is_started: whether an event was written.
    """

    parses: bool = False
    is_text_only: bool = False
    is_started: bool = False
    _edges: tuple[bytes, bytes] | None = None

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens of reasoning so far; ``None`` if reasoning is not told apart."""
        return None

    async def parse(self, delta: OutputDelta) -> None:
        """Take a delta apart, before anything is written about it."""
        raise NotImplementedError

    @abstractmethod
    def text_event(self, text: bytes, usage: bytes) -> bytes:
        """The event that says nothing but the JSON string ``text``; ``usage`` as in :meth:`events`."""

    def text_edges(self, usage: bytes) -> tuple[bytes, bytes] | None:
        """The bytes of such events around the text, where those in the middle are such; ``None`` until the first is
        written. All have the same ``usage``.
        """
        if self._edges is None and self.is_text_only and self.is_started:
            start, _, end = self.text_event(b"\0", usage).partition(b"\0")  # JSON has no such byte
            self._edges = start, end
        return self._edges

    def plain_event(self, delta: OutputDelta, usage: bytes) -> bytes | None:
        """The events for a delta that is not the last, perhaps none, if they are known at once; else ``None``.

        Says the same as :meth:`parse` and :meth:`events`, of which the arguments are.
        """
        edges = self._edges or self.text_edges(usage)
        if edges is None:
            return None
        return b"%b%b%b" % (edges[0], _encode(delta.text), edges[1]) if delta.text else b""

    @abstractmethod
    async def events(self, delta: OutputDelta, usage: bytes) -> bytes:
        """The events that say what ``delta`` says; none if that is nothing.

        Args:
            usage: what every event ends with, from the comma before its ``usage`` on; may be empty.
        """

    @abstractmethod
    async def whole(self, delta: OutputDelta) -> bytes:
        """The choice of an answer that comes at once: its object from behind ``index`` on."""

    async def members(self, delta: OutputDelta) -> bytes:
        """What the whole answer says besides its choices, from the comma before it on; of the first choice's writer."""
        return b""


class Usage:
    """Adds up the tokens of one call. A prompt counts once, however many choices it has.

    Args:
        num_outputs: choices of the call, all prompts together.
        n: choices per prompt.
    """

    def __init__(self, num_outputs: int, n: int) -> None:
        self._n = n
        self._prompt = [0] * (num_outputs // n)
        self._cached = [0] * (num_outputs // n)
        self._completion = [0] * num_outputs
        self._reasoning: list[int | None] = [None] * num_outputs

    def update(self, state: ReqState, delta: OutputDelta, reasoning_tokens: int | None = None) -> None:
        """Take note of the counts of an output; ``reasoning_tokens`` is ``None`` where these are not told apart."""
        self._reasoning[state.index] = reasoning_tokens
        self._completion[state.index] = delta.completion_tokens
        prompt, sample = divmod(state.index, self._n)
        self._prompt[prompt] = delta.prompt_tokens
        if sample == 0:  # the other samples of a prompt reuse all that the first has computed
            self._cached[prompt] = delta.cached_tokens

    def to_json(self) -> bytes:
        """The ``usage`` object."""
        prompt, completion = sum(self._prompt), sum(self._completion)
        told_apart = [each for each in self._reasoning if each is not None]
        reasoning = sum(told_apart)
        details = b'{"reasoning_tokens":%d}' % reasoning if told_apart else b"null"
        return _USAGE % (prompt, prompt + completion, completion, sum(self._cached), reasoning, details)


class Answer:
    """The answer to one request: its id, its time, and the events or the object that its choices are put into.

    Args:
        kind: value of ``object`` in a whole answer.
        chunk_kind: value of ``object`` in an event.
        options: the request, for what it wants of the answer. It is not kept: its texts may be long.
    """

    def __init__(self, kind: str, chunk_kind: str, rid: str, model: str, options: SharedFields) -> None:
        frame = b'{"id":%b,"object":%b,"created":%d,"model":%b,"choices":['
        created = int(time.time())
        self._whole_start = frame % (_encode(rid), _encode(kind), created, _encode(model))
        self.chunk_start = b"data: " + frame % (_encode(rid), _encode(chunk_kind), created, _encode(model))
        """Beginning of every event, up to the first choice."""
        self.is_stream = options.stream
        self._n = options.n
        self._with_meta_info = options.return_meta_info
        self._with_cached_details = options.return_cached_tokens_details
        stream_options = options.stream_options
        self._include_usage = stream_options is not None and bool(stream_options.include_usage)
        self._continuous_usage = stream_options is not None and bool(stream_options.continuous_usage_stats)

    async def stream(
        self,
        manager: TokenizerManager,
        requests: Sequence[GenerateRequest],
        writers: Sequence[ChoiceWriter],
        body_writer: ChunkWriter | None,
    ) -> AsyncGenerator[bytes, None]:
        """Run the requests and write events as results come.

        Args:
            body_writer: for events that are written as they come.

        Raises:
            BoughError: if a choice fails; before the first event or after it.
        """
        usage = Usage(len(writers), self._n)
        suffix = b',"usage":null' if self._include_usage else b""
        continuous = self._continuous_usage
        cached = [0] * len(writers)

        def event_of(state: ReqState, delta: OutputDelta) -> bytes | None:
            return writers[state.index].plain_event(delta, suffix)

        sink: Sink | None = None
        if not continuous and all(writer.is_text_only for writer in writers):
            sink = text_sink(body_writer, lambda index: writers[index].text_edges(suffix), len(writers))
        elif not continuous:
            sink = direct_sink(body_writer, event_of)
        async with manager.generation(requests) as generation:
            while generation.unfinished:
                news: list[bytes] = []
                for state, delta in await generation.deltas(sink):
                    writer = writers[state.index]
                    if delta.finish_reason is None and not continuous:
                        events = writer.plain_event(delta, suffix)
                        if events is not None:
                            news.append(events)
                            continue
                    if writer.parses:
                        await writer.parse(delta)
                    if delta.finish_reason is not None:
                        failure = failure_of(delta.finish_reason, manager.outputs.queue)
                        if failure is not None:
                            if any(news):
                                yield b"".join(news)
                            raise failure
                        usage.update(state, delta, writer.reasoning_tokens)
                        cached[state.index] = delta.cached_tokens
                    if continuous:
                        usage.update(state, delta, writer.reasoning_tokens)
                        suffix = b',"usage":%b' % usage.to_json()
                    news.append(await writer.events(delta, suffix))
                if any(news):
                    yield b"".join(news)
        extension = self._extension(cached)
        if extension:
            yield b"%b]%b%b}\n\n" % (self.chunk_start, extension, suffix)
        if self._include_usage:
            yield b'%b],"usage":%b}\n\n' % (self.chunk_start, usage.to_json())

    async def whole(
        self, manager: TokenizerManager, requests: Sequence[GenerateRequest], writers: Sequence[ChoiceWriter], n: int
    ) -> bytes:
        """Run the requests and write the whole answer.

        Raises:
            BoughError: if a choice fails.
        """
        usage = Usage(len(writers), n)
        choices = [b""] * len(writers)
        members = b""
        scores = [0.0] * len(writers)
        cached = [0] * len(writers)
        async with manager.generation(requests) as generation:
            async for state, delta in generation.results():
                writer = writers[state.index]
                if writer.parses:
                    await writer.parse(delta)
                usage.update(state, delta, writer.reasoning_tokens)
                choice = await writer.whole(delta)
                if self._with_meta_info:
                    info = meta_info(state, delta)
                    info["reasoning_tokens"] = writer.reasoning_tokens or 0
                    choice = b'%b,"meta_info":%b}' % (choice[:-1], _encode(info))
                choices[state.index] = choice
                cached[state.index] = delta.cached_tokens
                scores[state.index] = _score(delta)
                if state.index == 0:
                    members = await writer.members(delta)
        if n > self._n:
            best = _best(scores, n, self._n)
            choices, cached = [choices[index] for index in best], [cached[index] for index in best]
        return b'%b%b],"usage":%b,"metadata":%b%b}' % (
            self._whole_start,
            b",".join(b'{"index":%d,%b' % numbered for numbered in enumerate(choices)),
            usage.to_json(),
            _encode(_about_weights(generation.states)),
            members + self._extension(cached),
        )

    def _extension(self, cached: Sequence[int]) -> bytes:
        """SGLang's addition to an answer, from the comma before it on; empty if nothing of it was asked for.

        Args:
            cached: tokens of the prompt that were cached, per choice.
        """
        if not self._with_cached_details:
            return b""
        details = [{"device": each, "host": 0} for each in cached]
        return b',"sglext":%b' % _encode({"cached_tokens_details": details if len(details) > 1 else details[0]})


class OpenAIHandler(Handlers):
    """Base of the handlers: what they know of the server."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._names = TokenNames(manager.tokenizer)
        self._id_names = TokenNames(manager.tokenizer, by_number=True)

    def sampling_params(
        self,
        body: SharedFields,
        given: Collection[str],
        max_tokens: int | None,
        max_tokens_field: str,
        constraint: Constraint | None,
    ) -> SamplingParams:
        """Sampling parameters of a request; see :meth:`RequestSampling.params` and :func:`sampling_values`."""
        values = sampling_values(body, given)
        return self._core.sampling.params(values, max_tokens, max_tokens_field, constraint, CLIENT_NAMES)

    def names(self, *, as_ids: bool) -> TokenNames:
        """What shows tokens, as text or by number."""
        return self._id_names if as_ids else self._names

    async def answer(
        self,
        call: Call,
        answer: Answer,
        requests: Sequence[GenerateRequest],
        writers: Sequence[ChoiceWriter],
    ) -> Response | EventStream:
        """Run the requests and answer in the way that the client asked for.

        What the body holds besides them counts no more, so whoever calls this must not have kept it.
        """
        if answer.is_stream:
            return EventStream(answer.stream(self._manager, requests, writers, call.writer))
        return Response(await answer.whole(self._manager, requests, writers, requests[0].sampling_params.n))


def _score(delta: OutputDelta) -> float:
    """How likely an output is: the mean logprob of its tokens."""
    logprobs = [entry.logprob for entry in delta.logprobs or () if entry.logprob is not None]
    return sum(logprobs) / len(logprobs) if logprobs else 0.0


def _best(scores: Sequence[float], per_prompt: int, keep: int) -> list[int]:
    """The numbers of the likeliest ``keep`` choices of each prompt, best first."""
    best: list[int] = []
    for first in range(0, len(scores), per_prompt):
        ranked = sorted(range(first, first + per_prompt), key=lambda index: -scores[index])
        best += ranked[:keep]
    return best


def check_stream_options(body: SharedFields) -> None:
    """Raise :class:`BadRequest` if a stream is asked for something that no stream has."""
    if body.stream_options is not None and body.stream:
        check_obfuscation(body.stream_options.include_obfuscation)
    if body.prompt_logprobs is not None and body.stream:
        raise BadRequest("prompt_logprobs are not streamed; set stream to false", param="prompt_logprobs")
    if body.return_meta_info and body.stream:
        raise BadRequest("return_meta_info is not for streams; set stream to false", param="return_meta_info")


def check_session(body: SharedFields, num_outputs: int) -> None:
    """Raise :class:`BadRequest` if a turn of a session were to have several outputs."""
    if body.session_params is not None and num_outputs > 1:
        raise BadRequest("session_params needs one prompt, and n to be 1", param="session_params")


def tokens_to_keep(body: SharedFields, limits: RequestLimits, max_tokens: int | None) -> int | None:
    """How many tokens of the prompt's end are kept; ``None`` for all.

    Raises:
        BadRequest: if ``truncate_prompt_tokens`` is 0.
    """
    wanted = body.truncate_prompt_tokens
    if wanted == 0:
        raise BadRequest("truncate_prompt_tokens must be at least 1, or -1", param="truncate_prompt_tokens")
    if wanted == -1:
        # An answer that would fill the context alone is lowered to what the prompt leaves.
        room = 1 if max_tokens is None or max_tokens >= limits.context_len else max_tokens
        return min(limits.max_prompt_tokens, limits.context_len - room)
    return wanted


def request_ids(rid: str | None, count: int) -> list[str]:
    """Ids of the outputs of a request: the one given, numbered if there are several, or random ones."""
    if rid is None:
        return [new_request_id() for _ in range(count)]
    return [rid] if count == 1 else [f"{rid}_{index}" for index in range(count)]


def _about_weights(states: Sequence[ReqState]) -> dict[str, Any]:
    """What the weights are called, and whose tokens are whose in the first choice that was made by several."""
    every = [version_spans(state, state.completion_tokens) for state in states]
    about: dict[str, Any] = {"weight_version": every[0][-1]["version"]}
    changed = next((spans for spans in every if len(spans) > 1), None)
    if changed is not None:
        about["weight_versions"] = changed
    return about
