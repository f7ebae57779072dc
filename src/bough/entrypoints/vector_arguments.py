"""From what callers of an ``Engine`` hand in to plain values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from bough.errors import BadRequest
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import pack_token_ids
from bough.managers.scoring import rerank
from bough.managers.tokenizer_manager import TokenizerManager


def plain(value: Any) -> Any:
    """Arrays and tensors, of whatever library, and tuples as lists, two levels deep."""
    if hasattr(value, "tolist") and not isinstance(value, array):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        nested = len(value) > 0 and (hasattr(value[0], "tolist") or isinstance(value[0], (list, tuple)))
        return [plain(each) for each in value] if nested else list(value)
    return value


def vector_request(**fields: Any) -> EmbeddingReqInput:
    """The request that the arguments of ``Engine.encode`` ask for, by the names of its fields."""
    return EmbeddingReqInput(**{name: plain(value) for name, value in fields.items() if value is not None})


def score_args(query: Any, items: Any, label_token_ids: Any) -> tuple[Any, Any, Any]:
    """What ``Engine.score`` was given: texts as they are, token ids packed."""
    several = [items] if isinstance(items, str) else plain(items)
    if not isinstance(several, list):
        raise BadRequest("items must be a text, a list of texts or a list of lists of token ids", param="items")
    packed = [item if isinstance(item, str) else pack_token_ids(item, f"items[{i}]") for i, item in enumerate(several)]
    return (
        query if isinstance(query, str) else pack_token_ids(plain(query), "query"),
        packed,
        plain(label_token_ids),
    )


async def rerank_native(manager: TokenizerManager, pairs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """The relevance of the document in each pair of a query and a document, as ``Engine.rerank`` returns it."""
    listed = isinstance(pairs, Iterable) and not isinstance(pairs, str)
    given = [plain(pair) for pair in pairs] if listed else []
    # Two letters are no pair, though they can be unpacked like one.
    if not given or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in given
    ):
        raise BadRequest("prompt must be a list of pairs of a query and a document", param="prompt")
    results = await rerank(manager, [(query, document) for query, document in given], param="prompt")
    return [{"embedding": each.relevance, "meta_info": each.meta_info} for each in results]
