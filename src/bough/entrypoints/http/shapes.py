"""What stands inside fields that are read as plain JSON, for the description of the API.

These types describe; they decode nothing. Where a field takes several shapes, its own code takes them apart, so that an
error names the place and so that a member of no consequence does not break a request.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES
from bough.parsers.base import MAX_NAME_CHARS
from bough.sampling.sampling_params import (
    MAX_CHOICES,
    MAX_GRAMMAR_BYTES,
    MAX_REPETITION_PENALTY,
    MAX_REPETITION_WINDOW,
    MAX_STOP_STRING_CHARS,
    MAX_STOP_STRINGS,
    MIN_REPETITION_PENALTY,
)

JsonSchema = Annotated[dict[str, Any], Meta(description="A JSON schema.")]
GrammarText = Annotated[str, Meta(min_length=1, max_length=MAX_GRAMMAR_BYTES)]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS)]
Choices = Annotated[list[str], Meta(min_length=1, max_length=MAX_CHOICES)]
_STRICT = "Whether a schema that cannot be enforced completely is refused; else it is enforced as far as possible."
Stop = Annotated[str, Meta(min_length=1, max_length=MAX_STOP_STRING_CHARS)]


# --- tools ------------------------------------------------------------------------------------------------------------


class FunctionDescription(msgspec.Struct):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: Annotated[JsonSchema | None, Meta(description="Schema of the arguments, of the type `object`.")] = None
    strict: Annotated[bool | None, Meta(description="Whether a call that the model chooses to make follows it.")] = None


class FunctionTool(msgspec.Struct):
    """A tool, in OpenAI's words."""

    function: FunctionDescription
    type: Annotated[Literal["function"], Meta(description="May be left out.")] = "function"


class FunctionName(msgspec.Struct):
    """A function by its name."""

    name: Name


class NamedFunction(msgspec.Struct):
    """The function that is to be called."""

    type: Literal["function"]
    function: FunctionName


class ResponsesTool(msgspec.Struct):
    """A tool of ``/v1/responses``, or a namespace of such."""

    type: Literal["function", "namespace"]
    name: Name
    tools: Annotated[list[dict[str, Any]] | None, Meta(description="Of `namespace`: functions.")] = None
    description: str | None = None
    parameters: Annotated[JsonSchema | None, Meta(description="Schema of the arguments, of the type `object`.")] = None
    strict: bool | None = None


class ResponsesToolChoice(msgspec.Struct):
    """The function that is to be called, or the tools that may be."""

    type: Literal["function", "allowed_tools"]
    name: Name | None = None
    namespace: Annotated[str | None, Meta(description="Of the function, where its name is not enough.")] = None
    mode: Literal["auto", "required"] | None = None
    tools: Annotated[list[FunctionName] | None, Meta(description="For `allowed_tools`.")] = None


class AnthropicTool(msgspec.Struct):
    """A tool of ``/v1/messages``."""

    name: Name
    input_schema: JsonSchema
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None


Choice = Literal["none", "auto", "required"]
Tools = Annotated[list[FunctionTool], Meta(max_length=MAX_TOOLS)] | None
ToolChoice = Choice | NamedFunction | None


# --- structured output ------------------------------------------------------------------------------------------------


class NamedSchema(msgspec.Struct):
    """A schema with a name."""

    schema: JsonSchema | bool
    name: str | None = None
    description: str | None = None
    strict: Annotated[bool | None, Meta(description=_STRICT)] = None


class ResponseFormat(msgspec.Struct):
    """What the output follows."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: Annotated[NamedSchema | None, Meta(description="For the type `json_schema`.")] = None
    structures: Annotated[list[Any] | None, Meta(description="For the type `structural_tag`, its older form.")] = None
    triggers: Annotated[list[str] | None, Meta(description="For the type `structural_tag`, its older form.")] = None
    format: Annotated[dict[str, Any] | None, Meta(description="For the type `structural_tag`, its newer form.")] = None


class TextFormat(msgspec.Struct):
    """What the text of a response follows."""

    type: Literal["text", "json_object", "json_schema"]
    schema: Annotated[JsonSchema | bool | None, Meta(description="For the type `json_schema`.")] = None
    name: str | None = None
    description: str | None = None
    strict: Annotated[bool | None, Meta(description=_STRICT)] = None


class ResponsesText(msgspec.Struct):
    """``text`` of a response."""

    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StructuredOutputs(msgspec.Struct):
    """vLLM's object for output that follows something: one of these."""

    json: JsonSchema | GrammarText | None = None
    json_object: bool | None = None
    regex: GrammarText | None = None
    choice: Choices | None = None
    grammar: GrammarText | None = None
    structural_tag: dict[str, Any] | GrammarText | None = None


# --- messages ---------------------------------------------------------------------------------------------------------


