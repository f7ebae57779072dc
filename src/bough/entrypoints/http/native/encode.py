"""``POST /encode`` and ``POST /classify``: vectors in the native shape."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.native.protocol import TOKEN_IDS_SCHEMA
from bough.entrypoints.http.route import NATIVE, Count, Handlers, Route, Vector
from bough.managers.embedding import embed, number_turns
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import RANK_ALIASES
from bough.other_engines import fields_of

ENCODE = BodySpec(
    EmbeddingReqInput,
    example={"text": "The oak is a large tree."},
    token_ids=frozenset({"input_ids"}),
    schemas={
        "input_ids": {"anyOf": [TOKEN_IDS_SCHEMA, {"type": "array", "items": TOKEN_IDS_SCHEMA}, {"type": "null"}]}
    },
    aliases=RANK_ALIASES,
    no_effect={
        "sampling_params": "How tokens are chosen; none are.",
        "is_cross_encoder_request": "Pairs of texts are known by their form.",
        "routing_key": "Name for a routing policy that this server does not have.",
        "external_trace_header": "Trace that the request belongs to; the header `traceparent` is what counts.",
        "received_time": "When a gateway received the request.",
    },
    refused=fields_of("encode"),
)


class EncodeAnswer(msgspec.Struct):
    """The vector of one text, in the native shape."""

    embedding: Vector
    meta_info: Annotated[dict[str, Any], Meta(description="Id, counts and times.", examples=[{"prompt_tokens": 9}])]
    prompt_token_ids: Annotated[list[Count] | UnsetType, Meta(description="Ids of the prompt's tokens.")] = UNSET


class EncodeHandler(Handlers):
    """Answers ``/encode`` and ``/classify``."""

    @Route("POST,PUT /encode", NATIVE, ENCODE, EncodeAnswer | list[EncodeAnswer])
    @Route("POST,PUT /classify", NATIVE, ENCODE, EncodeAnswer | list[EncodeAnswer], summary="The same as `/encode`.")
    async def encode(self, call: Call) -> Response:
        """Embeddings, or a classifier's scores (logits), of one text or many."""
        manager = self._manager
        body = await call.parse(ENCODE, keep=True)
        turns = number_turns()
        answers: list[bytes] = []
        for result in await embed(manager, body.requests(max_outputs=manager.server_args.max_outputs_per_request)):
            answers.append(msgspec.json.encode(result.native()))
            await turns.spend(len(result.data) // 4)
        return Response(b"[%b]" % b",".join(answers) if body.is_batch else answers[0])
