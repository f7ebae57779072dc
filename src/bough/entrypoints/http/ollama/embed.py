"""Ollama's routes for embeddings."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import Body, BodySpec
from bough.entrypoints.http.ollama.protocol import OLLAMA_EMBED, OLLAMA_EMBEDDINGS
from bough.entrypoints.http.ollama.render import NANOSECONDS
from bough.entrypoints.http.route import OLLAMA, Count, Handlers, Model, PromptTokens, Route, Vector
from bough.managers.embedding import Embedded, embed, number_turns, require_embeddings
from bough.managers.embedding_struct import embedding_requests
from bough.managers.io_struct import RoutedFields

_TO_THE_CONTEXT = -1

_encode = msgspec.json.encode


class OllamaEmbedAnswer(msgspec.Struct):
    """Answer of ``/api/embed``: vectors of length 1, and nanoseconds."""

    model: Model
    embeddings: Annotated[list[Vector], Meta(description="The vector of each text, in their order.")]
    total_duration: Annotated[Count, Meta(description="Time from arrival to end, in nanoseconds.")]
    load_duration: Annotated[Count, Meta(description="Always 0: the model is loaded when the server starts.")]
    prompt_eval_count: PromptTokens


class OllamaEmbeddingsAnswer(msgspec.Struct):
    """Answer of ``/api/embeddings``."""

    embedding: Vector


class OllamaEmbedHandlers(Handlers):
    """Answers with embeddings, in Ollama's dialect."""

    @Route("POST /api/embed", OLLAMA, OLLAMA_EMBED, OllamaEmbedAnswer)
    async def embed(self, call: Call) -> Response:
        """Embeddings of texts, in Ollama's words."""
        started = time.monotonic()
        body = await self._parse(OLLAMA_EMBED, call)
        texts = [body.input] if isinstance(body.input, str) else body.input
        results = []
        if texts and body.input != "":
            results = await self._results(body, texts, "input", body.dimensions, truncate=body.truncate)
        pooling, turns = self._manager.model_config.pooling, number_turns()
        assert pooling is not None, "checked"
        vectors = []
        for result in results:
            vectors.append(_encode(result.numbers() if pooling.normalize else _of_length_one(result.numbers())))
            await turns.spend(len(result.data) // 4)
        return Response(
            b'{"model":%b,"embeddings":[%b],"total_duration":%d,"load_duration":0,"prompt_eval_count":%d}'
            % (
                _encode(body.model),
                b",".join(vectors),
                (time.monotonic() - started) * NANOSECONDS,
                sum(result.prompt_tokens for result in results),
            )
        )

    @Route("POST /api/embeddings", OLLAMA, OLLAMA_EMBEDDINGS, OllamaEmbeddingsAnswer)
    async def embeddings(self, call: Call) -> Response:
        """The older form of `/api/embed`, for one text."""
        body = await self._parse(OLLAMA_EMBEDDINGS, call)
        results = await self._results(body, [body.prompt], "prompt", None, truncate=True) if body.prompt else []
        return Response(_encode({"embedding": results[0].numbers() if results else []}))

    async def _parse(self, spec: BodySpec[Body], call: Call) -> Body:
        require_embeddings(self._manager)
        return await call.parse(spec, keep=True)

    async def _results(
        self, body: RoutedFields, texts: Sequence[str], param: str, dimensions: int | None, *, truncate: bool
    ) -> list[Embedded]:
        requests = embedding_requests(
            texts,
            param,
            is_batch=len(texts) > 1,
            max_outputs=self._manager.server_args.max_outputs_per_request,
            dimensions=dimensions,
            truncate_to=_TO_THE_CONTEXT if truncate else None,
            extras=body.routing,
        )
        return await embed(self._manager, requests)


def _of_length_one(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector) or 1.0
    return [value / length for value in vector]
