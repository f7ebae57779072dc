"""``POST /generate``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.direct import direct_sink
from bough.entrypoints.http.native.protocol import GENERATE, SAMPLING_PARAMS
from bough.entrypoints.http.pacing import add_paced, compile_patterns
from bough.entrypoints.http.route import NATIVE, Count, GeneratedTokens, Handlers, Id, PromptTokens, Route, TokenId
from bough.entrypoints.http.unknown_fields import Unknown, known_members
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import UNSUPPORTED_SAMPLING_PARAMS, GenerateReqInput, GenerateRequest
from bough.managers.req_state import ReqState
from bough.managers.request_limits import WORK_PER_TURN, work_of_params
from bough.managers.turns import collect

_NAMES_OF_OTHERS = {
    "max_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "repeat_penalty": "repetition_penalty",
    "seed": "sampling_seed",
}
"""Names of sampling parameters on OpenAI's routes and at other servers."""

_PARAMS = SAMPLING_PARAMS.keys() | UNSUPPORTED_SAMPLING_PARAMS.keys()


def drop_unknown_params(body: GenerateReqInput, unknown: Unknown) -> None:
    """Take what is not known from the sampling parameters, which stay undeclared until they are needed.

    Raises:
        BadRequest: naming what looks like a typo.
    """
    given = body.sampling_params or {}
    for params in given if isinstance(given, list) else [given]:
        if params.keys() <= _PARAMS:
            continue
        for name, ours in _NAMES_OF_OTHERS.items():
            if name in params and params.get(ours) is None:
                params[ours] = params.pop(name)
        known_members(params, _PARAMS, "sampling_params", unknown, check_typos=True)
        for name in params.keys() - _PARAMS:
            del params[name]


class FinishReasonAnswer(msgspec.Struct):
    """Reason why an output ended."""

    type: Literal["stop", "length", "abort"]
    matched: Annotated[
        TokenId | str | UnsetType | None, Meta(description="Stop token, stop string or pattern that ended the output.")
    ] = UNSET
    length: Annotated[Count | UnsetType | None, Meta(description="Tokens that were generated.")] = UNSET
    message: Annotated[str | UnsetType, Meta(description="Why it was ended.")] = UNSET
    status_code: Annotated[
        Annotated[int, Meta(ge=400, le=599)] | UnsetType, Meta(description="HTTP status that an error would have had.")
    ] = UNSET


class WeightSpan(msgspec.Struct):
    """The tokens of an output that weights of one name have made."""

    version: Annotated[str, Meta(description="Name of the weights.")]
    start: Annotated[Count, Meta(description="The first token, from 0.")]
    end: Annotated[Count, Meta(description="The one after the last.")]


_Triple = tuple[float | None, TokenId, str | None]
_Triples = Annotated[
    list[_Triple] | UnsetType,
    Meta(description="Log-probability, token id, and text if asked for, of each token."),
]
_Alternatives = Annotated[
    list[list[_Triple] | None] | UnsetType, Meta(description="For each position, the entries of other tokens.")
]


class MetaInfo(msgspec.Struct):
    """Counts, times and log-probabilities of one output."""

    id: Id
    finish_reason: Annotated[FinishReasonAnswer | None, Meta(examples=[{"type": "length", "length": 8}])]
    prompt_tokens: PromptTokens
    completion_tokens: GeneratedTokens
    cached_tokens: Annotated[Count, Meta(description="Prompt tokens whose computation was reused.")]
    reasoning_tokens: Annotated[Count, Meta(description="Tokens of thoughts among those that were generated.")]
    weight_version: Annotated[str, Meta(description="Name of the weights.", examples=["default"])]
    num_retractions: Annotated[Count, Meta(description="How often the request had to give up its memory.")]
    weight_versions: Annotated[
        list[WeightSpan] | UnsetType,
        Meta(description="Spans of tokens by the weights that made them, if these have changed; at the end."),
    ] = UNSET
    e2e_latency: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType, Meta(description="Seconds from arrival to end; at the end.")
    ] = UNSET
    input_token_logprobs: _Triples = UNSET
    output_token_logprobs: _Triples = UNSET
    input_top_logprobs: _Alternatives = UNSET
    output_top_logprobs: _Alternatives = UNSET
    input_token_ids_logprobs: _Alternatives = UNSET
    output_token_ids_logprobs: _Alternatives = UNSET
    output_token_logprobs_length: Annotated[
        Count | UnsetType, Meta(description="Number of entries of `output_token_logprobs` so far.")
    ] = UNSET


