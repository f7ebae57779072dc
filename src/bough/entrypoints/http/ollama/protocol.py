"""The bodies of Ollama's routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.ollama.options import OllamaOptions
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES, MAX_TOP_LOGPROBS
from bough.entrypoints.http.openai.structured import JsonSchema
from bough.entrypoints.http.openai.tools import TOOL_FIELDS
from bough.entrypoints.http.shared_fields import ModelName
from bough.managers.embedding_struct import Dimensions
from bough.managers.io_struct import RANK_ALIASES, RoutedFields
from bough.other_engines import fields_of

ThinkingLevel = Literal["low", "medium", "high", "max"]


class OllamaFunction(msgspec.Struct, forbid_unknown_fields=True):
    """The function of an earlier tool call."""

    name: Annotated[str, Meta(description="Its name.")]
    arguments: Annotated[
        dict[str, Any] | str | None, Meta(description="The arguments, as JSON text or as an object.")
    ] = None
    index: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(description="Without effect: calls are taken in their order."),
    ] = None


class OllamaToolCall(msgspec.Struct, forbid_unknown_fields=True):
    """An earlier tool call."""

    function: OllamaFunction
    id: Annotated[str | None, Meta(description="Its id.")] = None
    type: Annotated[str | None, Meta(description="Without effect: tools are functions.")] = None
    index: Annotated[
        Annotated[int, Meta(ge=0, le=2**31 - 1)] | None,
        Meta(description="Without effect: calls are taken in their order."),
    ] = None


class OllamaMessage(msgspec.Struct, forbid_unknown_fields=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Annotated[str | None, Meta(description="The text.")] = None
    thinking: Annotated[str | None, Meta(description="The thoughts before the answer.")] = None
    tool_calls: Annotated[list[OllamaToolCall] | None, Meta(description="Calls that the assistant makes.")] = None
    tool_name: Annotated[str | None, Meta(description="Name of the tool of which this is the result.")] = None
    name: Annotated[str | None, Meta(description="Another name of `tool_name`.")] = None
    tool_call_id: Annotated[
        str | None,
        Meta(description="Id of the call of which this is the result; if absent, the next one's without a result."),
    ] = None
    images: Annotated[list[Any] | None, Meta(description="Only null or an empty list: messages are text.")] = None


class OllamaShared(RoutedFields, kw_only=True):
    """What ``/api/chat`` and ``/api/generate`` have in common."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name is taken and given back.")]
    stream: Annotated[bool, Meta(description="Answer with a JSON object a line, as it comes.")] = True
    format: Annotated[
        str | dict[str, Any] | None, Meta(description="`json`, or a JSON schema, that the answer follows.")
    ] = None
    options: Annotated[
        dict[str, Any] | None,
        Meta(
            description="`temperature`, `top_p`, `top_k`, `min_p`, `seed`, `stop`, `num_predict`, `repeat_penalty`, "
            "`repeat_last_n`, `presence_penalty`, `frequency_penalty`. Options about memory and devices have no "
            "effect; others are ignored, and named in the log and in `x-bough-ignored-fields`."
        ),
    ] = None
    think: Annotated[
        bool | ThinkingLevel | None,
        Meta(description="Whether the model thinks before it answers, or how much; its own default if absent."),
    ] = None
    logprobs: Annotated[bool, Meta(description="Return the logprob of every token.")] = False
    top_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)],
        Meta(description="Return so many alternatives per token; needs `logprobs`."),
    ] = 0


class OllamaChatRequest(OllamaShared, kw_only=True):
    """Body of ``/api/chat``."""

    messages: Annotated[
        Annotated[list[OllamaMessage], Meta(max_length=MAX_MESSAGES)],
        Meta(description="The conversation so far: `role`, `content`, `thinking`, `tool_calls`, `tool_name`."),
    ] = msgspec.field(default_factory=list)
    tools: Annotated[
        Annotated[list[Any], Meta(max_length=MAX_TOOLS)] | None,
        Meta(description="Functions that the model may call, as in `/v1/chat/completions`."),
    ] = None


