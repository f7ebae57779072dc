"""Class scores, relevance and label probabilities: what is made of a model's vectors and logprobs."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bough.config.pooling import PoolingConfig
from bough.errors import BadRequest, RequestFailed
from bough.ipc.messages import OutputDelta
from bough.managers.embedding import ABORTED_STATUS, embed, number_turns
from bough.managers.embedding_struct import EmbeddingRequest, Prompt, embedding_requests
from bough.managers.io_struct import MAX_TOKEN_IDS_LOGPROB, GenerateRequest, request_ids
from bough.managers.native_output import meta_info
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.chat_template import RERANKER_TEMPLATE
from bough.tokenization.tokenizer import TokenIds

if TYPE_CHECKING:
    from bough.managers.req_state import ReqState
    from bough.managers.tokenizer_manager import TokenizerManager

CUT_TO_MODEL = -1
"""Cut what is too long to what the model takes."""


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """Scores of items, a number per label each, and the prompt tokens of all items together."""

    scores: list[list[float]]
    prompt_tokens: int


def softmax(values: Sequence[float], temperature: float = 1.0) -> list[float]:
    """``exp(v / temperature)``, scaled to a sum of 1."""
    highest = max(values)
    powers = [math.exp((value - highest) / temperature) for value in values]
    total = sum(powers)
    return [power / total for power in powers]


def sigmoid(value: float) -> float:
    """``1 / (1 + exp(-value))``, without overflow."""
    return 1.0 / (1.0 + math.exp(-value)) if value >= 0 else math.exp(value) / (1.0 + math.exp(value))


def class_probabilities(pooling: PoolingConfig, scores: Sequence[float]) -> list[float]:
    """Probabilities of a classifier's classes: independent ones if it has one class or several may hold at a time.

    What a model's scores are themselves, such as those of a regression, they are here.
    """
    if pooling.activation == "identity":
        return list(scores)
    if len(scores) == 1 or pooling.activation == "sigmoid":
        return [sigmoid(score) for score in scores]
    return softmax(scores)


def require_classifier(manager: TokenizerManager) -> PoolingConfig:
    """Return how the model scores classes; raises :class:`BadRequest` if it does not."""
    pooling = manager.model_config.pooling
    if pooling is None or not pooling.is_classifier:
        kind = "generates text" if pooling is None else "makes embeddings"
        raise BadRequest(f"this model {kind} and does not score classes", code="unsupported_by_model")
    return pooling


@dataclass(frozen=True, slots=True)
class Judged:
    """Relevance of a document; more is better, from 0 to 1 unless the model says otherwise."""

    relevance: float
    prompt_tokens: int
    meta_info: dict[str, Any]


async def rerank(
    manager: TokenizerManager,
    pairs: Sequence[tuple[str, str]],
    *,
    param: str = "documents",
    query_param: str = "query",
    instruct: str | None = None,
    truncate_to: int | None = CUT_TO_MODEL,
    **fields: Any,
) -> list[Judged]:
    """Judge how relevant each document is for its query; results are in the order of the ``pairs`` (query and
    document).

    A cross-encoder scores the pair. A language model that was started with the template of a reranker is asked whether
    the document fits: the probability of "yes" counts, against that of "no", or the score of its class if it has one.
    Of an embedding model it is the cosine of the two embeddings.

    Args:
        param, query_param: the client's names for the documents and the query.
        instruct: what makes a document relevant, for a language model; ``None`` for a web search.
        truncate_to: most tokens of a document, for a cross-encoder with its query; it is cut at its end. -1: what the
            model takes; ``None``: what is too long is an error. Prompts made by a template are never cut.

    Raises:
        BoughError: if this model cannot, or one of the documents fails.
    """
    config, pooling = manager.model_config, manager.model_config.pooling
    is_asked = manager.server_args.chat_template == RERANKER_TEMPLATE and not config.is_encoder
    if instruct and not (is_asked or config.is_generation):
        raise BadRequest(
            f"instruct is for language models with --chat-template {RERANKER_TEMPLATE}; this model is given query and "
            "document alone",
            param="instruct",
        )
    reranking = _Reranking(manager, pairs, param, query_param, instruct, truncate_to, fields)
    if pooling is not None and not pooling.is_classifier:
        return await reranking.compare()
    if truncate_to not in (CUT_TO_MODEL, None) and (is_asked or config.is_generation):
        raise BadRequest("truncate_prompt_tokens is for cross-encoders", param="truncate_prompt_tokens")
    if config.is_generation:
        return await reranking.ask_language_model()
    pooling = require_classifier(manager)
    if pooling.dim != 1:
        raise BadRequest(
            f"this model tells {pooling.dim} classes apart; a reranker has one", code="unsupported_by_model"
        )
    requests: Iterable[EmbeddingRequest]
    if is_asked:
        requests = [EmbeddingRequest(**each) for each in await reranking.questions()]
    else:
        requests = embedding_requests(
            pairs, param, is_batch=True, truncate_to=truncate_to, first_param=query_param, **fields
        )
    return [
        Judged(relevance(pooling, each.numbers()[0]), each.prompt_tokens, meta_info(each.state, each.delta))
        for each in await embed(manager, requests)
    ]


@dataclass(frozen=True, slots=True)
class _Reranking:
    """A call of :func:`rerank`, with its arguments."""

    manager: TokenizerManager
    pairs: Sequence[tuple[str, str]]
    param: str
    query_param: str
    instruct: str | None
    truncate_to: int | None
    fields: dict[str, Any]

    async def compare(self) -> list[Judged]:
        """Compare embeddings; each query is embedded, and its tokens are counted, once."""
        queries = {query: index for index, query in enumerate(dict.fromkeys(query for query, _ in self.pairs))}
        results = await embed(self.manager, self._texts(list(queries)))
        vectors = [result.numbers() for result in results]
        uncounted = [result.prompt_tokens for result in results[: len(queries)]]
        turns = number_turns()
        judged = []
        for (query, _), result, vector in zip(
            self.pairs, results[len(queries) :], vectors[len(queries) :], strict=True
        ):
            number = queries[query]
            tokens, uncounted[number] = result.prompt_tokens + uncounted[number], 0
            judged.append(Judged(cosine(vectors[number], vector), tokens, meta_info(result.state, result.delta)))
            await turns.spend(len(vector))
        return judged

    def _texts(self, queries: Sequence[str]) -> Iterator[EmbeddingRequest]:
        texts = [*queries, *(document for _, document in self.pairs)]
        made = embedding_requests(texts, self.param, is_batch=True, truncate_to=self.truncate_to, **self.fields)
        for index, request in enumerate(made):
            if index < len(queries):
                request.prompt_param = self.query_param
                request.truncate_to = None if self.truncate_to == CUT_TO_MODEL else self.truncate_to
            else:
                request.prompt_param = f"{self.param}[{index - len(queries)}]"
            yield request

    async def ask_language_model(self) -> list[Judged]:
        """Compare the probabilities of "yes" and "no"."""
        manager = self.manager
        if manager.server_args.chat_template != RERANKER_TEMPLATE or manager.tokenizer is None:
            raise BadRequest(
                f"this model generates text; one that was trained to rerank does so with --chat-template "
                f"{RERANKER_TEMPLATE}",
                code="unsupported_by_model",
            )
        labels = [manager.tokenizer.token_to_id(word) for word in ("no", "yes")]
        if None in labels:
            raise BadRequest('this model\'s tokenizer has no tokens "yes" and "no"', code="unsupported_by_model")
        results = await _label_logprobs(manager, [_label_request(labels, **each) for each in await self.questions()])
        return [Judged(softmax(row)[1], delta.prompt_tokens, meta_info(state, delta)) for state, delta, row in results]

    async def questions(self) -> list[dict[str, Any]]:
        """Fields of requests whose prompts ask, by the template of a reranker, whether a document fits its query."""
        asked: list[dict[str, Any]] = []
        rids = request_ids(self.fields.pop("rid", None), len(self.pairs), is_batch=True)
        for index, ((query, document), rid) in enumerate(zip(self.pairs, rids, strict=True)):
            messages = [{"role": "query", "content": query}, {"role": "document", "content": document}]
            longer = self.query_param if len(query) > len(document) else f"{self.param}[{index}]"
            prompt = await self.manager.conversations.encode(
                messages, template_kwargs={"instruct": self.instruct}, where=longer
            )
            own = {"rids": [rid], "prompt_param": longer, "input_ids": prompt, "ids_are_ours": True}
            asked.append(own | self.fields)
        return asked


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Cosine of the angle between two vectors; 0 if one of them is 0."""
    lengths = math.hypot(*left) * math.hypot(*right)
    return math.fsum(a * b for a, b in zip(left, right, strict=True)) / lengths if lengths else 0.0


