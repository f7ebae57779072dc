"""The body of ``POST /v1/responses``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS, Effort
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES, MAX_TOP_LOGPROBS
from bough.entrypoints.http.openai.structured import JsonSchema, Strict
from bough.entrypoints.http.openai.tools import FunctionName, Parameters, Purpose, StrictCall, ToolName
from bough.entrypoints.http.shared_fields import ModelName, SamplingFields, WithObfuscation
from bough.managers.io_struct import RANK_ALIASES
from bough.other_engines import fields_of

WITH_LOGPROBS = "message.output_text.logprobs"
"""What ``include`` may ask for that changes something."""

Includable = Literal[
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.results",
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
]

MAX_METADATA_ENTRIES = 16
MAX_USER_CHARS = 1024
MetadataKey = Annotated[str, Meta(max_length=64)]
MetadataValue = Annotated[str, Meta(max_length=512)]


class ResponseReasoning(msgspec.Struct, forbid_unknown_fields=True):
    """How much the model thinks before it answers."""

    effort: Annotated[
        Effort | None,
        Meta(description="How much the model thinks, for its chat template; `none` asks for no thoughts."),
    ] = None
    summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, Meta(description="Given back; thoughts are never summarised.")
    ] = None
    generate_summary: Annotated[
        Literal["auto", "concise", "detailed"] | None, Meta(description="Older name of `summary`.")
    ] = None
    context: Annotated[
        str | None, Meta(description="Which earlier thoughts the model sees; without effect, that is for its template.")
    ] = None


class TextConfig(msgspec.Struct, forbid_unknown_fields=True):
    """What the text of the answer follows."""

    format: Annotated[dict[str, Any] | None, Meta(description="What the output follows.")] = None
    verbosity: Annotated[
        Literal["low", "medium", "high"] | None,
        Meta(description="Without effect: the model chooses how much it says, and `instructions` may ask."),
    ] = None


class ResponseStreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What a stream tells besides its events; nothing."""

    include_obfuscation: WithObfuscation = None
    reasoning_summary_delivery: Annotated[
        str | None, Meta(description="When summaries of thoughts are told; without effect, since none are made.")
    ] = None


class ResponsesRequest(SamplingFields, kw_only=True):
    """Body of ``/v1/responses``."""

    input: Annotated[
        str | Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MAX_MESSAGES)],
        Meta(
            description="What is new in the conversation: a text, or items of the types `message`, `function_call`, "
            "`function_call_output`, `reasoning` and `item_reference` (to an item of a response that is kept). "
            "Calls of other tools, and their results, are shown as calls of functions; other items are left out."
        ),
    ]
    instructions: Annotated[
        str | None, Meta(description="What the model is told first; not carried over to later responses.")
    ] = None
    model: Annotated[ModelName | None, Meta(description="Name of the model. Any name is taken and given back.")] = None
    request_id: Annotated[
        Annotated[str, Meta(pattern=r"^resp_[A-Za-z0-9_-]{1,128}$(?!\n)")] | None,
        Meta(description="Id of the response; made up if absent."),
    ] = None
    previous_response_id: Annotated[
        str | None, Meta(description="Go on with the conversation of this response, which must still be stored.")
    ] = None
    store: Annotated[bool, Meta(description="Keep the response, to be retrieved or gone on with.")] = True
    background: Annotated[
        bool,
        Meta(
            description="Answer at once and work on; the response is retrieved later, or followed with `stream`, also "
            "after the client has left. Needs `store`."
        ),
    ] = False
    stream: Annotated[bool, Meta(description="Answer with server-sent events.")] = False
    stream_options: Annotated[
        ResponseStreamOptions | None, Meta(description="What a stream tells besides its events; nothing.")
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)] | None,
        Meta(description="Most tokens to generate, thoughts included; until the context is full if absent."),
    ] = None
    reasoning: Annotated[
        ResponseReasoning | None,
        Meta(description="`effort`: how much the model thinks. Thoughts are shown whole, so `summary` has no effect."),
    ] = None
    text: Annotated[
        TextConfig | None,
        Meta(description="`format`: `text`, `json_object` or `json_schema` (with `schema`), which the output follows."),
    ] = None
    tools: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=MAX_TOOLS)] | None,
        Meta(
            description="Functions that the model may call, also in namespaces; tools that the server would run, and "
            "those whose calls are no JSON (`custom`, `shell` …), are left out."
        ),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(description="`none`, `auto`, `required`, a function by `name`, or `allowed_tools`."),
    ] = None
    parallel_tool_calls: Annotated[bool, Meta(description="Whether one answer may hold several calls.")] = True
    max_tool_calls: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)] | None,
        Meta(
            description="Most calls of tools that a server runs, as at OpenAI; this one runs none, and calls of "
            "functions do not count. Given back with the response."
        ),
    ] = None
    top_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None,
        Meta(description=f"Return logprobs with so many alternatives per token, as does `{WITH_LOGPROBS}`."),
    ] = None
    include: Annotated[
        list[Includable] | None,
        Meta(
            description=f"More to return: `{WITH_LOGPROBS}`. The others have no effect: thoughts are never encrypted, "
            "and the server runs no tools."
        ),
    ] = None
    truncation: Annotated[
        Literal["auto", "disabled"],
        Meta(
            description="`auto`: leave out the beginning of a conversation that is too long, but for what the system "
            "says there; `disabled`: refuse it."
        ),
    ] = "disabled"
    metadata: Annotated[
        Annotated[dict[MetadataKey, MetadataValue], Meta(max_length=MAX_METADATA_ENTRIES)] | None,
        Meta(description="Notes of the caller, given back with the response."),
    ] = None
    user: Annotated[
        Annotated[str, Meta(max_length=MAX_USER_CHARS)] | None, Meta(description="Given back with the response.")
    ] = None
    chat_template_kwargs: Annotated[dict[str, Any] | None, Meta(description="Variables of the chat template.")] = None


