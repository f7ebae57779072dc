"""``POST /generate``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import msgspec

from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.entrypoints.http.direct import direct_sink
from bough.entrypoints.http.native.answers import GenerateAnswer
from bough.entrypoints.http.native.protocol import GENERATE, SAMPLING_PARAMS
from bough.entrypoints.http.pacing import add_paced, compile_patterns
from bough.entrypoints.http.route import NATIVE, Handlers, Route
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
