"""What a caller asks of an embedding or classification model.

:class:`EmbeddingReqInput` has the fields of ``POST /encode`` and ``POST /classify`` and of ``Engine.encode``. Like its
sister for generating it is expanded at the edge, into one :class:`EmbeddingRequest` per prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from bough.errors import BadRequest
from bough.json_words import wrong_field
from bough.managers.io_struct import (
    NO_LOGS,
    GenerateRequest,
    QueueFields,
    RequestId,
    is_nested,
    new_request_id,
    pack_token_ids,
)
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.tokenizer import TokenIds

MAX_DIMENSIONS = 2**31 - 1

Dimensions = Annotated[int, Meta(ge=1, le=MAX_DIMENSIONS)]
Truncation = Annotated[int, Meta(ge=-1, le=2**31 - 1, extra_json_schema={"not": {"const": 0}})]

Prompt: TypeAlias = "str | tuple[str, str] | TokenIds"
"""A text, a pair of texts, or token ids."""

_NOTHING_GENERATED = SamplingParams(max_new_tokens=0)


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

    @property
    def is_batch(self) -> bool:
        """Whether the answer is a list: several texts were given, be it a list of one."""
        return isinstance(self.text, list) or (self.text is None and is_nested(self.input_ids))

    def requests(self, *, max_outputs: int | None = None) -> Iterator[EmbeddingRequest]:
        """One request per text; see :func:`embedding_requests`.

        Args:
            max_outputs: most texts allowed; ``None`` for no bound.

        Raises:
            BadRequest: naming the field that is missing, of the wrong type or of the wrong length.
        """
        for name, kind in _CHECKED_FIELDS:
            try:
                msgspec.convert(getattr(self, name), kind)
            except msgspec.ValidationError as error:
                raise wrong_field(name, error, getattr(self, name)) from None
        if self.text is None and self.input_ids is None:
            raise BadRequest("text or input_ids is required", param="text", code="missing_required_parameter")
        if self.text is not None and self.input_ids is not None:
            raise BadRequest("give either text or input_ids, not both", param="text")
        param = "text" if self.text is not None else "input_ids"
        prompts = _texts(self.text) if self.text is not None else _token_ids(self.input_ids)
        return embedding_requests(
            prompts,
            param,
            is_batch=self.is_batch,
            rid=self.rid,
            max_outputs=max_outputs,
            dimensions=self.dimensions,
            truncate_to=self.truncate_prompt_tokens,
            return_prompt_token_ids=self.return_prompt_token_ids,
            log_metrics=self.log_metrics,
            no_logs=self.no_logs,
            priority=self.priority,
            timeout=self.timeout,
            extra_key=self.prefix_namespace,
        )


class EmbeddingRequest(GenerateRequest, kw_only=True):
    """Make a vector of one prompt, after which nothing is generated."""

    sampling_params: SamplingParams = _NOTHING_GENERATED
    text_pair: str | None = None
    """The second text, for models that judge pairs; the first one is ``text``."""
    first_param: str | None = None
    """What the client called the first text of a pair, if that is a field of its own."""
    token_types: bytes | None = None
    """Which text of a pair each token belongs to, one byte a token; filled in with ``input_ids``."""
    dimensions: int | None = None
    truncate_to: int | None = None
    """Most tokens: the end of the text, or of the second one of a pair, is cut off. -1: what the model takes;
    ``None``: what is too long is an error."""


def probe_request(rid: str, *, is_generation: bool, max_new_tokens: int) -> GenerateRequest:
    """A request that costs little, of the kind that a model answers; it is not counted.

    Args:
        rid: its id.
        is_generation: whether the model generates text.
        max_new_tokens: tokens to generate, if it does.
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

    Args:
        prompts: at least one.
        param: what the client calls them.
        is_batch: whether there may be several, so that errors say which.
        rid: one id that is numbered for a batch, or one each; ``None`` for random ones.
        max_outputs: most prompts allowed; ``None`` for no bound.
        truncate_to: see :attr:`EmbeddingRequest.truncate_to`.
        fields: further fields of all requests.

    Raises:
        BadRequest: if there are none or too many, the ids do not fit, or nothing would be left of a prompt.
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


def request_ids(rid: str | list[str] | None, count: int, *, is_batch: bool) -> Iterator[str]:
    """Ids of ``count`` requests: those given, one that is numbered for a batch, or random ones."""
    if isinstance(rid, list) and len(rid) != count:
        raise BadRequest(f"rid has {len(rid)} entries for {count} prompts", param="rid")
    for index in range(count):
        if rid is None:
            yield new_request_id()
        elif isinstance(rid, str):
            yield f"{rid}_{index}" if is_batch else rid
        else:
            yield rid[index]


def _texts(text: str | list[str | list[str]]) -> list[Prompt]:
    if isinstance(text, str):
        return [text]
    return [each if isinstance(each, str) else (each[0], each[1]) for each in text]


def _token_ids(ids: Any) -> list[Prompt]:
    if is_nested(ids):
        return [pack_token_ids(prompt, f"input_ids[{index}]") for index, prompt in enumerate(ids)]
    return [pack_token_ids(ids, "input_ids")]


_CHECKED_FIELDS: tuple[tuple[str, Any], ...] = tuple(
    (field.name, field.type) for field in msgspec.structs.fields(EmbeddingReqInput) if field.name != "input_ids"
)
