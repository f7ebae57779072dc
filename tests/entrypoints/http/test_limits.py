"""Every bound of docs/limits.md that a request can exceed: what exceeds it is refused by name, over a real socket."""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
from msgspec import Raw

from endpoint_pages import LIMITS

JSON = {"content-type": "application/json"}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
CALL = {"type": "function", "function": {"name": "f", "arguments": "{}"}}


def tool(number: int) -> dict[str, Any]:
    return {"type": "function", "function": {"name": f"f{number}"}}


def called(*calls: Any) -> dict[str, Any]:
    return {"messages": [*CHAT["messages"], {"role": "assistant", "tool_calls": [*calls]}, *CHAT["messages"]]}


def generate(**params: Any) -> tuple[str, dict[str, Any]]:
    return "/generate", {"text": "Hi", "sampling_params": params}


def chat(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {**CHAT, **fields}


def asked(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/decisions", {"input": "Hi", "questions": [{"id": "q", "question": "Which?", **fields}]}


LONG = [{"role": "user", "content": "x" * (4 << 20)}]
MANY_VALUES = {**CALL, "function": {"name": "f", "arguments": json.dumps({"a": [0] * 65_537})}}

EXCEEDED: dict[str, list[tuple[tuple[str, dict[str, Any]], str, str]]] = {
    "request body": [(generate(stop="x" * (33 << 20)), "--max-body-size", "")],
    "prompt and output together": [
        (chat(messages=[{"role": "user", "content": "x y " * 600}]), "512", "messages"),
        (("/v1/completions", {"prompt": [5] * 600}), "512", "prompt"),
    ],
    "characters of a text that is a prompt, or measured by `/tokenize` or `/v1/messages/count_tokens`": [
        (("/tokenize", {"prompt": ["Hi", "x" * (4 << 20) + "x"]}), "413: at most 4194304", "prompt[1]"),
        (("/tokenize", chat(messages=LONG)[1]), "413: at most 4194304", "messages"),
        (("/v1/completions", {"prompt": "x" * (4 << 20) + "x"}), "4194304", "prompt"),
    ],
    "prompts times `n`": [(("/v1/completions", {"prompt": ["x"] * 1025, "n": 2}), "2048", "prompt")],
    "fields of a body": [(chat(**{f"x{number}": 0 for number in range(1025)}), "1024", "")],
    "nesting of JSON": [
        (chat(chat_template_kwargs={"a": Raw(b"[" * 1100 + b"]" * 1100)}), "nested", ""),
        (chat(chat_template_kwargs={"a": Raw(b"[" * 70 + b"]" * 70), "b": " " * 70_000}), "64", ""),
    ],
    "one field, but for lists of token ids": [(chat(chat_template_kwargs={"a": [0] * 65_537}), "65536", "chat_")],
    "`stop`": [
        (generate(stop=[f"x{number}" for number in range(33)]), "32", "sampling_params.stop"),
        (chat(stop=["x" * 1025]), "1024", "stop"),
    ],
    "`stop_regex`": [
        (chat(stop_regex=[f"x{number}" for number in range(33)]), "32", "stop_regex"),
        (generate(stop_regex="x" * 257), "256", "sampling_params.stop_regex"),
    ],
    "different `stop_regex` patterns of a batch": [
        (
            (
                "/generate",
                {"text": ["Hi"] * 33, "sampling_params": [{"stop_regex": f"x{number}"} for number in range(33)]},
            ),
            "32",
            "sampling_params",
        )
    ],
    "`stop_token_ids`": [(chat(stop_token_ids=[5] * 257), "256", "stop_token_ids")],
    "`logit_bias`": [(chat(logit_bias={str(number): 1 for number in range(4097)}), "4096", "logit_bias")],
    "`allowed_token_ids`": [(chat(allowed_token_ids=[5] * 16_385), "16384", "allowed_token_ids")],
    "`bad_words`": [
        (chat(bad_words=["x"] * 257), "256", "bad_words"),
        (generate(bad_words=["x" * 4097]), "4096", "sampling_params.bad_words"),
        (chat(bad_words=["x y " * 40]), "1 to 32 tokens", "bad_words"),
        (generate(bad_words=[f"{number:016x}" for number in range(256)]), "4096 tokens", "bad_words"),
    ],
    "prompts that `/v1/decisions`, `/v1/rerank`, `/v1/score` or `suffix` make of one text and each of many": [
        (("/v1/rerank", {"query": "x" * 20_000, "documents": ["y"] * 2048}), "--max-body-size", "documents"),
    ],
    "parameters of a batch, and contexts of its sessions, in memory, where each prompt has a copy": [
        (
            ("/generate", {"text": ["Hi"] * 2048, "sampling_params": {"allowed_token_ids": [5] * 16_384}}),
            "--max-queued-bytes",
            "",
        ),
        (("/v1/completions", {"prompt": ["Hi"] * 2048, "json_schema": {"const": "x" * 100_000}}), "--max-queued-", ""),
    ],
    "a JSON schema, pattern, grammar or list of choices": [
        (chat(regex="x" * 262_145), "262144", "regex"),
        (chat(json_schema={"const": "x" * 262_145}), "262144", "json_schema"),
        (generate(choice=[f"{number:0300d}" for number in range(1000)]), "262144", "sampling_params.choice"),
    ],
    "nesting of a JSON schema": [
        (chat(json_schema=Raw(b'{"items":' * 70 + b"{}" + b"}" * 70)), "at most 64", "json_schema")
    ],
    "`n`": [(generate(n=129), "128", "sampling_params.n"), (chat(n=129), "128", "n")],
    "messages of a conversation": [(chat(messages=CHAT["messages"] * 8193), "8192", "messages")],
    "tools of a request": [(chat(tools=[tool(number) for number in range(257)]), "256", "tools")],
    "tool calls of a message": [(chat(**called(*[CALL] * 1025)), "1024", "messages[1].tool_calls")],
    "options and levels of a question of `/v1/decisions`": [
        (asked(type="choice", options=[{"name": f"o{number}"} for number in range(27)]), "26", "questions"),
        (asked(type="score", levels=[f"l{number}" for number in range(11)]), "10", "questions"),
    ],
    "`metadata` and `user` of a response": [
        (("/v1/responses", {"input": "Hi", "metadata": {f"k{number}": "v" for number in range(17)}}), "16", "metadata"),
        (("/v1/responses", {"input": "Hi", "user": "x" * 1025}), "1024", "user"),
    ],
    "values in the arguments of an earlier tool call": [(chat(**called(MANY_VALUES)), "65536", "messages[1]")],
    "alternatives per token": [
        (chat(logprobs=True, top_logprobs=21), "20", "top_logprobs"),
        (("/v1/completions", {"prompt": "Hi", "logprobs": 21}), "20", "logprobs"),
        (("/generate", {"text": "Hi", "return_logprob": True, "top_logprobs_num": 129}), "128", "top_logprobs_num"),
    ],
    "`token_ids_logprob`": [
        (
            ("/generate", {"text": "Hi", "return_logprob": True, "token_ids_logprob": [5] * 1025}),
            "1024",
            "token_ids_logprob",
        )
    ],
    "logprobs of all outputs, at all positions, with alternatives and `token_ids_logprob`": [
        (
            (
                "/generate",
                {
                    "input_ids": [5] * 400,
                    "return_logprob": True,
                    "logprob_start_len": 0,
                    "token_ids_logprob": [5] * 1024,
                    "sampling_params": {"n": 128, "max_new_tokens": 1},
                },
            ),
            "413: at most 4194304",
            "token_ids_logprob",
        ),
        (
            (
                "/v1/completions",
                {"prompt": [[5] * 500] * 1750, "logprobs": 20, "echo": True, "max_tokens": 1},
            ),
            "413: at most 4194304",
            "top_logprobs_num",
        ),
    ],
    "`rid`": [
        (chat(rid="x" * 257), "256", "rid"),
        (chat(session_params={"id": "s", "rid": "x" * 265}), "264", "session_params"),
    ],
    "`model`": [
        (chat(model="x" * 1025), "1024", "model"),
        (("/v1/completions", {"prompt": "Hi", "model": "x" * 1025}), "1024", "model"),
        (("/v1/responses", {"input": "Hi", "model": "x" * 1025}), "1024", "model"),
        (("/v1/embeddings", {"input": "Hi", "model": "x" * 1025}), "1024", "model"),
    ],
    "`extra_key`, `cache_salt`": [
        (chat(extra_key="x" * 1025), "1024", "extra_key"),
        (chat(cache_salt="x" * 1025), "1024", "cache_salt"),
    ],
}
"""By the row: requests, what the message names, and how ``param`` begins."""

ELSEWHERE = {
    "memory of a compiled grammar",
    "processor time of a grammar",
    # test_raw_connections.py, test_pipelining.py, test_tls.py, test_access.py, test_connections_end.py
    "requests of a connection behind the one that is answered",
    "bodies over 64 KiB that are being received, parsed, encoded or kept for answers, together",
    "request line and headers",
    "path and query",
    "time for a handshake, with HTTPS",
    "time for request line and headers",
    "time for a body",
    "time that a connection may be idle between requests",
    "what a client sends after a refusal",
    "time that a client reads nothing (HTTPS: less than 64 KiB)",
    # tests/constrained
    "parts of a structural tag, or of one made of `tools`",
    # tests/parsers/test_constraints.py
    "tool calls of an answer that has to be some (`tool_choice` `required`)",
    # test_failures.py, test_responses.py, test_sessions.py, tests/managers, tests/parsers
    "waiting requests",
    "what waits, in memory",
    "requests with one key at a time",
    "responses that are kept",
    "items of a response listed at once",
    "sessions",
    "tokens that sessions remember",
    "turns of a session",
    "time without a request in a session",
    "a tool call of which function or arguments come out only at its end",
}


def test_every_bound_is_exceeded_somewhere() -> None:
    assert EXCEEDED.keys() | ELSEWHERE == LIMITS.keys()
    assert not EXCEEDED.keys() & ELSEWHERE


def test_what_is_beyond_a_bound_is_refused_by_name(client: httpx.Client) -> None:
    for bound in EXCEEDED:
        for (path, body), named, param in EXCEEDED[bound]:
            answer = client.post(path, content=msgspec.json.encode(body), headers=JSON)
            assert answer.status_code == (413 if named.startswith(("--max-", "413: ")) else 400), answer.text[:300]
            error = answer.json()["error"]
            assert named.removeprefix("413: ") in error["message"]
            assert (error["param"] or "").startswith(param)
            assert error["type"] == "invalid_request_error"
            assert isinstance(error["code"], str)
        assert client.post("/v1/chat/completions", json={**CHAT, "max_tokens": 1}).status_code == 200
