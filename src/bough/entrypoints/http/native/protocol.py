"""The body of ``/generate``."""

from __future__ import annotations

from typing import Any

from bough.entrypoints.http.fields import BodySpec
from bough.managers.io_struct import MAX_TOKEN_IDS_LOGPROB, GenerateReqInput
from bough.other_engines import fields_of
from bough.sampling.sampling_params import (
    MAX_ALLOWED_TOKEN_IDS,
    MAX_BAD_WORD_CHARS,
    MAX_BAD_WORDS,
    MAX_CHOICES,
    MAX_GRAMMAR_BYTES,
    MAX_GRAMMAR_DEPTH,
    MAX_LOGIT_BIAS_ENTRIES,
    MAX_PARALLEL_SAMPLES,
    MAX_REPETITION_PENALTY,
    MAX_REPETITION_WINDOW,
    MAX_STOP_REGEX_BYTES,
    MAX_STOP_STRING_CHARS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    MAX_TOKENS_PER_BAD_WORD,
    MIN_REPETITION_PENALTY,
)

_GRAMMAR_SIZE = f"at most {MAX_GRAMMAR_BYTES // 1024} KiB"

SAMPLING_PARAMS: dict[str, tuple[str, str]] = {
    "max_new_tokens": (
        "integer, at least 0, or null: until the context is full",
        "Most tokens to generate; what is more than the context has room for is lowered to that.",
    ),
    "min_new_tokens": (
        "integer, 0 to `max_new_tokens`",
        "Tokens before which the model and `stop_token_ids` do not end the output; `stop` may.",
    ),
    "stop": (
        f"string or array of at most {MAX_STOP_STRINGS} strings of 1 to {MAX_STOP_STRING_CHARS} characters",
        "Strings that end the output; they are not part of it.",
    ),
    "stop_token_ids": (f"token id or array of at most {MAX_STOP_TOKEN_IDS} of them", "Tokens that end the output."),
    "stop_regex": (
        f"string or array of at most {MAX_STOP_STRINGS} patterns of 1 to {MAX_STOP_REGEX_BYTES} bytes",
        "Regular expressions (RE2 syntax) that end the output when they match.",
    ),
    "json_schema": (
        f"JSON text of a schema, or the schema itself; {_GRAMMAR_SIZE}, nested at most {MAX_GRAMMAR_DEPTH} levels deep",
        "The output follows this JSON schema. At most one of this and the next four may be set.",
    ),
    "regex": (f"string, {_GRAMMAR_SIZE}", "The whole output matches this pattern."),
    "ebnf": (f"string, {_GRAMMAR_SIZE}", "The whole output matches this grammar, from its rule `root`."),
    "structural_tag": (
        f"JSON text of an object, or the object; {_GRAMMAR_SIZE}, nested at most {MAX_GRAMMAR_DEPTH} levels deep",
        "Parts of the output, between tags, follow schemas.",
    ),
    "choice": (
        f"array of at most {MAX_CHOICES} different strings, {_GRAMMAR_SIZE} together",
        "The output is one of these strings; anything if there are none.",
    ),
    "temperature": ("number, 0 to 10000", "0 takes the likeliest token always."),
    "top_p": ("number, 0 to 1", "Keep the likeliest tokens that have this probability together; 0 keeps one."),
    "top_k": ("integer, at least 1, or -1: all", "Keep so many of the likeliest tokens."),
    "min_p": ("number, 0 to 1", "Drop tokens less likely than this times the likeliest."),
    "frequency_penalty": ("number, -2 to 2", "Subtracted from a token's logit for each time that it is in the output."),
    "presence_penalty": ("number, -2 to 2", "Subtracted from a token's logit once it is in the output."),
    "repetition_penalty": (
        f"number, {MIN_REPETITION_PENALTY:g} to {MAX_REPETITION_PENALTY:g}",
        "Divides positive, multiplies negative logits of tokens of the output, or of `repetition_window`.",
    ),
    "repetition_window": (
        f"integer, 0 to {MAX_REPETITION_WINDOW}, or -1: all",
        "Tokens at the end of prompt and output that `repetition_penalty` counts, before the other penalties; the "
        "output, after them, if null.",
    ),
    "n": (f"integer, 1 to {MAX_PARALLEL_SAMPLES}", "Outputs per prompt."),
    "ignore_eos": ("boolean", "Go on after an end-of-sequence token."),
    "skip_special_tokens": ("boolean", "Leave special tokens out of the text."),
    "spaces_between_special_tokens": ("boolean", "For the few tokenizers that can leave these spaces out."),
    "no_stop_trim": ("boolean", "Keep what ended the output in the text."),
    "logit_bias": (
        f"object of at most {MAX_LOGIT_BIAS_ENTRIES} entries, token id to a number from -100 to 100",
        "Added to the logits of these tokens.",
    ),
    "allowed_token_ids": (
        f"array of 1 to {MAX_ALLOWED_TOKEN_IDS} token ids",
        "The only tokens that may be generated, also to end the output.",
    ),
    "bad_words": (
        f"array of at most {MAX_BAD_WORDS} strings, {MAX_BAD_WORD_CHARS} characters together, "
        f"{MAX_TOKENS_PER_BAD_WORD} tokens each",
        "Not generated, as the tokens that each is usually written with, with and without a space before it.",
    ),
    "thinking_token_budget": (
        "integer, at least 0",
        "Most tokens of the model's thoughts, which are ended then; any number if null. Needs a model of which it is "
        "known how it marks them.",
    ),
    "sampling_seed": ("integer of 64 bits", "Makes the output reproducible, whatever else is being computed."),
    "stream_interval": ("integer, at least 1", "Tokens per streamed event, instead of the server's setting."),
}
"""Range and meaning of each field of ``sampling_params``; null in any of them means its default."""

