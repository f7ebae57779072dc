"""The bodies of ``/v1/embeddings``, ``/v1/classify``, ``/v1/rerank`` and ``/v1/score``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.openai.messages import TextPart
from bough.entrypoints.http.openai.protocol import TokenId
from bough.entrypoints.http.shared_fields import ModelName
from bough.errors import BadRequest, PayloadTooLarge
from bough.managers.embedding_struct import Dimensions, Truncation
from bough.managers.io_struct import QueueFields, RequestId
from bough.other_engines import fields_of

MAX_TEXT_PARTS = 1024
"""Most parts of one text."""


class VectorFields(QueueFields, kw_only=True):
    """What these bodies have in common."""

    model: Annotated[
        ModelName | None,
        Meta(description="Name of the model. Any name is taken and given back: the server serves one model."),
    ] = None
    rid: Annotated[RequestId | None, Meta(description="Id of the request; made up if absent.")] = None


class TextOnly(msgspec.Struct, forbid_unknown_fields=True):
    """A text as an object that has nothing else."""

    text: Annotated[str, Meta(description="The text.")]


class InputFields(VectorFields, kw_only=True):
    """What bodies have that give their texts as ``input``."""

    truncate_prompt_tokens: Annotated[
        Truncation | None,
        Meta(
            description="Cut a longer text at its end to so many tokens; -1: to what the model takes. Without it, a "
            "text that is too long is an error."
        ),
    ] = None


class EmbeddingsBody(InputFields, kw_only=True):
    """Body of ``/v1/embeddings``."""

    input: Annotated[
        str | list[str | int | list[int] | TextOnly],
        Meta(description="A text, a list of token ids, or a list of either; texts in it may be objects with `text`."),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"], Meta(description="Numbers, or their float32 bytes (little-endian) in base 64.")
    ] = "float"
    dimensions: Annotated[
        Dimensions | None,
        Meta(description="How many numbers of the embedding to return, for models trained for that (Matryoshka)."),
    ] = None


class ClassifyBody(InputFields, kw_only=True):
    """Body of ``/v1/classify``."""

    input: Annotated[
        str | list[str | int | list[int]], Meta(description="A text, a list of token ids, or a list of either.")
    ]


TextParts = Annotated[list[TextPart], Meta(min_length=1, max_length=MAX_TEXT_PARTS)]


def plain_text(given: str | list[TextPart] | TextOnly) -> str:
    """A text in whatever form it came; its parts are lines."""
    if isinstance(given, str):
        return given
    return given.text if isinstance(given, TextOnly) else "\n".join(part.text for part in given)


class RerankBody(VectorFields, kw_only=True):
    """Body of ``/v1/rerank``."""

    query: Annotated[
        Annotated[str, Meta(min_length=1)] | TextParts, Meta(description="What is looked for: a text, or parts of one.")
    ]
    documents: Annotated[
        Annotated[list[str | TextParts | TextOnly], Meta(min_length=1, max_length=MAX_OUTPUTS_PER_REQUEST)],
        Meta(description="What may answer the query: texts, as strings, as parts or as objects with `text`."),
    ]
    instruct: Annotated[
        str | None, Meta(description="What makes a document relevant; for language models only. Default: a web search.")
    ] = None
    top_n: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Return only so many, the most relevant ones.")
    ] = None
    return_documents: Annotated[bool, Meta(description="Repeat the texts in the answer.")] = True
    truncate_prompt_tokens: Annotated[
        Truncation,
        Meta(
            description="A cross-encoder's documents are cut at their end, so that query and document have so many "
            "tokens; -1: as many as the model takes."
        ),
    ] = -1


def check_batch(args: ServerArgs, param: str, shared_param: str, shared: int, sizes: Sequence[int]) -> None:
    """Check that a request of many entries, each of which is put together with one text, is not too much work.

    Args:
        args: say what is too much; prompts that are made of a request may be no more than it could have sent itself.
        param: what the client calls the entries.
        shared_param: what the client calls the text that goes with all of them.
        shared: its size, in characters or tokens.
        sizes: of the entries.

    Raises:
        BadRequest: if there are too many entries.
        PayloadTooLarge: if they come to too much.
    """
    most = args.max_outputs_per_request
    if len(sizes) > most:
        raise BadRequest(
            f"{param} has {len(sizes)} entries, and at most {most} are allowed in a request "
            "(--max-outputs-per-request)",
            param=param,
        )
    total = shared * len(sizes) + sum(sizes)
    if total > args.max_body_size:
        raise PayloadTooLarge(
            f"{shared_param} with each of {len(sizes)} {param} comes to {total} characters or tokens, and at most "
            f"{args.max_body_size} are allowed (--max-body-size); send fewer {param} at a time",
            param=param,
        )


Texts = str | Annotated[list[str], Meta(min_length=1, max_length=MAX_OUTPUTS_PER_REQUEST)]


class ScoreBody(VectorFields, kw_only=True):
    """Body of ``/v1/score``."""

    query: Annotated[
        str | list[TokenId] | None, Meta(description="Text or token ids. Either this and `items`, or vLLM's texts.")
    ] = None
    items: Annotated[
        str | Annotated[list[str | list[TokenId]], Meta(min_length=1, max_length=MAX_OUTPUTS_PER_REQUEST)] | None,
        Meta(description="What is scored: a text or several, or lists of token ids; as the query."),
    ] = None
    text_1: Annotated[
        Texts | None,
        Meta(
            description="vLLM's form: how alike, or how relevant, each `text_2` is for its `text_1`, or the only one."
        ),
    ] = None
    text_2: Annotated[Texts | None, Meta(description="A text, or several.")] = None
    truncate_prompt_tokens: Annotated[
        Truncation | None,
        Meta(description="With `text_1`: cut longer texts at their end; -1: to what the model takes."),
    ] = None
    label_token_ids: Annotated[
        list[TokenId | list[TokenId]] | None,
        Meta(description="For a language model: tokens whose probabilities are the scores; one list, or one per item."),
    ] = None
    apply_softmax: Annotated[bool, Meta(description="Scale the scores of an item to a sum of 1, by a softmax.")] = False
    temperature: Annotated[
        Annotated[float, Meta(gt=0, le=10000)], Meta(description="Of that softmax; needs `apply_softmax`.")
    ] = 1.0
    item_first: Annotated[bool, Meta(description="Put the item before the query.")] = False


_USER = {"user": "End user that the request is for."}
EMBEDDINGS = BodySpec(
    EmbeddingsBody,
    example={"model": "minilm", "input": ["The oak is a large tree.", "A big tree: the oak."]},
    token_ids=frozenset({"input"}),
    no_effect=_USER,
    refused=fields_of("vectors", "embeddings"),
)
CLASSIFY = BodySpec(
    ClassifyBody,
    example={"model": "classifier", "input": ["The oak is a large tree."]},
    token_ids=frozenset({"input"}),
    no_effect=_USER,
    refused=fields_of("vectors", "classify"),
)
RERANK = BodySpec(
    RerankBody,
    example={"model": "reranker", "query": "large trees", "documents": ["The oak.", "The cowberry."]},
    no_effect=_USER,
    refused=fields_of("vectors"),
)
SCORE = BodySpec(
    ScoreBody,
    example={"model": "sapling", "query": "Is the oak a tree?", "items": [" Yes"], "label_token_ids": [2454, 797]},
    token_ids=frozenset({"query", "items"}),
    aliases={"queries": "text_1", "documents": "text_2", "data_1": "text_1", "data_2": "text_2"},
    no_effect=_USER,
    refused=fields_of("vectors", "score"),
)
