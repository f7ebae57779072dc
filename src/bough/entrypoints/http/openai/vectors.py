"""``POST /v1/embeddings``, ``/v1/classify``, ``/v1/rerank`` and ``/v1/score``."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.openai.completions import split_prompts
from bough.entrypoints.http.openai.vector_protocol import (
    CLASSIFY,
    EMBEDDINGS,
    RERANK,
    SCORE,
    RerankBody,
    ScoreBody,
    TextOnly,
    VectorFields,
    check_batch,
    plain_text,
)
from bough.entrypoints.http.route import OPENAI, Count, Created, Handlers, Id, Index, Model, PromptTokens, Route, Vector
from bough.errors import BadRequest
from bough.managers.embedding import Embedded, embed, number_turns, require_embeddings
from bough.managers.embedding_struct import EmbeddingRequest, embedding_requests
from bough.managers.io_struct import new_request_id
from bough.managers.scoring import CUT_TO_MODEL, Judged, class_probabilities, require_classifier, rerank, score

_encode = msgspec.json.encode


class VectorUsage(msgspec.Struct):
    """Token counts of texts that vectors were made of."""

    prompt_tokens: PromptTokens
    total_tokens: Annotated[Count, Meta(description="The same.", examples=[16])]


class VectorFrame(msgspec.Struct, kw_only=True):
    """Members that answers made of vectors have."""

    model: Model
    usage: VectorUsage


class Embedding(msgspec.Struct):
    """The vector of one text."""

    object: Literal["embedding"]
    index: Index
    embedding: Annotated[Vector | str, Meta(description="Numbers, or base64 of them as little-endian float32.")]


class EmbeddingsAnswer(VectorFrame, kw_only=True):
    """Answer of ``/v1/embeddings``."""

    object: Literal["list"]
    data: Annotated[list[Embedding], Meta(description="A vector for each text.")]


class Classification(msgspec.Struct):
    """Probabilities of the classes of one text."""

    index: Index
    label: Annotated[str, Meta(description="Name of the most probable class.", examples=["tree"])]
    probs: Annotated[list[Annotated[float, Meta(ge=0, le=1)]], Meta(description="Probability of each class.")]
    num_classes: Annotated[Count, Meta(description="Number of the classifier's classes.", examples=[2])]


class ClassifyAnswer(VectorFrame, kw_only=True):
    """Answer of ``/v1/classify``."""

    id: Id
    object: Literal["list"]
    created: Created
    data: Annotated[list[Classification], Meta(description="Probabilities for each text.")]


class RankedDocument(msgspec.Struct):
    """A document and its relevance."""

    score: Annotated[float, Meta(description="The score; more is more relevant.", examples=[0.93])]
    index: Index
    meta_info: Annotated[dict[str, Any], Meta(description="Id, counts and times.")]
    document: Annotated[str | UnsetType, Meta(description="The document, with `return_documents`.")] = UNSET


class RelevantDocument(msgspec.Struct):
    """A document and its relevance, in the shape of Jina and Cohere."""

    index: Index
    relevance_score: Annotated[float, Meta(description="Relevance of the document.", examples=[0.93])]
    document: Annotated[dict[str, str] | UnsetType, Meta(description="The document, with `return_documents`.")] = UNSET


class RerankAnswer(VectorFrame, kw_only=True):
    """Answer of ``/rerank``."""

    id: Id
    results: Annotated[list[RelevantDocument], Meta(description="The documents, most relevant first.")]


class ScoreAnswer(VectorFrame, kw_only=True):
    """Answer of ``/v1/score``: a list of scores per item."""

    object: Literal["scoring"]
    scores: Annotated[list[list[float | None]], Meta(description="For each item a score of each label.")]


class PairScore(msgspec.Struct):
    """The score of a pair of texts."""

    index: Index
    object: Literal["score"]
    score: Annotated[float, Meta(description="The score; more is more alike, or more relevant.")]


class PairScoresAnswer(VectorFrame, kw_only=True):
    """Answer of ``/v1/score`` to vLLM's form of requests."""

    id: Id
    object: Literal["list"]
    created: Created
    data: Annotated[list[PairScore], Meta(description="A score for each pair.")]