def relevance(pooling: PoolingConfig, score: float) -> float:
    """Relevance of a reranker's score: the score itself if the model says so, else its sigmoid."""
    return score if pooling.activation == "identity" else sigmoid(score)


async def score(
    manager: TokenizerManager,
    query: str | TokenIds,
    items: Sequence[str | TokenIds],
    label_token_ids: Sequence[int | Sequence[int]] | None,
    *,
    apply_softmax: bool = False,
    item_first: bool = False,
    temperature: float = 1.0,
    **fields: Any,
) -> ScoreResult:
    """Score items for a query; both are texts, or both token ids.

    Of a language model these are the probabilities of given tokens (one list for all items, or one each) right after
    query and item, or item and query if ``item_first``; of a classifier its class scores (logits), query and item being
    a pair for an encoder and one text for a language model's body. A softmax of ``temperature`` scales the scores of an
    item to a sum of 1 if ``apply_softmax``. Raises :class:`BoughError` if something does not fit together, or one of
    the items fails.
    """
    if not (isinstance(temperature, (int, float)) and 0 < temperature <= sys.float_info.max):  # which NaN is not
        raise BadRequest(f"temperature must be a finite number above 0, got {temperature!r}", param="temperature")
    if temperature != 1.0 and not apply_softmax:
        raise BadRequest("temperature needs apply_softmax to be true", param="temperature")
    if not items:
        raise BadRequest("items must not be empty", param="items")
    if any(isinstance(item, str) != isinstance(query, str) for item in items):
        raise BadRequest("query and items must both be texts or both be token ids", param="items")
    pairs: list[tuple[Any, Any]] = [(item, query) if item_first else (query, item) for item in items]
    rids = request_ids(fields.pop("rid", None), len(items), is_batch=True)
    if manager.model_config.is_generation:
        labels = _labels(label_token_ids, len(items))
        manager.limits.check_token_ids(sorted({label for each in labels for label in each}), "label_token_ids")
        asked = [
            _label_request(
                labels[index], rids=[rids[index]], prompt_param=f"items[{index}]", **_joined(first, second), **fields
            )
            for index, (first, second) in enumerate(pairs)
        ]
        results = await _label_logprobs(manager, asked)
        scores = [row if apply_softmax else [math.exp(value) for value in row] for _, _, row in results]
        prompt_tokens = sum(delta.prompt_tokens for _, delta, _ in results)
    else:
        require_classifier(manager)
        if label_token_ids is not None:
            problem = "label_token_ids is for language models, and this is a classifier"
            raise BadRequest(problem, param="label_token_ids")
        as_pairs = manager.model_config.is_encoder and isinstance(query, str)
        first_param = None if item_first or not as_pairs else "query"
        prompts: list[Prompt] = [pair if as_pairs else pair[0] + pair[1] for pair in pairs]
        made = embedding_requests(prompts, "items", is_batch=True, rid=rids, first_param=first_param, **fields)
        embedded = await embed(manager, made)
        scores, prompt_tokens = [each.numbers() for each in embedded], sum(each.prompt_tokens for each in embedded)
    if apply_softmax:
        scores = [softmax(row, temperature) for row in scores]
    return ScoreResult(scores, prompt_tokens)


