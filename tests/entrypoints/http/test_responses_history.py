"""Conversations for ``/v1/responses`` that were had elsewhere: items of other tools, and unknown members."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_responses import PATH

Item = dict[str, Any]

HELLO = {"role": "user", "content": "Hi"}
GO_ON = {"role": "user", "content": "Go on."}
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def turns_of(prompt: str) -> list[str]:
    """Return the messages between the first and the last."""
    turns = re.findall(r"<\|im_start\|>(.*?)<\|im_end\|>", prompt, re.DOTALL)
    assert turns[0].endswith("user\nHi")
    assert turns[-1] == "user\nGo on."
    return turns[1:-1]


def call(kind: str, **members: Any) -> Item:
    return {"type": kind, "call_id": "c", "id": f"{kind}_1", "status": "completed", **members}


def served(kind: str, **members: Any) -> Item:
    """A call that a server has run: its result is in the same item."""
    return {"type": kind, "id": f"{kind}_1", "status": "completed", **members}


EXIT = {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
ERROR = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]}
LOGS = [{"type": "logs", "logs": "1"}, {"type": "image", "url": IMAGE}]
PASSAGE = {"text": "Oaks are tall.", "filename": "trees.txt", "score": 1}
SCREENSHOT = {"type": "computer_screenshot", "image_url": IMAGE}


def test_calls_of_other_tools_become_calls_of_functions(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        (call("custom_tool_call", name="patch", input="*** Begin"), "ok", "patch", {"input": "*** Begin"}, "ok"),
        (
            call("custom_tool_call", name="sql", namespace="db", input=""),
            [{"type": "input_text", "text": "ok"}],
            *("db__sql", {"input": ""}, "ok"),
        ),
        (
            call("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}}),
            "a.txt",
            *("local_shell", {"type": "exec", "command": ["ls"], "env": {}}, "a.txt"),
        ),
        (
            call("shell_call", action={"commands": ["ls"], "timeout_ms": None}),
            [EXIT],
            *("shell", {"commands": ["ls"], "timeout_ms": None}, json.dumps(EXIT, separators=(",", ":"))),
        ),
        (
            call("apply_patch_call", operation={"type": "delete_file", "path": "a"}),
            None,
            *("apply_patch", {"type": "delete_file", "path": "a"}, "completed"),
        ),
        (
            call("computer_call", action={"type": "screenshot"}, pending_safety_checks=[]),
            SCREENSHOT,
            *("computer", {"type": "screenshot"}, "[computer_screenshot]"),
        ),
        (call("newer_call", input=["a"], newer=1), 5, "newer", {"input": ["a"]}, "5"),
        (call("tool_search_call", arguments={"goal": "mail"}), "send", "tool_search", {"goal": "mail"}, "send"),
        (
            call("function_call", name="f", arguments={"a": 1}, namespace=None, newer=1),
            *({"ok": True}, "f", {"a": 1}, '{"ok":true}'),
        ),
        (call("function_call", name="f", arguments=None), None, "f", {}, ""),
        (
            served("mcp_call", name="roll", server_label="dice", arguments='{"n":1}', output="4", error=None),
            *(None, "roll", {"n": 1}, "4"),
        ),
        (
            served("mcp_call", name="roll", server_label="dice", arguments="{}", output=None, error=ERROR),
            *(None, "roll", {}, json.dumps(ERROR, separators=(",", ":"))),
        ),
        (
            served("code_interpreter_call", code="print(1)", container_id="x", outputs=LOGS),
            *(None, "code_interpreter", {"code": "print(1)"}, "1\n[image]"),
        ),
        (
            served("file_search_call", queries=["oak"], results=[PASSAGE, PASSAGE]),
            *(None, "file_search", {"queries": ["oak"]}, "Oaks are tall.\nOaks are tall."),
        ),
    ]
    for called, output, name, arguments, result in cases:
        thinker.engine.says = "Hm."
        items = [called]
        if "call_id" in called:
            items.append(call(f"{called['type']}_output", output=output))
        if called["type"] == "local_shell_call":  # which names the call there
            items[1]["id"] = items[1].pop("call_id")
        made = http.post(PATH, json={"input": [HELLO, *items, GO_ON]})
        assert made.status_code == 200, made.text
        shown, response = turns_of(prompt_of(thinker))
        assert json.loads(shown.split("<tool_call>")[1].split("</tool_call>")[0]) == {
            "name": name,
            "arguments": arguments,
        }
        assert response.split("<tool_response>\n")[1].split("\n</tool_response>")[0] == result
        # what is kept goes on in the same way
        again = http.post(PATH, json={"input": [GO_ON], "previous_response_id": made.json()["id"]})
        assert again.status_code == 200, again.text
        assert shown in prompt_of(thinker)
        listed = http.get(f"{PATH}/{made.json()['id']}/input_items", params={"order": "asc"}).json()["data"]
        assert [item["type"] for item in listed] == ["message", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": IMAGE, "action": "generate"},
        {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "x", "outputs": None},
        {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "status": "completed", "results": None},
        {"type": "mcp_call", "id": "mcp_1", "name": "f", "server_label": "x", "arguments": "{}", "status": "calling"},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x", "tools": [{"name": "f", "input_schema": {}}]},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "server_label": "x", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "compaction", "encrypted_content": "x"},
        {"type": "compaction_trigger"},
        {"type": "tool_search_output", "call_id": None, "tools": []},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
        {"type": "ghost_snapshot", "ghost_commit": {"id": "x"}},
        {"type": "newer", "text": "x"},
        {"type": "newer_call"},
        {"type": "newer_output", "output": "x"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x", "content": None, "status": None},
        {"type": "reasoning", "encrypted_content": "x", "summary": None},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": ""}]},
    ],
    ids=lambda item: item["type"],
)
def test_what_cannot_be_shown_is_left_out(http: httpx.Client, thinker: RunningServer, item: Item) -> None:
    thinker.engine.says = "Hm."
    answer = http.post(PATH, json={"input": [HELLO, item, GO_ON]})
    assert answer.status_code == 200, answer.text
    assert turns_of(prompt_of(thinker)) == []


NOTES = {"annotations": [], "logprobs": None, "thinking_blocks": None, "cache_control": {"type": "ephemeral"}, "x": 1}


def test_forms_of_messages(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ({"role": "assistant", "content": "Ho"}, "assistant\nHo"),
        ({"role": "assistant", "content": None}, "assistant\n"),
        ({"role": "assistant", "content": []}, "assistant\n"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No", **NOTES}]}, "assistant\nNo"),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "Ho", **NOTES}], **NOTES}, "assistant\nHo"),
        ({"role": "assistant", "content": [{"type": "output_text", "text": None}]}, "assistant\n"),
        (
            {"type": None, "role": "assistant", "content": "Ho", "id": None, "status": None, "phase": None},
            "assistant\nHo",
        ),
        ({"type": "message", "role": "assistant", "content": "Ho", "id": "msg_1", "status": "newer"}, "assistant\nHo"),
        ({"role": "user", "content": [{"type": "input_text", "text": "Ho", "detail": None}]}, "user\nHo"),
        ({"type": "message", "role": "developer", "content": [{"type": "text", "text": "Ho"}]}, "system\nHo"),
    ]
    for item, turn in cases:
        thinker.engine.says = "Hm."
        answer = http.post(PATH, json={"input": [HELLO, item, GO_ON]})
        assert answer.status_code == 200, answer.text
        (shown,) = turns_of(prompt_of(thinker))
        assert re.sub(r"<think>\s*</think>\s*", "", shown) == turn


FUNCTION = {"type": "function", "name": "f", "strict": False, "parameters": {"type": "object", "properties": {}}}
INCLUDE = ["reasoning.encrypted_content", "web_search_call.action.sources", "code_interpreter_call.outputs"]


def test_what_programs_send_along(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        {"store": False, "include": INCLUDE, "prompt_cache_key": "k", "parallel_tool_calls": False},
        {"reasoning": {"effort": "medium", "summary": "auto", "context": None}, "text": {"verbosity": "low"}},
        {"text": {"format": {"type": "text"}, "verbosity": None}, "truncation": "auto", "max_tool_calls": None},
        {"tools": [FUNCTION, {"type": "web_search", "external_web_access": True}], "tool_choice": "auto"},
        {"tools": [{**FUNCTION, "defer_loading": True, "allowed_callers": ["direct"]}, {"type": "tool_search"}]},
        {"context_management": [{"type": "compaction", "compact_threshold": 1000}], "service_tier": "priority"},
        {"model": "gpt-5", "metadata": {"a": "b"}, "user": None, "temperature": None, "top_p": None, "top_logprobs": 0},
        {"stream_options": {"include_usage": True}, "safety_identifier": "x", "background": None, "prompt": None},
        {"max_output_tokens": 1_000_000, "previous_response_id": None, "instructions": None, "newer": [1]},
    ]
    for fields in cases:
        thinker.engine.says = "Hm."
        for stream in (False, True):
            answer = http.post(PATH, json={"input": [HELLO], "stream": stream, **fields})
            assert answer.status_code == 200, answer.text
            assert "response.completed" in answer.text or answer.json()["status"] == "completed"


def test_wishes_about_length_are_named_as_ignored(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = "Hm."
    for wish, named in (("low", "text.verbosity"), ("medium", None)):
        answer = http.post(PATH, json={"input": "Hi", "text": {"verbosity": wish}})
        assert (answer.status_code, answer.headers.get("x-bough-ignored-fields")) == (200, named)


def test_a_large_bound_on_the_output_leaves_room_for_the_conversation(
    http: httpx.Client, thinker: RunningServer
) -> None:
    thinker.engine.says = "Hm."
    items = [{"role": "user", "content": f"{number} " + "x" * 100} for number in range(10)]
    body = {"input": items, "truncation": "auto", "max_output_tokens": 1_000_000}
    assert http.post(PATH, json=body).status_code == 200
    assert [f"user\n{number} " in prompt_of(thinker) for number in range(10)] == [True] * 10


def test_what_cannot_be_shown_is_refused_by_name_where_it_matters(http: httpx.Client) -> None:
    cases = [
        ({"role": "user", "content": None}, "input[0].content"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": IMAGE}]}, "input[0].content[0]"),
        ({"role": "user", "content": [{"type": "input_file", "file_data": IMAGE}]}, "input[0].content[0]"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": IMAGE}]},
            "input[0].output[0]",
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_image"}]},
            "input[0].output[0]",
        ),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": 5}, "input[0].arguments"),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "", "id": 5}, "input[0].id"),
    ]
    for item, param in cases:
        answer = http.post(PATH, json={"input": [item, GO_ON]})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == param