class AnthropicBlock(msgspec.Struct):
    """A part of a message; which members it has depends on its type."""

    type: Literal["text", "tool_use", "tool_result", "thinking", "redacted_thinking", "search_result", "document"]
    text: Annotated[str | None, Meta(description="Of `text`.")] = None
    id: Annotated[str | None, Meta(description="Of `tool_use`.")] = None
    name: Annotated[str | None, Meta(description="Of `tool_use`.")] = None
    input: Annotated[dict[str, Any] | None, Meta(description="Of `tool_use`: the arguments.")] = None
    tool_use_id: Annotated[str | None, Meta(description="Of `tool_result`.")] = None
    content: Annotated[
        str | list[Any] | None, Meta(description="Of `tool_result` and `search_result`: a text, or blocks of text.")
    ] = None
    is_error: Annotated[bool | None, Meta(description="Of `tool_result`.")] = None
    thinking: Annotated[str | None, Meta(description="Of `thinking`.")] = None
    signature: Annotated[str | None, Meta(description="Of `thinking`; without effect.")] = None
    data: Annotated[str | None, Meta(description="Of `redacted_thinking`; without effect.")] = None
    title: Annotated[str | None, Meta(description="Of `search_result` and `document`.")] = None
    source: Annotated[
        str | dict[str, Any] | None, Meta(description="Of `search_result`, a text; of `document`, where its text is.")
    ] = None
    context: Annotated[str | None, Meta(description="Of `document`.")] = None


class AnthropicTextBlock(msgspec.Struct):
    """A text, or something that is read as one."""

    type: Literal["text"]
    text: str


class AnthropicInputMessage(msgspec.Struct):
    """A message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | list[AnthropicBlock]


class ResponsesPart(msgspec.Struct):
    """A part of an item's content."""

    type: Literal["input_text", "output_text", "text", "reasoning_text", "summary_text", "refusal"]
    text: str | None = None
    refusal: str | None = None


class ResponsesItem(msgspec.Struct):
    """An item of a conversation; which members it has depends on its type."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
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
    id: str | None = None
    status: str | None = None


class OllamaOptions(msgspec.Struct):
    """How tokens are chosen, and when the output ends, in Ollama's words."""

    temperature: Annotated[float, Meta(ge=0, le=10000)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: Annotated[
        Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None, Meta(description="0 and less keep all tokens.")
    ] = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    seed: Annotated[
        Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None, Meta(description="-1: another one every time.")
    ] = None
    stop: Stop | Annotated[list[Stop], Meta(max_length=MAX_STOP_STRINGS)] | None = None
    num_predict: Annotated[
        Annotated[int, Meta(ge=-2, le=2**31 - 1)] | None,
        Meta(description="Most tokens to generate; -1 and -2: until the context is full."),
    ] = None
    repeat_penalty: Annotated[float, Meta(ge=MIN_REPETITION_PENALTY, le=MAX_REPETITION_PENALTY)] | None = None
    repeat_last_n: Annotated[
        Annotated[int, Meta(ge=-1, le=MAX_REPETITION_WINDOW)] | None,
        Meta(
            description="Tokens at the end of prompt and output that `repeat_penalty` counts; 64 if not given, -1: all."
        ),
    ] = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    num_ctx: Annotated[Any, Meta(description="Without effect, as are others that are chosen at the start.")] = None


# --- which field holds what -------------------------------------------------------------------------------------------

_STRUCTURED = {
    "response_format": ResponseFormat | None,
    "structured_outputs": StructuredOutputs | None,
    "json_schema": JsonSchema | GrammarText | bool | None,
    "guided_json": JsonSchema | GrammarText | bool | None,
    "regex": GrammarText | None,
    "guided_regex": GrammarText | None,
    "ebnf": GrammarText | None,
    "guided_grammar": GrammarText | None,
    "structural_tag": dict[str, Any] | GrammarText | None,
    "choice": Choices | None,
    "guided_choice": Choices | None,
}
_TOOLS = {"tools": Tools, "tool_choice": ToolChoice}
_MESSAGES = {
    "messages": Annotated[list[AnthropicInputMessage], Meta(min_length=1, max_length=MAX_MESSAGES)],
    "system": str | list[AnthropicTextBlock] | None,
    "tools": Annotated[list[AnthropicTool], Meta(max_length=MAX_TOOLS)] | None,
}
_OLLAMA = {"options": OllamaOptions | None, "format": Literal["json"] | JsonSchema | None}

SHAPES: dict[str, dict[str, Any]] = {
    "CompletionRequest": _STRUCTURED,
    "ChatCompletionRequest": {**_STRUCTURED, **_TOOLS},
    "TokenizeRequest": _TOOLS,
    "ParseFunctionCallRequest": {"tools": list[FunctionTool]},
    "ResponsesRequest": {
        "input": str | Annotated[list[ResponsesItem], Meta(min_length=1, max_length=MAX_MESSAGES)],
        "tools": Annotated[list[ResponsesTool], Meta(max_length=MAX_TOOLS)] | None,
        "tool_choice": Choice | ResponsesToolChoice | None,
        "text": ResponsesText | None,
    },
    "CountTokensRequest": _MESSAGES,
    "MessagesRequest": _MESSAGES,
    "OllamaChatRequest": {**_OLLAMA, "tools": Tools},
    "OllamaGenerateRequest": _OLLAMA,
}
"""By the body's name and the field's: what the field holds, where its own type says less."""
