"""Arguments of an ``Engine``'s methods, once for the plain and the ``async_`` form of each, and the requests they make.

A function here has the name and the parameters of the methods that it serves; :func:`takes` gives them to these.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, Union, cast

import msgspec

from bough.config.options import did_you_mean
from bough.errors import BadRequest
from bough.json_words import kind_of
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import GenerateReqInput, check_types, pack_token_ids, plain
from bough.managers.profiles import ProfileReqInput
from bough.sampling.sampling_params import SamplingParams

P = ParamSpec("P")
Owner = TypeVar("Owner")
Made = TypeVar("Made")
T = TypeVar("T")

OneOrMany = Union[T, Sequence[T]]  # noqa: UP007 (evaluated on Python 3.10)
SamplingParamsLike = Union[dict[str, Any], SamplingParams]  # noqa: UP007
EncodePrompt = Union[str, Sequence[Union[str, Sequence[str]]]]  # noqa: UP007


def takes(
    make: Callable[P, Made],
) -> Callable[[Callable[[Owner, Made], T]], Callable[Concatenate[Owner, P], T]]:
    """Give a method the parameters of ``make``, and hand it what ``make`` returns for its arguments."""

    def decorate(method: Callable[[Owner, Made], T]) -> Callable[Concatenate[Owner, P], T]:
        def call(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return method(self, make(*args, **kwargs))

        async def call_async(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> Any:
            return await cast(Any, method(self, make(*args, **kwargs)))

        made = functools.wraps(method)(call_async if inspect.iscoroutinefunction(method) else call)
        parameters = inspect.signature(make).parameters.values()
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        made.__signature__ = inspect.signature(method).replace(parameters=[own, *parameters])  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[Owner, P], T]", made)

    return decorate


def generate(
    prompt: OneOrMany[str] | None = None,
    sampling_params: OneOrMany[SamplingParamsLike] | None = None,
    input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
    return_logprob: OneOrMany[bool] = False,
    logprob_start_len: OneOrMany[int] | None = None,
    top_logprobs_num: OneOrMany[int] | None = None,
    token_ids_logprob: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
    stream: bool = False,
    rid: OneOrMany[str] | None = None,
    priority: int | None = None,
    extra_key: OneOrMany[str] | None = None,
    return_text_in_logprobs: bool = False,
    *,
    cache_salt: OneOrMany[str] | None = None,
    session_params: OneOrMany[dict[str, Any]] | None = None,
    return_prompt_token_ids: bool = False,
    routed_dp_rank: int | None = None,
    data_parallel_rank: int | None = None,
    return_routed_experts: bool | None = None,
    routed_experts_start_len: int | None = None,
    **others: Any,
) -> GenerateReqInput:
    """Request of ``Engine.generate``; ``None`` is the default of each field.

    Raises:
        BadRequest: if ``stream``, the only field that is looked at before the request is on its way, is neither true
            nor false, or one of ``others`` asks for something.
        TypeError: if there is no such keyword.
    """
    _check_keywords(generate, others, session_params=session_params)
    if not isinstance(stream, bool):
        raise BadRequest(f"stream must be true or false, got {kind_of(stream)}", param="stream")
    given = _given(
        text=prompt,
        input_ids=input_ids,
        return_logprob=return_logprob,
        logprob_start_len=logprob_start_len,
        top_logprobs_num=top_logprobs_num,
        token_ids_logprob=token_ids_logprob,
        rid=rid,
        priority=priority,
        extra_key=extra_key,
        return_text_in_logprobs=return_text_in_logprobs,
        cache_salt=cache_salt,
        session_params=session_params,
        return_prompt_token_ids=return_prompt_token_ids or None,
        routed_dp_rank=data_parallel_rank if routed_dp_rank is None else routed_dp_rank,
        return_routed_experts=return_routed_experts,
        routed_experts_start_len=routed_experts_start_len,
    )
    return GenerateReqInput(sampling_params=_plain_params(sampling_params), stream=stream, **given)


def encode(
    prompt: EncodePrompt | None = None,
    dimensions: int | None = None,
    rid: OneOrMany[str] | None = None,
    *,
    input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
    truncate_prompt_tokens: int | None = None,
    priority: int | None = None,
    cache_salt: str | None = None,
    return_prompt_token_ids: bool = False,
    **others: Any,
) -> EmbeddingReqInput:
    """Request of ``Engine.encode``.

    Raises:
        BadRequest: if one of ``others`` asks for something.
        TypeError: if there is no such keyword.
    """
    _check_keywords(encode, others)
    given = _given(
        text=prompt,
        dimensions=dimensions,
        rid=rid,
        input_ids=input_ids,
        truncate_prompt_tokens=truncate_prompt_tokens,
        priority=priority,
        cache_salt=cache_salt,
        return_prompt_token_ids=return_prompt_token_ids or None,
    )
    return EmbeddingReqInput(**given)


def score(
    query: str | Sequence[int],
    items: str | Sequence[str] | Sequence[Sequence[int]],
    label_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
    apply_softmax: bool = False,
    item_first: bool = False,
    *,
    temperature: float = 1.0,
) -> dict[str, Any]:
    """Arguments of :func:`bough.managers.scoring.score`: texts as they are, token ids packed."""
    several = [items] if isinstance(items, str) else plain(items)
    if not isinstance(several, list):
        raise BadRequest("items must be a text, a list of texts or a list of lists of token ids", param="items")
    packed = [item if isinstance(item, str) else pack_token_ids(item, f"items[{i}]") for i, item in enumerate(several)]
    return {
        "query": query if isinstance(query, str) else pack_token_ids(plain(query), "query"),
        "items": packed,
        "label_token_ids": plain(label_token_ids),
        "apply_softmax": apply_softmax,
        "item_first": item_first,
        "temperature": temperature,
    }


def start_profile(
    *,
    output_dir: str | None = None,
    num_steps: int | None = None,
    activities: Sequence[str] | None = None,
    with_stack: bool = False,
    record_shapes: bool = False,
    profile_id: str | None = None,
    profile_prefix: str | None = None,
    **others: Any,
) -> ProfileReqInput:
    """Request of ``Engine.start_profile``.

    Raises:
        BadRequest: if a value is wrong, or one of ``others`` asks for something.
        TypeError: if there is no such keyword.
    """
    _check_keywords(start_profile, others)
    given = _given(
        output_dir=output_dir,
        num_steps=num_steps,
        activities=activities,
        with_stack=with_stack,
        record_shapes=record_shapes,
        profile_id=profile_id,
        profile_prefix=profile_prefix,
    )
    request = ProfileReqInput(**given)
    check_types(request)
    return request


def pairs_of(prompt: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Pairs of a query and a document that ``Engine.rerank`` was given."""
    listed = isinstance(prompt, Iterable) and not isinstance(prompt, str)
    given = [plain(pair) for pair in prompt] if listed else []
    # Two letters are no pair, though they can be unpacked like one.
    if not given or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in given
    ):
        raise BadRequest("prompt must be a list of pairs of a query and a document", param="prompt")
    return [(query, document) for query, document in given]


