"""``POST /api/embed`` and its older form, ``/api/embeddings``."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
from msgspec import Meta

from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.errors import BadRequest
from bough.managers.embedding import Embedded, embed, number_turns
from bough.managers.embedding_struct import Dimensions, embedding_requests
from bough.managers.tokenizer_manager import TokenizerManager

_NO_EFFECT = {
    "keep_alive": "The model stays loaded as long as the server runs.",
    "options": "Those of Ollama are about memory and devices, or about tokens that are chosen.",
}


class OllamaEmbedRequest(msgspec.Struct, kw_only=True):
    """Body of ``/api/embed``."""

    model: Annotated[str, Meta(description="Name of the model. Any name is taken and given back.")]
    input: Annotated[str | list[str], Meta(description="A text, or a list of texts.")]
    truncate: Annotated[
        bool, Meta(description="Cut a text that is too long at its end; without that it is an error.")
    ] = True
    dimensions: Annotated[
        Dimensions | None,
        Meta(description="How many numbers of the embedding to return, for models trained for that (Matryoshka)."),
    ] = None


class OllamaEmbeddingsRequest(msgspec.Struct, kw_only=True):
    """Body of ``/api/embeddings``."""

    model: Annotated[str, Meta(description="Name of the model. Any name is taken and given back.")]
    prompt: Annotated[str, Meta(description="The text.")]


OLLAMA_EMBED = BodySpec(OllamaEmbedRequest, no_effect=_NO_EFFECT)
OLLAMA_EMBEDDINGS = BodySpec(OllamaEmbeddingsRequest, no_effect=_NO_EFFECT)


class OllamaEmbedHandlers:
    """Answers in Ollama's dialect with vectors.

    Args:
        manager: does the work.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._manager = manager

    async def embed(self, call: Call) -> Response:
        """``POST /api/embed``: a vector per text, in their order."""
        started = time.monotonic_ns()
        body = await OLLAMA_EMBED.parse(call.take_body(), allow_unknown=self._allow_unknown, max_tokens=0)
        texts = [body.input] if isinstance(body.input, str) else body.input
        results = await self._vectors(texts, "input", truncate=body.truncate, dimensions=body.dimensions)
        turns = number_turns()
        vectors = []
        for result in results:
            vectors.append(msgspec.json.encode(result.numbers()))
            await turns.spend(len(result.data) // 4)
        return Response(
            b'{"model":%b,"embeddings":[%b],"total_duration":%d,"load_duration":0,"prompt_eval_count":%d}'
            % (
                msgspec.json.encode(body.model),
                b",".join(vectors),
                time.monotonic_ns() - started,
                sum(result.prompt_tokens for result in results),
            )
        )

    async def embeddings(self, call: Call) -> Response:
        """``POST /api/embeddings``: the vector of one text."""
        body = await OLLAMA_EMBEDDINGS.parse(call.take_body(), allow_unknown=self._allow_unknown, max_tokens=0)
        (result,) = await self._vectors([body.prompt], "prompt", truncate=True)
        return Response(msgspec.json.encode({"embedding": result.numbers()}))

    @property
    def _allow_unknown(self) -> bool:
        return self._manager.server_args.allow_unknown_fields

    async def _vectors(
        self, texts: list[str], param: str, *, truncate: bool, dimensions: int | None = None
    ) -> list[Embedded]:
        pooling = self._manager.limits.pooling
        if pooling is not None and pooling.is_classifier:
            raise BadRequest("this model scores classes and makes no embeddings", code="unsupported_by_model")
        return await embed(
            self._manager,
            embedding_requests(
                texts,
                param,
                is_batch=len(texts) > 1,
                max_outputs=self._manager.server_args.max_outputs_per_request,
                truncate_to=-1 if truncate else None,
                dimensions=dimensions,
            ),
        )
