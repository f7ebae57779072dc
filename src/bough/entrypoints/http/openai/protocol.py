"""The bodies of ``/v1/completions`` and ``/v1/chat/completions``."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.tools import MAX_TOOLS, Effort, Reasoning
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.messages import ChatMessage, tidy_messages
from bough.entrypoints.http.openai.names_of_others import OF_CHAT, OF_COMPLETIONS, UNTIL_FULL
from bough.entrypoints.http.openai.structured import STRUCTURED_FIELDS
from bough.entrypoints.http.openai.tools import TOOL_FIELDS
from bough.entrypoints.http.shared_fields import ModelName, SamplingFields, WithObfuscation
from bough.entrypoints.http.unknown_fields import Unknown
from bough.managers.io_struct import RequestId
from bough.managers.sessions import SessionParams
from bough.other_engines import fields_of
from bough.sampling.sampling_params import (
    MAX_ALLOWED_TOKEN_IDS,
    MAX_BAD_WORD_CHARS,
    MAX_BAD_WORDS,
    MAX_LOGIT_BIAS_ENTRIES,
    MAX_PARALLEL_SAMPLES,
    MAX_STOP_REGEX_BYTES,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    MAX_TOKENS_PER_BAD_WORD,
)

MAX_TOP_LOGPROBS = 20
"""Most alternatives per token; OpenAI's own bound."""

MAX_MESSAGES = 8192
"""Most messages of one conversation."""

MAX_TOKENS = 2**31 - 1

BadWord = Annotated[str, Meta(min_length=1, max_length=MAX_BAD_WORD_CHARS)]
StopRegex = Annotated[str, Meta(min_length=1, max_length=MAX_STOP_REGEX_BYTES)]
TokenId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
TokenCount = Annotated[int, Meta(ge=0, le=MAX_TOKENS)]
OutputBound = Annotated[int, Meta(ge=UNTIL_FULL, le=MAX_TOKENS)]


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """What a stream tells besides its text."""

    include_usage: Annotated[
        bool | None, Meta(description="End the stream with an event that has no choices and the whole usage.")
    ] = False
    continuous_usage_stats: Annotated[bool | None, Meta(description="Say the usage so far in every event.")] = False
    include_obfuscation: WithObfuscation = None


