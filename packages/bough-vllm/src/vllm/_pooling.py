"""Vectors that models make of prompts, for vLLM's tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bough.config.pooling import PoolingConfig
from bough.errors import BadRequest
from bough.managers.scoring import class_probabilities, cosine, relevance
from vllm._core import Core
from vllm.inputs import PromptType, prompt_fields
from vllm.pooling_params import PoolingParams

PoolingTask = Literal["embed", "classify"]

_NO_PARAMS = PoolingParams()


@dataclass(frozen=True)
class Vector:
    """The vector of a prompt, or what was made of it."""

    numbers: list[float]
    prompt_token_ids: list[int]
    num_cached_tokens: int


async def vectors(
    core: Core,
    task: PoolingTask,
    prompts: Sequence[PromptType],
    params: PoolingParams | Sequence[PoolingParams] | None,
    tokenization: Mapping[str, Any] | None,
) -> list[Vector]:
    """Make vectors of all prompts, at the same time: embeddings, or probabilities of classes.

    Raises:
        BadRequest: if the model does not do the task, or what is asked for is not possible.
    """
    pooling = _require(core, task)
    several = [params or _NO_PARAMS] * len(prompts) if not isinstance(params, Sequence) else list(params)
    if len(several) != len(prompts):
        raise BadRequest(
            f"pooling_params must have as many elements as prompts, {len(prompts)}", param="pooling_params"
        )
    for each in several:
        _check(pooling, each)
    truncate_to = _truncation(tokenization)

    async def one(prompt: PromptType, own: PoolingParams) -> Vector:
        made = await _encode(
            core, **prompt_fields(prompt)[0], dimensions=own.dimensions, truncate_prompt_tokens=truncate_to
        )
        if not pooling.is_classifier or own.use_activation is False:
            return made
        return Vector(class_probabilities(pooling, made.numbers), made.prompt_token_ids, made.num_cached_tokens)

    return await asyncio.gather(*(one(*each) for each in zip(prompts, several, strict=True)))


async def scores(core: Core, firsts: Sequence[str], seconds: Sequence[str], params: PoolingParams) -> list[Vector]:
    """Judge how well texts fit together: a number for each pair, of one first text with all others, or of each with its
    own.

    A model with one class judges the pair; of an embedding model it is the cosine of the two embeddings.

    Raises:
        BadRequest: as :func:`vectors`, or if the texts make no pairs.
    """
    for param, texts in (("data_1", firsts), ("data_2", seconds)):
        if not all(isinstance(text, str) for text in texts):
            raise BadRequest(f"{param} must be a text or a list of texts", param=param)
    if not seconds or len(firsts) not in (1, len(seconds)):
        raise BadRequest(
            f"data_1 must be one text, or as many as data_2 has, {len(seconds)}; there are {len(firsts)}",
            param="data_1",
        )
    repeats = len(seconds) if len(firsts) == 1 else 1
    pooling = core.model_config.pooling
    if pooling is not None and pooling.is_classifier:
        if pooling.dim != 1:
            raise BadRequest(f"this model tells {pooling.dim} classes apart; one that scores has one")
        pairs = zip(list(firsts) * repeats, seconds, strict=True)
        judged = await asyncio.gather(*(_encode(core, prompt=[pair], dimensions=params.dimensions) for pair in pairs))
        if params.use_activation is False:
            return judged
        return [
            Vector([relevance(pooling, each.numbers[0])], each.prompt_token_ids, each.num_cached_tokens)
            for each in judged
        ]
    made = await vectors(core, "embed", [*firsts, *seconds], params, None)
    lefts, rights = made[: len(firsts)] * repeats, made[len(firsts) :]
    return [
        Vector(
            [cosine(left.numbers, right.numbers)],
            left.prompt_token_ids + right.prompt_token_ids,
            left.num_cached_tokens + right.num_cached_tokens,
        )
        for left, right in zip(lefts, rights, strict=True)
    ]


async def _encode(core: Core, **fields: Any) -> Vector:
    answer = await core.engine.async_encode(return_prompt_token_ids=True, **fields)
    (one,) = answer if isinstance(answer, list) else [answer]
    return Vector(one["embedding"], one["prompt_token_ids"], one["meta_info"]["cached_tokens"])


def _require(core: Core, task: PoolingTask) -> PoolingConfig:
    """Return how the model pools; raises :class:`BadRequest` if it does not do the task."""
    pooling = core.model_config.pooling
    if pooling is None:
        raise BadRequest("this model generates text; runner='pooling' makes embeddings of it", param="pooling_task")
    if task not in get_args(PoolingTask):
        raise BadRequest(f"pooling_task must be embed or classify, got {task!r}", param="pooling_task")
    if pooling.is_classifier != (task == "classify"):
        does = "scores classes" if pooling.is_classifier else "makes embeddings"
        raise BadRequest(f"pooling_task is {task}, and this model {does}", param="pooling_task")
    return pooling


def _check(pooling: PoolingConfig, params: PoolingParams) -> None:
    """Refuse a ``use_activation`` that contradicts the checkpoint, which says if embeddings are scaled to length 1."""
    if not pooling.is_classifier and params.use_activation not in (None, pooling.normalize):
        raise BadRequest(
            f"use_activation must be {pooling.normalize} or None: this model's embeddings are "
            f"{'' if pooling.normalize else 'not '}scaled to length 1",
            param="use_activation",
        )


def _truncation(tokenization: Mapping[str, Any] | None) -> int | None:
    """Return the number of tokens of a text that are kept."""
    given = dict(tokenization or {})
    kept: int | None = given.pop("truncate_prompt_tokens", None)
    if given:
        raise BadRequest(f"tokenization_kwargs: {', '.join(given)} is not supported", param="tokenization_kwargs")
    return kept
