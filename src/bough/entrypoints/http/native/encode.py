"""``POST /encode`` and ``POST /classify``: vectors in the native shape."""

from __future__ import annotations

import msgspec

from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec, Refused
from bough.entrypoints.http.native.answers import EncodeAnswer
from bough.entrypoints.http.native.protocol import TOKEN_IDS_SCHEMA
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.managers.embedding import embed, number_turns
from bough.managers.embedding_struct import EmbeddingReqInput

_MEDIA = "images, video and audio"

ENCODE = BodySpec(
    EmbeddingReqInput,
    token_ids=frozenset({"input_ids"}),
    schemas={
        "input_ids": {"anyOf": [TOKEN_IDS_SCHEMA, {"type": "array", "items": TOKEN_IDS_SCHEMA}, {"type": "null"}]}
    },
    no_effect={
        "sampling_params": "How tokens are chosen; none are.",
        "is_cross_encoder_request": "Pairs of texts are known by their form.",
        "routing_key": "Name for a routing policy that this server does not have.",
        "external_trace_header": "Trace that the request belongs to; the header `traceparent` is what counts.",
        "received_time": "When a gateway received the request.",
    },
    refused={
        "input_embeds": Refused("prompts as embeddings"),
        **{name: Refused(_MEDIA, ([],)) for name in ("image_data", "video_data", "audio_data", "modalities")},
        "embed_override_token_id": Refused("vectors in place of tokens"),
        "embed_overrides": Refused("vectors in place of tokens", ([],)),
        "return_pooled_hidden_states": Refused("hidden states of the model", (False,)),
        "token_indices_to_pool": Refused("vectors of chosen tokens", ([],)),
        "multi_item_delimiter_indices": Refused("several items in one prompt", ([],)),
        "decision_layout": Refused("decisions; use /v1/decisions"),
        "lora_path": Refused("LoRA adapters", ("", [])),
        "background": Refused("going on after the client has left", (False,)),
        "routed_dp_rank": Refused("data parallelism", (0,)),
        "data_parallel_rank": Refused("data parallelism", (0,)),
    },
)


class EncodeHandler(Handlers):
    """Answers ``/encode`` and ``/classify``."""

    @Route("POST,PUT /encode", NATIVE, ENCODE, EncodeAnswer | list[EncodeAnswer])
    @Route("POST,PUT /classify", NATIVE, ENCODE, EncodeAnswer | list[EncodeAnswer], summary="The same as `/encode`.")
    async def encode(self, call: Call) -> Response:
        """Embeddings, or a classifier's scores (logits), of one text or many."""
        manager = self._manager
        call.keep()
        body = await call.parse(ENCODE)
        turns = number_turns()
        answers: list[bytes] = []
        for result in await embed(manager, body.requests(max_outputs=manager.server_args.max_outputs_per_request)):
            answers.append(msgspec.json.encode(result.native()))
            await turns.spend(len(result.data) // 4)
        return Response(b"[%b]" % b",".join(answers) if body.is_batch else answers[0])