class SharedFields(SamplingFields, kw_only=True):
    """What completions and chat completions have in common."""

    model: Annotated[
        ModelName | None,
        Meta(description="Name of the model. Any name is taken and given back: the server serves one model."),
    ] = None
    stream: Annotated[bool, Meta(description="Answer with server-sent events.")] = False
    stream_options: Annotated[StreamOptions | None, Meta(description="What a stream says besides the text.")] = None
    n: Annotated[Annotated[int, Meta(ge=1, le=MAX_PARALLEL_SAMPLES)], Meta(description="Choices per prompt.")] = 1
    logit_bias: Annotated[
        dict[TokenId, Annotated[float, Meta(ge=-100, le=100)]] | None,
        Meta(description="Token id to a number added to its logit."),
    ] = None
    allowed_token_ids: Annotated[
        Annotated[list[TokenId], Meta(min_length=1, max_length=MAX_ALLOWED_TOKEN_IDS)] | None,
        Meta(description="The only tokens that may be generated, also to end the output. Default: all."),
    ] = None
    bad_words: Annotated[
        Annotated[list[BadWord], Meta(max_length=MAX_BAD_WORDS)] | None,
        Meta(
            description="Texts that are not generated, as the tokens that each is usually written with, with and "
            f"without a space before it; {MAX_BAD_WORD_CHARS} characters together, {MAX_TOKENS_PER_BAD_WORD} tokens "
            "each."
        ),
    ] = None
    stop_token_ids: Annotated[
        Annotated[list[TokenId], Meta(max_length=MAX_STOP_TOKEN_IDS)] | None,
        Meta(description="Tokens that end the output."),
    ] = None
    stop_regex: Annotated[
        StopRegex | Annotated[list[StopRegex], Meta(max_length=MAX_STOP_STRINGS)] | None,
        Meta(description="Regular expressions (RE2 syntax) that end the output when they match."),
    ] = None
    min_tokens: Annotated[
        TokenCount,
        Meta(description="Tokens before which the model and `stop_token_ids` do not end the output; `stop` may."),
    ] = 0
    no_stop_trim: Annotated[bool, Meta(description="Keep what ended the output in the text.")] = False
    ignore_eos: Annotated[bool, Meta(description="Go on after an end-of-sequence token.")] = False
    skip_special_tokens: Annotated[bool, Meta(description="Leave special tokens out of the text.")] = True
    spaces_between_special_tokens: Annotated[
        bool, Meta(description="For the few tokenizers that can leave these spaces out.")
    ] = True
    rid: Annotated[RequestId | None, Meta(description="Id of the request; made up if absent.")] = None
    response_format: Annotated[
        dict[str, Any] | None,
        Meta(
            description="What the output follows: `type` is `text`, `json_object`, `json_schema` (with "
            "`json_schema.schema`; with `strict`, refused if part of it cannot be enforced) or `structural_tag`. At "
            "most one of this and the next fields, up to `structured_outputs`, may be given."
        ),
    ] = None
    json_schema: Annotated[
        str | dict[str, Any] | bool | None, Meta(description="JSON schema, or its text, that the output follows.")
    ] = None
    regex: Annotated[str | None, Meta(description="Regular expression that the whole output matches.")] = None
    ebnf: Annotated[str | None, Meta(description="Grammar with a rule `root` that the whole output matches.")] = None
    structural_tag: Annotated[
        str | dict[str, Any] | None, Meta(description="Structural tag: parts of the output follow schemas.")
    ] = None
    choice: Annotated[list[str] | None, Meta(description="The output is one of these strings.")] = None
    guided_json: Annotated[str | dict[str, Any] | bool | None, Meta(description="vLLM's name of `json_schema`.")] = None
    guided_regex: Annotated[str | None, Meta(description="vLLM's name of `regex`.")] = None
    guided_choice: Annotated[list[str] | None, Meta(description="vLLM's name of `choice`.")] = None
    guided_grammar: Annotated[str | None, Meta(description="vLLM's name of `ebnf`.")] = None
    structured_outputs: Annotated[
        dict[str, Any] | None,
        Meta(description="vLLM's object with `json`, `json_object`, `regex`, `choice`, `grammar` or `structural_tag`."),
    ] = None
    prompt_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None,
        Meta(description="Return the logprob of every prompt token and of so many alternatives; not while streaming."),
    ] = None
    truncate_prompt_tokens: Annotated[
        Annotated[int, Meta(ge=-1, le=MAX_TOKENS, extra_json_schema={"not": {"const": 0}})] | None,
        Meta(description="Keep only so many tokens of the prompt's end; -1: as many as the model takes."),
    ] = None
    session_params: Annotated[
        SessionParams | None,
        Meta(
            description="Session that the request belongs to, and where it goes on; what is sent is what is new. Needs "
            "one prompt, and `n` to be 1."
        ),
    ] = None
    return_meta_info: Annotated[
        bool, Meta(description="Add the native `meta_info` to every choice: counts and times; not in streams.")
    ] = False
    return_cached_tokens_details: Annotated[
        bool, Meta(description="Add `sglext.cached_tokens_details`: cached tokens of the prompt, by where they were.")
    ] = False
    return_token_ids: Annotated[
        bool,
        Meta(
            description="Return the token ids of prompt and output: `prompt_token_ids` and `token_ids`. A server "
            "without a tokenizer always does."
        ),
    ] = False
    return_prompt_token_ids: Annotated[bool, Meta(description="Return the prompt's token ids.")] = False
    return_tokens_as_token_ids: Annotated[
        bool, Meta(description="Show tokens in logprobs as `token_id:` and their number, and not as text.")
    ] = False


