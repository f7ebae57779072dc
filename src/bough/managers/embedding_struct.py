"""Requests to an embedding or classification model.

:class:`EmbeddingReqInput` has the fields of ``POST /encode`` and ``POST /classify`` and of ``Engine.encode``. Like its
sister for generating it is expanded at the edge, into one :class:`EmbeddingRequest` per prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from bough.errors import BadRequest
from bough.ipc.messages import TokenizedEmbeddingReqInput
from bough.managers.io_struct import (
    NO_LOGS,
    GenerateRequest,
    QueueFields,
    RequestId,
    check_types,
    is_batch,
    pack_token_ids,
    prompts_of,
    request_ids,
)
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.tokenizer import TokenIds

MAX_DIMENSIONS = 2**31 - 1

Dimensions = Annotated[int, Meta(ge=1, le=MAX_DIMENSIONS)]
Truncation = Annotated[int, Meta(ge=-1, le=2**31 - 1, extra_json_schema={"not": {"const": 0}})]

Prompt: TypeAlias = "str | tuple[str, str] | TokenIds"
"""A text, a pair of texts, or token ids."""

_NOTHING_GENERATED = SamplingParams(max_new_tokens=0)


_SAME_FOR_ALL = ("dimensions", "return_prompt_token_ids", "log_metrics", "no_logs")
"""Fields that all texts of a batch have in common."""


class EmbeddingReqInput(QueueFields, kw_only=True):
    """Body of ``/encode`` and ``/classify``; a list where a scalar could stand makes a batch."""

    text: Annotated[
        str | list[str | Annotated[list[str], Meta(min_length=2, max_length=2)]] | None,
        Meta(description="The text, or a list of texts or of pairs of texts. Either this or `input_ids`."),
    ] = None
    input_ids: Annotated[
        Any, Meta(description="The text as token ids, or a list of such texts. Either this or `text`.")
    ] = None
    dimensions: Annotated[
        Dimensions | None,
        Meta(description="How many numbers of the embedding to return, for models trained for that (Matryoshka)."),
    ] = None
    truncate_prompt_tokens: Annotated[
        Truncation | None,
        Meta(
            description="Cut a longer text, or the second one of a pair, at its end to so many tokens in all; -1: to "
            "what the model takes. Without it, a text that is too long is an error."
        ),
    ] = None
    rid: Annotated[
        RequestId | list[RequestId] | None,
        Meta(description="Id of the request, for `/abort_request` and logs; made up if absent. `id` makes `id_0` ..."),
    ] = None
    return_prompt_token_ids: Annotated[bool, Meta(description="Add `prompt_token_ids` to the answer.")] = False
    log_metrics: Annotated[bool, Meta(description="Count this request in `/metrics`.")] = True
    no_logs: Annotated[bool, NO_LOGS] = False

    is_batch = property(is_batch)

    def requests(self, *, max_outputs: int | None = None) -> Iterator[EmbeddingRequest]:
        """Return one request per text, at most ``max_outputs``; see :func:`embedding_requests`. Raises
        :class:`BadRequest`, naming the field that is missing, of the wrong type or of the wrong length."""
        check_types(self)
        prompts, param = prompts_of(self.text, self.input_ids)
        return embedding_requests(
            [tuple(prompt) if isinstance(prompt, list) else prompt for prompt in prompts],
            param,
            is_batch=self.is_batch,
            rid=self.rid,
            max_outputs=max_outputs,
            truncate_to=self.truncate_prompt_tokens,
            extras=self.extras,
            **{name: getattr(self, name) for name in _SAME_FOR_ALL},
        )


class EmbeddingRequest(GenerateRequest, kw_only=True):
    """Make a vector of one prompt, after which nothing is generated."""

    sampling_params: SamplingParams = _NOTHING_GENERATED
    text_pair: str | None = None
    """The second text, for models that judge pairs; the first one is ``text``."""
    first_param: str | None = None
    """The client's name for the first text of a pair, if that is a field of its own."""
    token_types: bytes | None = None
    """Which text of a pair each token belongs to, one byte a token; filled in with ``input_ids``."""
    dimensions: int | None = None
    truncate_to: int | None = None
    """Most tokens: the end of the text, or of the second one of a pair, is cut off. -1: what the model takes;
    ``None``: what is too long is an error."""

    def to_message(self, sampling_params: SamplingParams) -> TokenizedEmbeddingReqInput:
        """Message to the scheduler, once the prompt is encoded; nothing is sampled."""
        assert self.input_ids is not None, "encoded"
        same = {name: getattr(self, name) for name in _SENT_AS_THEY_ARE}
        return TokenizedEmbeddingReqInput(rid=self.rids[0], input_ids=self.input_ids.tobytes(), **same)


_SENT_AS_THEY_ARE = set(TokenizedEmbeddingReqInput.__struct_fields__) - {"rid", "input_ids"}


def probe_request(rid: str, *, is_generation: bool, max_new_tokens: int) -> GenerateRequest:
    """Request that costs little, of the kind that a model answers; it is not counted.

    ``max_new_tokens`` are generated, if the model generates text.
    """
    ids = pack_token_ids([0], "input_ids")
    if not is_generation:
        return EmbeddingRequest(rids=[rid], input_ids=ids, log_metrics=False)
    params = SamplingParams(max_new_tokens=max_new_tokens, temperature=0.0, ignore_eos=True)
    return GenerateRequest(rids=[rid], input_ids=ids, sampling_params=params, log_metrics=False)


def embedding_requests(
    prompts: Sequence[Prompt],
    param: str,
    *,
    is_batch: bool,
    rid: str | list[str] | None = None,
    max_outputs: int | None = None,
    truncate_to: int | None = None,
    **fields: Any,
) -> Iterator[EmbeddingRequest]:
    """One request per prompt, made when it is asked for: thousands are too much work for one turn of an event loop.

    ``prompts`` are texts, pairs of texts, or token ids, ``param`` the client's name for them, and ``fields`` those of
    all requests. If ``is_batch``, errors say which prompt is meant. At most ``max_outputs`` are allowed. Raises
    :class:`BadRequest` if there are none or too many, the ids do not fit, or nothing would be left of a prompt.
    """
    if truncate_to == 0:
        raise BadRequest("truncate_prompt_tokens must be at least 1, or -1", param="truncate_prompt_tokens")
    if not prompts:
        raise BadRequest(f"{param} must not be an empty list", param=param)
    if max_outputs is not None and len(prompts) > max_outputs:
        raise BadRequest(
            f"{param} has {len(prompts)} entries, and at most {max_outputs} are allowed in a request", param=param
        )
    for index, (prompt, each_rid) in enumerate(
        zip(prompts, request_ids(rid, len(prompts), is_batch=is_batch), strict=True)
    ):
        first, second = prompt if isinstance(prompt, tuple) else (prompt, None)
        yield EmbeddingRequest(
            rids=[each_rid],
            text=first if isinstance(first, str) else None,
            text_pair=second,
            input_ids=None if isinstance(first, str) else first,
            prompt_param=f"{param}[{index}]" if is_batch else param,
            truncate_to=truncate_to,
            **fields,
        )
