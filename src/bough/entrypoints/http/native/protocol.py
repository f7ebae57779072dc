"""Additions of HTTP to ``GenerateReqInput`` (``managers/io_struct.py``), the body of ``/generate``."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.protocol import CompletionRequest
from bough.managers.io_struct import MAX_TOKEN_IDS_LOGPROB, GenerateReqInput
from bough.other_engines import fields_of
from bough.sampling.sampling_params import (
    MAX_CHOICES,
    MAX_GRAMMAR_BYTES,
    MAX_GRAMMAR_DEPTH,
    MAX_LOGIT_BIAS_ENTRIES,
    MAX_STOP_TOKEN_IDS,
)

_GRAMMAR_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_GRAMMAR_BYTES}
_GRAMMAR_JSON = {"anyOf": [_GRAMMAR_TEXT, {"type": "object"}]}
_TOKEN_ID = {"type": "integer", "minimum": 0}
_OF_COMPLETIONS = msgspec.json.schema_components([CompletionRequest])[1]["CompletionRequest"]["properties"]


def _as_there(name: str, description: str | None = None) -> dict[str, Any]:
    """The schema of a field of ``/v1/completions``, with no null."""
    declared: dict[str, Any] = _OF_COMPLETIONS[name]
    kinds = [kind for kind in declared.get("anyOf", [declared]) if kind.get("type") != "null"]
    schema = {**kinds[0]} if len(kinds) == 1 else {"anyOf": kinds}
    schema.pop("default", None)
    return {**schema, "description": description or declared["description"]}


SAMPLING_PARAMS: dict[str, dict[str, Any]] = {
    "max_new_tokens": {
        "anyOf": [_TOKEN_ID, {"type": "null"}],
        "description": "Most tokens to generate; what is more than the context has room for is lowered to that. Null: "
        "until the context is full.",
    },
    "min_new_tokens": _as_there("min_tokens"),
    "stop": _as_there("stop"),
    "stop_token_ids": {
        "anyOf": [_TOKEN_ID, {"type": "array", "items": _TOKEN_ID, "maxItems": MAX_STOP_TOKEN_IDS}],
        "description": "Tokens that end the output.",
    },
    "stop_regex": _as_there("stop_regex"),
    "json_schema": {
        **_GRAMMAR_JSON,
        "description": "The output follows this JSON schema, or its text, of as many bytes, nested at most "
        f"{MAX_GRAMMAR_DEPTH} levels deep. At most one of this and the next four may be set.",
    },
    "regex": {**_GRAMMAR_TEXT, "description": "The whole output matches this pattern."},
    "ebnf": {**_GRAMMAR_TEXT, "description": "The whole output matches this grammar, from its rule `root`."},
    "structural_tag": {
        **_GRAMMAR_JSON,
        "description": "Parts of the output, between tags, follow schemas. An object or its text, as above.",
    },
    "choice": {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "maxItems": MAX_CHOICES,
        "description": f"The output is one of these different strings, of {MAX_GRAMMAR_BYTES} bytes together; anything "
        "if there are none.",
    },
    "temperature": _as_there("temperature", "0 takes the likeliest token always."),
    "top_p": _as_there("top_p", "Keep the likeliest tokens that have this probability together; 0 keeps one."),
    "top_k": _as_there("top_k", "Keep so many of the likeliest tokens; -1: all."),
    "min_p": _as_there("min_p", "Drop tokens less likely than this times the likeliest."),
    "frequency_penalty": _as_there("frequency_penalty"),
    "presence_penalty": _as_there("presence_penalty"),
    "repetition_penalty": _as_there(
        "repetition_penalty",
        "Divides positive, multiplies negative logits of tokens of the output, or of `repetition_window`.",
    ),
    "repetition_window": _as_there(
        "repetition_window",
        "Tokens at the end of prompt and output that `repetition_penalty` counts, before the other penalties, -1: all; "
        "the output, after them, if null.",
    ),
    "n": _as_there("n", "Outputs per prompt."),
    "ignore_eos": _as_there("ignore_eos"),
    "skip_special_tokens": _as_there("skip_special_tokens"),
    "spaces_between_special_tokens": _as_there("spaces_between_special_tokens"),
    "no_stop_trim": _as_there("no_stop_trim"),
    "logit_bias": {
        **_as_there(
            "logit_bias", f"Token id to a number from -100 to 100 added to its logit; at most {MAX_LOGIT_BIAS_ENTRIES}."
        ),
        "propertyNames": {"pattern": "^[0-9]+$"},
        "maxProperties": MAX_LOGIT_BIAS_ENTRIES,
    },
    "allowed_token_ids": _as_there("allowed_token_ids"),
    "bad_words": _as_there("bad_words"),
    "thinking_token_budget": _as_there("thinking_token_budget"),
    "sampling_seed": _as_there("seed"),
    "stream_interval": {
        "type": "integer",
        "minimum": 1,
        "description": "Tokens per streamed event, instead of the server's setting.",
    },
}
"""JSON schema of each field of ``sampling_params``; null in any of them means its default."""

TOKEN_IDS_SCHEMA = {"type": "array", "items": _TOKEN_ID}
_CHOSEN_IDS_SCHEMA = {**TOKEN_IDS_SCHEMA, "maxItems": MAX_TOKEN_IDS_LOGPROB}

GENERATE = BodySpec(
    GenerateReqInput,
    example={"text": "The oak is", "sampling_params": {"max_new_tokens": 8, "temperature": 0}},
    excludes={"session_id": "session_params"},
    aliases={"top_logprobs": "top_logprobs_num", "data_parallel_rank": "routed_dp_rank"},
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