class OllamaGenerateRequest(OllamaShared, kw_only=True):
    """Body of ``/api/generate``."""

    prompt: Annotated[str, Meta(description="What the user says, or with `raw` the whole prompt.")] = ""
    system: Annotated[str | None, Meta(description="What the model is told first.")] = None
    suffix: Annotated[
        str | None, Meta(description="Text behind the gap to fill, for models with fill-in-the-middle tokens.")
    ] = None
    raw: Annotated[bool, Meta(description="Take the prompt as it is, without the chat template.")] = False


class OllamaEmbedRequest(RoutedFields, kw_only=True):
    """Body of ``/api/embed``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name is taken and given back.")]
    input: Annotated[
        str | Annotated[list[str], Meta(max_length=MAX_OUTPUTS_PER_REQUEST)],
        Meta(description="A text, or several; nothing, for a look whether the model is there."),
    ] = ""
    truncate: Annotated[
        bool, Meta(description="Cut a longer text at its end to what the model takes, instead of refusing it.")
    ] = True
    dimensions: Annotated[
        Dimensions | None,
        Meta(description="How many numbers of the embedding to return, for models trained for that (Matryoshka)."),
    ] = None


class OllamaEmbeddingsRequest(RoutedFields, kw_only=True):
    """Body of ``/api/embeddings``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name means the one that is served.")]
    prompt: Annotated[str, Meta(description="The text; a longer one is cut at its end.")] = ""


class OllamaShowRequest(msgspec.Struct, kw_only=True):
    """Body of ``/api/show``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name means the one that is served.")] = ""


_NO_EFFECT = {"keep_alive": "The model stays loaded as long as the server runs."}

_SCHEMAS: dict[str, Any] = {"options": OllamaOptions | None, "format": Literal["json"] | JsonSchema | None}
_OAK = "Tell me about the oak."

OLLAMA_CHAT = BodySpec(
    OllamaChatRequest,
    aliases=RANK_ALIASES,
    extras={"messages": False},
    schemas={**_SCHEMAS, "tools": TOOL_FIELDS["tools"]},
    no_effect=_NO_EFFECT,
    example={"model": "sapling", "messages": [{"role": "user", "content": _OAK}], "options": {"num_predict": 24}},
)
OLLAMA_GENERATE = BodySpec(
    OllamaGenerateRequest,
    aliases=RANK_ALIASES,
    schemas=_SCHEMAS,
    example={"model": "sapling", "prompt": _OAK, "options": {"num_predict": 24}},
    no_effect=_NO_EFFECT,
    refused=fields_of("ollama"),
)
_NO_EFFECT_ON_VECTORS = {**_NO_EFFECT, "options": "Nothing is sampled."}
OLLAMA_EMBED = BodySpec(
    OllamaEmbedRequest,
    aliases=RANK_ALIASES,
    no_effect=_NO_EFFECT_ON_VECTORS,
    example={"model": "minilm", "input": ["The oak is a large tree.", "A big tree: the oak."]},
)
OLLAMA_EMBEDDINGS = BodySpec(
    OllamaEmbeddingsRequest,
    aliases=RANK_ALIASES,
    no_effect=_NO_EFFECT_ON_VECTORS,
    example={"model": "minilm", "prompt": "The oak is a large tree."},
)
OLLAMA_SHOW = BodySpec(
    OllamaShowRequest,
    example={"model": "sapling"},
    no_effect={
        "name": "Earlier name of `model`, which clients in Go send beside it.",
        "verbose": "There is no longer form.",
        "system": "System message to show the model with; it is shown as it is served.",
        "template": "Template to show the model with; it is shown as it is served.",
        "options": "Options to show the model with; it is shown as it is served.",
    },
)