def _check_keywords(method: Callable[..., Any], others: Mapping[str, Any], **given: Any) -> None:
    """Refuse further keywords of SGLang's where they ask for something, as ``/generate``, or ``/encode``, does.

    ``given`` are arguments that some of these keywords cannot stand beside.

    Raises:
        TypeError: if there is no such keyword, with a suggestion.
        BadRequest: if one asks for something.
    """
    if not others:
        return
    # Not read by programs that do not need it: what HTTP bodies hold takes milliseconds to import.
    from bough.entrypoints.http.native.encode import ENCODE
    from bough.entrypoints.http.native.profile import START_PROFILE
    from bough.entrypoints.http.native.protocol import GENERATE

    specs: dict[Callable[..., Any], Any] = {generate: GENERATE, encode: ENCODE, start_profile: START_PROFILE}
    spec = specs[method]
    for name, value in others.items():
        if name not in spec.no_effect and name not in spec.refused:
            arguments = [each for each in inspect.signature(method).parameters if each != "others"]
            hint = did_you_mean(name, [*arguments, *spec.no_effect, *spec.refused])
            raise TypeError(f"{method.__name__}() got an unexpected keyword argument {name!r}{hint}")
        asked = plain(value)
        # Each prompt of a batch may have its own.
        each = asked if isinstance(asked, list) and asked and name in spec.refused else [asked]
        for one in each:
            if one is not None:
                spec.check_ineffective(name, one)
        rival = spec.excludes.get(name)
        if value is not None and rival is not None and given.get(rival) is not None:
            raise BadRequest(f"give either {rival} or {name}, not both", param=name)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: plain(value) for name, value in fields.items() if value is not None}


def _plain_params(value: Any) -> Any:
    if isinstance(value, SamplingParams):
        return msgspec.to_builtins(value)  # only what differs from the defaults
    if isinstance(value, (list, tuple)):
        return [_plain_params(each) for each in value]
    return value
