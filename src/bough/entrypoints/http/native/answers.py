"""What the native routes answer with. See :mod:`bough.entrypoints.http.answers`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.http.answers import Count, LogprobTriple, Seconds, Status, TokenId


class FinishReasonAnswer(msgspec.Struct):
    """Why an output ended."""

    type: Literal["stop", "length", "abort"]
    matched: Annotated[
        TokenId | str | UnsetType | None, Meta(description="Stop token, stop string or pattern that ended the output.")
    ] = UNSET
    length: Annotated[Count | UnsetType | None, Meta(description="Tokens that were generated.")] = UNSET
    message: str | UnsetType = UNSET
    status_code: Status | UnsetType = UNSET


class WeightSpan(msgspec.Struct):
    """The tokens of an output that weights of one name have made."""

    version: Annotated[str, Meta(description="What they are called.")]
    start: Annotated[Count, Meta(description="The first token, from 0.")]
    end: Annotated[Count, Meta(description="The one after the last.")]


class MetaInfo(msgspec.Struct):
    """Counts, times and log-probabilities of one output."""

    id: Annotated[str, Meta(description="Id of the request.")]
    finish_reason: FinishReasonAnswer | None
    prompt_tokens: Count
    completion_tokens: Count
    cached_tokens: Annotated[Count, Meta(description="Prompt tokens whose computation was reused.")]
    reasoning_tokens: Count
    weight_version: str
    num_retractions: Annotated[Count, Meta(description="How often the request had to give up its memory.")]
    weight_versions: Annotated[
        list[WeightSpan] | UnsetType,
        Meta(description="Whose tokens are whose, if the weights have changed meanwhile; at the end."),
    ] = UNSET
    e2e_latency: Annotated[Seconds | UnsetType, Meta(description="Seconds from arrival to end; at the end.")] = UNSET
    input_token_logprobs: Annotated[
        list[LogprobTriple] | UnsetType, Meta(description="Log-probability, token id, and text if it was asked for.")
    ] = UNSET
    output_token_logprobs: list[LogprobTriple] | UnsetType = UNSET
    input_top_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_top_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    input_token_ids_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_token_ids_logprobs: list[list[LogprobTriple] | None] | UnsetType = UNSET
    output_token_logprobs_length: Count | UnsetType = UNSET


class GenerateAnswer(msgspec.Struct):
    """One output of ``/generate``."""

    output_ids: list[TokenId]
    meta_info: MetaInfo
    text: Annotated[str | UnsetType, Meta(description="Absent on a server without a tokenizer.")] = UNSET
    prompt_token_ids: list[TokenId] | UnsetType = UNSET
    index: Annotated[Count | UnsetType, Meta(description="Which output an event belongs to, if there are several.")] = (
        UNSET
    )


class EncodeAnswer(msgspec.Struct):
    """The vector of one text, in the native shape."""

    embedding: list[float]
    meta_info: dict[str, Any]
    prompt_token_ids: list[Count] | UnsetType = UNSET


class FunctionCall(msgspec.Struct):
    """A call that was found in a text."""

    tool_index: Count
    name: str
    parameters: Annotated[str, Meta(description="The arguments, as JSON text.")]


class FunctionCallsAnswer(msgspec.Struct):
    """Answer of ``/parse_function_call``."""

    normal_text: str
    calls: list[FunctionCall]


class TextBlock(msgspec.Struct):
    """A part of a text."""

    type: Literal["text", "reasoning"]
    text: str


class SeparateReasoningAnswer(msgspec.Struct):
    """Answer of ``/separate_reasoning``."""

    reasoning_text: str
    text: str
    reasoning_blocks: list[str] | UnsetType = UNSET
    text_blocks: list[str] | UnsetType = UNSET
    blocks: list[TextBlock] | UnsetType = UNSET


class TokenizeAnswer(msgspec.Struct):
    """Token ids; lists of lists for a list of texts."""

    tokens: list[TokenId | list[TokenId]]
    count: Count | list[Count]
    max_model_len: Count
    token_strs: list[str | list[str | None] | None] | UnsetType = UNSET


class DetokenizeAnswer(msgspec.Struct):
    """Text; a list of texts for a list of lists."""

    text: str | list[str]


class DoneAnswer(msgspec.Struct):
    """That something was done."""

    message: str
    status: Literal["ok"]


class WeightUpdateAnswer(msgspec.Struct):
    """What became of an update of the weights."""

    success: bool
    message: str
    num_paused_requests: Annotated[
        Count, Meta(description="Requests that were paused meanwhile, and go on with the new weights.")
    ]


class WeightVersionAnswer(msgspec.Struct):
    """What the weights are called now."""

    success: bool
    message: str
    new_version: str


class LoadsAnswer(msgspec.Struct):
    """How busy the schedulers are."""

    timestamp: str
    version: str
    accelerator: str | None
    num_accelerators: Count
    loads: list[dict[str, Any]]


class ModelInfo(msgspec.Struct):
    """What is being served."""

    model_path: str
    served_model_name: str
    tokenizer_path: str
    is_generation: bool
    weight_version: str
    load_format: str
    model_type: str | None
    architectures: list[str]


class ServerInfo(msgspec.Struct):
    """Options (by their names), capacity and state of the server."""

    launch_command: str
    internal_states: list[dict[str, Any]]
    version: str
    frontend: str