_GRAMMAR_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_GRAMMAR_BYTES}
_GRAMMAR_JSON = {"anyOf": [_GRAMMAR_TEXT, {"type": "object"}]}
_TOKEN_ID = {"type": "integer", "minimum": 0}
_SWITCH = {"type": "boolean"}


def _number(**bounds: float) -> dict[str, Any]:
    return {"type": "number", **bounds}


def _integer(**bounds: int) -> dict[str, Any]:
    return {"type": "integer", **bounds}


def _one_or_many(item: dict[str, Any], most: int) -> dict[str, Any]:
    return {"anyOf": [item, {"type": "array", "items": item, "maxItems": most}]}


SAMPLING_SCHEMAS: dict[str, dict[str, Any]] = {
    "max_new_tokens": {"anyOf": [_integer(minimum=0), {"type": "null"}]},
    "min_new_tokens": _integer(minimum=0),
    "stop": _one_or_many({"type": "string", "minLength": 1, "maxLength": MAX_STOP_STRING_CHARS}, MAX_STOP_STRINGS),
    "stop_token_ids": _one_or_many(_TOKEN_ID, MAX_STOP_TOKEN_IDS),
    "stop_regex": _one_or_many({"type": "string", "minLength": 1, "maxLength": MAX_STOP_REGEX_BYTES}, MAX_STOP_STRINGS),
    "json_schema": _GRAMMAR_JSON,
    "regex": _GRAMMAR_TEXT,
    "ebnf": _GRAMMAR_TEXT,
    "structural_tag": _GRAMMAR_JSON,
    "choice": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": MAX_CHOICES},
    "temperature": _number(minimum=0, maximum=10000),
    "top_p": _number(minimum=0, maximum=1),
    "top_k": _integer(minimum=-1, maximum=2**31 - 1),
    "min_p": _number(minimum=0, maximum=1),
    "frequency_penalty": _number(minimum=-2, maximum=2),
    "presence_penalty": _number(minimum=-2, maximum=2),
    "repetition_penalty": _number(minimum=MIN_REPETITION_PENALTY, maximum=MAX_REPETITION_PENALTY),
    "repetition_window": _integer(minimum=-1, maximum=MAX_REPETITION_WINDOW),
    "n": _integer(minimum=1, maximum=MAX_PARALLEL_SAMPLES),
    "ignore_eos": _SWITCH,
    "skip_special_tokens": _SWITCH,
    "spaces_between_special_tokens": _SWITCH,
    "no_stop_trim": _SWITCH,
    "logit_bias": {
        "type": "object",
        "additionalProperties": _number(minimum=-100, maximum=100),
        "propertyNames": {"pattern": "^[0-9]+$"},
        "maxProperties": MAX_LOGIT_BIAS_ENTRIES,
    },
    "allowed_token_ids": {"type": "array", "items": _TOKEN_ID, "minItems": 1, "maxItems": MAX_ALLOWED_TOKEN_IDS},
    "bad_words": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_BAD_WORD_CHARS},
        "maxItems": MAX_BAD_WORDS,
    },
    "thinking_token_budget": _integer(minimum=0, maximum=2**31 - 1),
    "sampling_seed": _integer(minimum=-(2**63), maximum=2**63 - 1),
    "stream_interval": _integer(minimum=1),
}
"""JSON schema of each field of ``sampling_params``."""

_MEDIA = "images, video and audio"
_DISAGGREGATION = "separate servers for prefill and decode"
_DATA_PARALLEL = "data parallelism"

TOKEN_IDS_SCHEMA = {"type": "array", "items": _TOKEN_ID}
_CHOSEN_IDS_SCHEMA = {**TOKEN_IDS_SCHEMA, "maxItems": MAX_TOKEN_IDS_LOGPROB}

GENERATE = BodySpec(
    GenerateReqInput,
    excludes={"session_id": "session_params"},
    aliases={"top_logprobs": "top_logprobs_num"},
    token_ids=frozenset({"input_ids"}),
    schemas={
        "input_ids": {"anyOf": [TOKEN_IDS_SCHEMA, {"type": "array", "items": TOKEN_IDS_SCHEMA}, {"type": "null"}]},
        "token_ids_logprob": {
            "anyOf": [
                _CHOSEN_IDS_SCHEMA,
                {"type": "array", "items": {"anyOf": [_CHOSEN_IDS_SCHEMA, {"type": "null"}]}},
                {"type": "null"},
            ]
        },
    },
    no_effect={
        "session_id": "Name of a conversation, for the caller's own use.",
        "conversation_id": "Name of a conversation, for the caller's own use.",
        "routing_key": "Name for a routing policy that this server does not have.",
        "custom_labels": "Labels for metrics, of those that a server allows; this one allows none.",
        "external_trace_header": "Trace that the request belongs to; the header `traceparent` is what counts.",
        "received_time": "When a gateway received the request.",
    },
    refused=fields_of("generate"),
)