class CompletionRequest(SharedFields, kw_only=True):
    """Body of ``/v1/completions``."""

    prompt: Annotated[
        str | list[str | int | list[int]],
        Meta(description="A text, a list of token ids, or a list of either."),
    ]
    max_tokens: Annotated[OutputBound, Meta(description="Most tokens to generate; -1: until the context is full.")] = 16
    max_completion_tokens: Annotated[OutputBound | None, Meta(description="The same, as chat completions call it.")] = (
        None
    )
    add_special_tokens: Annotated[
        bool, Meta(description="Add what the tokenizer puts around a text, such as BOS; for prompts that are text.")
    ] = True
    echo: Annotated[bool, Meta(description="Put the prompt before the output, in text and logprobs.")] = False
    logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None,
        Meta(description="Return the logprob of every token and of so many alternatives."),
    ] = None
    best_of: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_PARALLEL_SAMPLES)] | None,
        Meta(description="Sample so many outputs per prompt and return the `n` likeliest; not while streaming."),
    ] = None
    suffix: Annotated[
        str | None,
        Meta(description="Text behind the gap to fill, for models with fill-in-the-middle tokens."),
    ] = None


class ChatCompletionRequest(SharedFields, kw_only=True):
    """Body of ``/v1/chat/completions``."""

    messages: Annotated[
        Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)],
        Meta(
            description="The conversation so far: objects with `role` and `content` (a string or text parts). The "
            "assistant's may have `reasoning_content`, `tool_calls`, and as the last `prefix`, to be gone on with."
        ),
    ]
    max_completion_tokens: Annotated[
        OutputBound | None, Meta(description="Most tokens to generate; until the context is full if absent or -1.")
    ] = None
    max_tokens: Annotated[OutputBound | None, Meta(description="Older name of `max_completion_tokens`.")] = None
    logprobs: Annotated[bool, Meta(description="Return the logprob of every token.")] = False
    top_logprobs: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)] | None,
        Meta(description="Return so many alternatives per token; needs `logprobs`."),
    ] = None
    tools: Annotated[
        Annotated[list[Any], Meta(max_length=MAX_TOOLS)] | None,
        Meta(
            description="Functions that the model may call: objects with `type` and `function` (`name`, `description`, "
            "`parameters`, `strict`). Calls of those that are `strict` always fit their schema, "
            "which is refused if part of it cannot be enforced."
        ),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None,
        Meta(
            description="`none`, `auto` (default), `required`, or an object that names the function to call, or those "
            "that may be called (`allowed_tools`). Required calls always parse."
        ),
    ] = None
    parallel_tool_calls: Annotated[
        bool, Meta(description="Whether one answer may hold several calls; if not, further ones are left out.")
    ] = True
    separate_reasoning: Annotated[
        bool, Meta(description="Put the model's reasoning into `reasoning_content`; else it stays in `content`.")
    ] = True
    include_reasoning: Annotated[
        bool, Meta(description="Return the reasoning; if not, it is left out where it can be told apart.")
    ] = True
    stream_reasoning: Annotated[
        bool, Meta(description="Stream reasoning as it is made; else in one piece when it is complete.")
    ] = True
    reasoning_effort: Annotated[
        Effort | Annotated[float, Meta(ge=0, lt=1)] | None,
        Meta(
            description="How much the model thinks. The chat template gets it, and `thinking` and `enable_thinking` "
            "as true, or false for `none` and 0."
        ),
    ] = None
    reasoning: Annotated[
        Reasoning | None, Meta(description="How much the model thinks, and what is shown of it, in OpenRouter's form.")
    ] = None
    thinking: Annotated[
        bool | dict[str, Any] | None,
        Meta(description="Whether the model thinks: a boolean, or an object with `type` and perhaps `budget_tokens`."),
    ] = None
    continue_final_message: Annotated[
        bool, Meta(description="Go on with the last message, the assistant's, instead of answering it.")
    ] = False
    add_generation_prompt: Annotated[
        bool, Meta(description="End the prompt with the beginning of an assistant's message.")
    ] = True
    echo: Annotated[
        bool, Meta(description="With `continue_final_message`: put the text of that message before the output.")
    ] = False
    documents: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=MAX_MESSAGES)] | None,
        Meta(description="Texts for templates that have a place for them: objects with `title` and `text`."),
    ] = None
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, Meta(description="Variables of the chat template, such as `enable_thinking`.")
    ] = None
    input_ids: Annotated[
        list[int] | None, Meta(description="The whole prompt as token ids, instead of what the template makes.")
    ] = None


