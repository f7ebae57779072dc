"""On every route that streams, what a real model says comes out alike, streamed and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from bough.entrypoints.http.routes import ROUTES
from tests.e2e.server import Server
from tests.e2e.test_conversations import PARAMETERS, QUESTION, TREE
from tests.entrypoints.http import streams, test_anthropic, test_ollama, test_responses

THINKING = [*QUESTION, {"role": "assistant", "content": "<think>"}]
FUNCTION: Any = TREE["function"]
CALLED = {"tools": [TREE], "tool_choice": "required", "parallel_tool_calls": False}
THOUGHTS = {"regex": "(oak|elm) [a-z]{1,9}", "chat_template_kwargs": {"enable_thinking": True}}
USAGE = {"stream_options": {"include_usage": True}}
LOGPROBS = {"logprobs": True, "top_logprobs": 2}

Exchange = tuple[Any, Any]
"""What was said at once, and what a stream said put together."""


def by_openai(client: httpx.Client, path: str, body: dict[str, Any], like: str) -> Exchange:
    whole = streams.whole_answer(client, path, {k: v for k, v in body.items() if k != "stream_options"})
    events = streams.read_events(client, path, body)
    return streams.comparable(whole), streams.comparable(streams.assembled(like, body, events))


def openai(client: httpx.Client, path: str, body: dict[str, Any]) -> Exchange:
    return by_openai(client, path, body, path)


def invocation(client: httpx.Client, path: str, body: dict[str, Any]) -> Exchange:
    like = "/v1/chat/completions" if "messages" in body else "/v1/completions" if "prompt" in body else "/generate"
    return by_openai(client, path, body, like)


def responses(client: httpx.Client, path: str, body: dict[str, Any]) -> Exchange:
    whole = client.post(path, json=body).json()
    streamed = test_responses.assembled(test_responses.read_events(client, body))
    return test_responses.comparable(whole), test_responses.comparable(streamed)


def anthropic(client: httpx.Client, path: str, body: dict[str, Any]) -> Exchange:
    whole = client.post(path, json=body).json()
    streamed = test_anthropic.assembled(test_anthropic.read_events(client, body))
    return test_anthropic.comparable(whole), test_anthropic.comparable(streamed)


def ollama(client: httpx.Client, path: str, body: dict[str, Any]) -> Exchange:
    whole = client.post(path, json={**body, "stream": False}).json()
    streamed = test_ollama.assembled(test_ollama.read_lines(client, path, body))
    return test_ollama.comparable(whole), test_ollama.comparable(streamed)


Case = tuple[Callable[[httpx.Client, str, dict[str, Any]], Exchange], str, dict[str, Any], str]
"""How to ask, where, what, and a word that the answer has to have."""

CHAT = {"messages": QUESTION, "temperature": 0, "max_tokens": 50, **USAGE}
MESSAGE = {"model": "m", "messages": QUESTION, "temperature": 0, "max_tokens": 60}
RESPONSE = {"input": "Tell me about the oak.", "temperature": 0, "max_output_tokens": 60}
OLLAMA = {"model": "m", "messages": QUESTION, "options": {"temperature": 0, "num_predict": 60}}
# However a model goes on, it comes to the end of a sentence.
NATIVE = {"text": "The oak is", "sampling_params": {"temperature": 0, "max_new_tokens": 150, "stop": ["."]}}
CASES: dict[str, Case] = {
    "native": (openai, "/generate", {**NATIVE, "return_logprob": True, "top_logprobs_num": 2}, "stop"),
    "native, several": (
        openai,
        "/generate",
        {**NATIVE, "sampling_params": {"n": 2, "sampling_seed": 3, "max_new_tokens": 20, "stop": ["e", "oak"]}},
        "finish_reason",
    ),
    "completion": (
        openai,
        "/v1/completions",
        {"prompt": ["The oak is", "An elm"], "n": 2, "seed": 1, "max_tokens": 20, "logprobs": 2, "echo": True, **USAGE},
        "text_offset",
    ),
    "chat": (openai, "/v1/chat/completions", {**CHAT, **LOGPROBS}, "oak"),
    "chat, sampled": (
        openai,
        "/v1/chat/completions",
        {**CHAT, "temperature": 1.2, "seed": 5, "n": 3, "stop": ["tree", " a"], "return_token_ids": True},
        "finish_reason",
    ),
    "chat, thoughts": (openai, "/v1/chat/completions", {**CHAT, **THOUGHTS, **LOGPROBS}, "'reasoning': '"),
    "chat, call": (openai, "/v1/chat/completions", {**CHAT, **CALLED, **LOGPROBS, "max_tokens": 200}, "height"),
    "chat, call cut off": (openai, "/v1/chat/completions", {**CHAT, **CALLED, "max_tokens": 12}, "length"),
    "invoked chat": (invocation, "/invocations", {**CHAT, **CALLED}, "height"),
    "invoked completion": (invocation, "/invocations", {"prompt": "The oak", "temperature": 0, **USAGE}, "text"),
    "invoked natively": (invocation, "/invocations", NATIVE, "output_ids"),
    "response": (responses, "/v1/responses", {**RESPONSE, "top_logprobs": 2}, "oak"),
    "response, call": (
        responses,
        "/v1/responses",
        {**RESPONSE, "tools": [{"type": "function", **FUNCTION}], "tool_choice": "required", "max_output_tokens": 300},
        "function_call",
    ),
    "response, schema": (
        responses,
        "/v1/responses",
        {**RESPONSE, "text": {"format": {"type": "json_schema", "name": "tree", "schema": PARAMETERS}}},
        "height",
    ),
    "message": (anthropic, "/v1/messages", MESSAGE, "oak"),
    "message, thoughts": (anthropic, "/v1/messages", {**MESSAGE, "messages": THINKING}, "thinking"),
    "message, call": (
        anthropic,
        "/v1/messages",
        {
            **MESSAGE,
            "max_tokens": 300,
            "tools": [{"name": "tree", "input_schema": PARAMETERS}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        },
        "tool_use",
    ),
    "ollama chat": (ollama, "/api/chat", {**OLLAMA, "logprobs": True, "top_logprobs": 2}, "oak"),
    "ollama chat, schema": (ollama, "/api/chat", {**OLLAMA, "format": PARAMETERS}, "height"),
    "ollama chat, thoughts": (ollama, "/api/chat", {**OLLAMA, "messages": THINKING}, "thinking"),
    "ollama prompt": (
        ollama,
        "/api/generate",
        {"model": "m", "prompt": "Tell me about the oak.", "options": OLLAMA["options"]},
        "oak",
    ),
}


def test_every_route_that_streams_is_here() -> None:
    streaming = {info.path for info in ROUTES if info.events is not None}
    # A response's events can be had again, which is tested with the store.
    assert {path for _, path, _, _ in CASES.values()} == streaming - {"/v1/responses/{response_id}"}


@pytest.mark.one_scheduler
def test_a_stream_put_together_is_the_whole(server: Server) -> None:
    for name in CASES:
        ask, path, body, word = CASES[name]
        # From now on as much is cached for one as for the other.
        server.post(path, **{key: value for key, value in body.items() if key != "stream_options"} | {"stream": False})
        whole, streamed = ask(server.client, path, body)
        assert streamed == whole
        assert word in str(whole)