async def label_logprobs(
    manager: TokenizerManager,
    prompts: Sequence[TokenIds],
    labels: Sequence[Sequence[int]],
    *,
    param: str,
    rid: str,
    **fields: Any,
) -> list[list[float]]:
    """Logprobs of some tokens (``labels``, per prompt) right after prompts of our own making.

    ``param`` is the client's name for the prompts, ``fields`` are further fields of the requests. Raises
    :class:`BoughError` if one of them cannot be taken, or fails.
    """
    rids = request_ids(rid, len(prompts), is_batch=True)
    requests = [
        _label_request(
            each, rids=[each_rid], prompt_param=f"{param}[{index}]", input_ids=prompt, ids_are_ours=True, **fields
        )
        for index, (each_rid, prompt, each) in enumerate(zip(rids, prompts, labels, strict=True))
    ]
    return [row for _, _, row in await _label_logprobs(manager, requests)]


def _joined(first: Any, second: Any) -> dict[str, Any]:
    """Two texts, or the token ids of two, as the prompt of a request."""
    if isinstance(first, str):
        return {"text": first + second}
    return {"input_ids": array("i", [*first, *second])}


def _labels(given: Sequence[int | Sequence[int]] | None, count: int) -> list[list[int]]:
    param = "label_token_ids"
    if not given:
        raise BadRequest(f"{param} is required: the tokens whose probabilities are wanted", param=param)
    lists: list[Any] = list(given) if not isinstance(given[0], int) else [list(given)] * count
    if len(lists) != count:
        raise BadRequest(f"{param} has {len(lists)} lists for {count} items", param=param)
    for labels in lists:
        if not isinstance(labels, (list, tuple)) or not labels or not all(type(label) is int for label in labels):
            raise BadRequest(f"{param} must be a list of token ids, or one such list per item", param=param)
        if len(labels) > MAX_TOKEN_IDS_LOGPROB:
            raise BadRequest(f"{param} must hold at most {MAX_TOKEN_IDS_LOGPROB} ids, got {len(labels)}", param=param)
    return [list(labels) for labels in lists]


def _label_request(labels: Sequence[int | None], **fields: Any) -> GenerateRequest:
    """Ask for the logprobs of some tokens right after a prompt."""
    return GenerateRequest(
        sampling_params=SamplingParams(max_new_tokens=1, temperature=0.0, ignore_eos=True),
        return_logprob=True,
        token_ids_logprob=[label for label in labels if label is not None],
        **fields,
    )


async def _label_logprobs(
    manager: TokenizerManager, requests: Sequence[GenerateRequest]
) -> list[tuple[ReqState, OutputDelta, list[float]]]:
    """Run requests made by :func:`_label_request`; what became of each, with the logprobs of its labels."""
    results: list[tuple[ReqState, OutputDelta, list[float]] | None] = [None] * len(requests)
    async with manager.generation(requests) as generation:
        async for state, delta in generation.results():
            if not delta.logprobs:
                raise RequestFailed("the request was aborted", status_code=ABORTED_STATUS, code="aborted")
            results[state.index] = (state, delta, [value for value, _ in delta.logprobs[0].chosen or ()])
    return [result for result in results if result is not None]
