"""Requests to ``/v1/messages`` with more than text: blocks of other servers' tools, notes, betas."""

from __future__ import annotations

import re
from typing import Any

import httpx

from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of

PATH = "/v1/messages"
Block = dict[str, Any]

HELLO = {"role": "user", "content": "Hi"}
GO_ON = {"role": "user", "content": "Go on."}
TEXT = {"type": "text", "text": "Ho"}
SEARCH: Block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "oaks"}}
FOUND = {"type": "web_search_result", "url": "https://a.b", "title": "Oaks", "encrypted_content": "x" * 99}
PAGE = {"type": "document", "title": None, "source": {"type": "text", "media_type": "text/plain", "data": "Tall."}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}


def result(kind: str, content: Any, **members: Any) -> Block:
    return {"type": kind, "tool_use_id": "s1", "content": content, **members}


def post(http: httpx.Client, *messages: Any, **fields: Any) -> httpx.Response:
    return http.post(PATH, json={"model": "m", "max_tokens": 5, "messages": messages, **fields})


def turns_of(prompt: str) -> list[str]:
    """Return the messages between the first and the last, without empty thoughts."""
    turns = re.findall(r"<\|im_start\|>(.*?)<\|im_end\|>", prompt, re.DOTALL)
    assert turns[0].endswith("user\nHi")
    assert turns[-1] == "user\nGo on."
    return [re.sub(r"<think>\s*</think>\s*", "", turn) for turn in turns[1:-1]]


CALLED = '<tool_call>\n{"name": "web_search", "arguments": {"query": "oaks"}}\n</tool_call>'


def test_calls_that_another_server_has_run_are_shown_with_their_results(
    http: httpx.Client, thinker: RunningServer
) -> None:
    cases = [
        (
            result("web_search_tool_result", [FOUND]),
            '{"type":"web_search_result","url":"https://a.b","title":"Oaks"}',
        ),
        (
            result("web_search_tool_result", {"type": "web_search_tool_result_error", "error_code": "max_uses"}),
            '{"type":"web_search_tool_result_error","error_code":"max_uses"}',
        ),
        (
            result("web_fetch_tool_result", {"type": "web_fetch_result", "url": "u", "content": PAGE}),
            '{"type":"web_fetch_result","url":"u","content":{"type":"document","source":{"type":"text",'
            '"media_type":"text/plain","data":"Tall."}}}',
        ),
        (
            result("web_fetch_tool_result", {"type": "web_fetch_result", "url": "u", "content": PDF}),
            '{"type":"web_fetch_result","url":"u","content":{"type":"document","source":{"type":"base64",'
            '"media_type":"application/pdf"}}}',
        ),
        (
            result("bash_code_execution_tool_result", {"type": "bash_result", "stdout": "1", "content": []}),
            '{"type":"bash_result","stdout":"1","content":[]}',
        ),
        (result("mcp_tool_result", [TEXT, TEXT], is_error=False), "Ho\nHo"),
        (result("mcp_tool_result", "no", is_error=True), "Error: no"),
        (result("newer_tool_result", None), ""),
    ]
    for block, text in cases:
        for call in [SEARCH, {**SEARCH, "type": "mcp_tool_use", "server_name": "x", "caller": None}]:
            cited = {**TEXT, "citations": [{"type": "web_search_result_location", "url": "u"}]}
            answer = post(http, HELLO, {"role": "assistant", "content": [TEXT, call, block, cited]}, GO_ON)
            assert answer.status_code == 200, answer.text
            called, response, last = turns_of(prompt_of(thinker))
            assert called == f"assistant\nHo\n{CALLED}"
            assert response == f"user\n<tool_response>\n{text}\n</tool_response>"
            assert last == "assistant\nHo"


