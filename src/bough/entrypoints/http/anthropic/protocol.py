"""The bodies of ``/v1/messages`` and ``/v1/messages/count_tokens``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES
from bough.entrypoints.http.openai.structured import JsonSchema
from bough.entrypoints.http.openai.tools import Purpose, StrictCall, ToolName
from bough.entrypoints.http.shared_fields import ModelName, StopString, Temperature, TopK, TopP
from bough.managers.io_struct import RANK_ALIASES, RoutedRank
from bough.other_engines import fields_of
from bough.sampling.sampling_params import MAX_STOP_STRINGS

MIN_THINKING_BUDGET = 1024
"""Smallest ``thinking.budget_tokens``, as at Anthropic."""


class Thinking(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the model thinks before it answers, and whether that is shown."""

    type: Annotated[
        Literal["enabled", "disabled", "adaptive"], Meta(description="With `adaptive` the model decides to think.")
    ]
    budget_tokens: Annotated[
        Annotated[int, Meta(ge=MIN_THINKING_BUDGET)] | None,
        Meta(description="Most tokens of the thoughts, which are ended then; less than `max_tokens`."),
    ] = None
    display: Annotated[
        Literal["summarized", "omitted"] | None, Meta(description="`omitted` leaves the text of the thoughts out.")
    ] = None


class AnthropicToolChoice(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a tool is called, and which."""

    type: Annotated[
        Literal["auto", "any", "tool", "none"],
        Meta(description="`auto`: a tool may be called; `any`: one must be; `tool`: that of `name`; `none`: no tool."),
    ]
    name: Annotated[str | None, Meta(description="Its name.")] = None
    disable_parallel_tool_use: Annotated[bool | None, Meta(description="At most one call in an answer.")] = None


class OutputFormat(msgspec.Struct, forbid_unknown_fields=True):
    """A schema that the answer follows."""

    type: Literal["json_schema"]
    schema: Annotated[dict[str, Any], Meta(description="The JSON schema.")]


class OutputConfig(msgspec.Struct, forbid_unknown_fields=True):
    """How much the model thinks, and what its answer follows."""

    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        Meta(description="How much the model thinks, for its chat template; `none` asks for no thoughts."),
    ] = None
    format: OutputFormat | None = None


class CountTokensRequest(msgspec.Struct, kw_only=True):
    """Body of ``/v1/messages/count_tokens``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name is taken and given back.")]
    messages: Annotated[
        Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MAX_MESSAGES)],
        Meta(
            description="The conversation so far: objects with `role` (`user`, `assistant`, `system`) and `content`, a "
            "string or blocks: `text`, `tool_use`, `tool_result`, `thinking`, `redacted_thinking`, `search_result`, "
            "`document` (of text). If the last message is the assistant's, the answer goes on with it."
        ),
    ]
    system: Annotated[
        str | list[dict[str, Any]] | None, Meta(description="What the model is told first: a string or text blocks.")
    ] = None
    tools: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=MAX_TOOLS)] | None,
        Meta(
            description="Functions that the model may call: `name`, `description`, `input_schema`, `strict`. Tools "
            "that the server would run, such as web search, are left out."
        ),
    ] = None
    tool_choice: Annotated[
        AnthropicToolChoice | None,
        Meta(description="Whether the model may, must or must not call a tool; `any` and `tool` always parse."),
    ] = None
    thinking: Annotated[
        Thinking | None,
        Meta(
            description="Whether the model thinks before it answers; its own default if absent. Thoughts of "
            "`budget_tokens` tokens, which must be less than `max_tokens`, are ended, and the answer follows; without "
            "it, and where it is not known how the model marks its thoughts, `max_tokens` bounds both together."
        ),
    ] = None
    output_config: Annotated[
        OutputConfig | None,
        Meta(description="`effort`: how much the model thinks; `format`: a JSON schema that the answer follows."),
    ] = None
    chat_template_kwargs: Annotated[dict[str, Any] | None, Meta(description="Variables of the chat template.")] = None


class MessagesRequest(CountTokensRequest, kw_only=True):
    """Body of ``/v1/messages``."""

    max_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)],
        Meta(description="Most tokens to generate; lowered to what the context has room for."),
    ]
    stream: Annotated[bool, Meta(description="Answer with server-sent events.")] = False
    stop_sequences: Annotated[
        Annotated[list[StopString], Meta(max_length=MAX_STOP_STRINGS)] | None,
        Meta(description="Strings that end the output; they are not part of it."),
    ] = None
    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    routed_dp_rank: RoutedRank = None


