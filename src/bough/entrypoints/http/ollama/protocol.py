"""The bodies of Ollama's routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES, MAX_TOP_LOGPROBS
from bough.entrypoints.http.shared_fields import ModelName
from bough.managers.embedding_struct import Dimensions
from bough.other_engines import fields_of

ThinkingLevel = Literal["low", "medium", "high", "max"]


class OllamaFunction(msgspec.Struct, forbid_unknown_fields=True):
    """The function of an earlier tool call."""

    name: str
    arguments: dict[str, Any] | str | None = None
    index: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None


class OllamaToolCall(msgspec.Struct, forbid_unknown_fields=True):
    """An earlier tool call."""

    function: OllamaFunction
    id: str | None = None
    type: str | None = None
    index: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None


class OllamaMessage(msgspec.Struct, forbid_unknown_fields=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[OllamaToolCall] | None = None
    tool_name: str | None = None
    name: Annotated[str | None, Meta(description="Another name of `tool_name`.")] = None
    tool_call_id: str | None = None
    images: list[Any] | None = None


class OllamaShared(msgspec.Struct, kw_only=True):
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


class OllamaEmbedRequest(msgspec.Struct, kw_only=True):
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


class OllamaEmbeddingsRequest(msgspec.Struct, kw_only=True):
    """Body of ``/api/embeddings``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name means the one that is served.")]
    prompt: Annotated[str, Meta(description="The text; a longer one is cut at its end.")] = ""


class OllamaShowRequest(msgspec.Struct, kw_only=True):
    """Body of ``/api/show``."""

    model: Annotated[ModelName, Meta(description="Name of the model. Any name means the one that is served.")] = ""


_NO_EFFECT = {"keep_alive": "The model stays loaded as long as the server runs."}

OLLAMA_CHAT = BodySpec(OllamaChatRequest, extras={"messages": False}, no_effect=_NO_EFFECT)
OLLAMA_GENERATE = BodySpec(
    OllamaGenerateRequest,
    no_effect=_NO_EFFECT,
    refused=fields_of("ollama"),
)
_NO_EFFECT_ON_VECTORS = {**_NO_EFFECT, "options": "Nothing is sampled."}
OLLAMA_EMBED = BodySpec(OllamaEmbedRequest, no_effect=_NO_EFFECT_ON_VECTORS)
OLLAMA_EMBEDDINGS = BodySpec(OllamaEmbeddingsRequest, no_effect=_NO_EFFECT_ON_VECTORS)
OLLAMA_SHOW = BodySpec(
    OllamaShowRequest,
    no_effect={
        "name": "Earlier name of `model`, which clients in Go send beside it.",
        "verbose": "There is no longer form.",
        "system": "System message to show the model with; it is shown as it is served.",
        "template": "Template to show the model with; it is shown as it is served.",
        "options": "Options to show the model with; it is shown as it is served.",
    },
)