class VectorHandlers(Handlers):
    """Answers everything under ``/v1`` that comes from vectors."""

    @Route("POST /v1/embeddings", OPENAI, EMBEDDINGS, EmbeddingsAnswer)
    async def embeddings(self, call: Call) -> Response:
        """Embeddings of texts."""
        body = await call.parse(EMBEDDINGS, keep=True)
        require_embeddings(self._manager)
        requests = self._input_requests(body, dimensions=body.dimensions, truncate_to=body.truncate_prompt_tokens)
        results = await embed(self._manager, requests)
        turns = number_turns()
        data: list[bytes] = []
        for index, result in enumerate(results):
            if body.encoding_format == "base64":
                vector = b'"%b"' % result.base64().encode()
            else:
                vector = _encode(result.numbers())
            data.append(b'{"object":"embedding","index":%d,"embedding":%b}' % (index, vector))
            await turns.spend(len(result.data) // 4)
        return Response(
            b'{"object":"list","data":[%b],"model":%b,"usage":%b}'
            % (b",".join(data), _encode(self.model_name(body.model)), _encode(_usage(results)))
        )

    @Route("POST /v1/classify", OPENAI, CLASSIFY, ClassifyAnswer)
    async def classify(self, call: Call) -> Response:
        """Probabilities of a classifier's classes."""
        body = await call.parse(CLASSIFY, keep=True)
        pooling = require_classifier(self._manager)
        results = await embed(self._manager, self._input_requests(body, truncate_to=body.truncate_prompt_tokens))
        labels = pooling.labels or ()
        turns = number_turns()
        data = []
        for index, result in enumerate(results):
            probabilities = class_probabilities(pooling, result.numbers())
            label = labels[probabilities.index(max(probabilities))]
            entry = {"index": index, "label": label, "probs": probabilities, "num_classes": len(labels)}
            data.append(msgspec.Raw(_encode(entry)))
            await turns.spend(len(labels))
        return self._list("classify", body, data, results)

    @Route("POST,PUT /v1/rerank", OPENAI, RERANK, list[RankedDocument])
    async def rerank(self, call: Call) -> Response:
        """Sort documents by their relevance for a query."""
        body = await call.parse(RERANK, keep=True)
        ranked, _ = await self._ranked(body)
        answers = []
        for index, judged in ranked:
            answer: dict[str, Any] = {"score": judged.relevance, "index": index}
            if body.return_documents:
                answer["document"] = plain_text(body.documents[index])
            answers.append({**answer, "meta_info": judged.meta_info})
        return Response(_encode(answers))

    @Route("POST /rerank /v2/rerank", OPENAI, RERANK, RerankAnswer)
    async def rerank_results(self, call: Call) -> Response:
        """The same with the answer that Jina, Cohere and vLLM have: an object with `results`."""
        body = await call.parse(RERANK, keep=True)
        ranked, usage = await self._ranked(body)
        results = []
        for index, judged in ranked:
            result: dict[str, Any] = {"index": index, "relevance_score": judged.relevance}
            if body.return_documents:
                result["document"] = {"text": plain_text(body.documents[index])}
            results.append(result)
        name = f"rerank-{body.rid or new_request_id()}"
        return Response(_encode({"id": name, "model": self.model_name(body.model), "usage": usage, "results": results}))

    @Route("POST /v1/score /score", OPENAI, SCORE, (ScoreAnswer, PairScoresAnswer))
    async def score(self, call: Call) -> Response:
        """Probabilities of given tokens after query and item; of a classifier its scores (logits)."""
        body = await call.parse(SCORE, keep=True)
        if body.text_1 is not None or body.text_2 is not None:
            return await self._score_texts(body)
        for name in ("query", "items"):
            if getattr(body, name) is None:
                raise BadRequest(f"{name} is required", param=name, code="missing_required_parameter")
        assert body.query is not None, "checked"
        assert body.items is not None, "checked"
        if body.truncate_prompt_tokens is not None:
            raise BadRequest("truncate_prompt_tokens needs text_1", param="truncate_prompt_tokens")
        items = [body.items] if isinstance(body.items, str) else body.items
        if isinstance(items, array):
            raise BadRequest("items must be a text, or a list of texts or lists of token ids", param="items")
        check_batch(self._manager.server_args, "items", "query", len(body.query), [len(item) for item in items])
        result = await score(
            self._manager,
            body.query if isinstance(body.query, str) else array("i", body.query),
            [item if isinstance(item, str) else array("i", item) for item in items],
            body.label_token_ids,
            apply_softmax=body.apply_softmax,
            item_first=body.item_first,
            temperature=body.temperature,
            rid=body.rid,
            extras=body.extras,
        )
        usage = {"prompt_tokens": result.prompt_tokens, "total_tokens": result.prompt_tokens}
        answer = {"object": "scoring", "model": self.model_name(body.model), "scores": result.scores, "usage": usage}
        return Response(_encode(answer))

    async def _score_texts(self, body: ScoreBody) -> Response:
        """A score per pair, in vLLM's form: relevance of a reranker, else the cosine of two embeddings."""
        for name in ("query", "items", "label_token_ids"):
            if getattr(body, name) is not None:
                raise BadRequest(f"{name} cannot be combined with text_1 and text_2", param=name)
        if body.text_1 is None or body.text_2 is None:
            missing = "text_1" if body.text_1 is None else "text_2"
            raise BadRequest(f"{missing} is required", param=missing, code="missing_required_parameter")
        firsts, seconds = _texts(body.text_1), _texts(body.text_2)
        if len(firsts) not in (1, len(seconds)):
            raise BadRequest(
                f"text_1 has {len(firsts)} texts for {len(seconds)} of text_2; it must have one, or as many",
                param="text_1",
            )
        own = seconds if len(firsts) == 1 else [first + second for first, second in zip(firsts, seconds, strict=True)]
        shared = len(firsts[0]) if len(firsts) == 1 else 0
        check_batch(self._manager.server_args, "text_2", "text_1", shared, [len(text) for text in own])
        pairs = list(zip(firsts * (len(seconds) // len(firsts)), seconds, strict=True))
        keep = body.truncate_prompt_tokens
        pooling = self._manager.model_config.pooling
        if keep is None and (pooling is None or pooling.is_classifier):
            keep = CUT_TO_MODEL
        judged = await rerank(
            self._manager,
            pairs,
            param="text_2",
            query_param="text_1",
            truncate_to=keep,
            rid=body.rid,
            extras=body.extras,
        )
        data = [{"index": index, "object": "score", "score": each.relevance} for index, each in enumerate(judged)]
        return self._list("score", body, data, judged)

    async def _ranked(self, body: RerankBody) -> tuple[list[tuple[int, Judged]], dict[str, int]]:
        """The documents to return by number, the most relevant one first, and the usage."""
        query, documents = plain_text(body.query), [plain_text(document) for document in body.documents]
        check_batch(self._manager.server_args, "documents", "query", len(query), [len(text) for text in documents])
        judged = await rerank(
            self._manager,
            [(query, document) for document in documents],
            instruct=body.instruct,
            rid=body.rid,
            truncate_to=body.truncate_prompt_tokens,
            extras=body.extras,
        )
        ranked = sorted(enumerate(judged), key=lambda each: -each[1].relevance)
        return ranked[: body.top_n], _usage(judged)

    def _input_requests(self, body: Any, **fields: Any) -> Iterator[EmbeddingRequest]:
        """One request per text of ``input``, none of which may be blank."""
        given = body.input
        if isinstance(given, list):
            given = [each.text if isinstance(each, TextOnly) else each for each in given]
        prompts = split_prompts(given, "input")
        is_batch = len(prompts) > 1
        for index, prompt in enumerate(prompts):
            if isinstance(prompt, str) and not prompt.strip():
                raise BadRequest("input must not be blank", param=f"input[{index}]" if is_batch else "input")
        return embedding_requests(
            prompts,
            "input",
            is_batch=is_batch,
            rid=body.rid,
            max_outputs=self._manager.server_args.max_outputs_per_request,
            extras=body.extras,
            **fields,
        )

    def _list(
        self, kind: str, body: VectorFields, data: Sequence[Any], results: Sequence[Embedded | Judged]
    ) -> Response:
        answer = {"id": f"{kind}-{body.rid or new_request_id()}", "object": "list", "created": int(time.time())}
        return Response(
            _encode({**answer, "model": self.model_name(body.model), "data": data, "usage": _usage(results)})
        )


def _texts(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def _usage(results: Sequence[Embedded | Judged]) -> dict[str, int]:
    tokens = sum(result.prompt_tokens for result in results)
    return {"prompt_tokens": tokens, "total_tokens": tokens}