_NO_EFFECT = {
    "user": "End user that the request is for.",
    "metadata": "Notes of the caller.",
    "store": "Keep the answer for later; nothing is stored.",
    "service_tier": "Class of service.",
    "safety_identifier": "End user that the request is for.",
    "prompt_cache_key": "Prefixes are shared anyway.",
    "cache_prompt": "Prefixes are shared anyway.",
    "prompt_cache_retention": "Prefixes are kept as long as there is room.",
    "prompt_cache_options": "Prefixes are kept as long as there is room.",
    "session_id": "Name of a conversation, for the caller's own use.",
    "custom_labels": "Labels for metrics, of those that a server allows; this one allows none.",
    "guided_decoding_backend": "There is one grammar engine.",
}


def _tidy_effort(value: Any, unknown: Unknown | None) -> Any:
    return None if value in ("", "auto", "default") else value


def _tidy_stop(value: Any, unknown: Unknown | None) -> Any:
    """Stop strings without those that are empty, which no text ends before."""
    values = [value] if isinstance(value, str) else value
    return [each for each in values if each not in ("", None)] if isinstance(values, list) else value


def _tidy_reasoning(value: Any, unknown: Unknown | None) -> Any:
    if isinstance(value, (bool, str)):
        value = {"effort" if isinstance(value, str) else "enabled": value}
    if isinstance(value, dict):
        value = {**value, "effort": _tidy_effort(value.get("effort"), unknown)}
    return value


_TIDY = {"stop": _tidy_stop}
_EXTRAS = {"stream_options": True, "session_params": True}

_ALIASES = {"include_stop_str_in_output": "no_stop_trim", "request_id": "rid", "data_parallel_rank": "routed_dp_rank"}
"""vLLM's names."""

_MAX_ELEMENTS = {"logit_bias": MAX_LOGIT_BIAS_ENTRIES}

_EXCLUDES = {"session_id": "session_params"}

COMPLETIONS = BodySpec(
    CompletionRequest,
    schemas=STRUCTURED_FIELDS,
    example={"model": "sapling", "prompt": "The oak is", "max_tokens": 8, "stop": ["\n"]},
    excludes=_EXCLUDES,
    token_ids=frozenset({"prompt"}),
    aliases=_ALIASES,
    translated=OF_COMPLETIONS,
    tidy=_TIDY,
    extras=_EXTRAS,
    max_elements=_MAX_ELEMENTS,
    no_effect=_NO_EFFECT,
    refused=fields_of("completions"),
)

CHAT = BodySpec(
    ChatCompletionRequest,
    schemas={**STRUCTURED_FIELDS, **TOOL_FIELDS},
    example={
        "model": "sapling",
        "messages": [{"role": "user", "content": "Tell me about the oak."}],
        "max_tokens": 24,
        "temperature": 0,
    },
    excludes=_EXCLUDES,
    token_ids=frozenset({"input_ids"}),
    aliases=_ALIASES,
    translated=OF_CHAT,
    tidy={
        **_TIDY,
        "messages": tidy_messages,
        "reasoning": _tidy_reasoning,
        "reasoning_effort": _tidy_effort,
    },
    extras={**_EXTRAS, "messages": False, "reasoning": True},
    max_elements=_MAX_ELEMENTS,
    no_effect={
        **_NO_EFFECT,
        "prediction": "A guess at the answer, to make it faster.",
    },
    refused=fields_of("chat"),
)