class ResponsesTool(msgspec.Struct):
    """A tool of ``/v1/responses``, or a namespace of such."""

    type: Literal["function", "namespace"]
    name: ToolName
    tools: Annotated[Any, Meta(description="For `namespace`: a list of functions.")] = None
    description: Purpose = None
    parameters: Parameters = None
    strict: StrictCall = None


class ResponsesToolChoice(msgspec.Struct):
    """The function that is to be called, or the tools that may be."""

    type: Literal["function", "allowed_tools"]
    name: ToolName | None = None
    namespace: Annotated[str | None, Meta(description="Of the function, where its name is not enough.")] = None
    mode: Annotated[
        Literal["auto", "required"] | None, Meta(description="With `required` one of the tools must be called.")
    ] = None
    tools: Annotated[list[FunctionName] | None, Meta(description="For `allowed_tools`.")] = None


class TextFormat(msgspec.Struct):
    """Form of the text of a response."""

    type: Literal["text", "json_object", "json_schema"]
    schema: Annotated[JsonSchema | bool | None, Meta(description="For the type `json_schema`.")] = None
    name: Annotated[str | None, Meta(description="Its name.")] = None
    description: Annotated[str | None, Meta(description="What it is for.")] = None
    strict: Strict = None


class ResponsesText(msgspec.Struct):
    """``text`` of a response."""

    format: TextFormat | None = None
    verbosity: Annotated[
        Literal["low", "medium", "high"] | None,
        Meta(description="Without effect: the model chooses how much it says, and `instructions` may ask."),
    ] = None


class ResponsesPart(msgspec.Struct):
    """A part of an item's content."""

    type: Literal["input_text", "output_text", "text", "reasoning_text", "summary_text", "refusal"]
    text: Annotated[str | None, Meta(description="The text.")] = None
    refusal: Annotated[str | None, Meta(description="Why the assistant did not answer, in its words.")] = None


class ResponsesItem(msgspec.Struct):
    """An item of a conversation; which members it has depends on its type."""

    type: Annotated[
        Literal["message", "function_call", "function_call_output", "reasoning"] | None,
        Meta(description="Kind of the item."),
    ] = "message"
    role: Annotated[Literal["user", "assistant", "system", "developer"] | None, Meta(description="Of `message`.")] = (
        None
    )
    content: Annotated[str | list[ResponsesPart] | None, Meta(description="Of `message` and `reasoning`.")] = None
    call_id: Annotated[str | None, Meta(description="Of `function_call` and `function_call_output`.")] = None
    name: Annotated[str | None, Meta(description="Of `function_call`.")] = None
    namespace: Annotated[str | None, Meta(description="Of `function_call`.")] = None
    arguments: Annotated[str | None, Meta(description="Of `function_call`: JSON.")] = None
    output: Annotated[str | list[ResponsesPart] | None, Meta(description="Of `function_call_output`.")] = None
    summary: Annotated[list[ResponsesPart] | None, Meta(description="Of `reasoning`.")] = None
    id: Annotated[str | None, Meta(description="Its id.")] = None
    status: Annotated[str | None, Meta(description="How far it is.")] = None


_SCHEMAS: dict[str, Any] = {
    "input": str | Annotated[list[ResponsesItem], Meta(min_length=1, max_length=MAX_MESSAGES)],
    "tools": Annotated[list[ResponsesTool], Meta(max_length=MAX_TOOLS)] | None,
    "tool_choice": Literal["none", "auto", "required"] | ResponsesToolChoice | None,
    "text": ResponsesText | None,
}
"""Types of fields that :mod:`~bough.entrypoints.http.responses.convert` takes apart."""


RESPONSES = BodySpec(
    ResponsesRequest,
    schemas=_SCHEMAS,
    example={"model": "sapling", "input": "Tell me about the oak.", "max_output_tokens": 24},
    aliases=RANK_ALIASES,
    extras=dict.fromkeys(("reasoning", "text", "stream_options"), False),
    no_effect={
        "service_tier": "Class of service.",
        "safety_identifier": "End user that the request is for.",
        "prompt_cache_key": "Prefixes are shared anyway.",
        "prompt_cache_retention": "Prefixes are kept as long as there is room.",
        "prompt_cache_options": "Prefixes are kept as long as there is room.",
        "session_id": "Name of a conversation, for the caller's own use.",
        "client_metadata": "Notes of the caller's program.",
        "access_programs": "Ways of access that the caller has.",
        "context_management": "When the conversation may be shortened; it stays as it is.",
    },
    refused=fields_of("responses"),
)