class GenerateAnswer(msgspec.Struct):
    """One output of ``/generate``."""

    output_ids: Annotated[list[TokenId], Meta(description="Ids of the generated tokens.", examples=[[457, 28, 325]])]
    meta_info: MetaInfo
    text: Annotated[
        str | UnsetType, Meta(description="Absent on a server without a tokenizer.", examples=[" deciduous."])
    ] = UNSET
    prompt_token_ids: Annotated[list[TokenId] | UnsetType, Meta(description="Ids of the prompt's tokens.")] = UNSET
    index: Annotated[Count | UnsetType, Meta(description="Position of an event's output, if there are several.")] = (
        UNSET
    )


class GenerateHandler(Handlers):
    """Answers ``/generate``."""

    @Route("POST,PUT /generate", NATIVE, GENERATE, GenerateAnswer | list[GenerateAnswer], GenerateAnswer)
    async def generate(self, call: Call) -> Response | EventStream:
        """Generate from text or token ids, one prompt or many."""
        requests, is_batch = await self._read(call)
        if requests[0].stream:
            return EventStream(self._events(requests, call.writer, is_batch=is_batch))
        return Response(await self._whole(requests, is_batch=is_batch))

    async def _read(self, call: Call) -> tuple[list[GenerateRequest], bool]:
        """What a body asks for, of which nothing else is left, and whether the answer is a list."""
        body = await call.parse(GENERATE)
        if call.unknown is not None:
            drop_unknown_params(body, call.unknown)
        made = body.requests(
            preferred=self._manager.server_args.preferred_sampling_params,
            max_outputs=self._manager.server_args.max_outputs_per_request,
        )
        has_params_each = isinstance(body.sampling_params, list)
        requests = await (collect(made, WORK_PER_TURN, work_of_params) if has_params_each else collect(made))
        pattern_lists = {request.sampling_params.stop_regex for request in requests}
        await compile_patterns(self._manager.prompt_encoder, pattern_lists, "sampling_params.stop_regex")
        return requests, body.is_batch

    async def _events(
        self, requests: Sequence[GenerateRequest], writer: ChunkWriter | None, *, is_batch: bool
    ) -> AsyncGenerator[bytes, None]:
        async with self._manager.generation(requests) as generation:
            single = len(generation.states) == 1 and not is_batch
            make = self._manager.native_output
            outputs = [make(state, with_index=not single, as_json=True) for state in generation.states]

            def event_of(state: ReqState, delta: OutputDelta) -> bytes:
                return outputs[state.index].next_event(delta)

            sink = direct_sink(writer, event_of)
            started = False
            while generation.unfinished:
                events = []
                for state, delta in await generation.deltas(sink):
                    if not started:
                        generation.check(delta)
                        started = True
                    output = outputs[state.index]
                    await add_paced(output.add, delta)
                    events.append(b"data: %b\n\n" % msgspec.json.encode(output.answer(delta)))
                yield b"".join(events)

    async def _whole(self, requests: Sequence[GenerateRequest], *, is_batch: bool) -> bytes:
        async with self._manager.generation(requests) as generation:
            outputs = [b""] * len(generation.states)
            async for state, delta in generation.results():
                output = self._manager.native_output(state, with_index=False, as_json=True)
                await add_paced(output.add, delta)
                outputs[state.index] = msgspec.json.encode(output.answer(delta))
        return outputs[0] if len(outputs) == 1 and not is_batch else b"[%b]" % b",".join(outputs)