class AnthropicTool(msgspec.Struct):
    """A tool of ``/v1/messages``."""

    name: ToolName
    input_schema: JsonSchema
    type: Annotated[str | None, Meta(description="`custom`; tools that a server would run are left out.")] = None
    description: Purpose = None
    strict: StrictCall = None


class AnthropicBlock(msgspec.Struct):
    """A part of a message. Which members it has depends on its type; types that are not known are left out.

    Members have no types here, since those of a block that is left out may have any.
    """

    type: Annotated[
        str,
        Meta(
            description="`text`, `tool_use`, `tool_result`, `thinking`, `redacted_thinking`, `search_result` or "
            "`document`."
        ),
    ]
    text: Annotated[Any, Meta(description="Of `text`: a string.")] = None
    id: Annotated[Any, Meta(description="Of `tool_use`: a string.")] = None
    name: Annotated[Any, Meta(description="Of `tool_use`: a string.")] = None
    input: Annotated[Any, Meta(description="Of `tool_use`: the arguments, an object.")] = None
    tool_use_id: Annotated[Any, Meta(description="Of `tool_result`: the `id` of its call.")] = None
    content: Annotated[Any, Meta(description="Of `tool_result` and `search_result`: a text, or blocks of text.")] = None
    is_error: Annotated[Any, Meta(description="Of `tool_result`: true or false.")] = None
    thinking: Annotated[Any, Meta(description="Of `thinking`: a string.")] = None
    signature: Annotated[Any, Meta(description="Of `thinking`; without effect.")] = None
    data: Annotated[Any, Meta(description="Of `redacted_thinking`; without effect.")] = None
    title: Annotated[Any, Meta(description="Of `search_result` and `document`: a string.")] = None
    source: Annotated[Any, Meta(description="Of `search_result`, a text; of `document`, an object with its text.")] = (
        None
    )
    context: Annotated[Any, Meta(description="Of `document`: a string.")] = None


class AnthropicTextBlock(msgspec.Struct):
    """A block of the system's text."""

    type: Annotated[str, Meta(description="`text`; kinds that are no text are left out.")]
    text: Annotated[Any, Meta(description="Of `text`: the text.")] = None


class AnthropicInputMessage(msgspec.Struct):
    """A message of a conversation."""

    role: Annotated[Literal["user", "assistant", "system"], Meta(description="Who says it.")]
    content: Annotated[
        str | list[AnthropicBlock] | None,
        Meta(description="What is said: a text, or its parts. Only the assistant's may be left out."),
    ] = None


_SCHEMAS: dict[str, Any] = {
    "messages": Annotated[list[AnthropicInputMessage], Meta(min_length=1, max_length=MAX_MESSAGES)],
    "system": str | list[AnthropicTextBlock] | None,
    "tools": Annotated[list[AnthropicTool], Meta(max_length=MAX_TOOLS)] | None,
}
"""Types of fields that :mod:`~bough.entrypoints.http.anthropic.convert` takes apart."""

_EXAMPLE = {"model": "sapling", "messages": [{"role": "user", "content": "Tell me about the oak."}]}


_NO_EFFECT = {
    "metadata": "Notes of the caller.",
    "service_tier": "Class of service.",
    "cache_control": "Prefixes are shared anyway.",
    "betas": "Names of features that are being tried out.",
    "inference_geo": "Where the answer is computed.",
    "user_profile_id": "End user that the request is for.",
    "workspace_id": "Group of users that the request is for.",
    "diagnostics": "Asks for facts about the prompt cache.",
    "context_management": "What may be cleared to save room; the conversation stays as it is.",
    "speed": "A faster class of service.",
}


_EXTRAS = dict.fromkeys(("thinking", "tool_choice", "output_config"), False)

MESSAGES = BodySpec(
    MessagesRequest,
    aliases=RANK_ALIASES,
    extras=_EXTRAS,
    schemas=_SCHEMAS,
    no_effect=_NO_EFFECT,
    refused=fields_of("messages"),
    example={**_EXAMPLE, "max_tokens": 24, "system": "You know trees."},
)

COUNT_TOKENS = BodySpec(
    CountTokensRequest,
    extras=_EXTRAS,
    schemas=_SCHEMAS,
    example=_EXAMPLE,
    no_effect={
        **_NO_EFFECT,
        "max_tokens": "Of the answer.",
        "stream": "Of the answer.",
        "temperature": "Of the answer.",
    },
    refused=fields_of("messages"),
)
