"""Class scores, relevance and label probabilities: what is made of a model's vectors and logprobs."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bough.config.pooling import PoolingConfig
from bough.errors import BadRequest, RequestFailed
from bough.managers.embedding import ABORTED_STATUS, Embedded, embed
from bough.managers.embedding_struct import Prompt, embedding_requests
from bough.managers.io_struct import MAX_TOKEN_IDS_LOGPROB, GenerateRequest, new_request_id
from bough.managers.native_output import failure_of
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.tokenizer import TokenIds

if TYPE_CHECKING:
    from bough.managers.tokenizer_manager import TokenizerManager

CUT_TO_MODEL = -1
"""Cut what is too long to what the model takes."""


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """Scores of items.

    Attributes:
        scores: per item, a number per label.
        prompt_tokens: of all items together.
    """

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
    """Probabilities of a classifier's classes: independent ones if it has one class or several may hold at a time."""
    if len(scores) == 1 or pooling.activation == "sigmoid":
        return [sigmoid(score) for score in scores]
    return softmax(scores)


def require_classifier(manager: TokenizerManager) -> PoolingConfig:
    """How the model scores classes; raises :class:`BadRequest` if it does not."""
    pooling = manager.model_config.pooling
    if pooling is None or not pooling.is_classifier:
        kind = "generates text" if pooling is None else "makes embeddings"
        raise BadRequest(f"this model {kind} and does not score classes", code="unsupported_by_model")
    return pooling


async def rerank(
    manager: TokenizerManager, pairs: Sequence[tuple[str, str]], *, param: str = "documents", **fields: Any
) -> list[tuple[float, Embedded]]:
    """How relevant each document is for its query, by a cross-encoder; in the order of the pairs.

    A document that is too long for the model is cut at its end; the query stays whole.

    Args:
        manager: of a classifier with one class.
        pairs: query and document, at least one.
        param: what the client calls the documents.
        fields: further fields of the requests.

    Raises:
        BoughError: if this model cannot, or one of the documents fails.
    """
    pooling = require_classifier(manager)
    if pooling.dim != 1:
        raise BadRequest(
            f"this model tells {pooling.dim} classes apart; a reranker has one", code="unsupported_by_model"
        )
    requests = embedding_requests(pairs, param, is_batch=True, **{"truncate_to": CUT_TO_MODEL, **fields})
    results = await embed(manager, requests)
    return [(relevance(pooling, result.numbers()[0]), result) for result in results]


def relevance(pooling: PoolingConfig, score: float) -> float:
    """What a reranker's score means: the score itself if the model says so, else its sigmoid."""
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
    """Score items for a query.

    Of a language model these are the probabilities of given tokens right after query and item; of a classifier its
    class scores (logits), query and item being a pair for an encoder and one text for a language model's body.

    Args:
        manager: of the model.
        query: text or token ids.
        items: texts or token ids, as the query.
        label_token_ids: for a language model, the tokens; one list for all items, or one each.
        apply_softmax: scale the scores of an item to a sum of 1, by a softmax.
        item_first: whether the item comes before the query.
        temperature: of that softmax.
        fields: further fields of the requests.

    Raises:
        BoughError: if something does not fit together, or one of the items fails.
    """
    if temperature != 1.0 and not apply_softmax:
        raise BadRequest("temperature needs apply_softmax to be true", param="temperature")
    if not items:
        raise BadRequest("items must not be empty", param="items")
    if any(isinstance(item, str) != isinstance(query, str) for item in items):
        raise BadRequest("query and items must both be texts or both be token ids", param="items")
    pairs: list[tuple[Any, Any]] = [(item, query) if item_first else (query, item) for item in items]
    if manager.model_config.is_generation:
        logprobs, prompt_tokens = await _label_logprobs(manager, pairs, _labels(label_token_ids, len(items)), fields)
        rows = [softmax(row, temperature) if apply_softmax else [math.exp(value) for value in row] for row in logprobs]
        return ScoreResult(rows, prompt_tokens)
    require_classifier(manager)
    if label_token_ids is not None:
        raise BadRequest("label_token_ids is for language models, and this is a classifier", param="label_token_ids")
    as_pairs = manager.model_config.is_encoder and isinstance(query, str)
    prompts: list[Prompt] = [pair if as_pairs else pair[0] + pair[1] for pair in pairs]
    results = await embed(manager, embedding_requests(prompts, "items", is_batch=True, **fields))
    scores = [result.numbers() for result in results]
    if apply_softmax:
        scores = [softmax(row, temperature) for row in scores]
    return ScoreResult(scores, sum(result.prompt_tokens for result in results))


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


async def _label_logprobs(
    manager: TokenizerManager, pairs: Sequence[tuple[Any, Any]], labels: Sequence[list[int]], fields: dict[str, Any]
) -> tuple[list[list[float]], int]:
    """Logprobs of each item's labels after its prompt, and the number of prompt tokens."""
    manager.limits.check_token_ids(sorted({label for each in labels for label in each}), "label_token_ids")
    params = SamplingParams(max_new_tokens=1, temperature=0.0, ignore_eos=True)
    requests = [
        GenerateRequest(
            rids=[new_request_id()],
            text=first + second if isinstance(first, str) else None,
            input_ids=None if isinstance(first, str) else array("i", [*first, *second]),
            prompt_param=f"items[{index}]",
            sampling_params=params,
            return_logprob=True,
            token_ids_logprob=each,
            **fields,
        )
        for index, ((first, second), each) in enumerate(zip(pairs, labels, strict=True))
    ]
    rows: list[list[float]] = [[] for _ in requests]
    prompt_tokens = 0
    async with manager.generation(requests) as generation:
        while generation.unfinished:
            for state, delta in await generation.deltas():
                failure = failure_of(delta.finish_reason)
                if failure is not None:
                    raise failure
                if not delta.logprobs:
                    raise RequestFailed("the request was aborted", status_code=ABORTED_STATUS, code="aborted")
                rows[state.index] = [value for value, _ in delta.logprobs[0].chosen or ()]
                prompt_tokens += delta.prompt_tokens
    return rows, prompt_tokens
