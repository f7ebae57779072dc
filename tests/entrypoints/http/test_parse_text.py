"""``/parse_function_call`` and ``/separate_reasoning``."""

from __future__ import annotations

import json

import httpx

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.chat.job import ToolUse
from bough.parsers.base import parse_tools
from tests.entrypoints.http.server import RunningServer

TOOLS = [
    {"type": "function", "function": {"name": "now"}},
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    },
]
TEXT = 'Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Wien"}}\n</tool_call>'


def test_calls_are_found_in_text(client: httpx.Client) -> None:
    body = {"text": TEXT, "tools": TOOLS, "tool_call_parser": "qwen25"}
    answer = client.post("/parse_function_call", json=body).json()
    assert answer["normal_text"] == "Let me see."
    [call] = answer["calls"]
    assert (call["tool_index"], call["name"]) == (1, "get_weather")
    assert json.loads(call["parameters"]) == {"city": "Wien"}


def test_text_without_calls_stays_as_it_is(client: httpx.Client) -> None:
    for tools in (TOOLS, []):
        body = {"text": "a <b> c\n", "tools": tools, "tool_call_parser": "kimi_k2"}
        assert client.post("/parse_function_call", json=body).json() == {"normal_text": "a <b> c\n", "calls": []}


def test_without_a_parser_calls_are_read_as_chat_reads_them(client: httpx.Client, server: RunningServer) -> None:
    body = {"text": TEXT, "tools": TOOLS}
    answer = client.post("/parse_function_call", json=body)
    assert answer.status_code == 200
    reading = ChatCore(server.manager).dialect(ToolUse(tuple(parse_tools(TOOLS)))).tool_format
    assert reading is not None
    assert answer.json() == client.post("/parse_function_call", json={**body, "tool_call_parser": reading.name}).json()
    assert [call["name"] for call in answer.json()["calls"]] == ["get_weather"]


def test_what_is_wrong_is_named(client: httpx.Client) -> None:
    cases = [
        ({"tool_call_parser": "nobody"}, "tool_call_parser"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [TOOLS[0], {"type": "function", "function": {"name": "a b"}}]}, "tools[1].function.name"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools[1].function.name"),
        ({"tools": "none"}, "tools"),
        ({"text": 5}, "text"),
    ]
    for change, param in cases:
        answer = client.post("/parse_function_call", json={"text": TEXT, "tools": TOOLS, **change})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param


def test_thoughts_are_separated(client: httpx.Client) -> None:
    body = {"text": "<think>\nWell.\n</think>\n\nYes.", "reasoning_parser": "deepseek-r1"}
    shown = {"reasoning_text": "Well.", "text": "Yes."}
    assert client.post("/separate_reasoning", json=body).json() == shown
    assert client.post("/separate_reasoning", json={**body, "return_blocks": True}).json() == {
        **shown,
        "reasoning_blocks": ["Well."],
        "text_blocks": ["Yes."],
        "blocks": [{"type": "reasoning", "text": "Well."}, {"type": "text", "text": "Yes."}],
    }
    answer = client.post("/separate_reasoning", json={**body, "reasoning_parser": "nobody"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "reasoning_parser"


def test_escapes_in_what_a_model_wrote_never_break_the_answer(client: httpx.Client) -> None:
    body = {"text": r"[get_weather(city='\ud83d\ude00 \ud83d')]", "tools": TOOLS, "tool_call_parser": "pythonic"}
    answer = client.post("/parse_function_call", json=body)
    assert answer.status_code == 200
    [call] = answer.json()["calls"]
    assert json.loads(call["parameters"]) == {"city": "😀 \ufffd"}


def test_half_a_character_is_refused(client: httpx.Client) -> None:
    for path in ["/parse_function_call", "/separate_reasoning"]:
        for padding in [0, 100_000]:
            text = "a" * padding + r"\ud83d x"
            body = f'{{"text": "{text}", "tools": [{json.dumps(TOOLS[0])}], "tool_call_parser": "hermes"}}'
            if path == "/separate_reasoning":
                body = f'{{"text": "{text}", "reasoning_parser": "qwen3"}}'
            assert client.post(path, content=body, headers={"content-type": "application/json"}).status_code == 400