def test_what_cannot_be_shown_is_left_out_and_named(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ("assistant", [SEARCH, TEXT], "server_tool_use"),
        ("assistant", [TEXT, {"type": "container_upload", "file_id": "f"}], "container_upload"),
        ("assistant", [{"type": "redacted_thinking", "data": "x"}, TEXT], None),
        ("user", [TEXT, {"type": "container_upload", "file_id": "f"}], "container_upload"),
        ("user", [{"type": "newer", "x": [1]}, TEXT], "newer"),
        ("system", [TEXT, {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}], "tool_addition"),
    ]
    for role, blocks, named in cases:
        answer = post(http, HELLO, {"role": role, "content": blocks}, GO_ON)
        assert answer.status_code == 200, answer.text
        assert turns_of(prompt_of(thinker)) == [f"{role}\nHo"]
        fields = answer.headers.get("x-bough-ignored-fields")
        assert fields == (named and f"messages.content.{named}")


NOTES: dict[str, Any] = {"cache_control": {"type": "ephemeral"}, "citations": None, "signature": None, "newer": 1}


def test_unknown_members_and_nulls_are_ignored(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ({"role": "assistant", "content": "Ho", "stop_reason": "end_turn", "usage": {}, "id": None}, "assistant\nHo"),
        ({"role": "assistant", "content": [{**TEXT, **NOTES}]}, "assistant\nHo"),
        ({"role": "assistant", "content": None}, "assistant\n"),
        ({"role": "assistant", "content": []}, "assistant\n"),
        ({"role": "user", "content": [{**TEXT, **NOTES}]}, "user\nHo"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": None, **NOTES}]},
            'assistant\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": None, **NOTES}]},
            "user\n<tool_response>\n\n</tool_response>",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": {"a": 1}}]},
            'user\n<tool_response>\n{"a":1}\n</tool_response>',
        ),
    ]
    for message, turn in cases:
        answer = post(http, HELLO, message, GO_ON)
        assert answer.status_code == 200, answer.text
        assert turns_of(prompt_of(thinker)) == [turn]


TOOL = {"name": "f", "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}}


def test_what_programs_send_along(http: httpx.Client) -> None:
    cases = [
        {"system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "max", "task_budget": {}}},
        {"thinking": {"type": "enabled", "budget_tokens": 31_999}, "max_tokens": 32_000},
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"value": 1}}]}},
        {"context_management": {"edits": [{"type": "compact_20260112"}]}, "betas": ["compact-2026-01-12"]},
        {"mcp_servers": [{"type": "url", "url": "u", "name": "x"}], "container": {"skills": []}, "speed": "fast"},
        {"metadata": {"user_id": "u"}, "service_tier": "auto", "stop_sequences": [], "newer": {}, "top_k": None},
        {"tools": [{**TOOL, "type": "custom", "eager_input_streaming": True, "newer": 1}], "tool_choice": None},
        {"tools": [TOOL, {"name": "g", "defer_loading": True}, {"type": "mcp_toolset", "mcp_server_name": "x"}]},
    ]
    for fields in cases:
        for path in (PATH, f"{PATH}/count_tokens"):
            answer = http.post(path, json={"model": "m", "max_tokens": 5, "messages": [HELLO], **fields})
            assert answer.status_code == 200, answer.text


def test_what_matters_is_refused_by_name(http: httpx.Client) -> None:
    cases = [
        ({"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}, "messages[0].content[0]"),
        ({"role": "user", "content": [PDF]}, "messages[0].content[0].source"),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image"}]}]},
            "messages[0].content[0].content[0]",
        ),
        ({"role": "user", "content": None}, "messages[0].content"),
        ({"role": "assistant", "content": [result("web_search_tool_result", [], tool_use_id=5)]}, "tool_use_id"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": "x"}]}, "input"),
        ({"role": "user", "content": [SEARCH | {"type": "tool_use"}]}, "messages[0].content[0]"),
    ]
    for message, place in cases:
        answer = post(http, message)
        assert answer.status_code == 400, answer.text
        assert place in answer.json()["error"]["message"]
