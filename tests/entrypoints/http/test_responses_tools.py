"""Tools of ``/v1/responses``: namespaces, and tools that are left out."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import openai
import pytest

from tests.entrypoints.http.server import MODEL_NAME, RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_responses import CLOCK, PATH, api, assembled, comparable, read_events  # noqa: F401
from tests.entrypoints.http.test_tools_and_reasoning import THOUGHTS

PATH_ARGUMENT = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": f"Does {name}", "parameters": PATH_ARGUMENT}


def namespace(name: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "A server's tools", "tools": list(tools)}


FILES = namespace("mcp__files", function("read"), function("write"))
MAIL = namespace("mcp__mail__", function("read"), {"type": "custom", "name": "compose"})
TOOLS: list[dict[str, Any]] = [FILES, MAIL, CLOCK]


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def calls_of(response: dict[str, Any]) -> list[tuple[str | None, str]]:
    return [(item.get("namespace"), item["name"]) for item in response["output"] if item["type"] == "function_call"]


def test_functions_of_namespaces_are_called_by_both_names(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        (TOOLS, "mcp__files__read", ("mcp__files", "read")),
        (TOOLS, "mcp__mail__read", ("mcp__mail__", "read")),
        (TOOLS, "clock", (None, "clock")),
        # what a plain function is called stays its name
        ([FILES, function("mcp__files__read")], "mcp__files__read", (None, "mcp__files__read")),
        ([FILES, function("mcp__files__read")], "mcp__files__read_2", ("mcp__files", "read")),
        ([FILES, namespace("mcp__files_", function("read"))], "mcp__files__read_2", ("mcp__files_", "read")),
        ([namespace("crm", function("_read")), function("read")], "crm__read", ("crm", "_read")),
    ]
    for tools, called, expected in cases:
        thinker.engine.says = THOUGHTS + call(called, path="a.txt")
        body = {"input": "Hi", "tools": tools}
        whole = http.post(PATH, json=body)
        assert whole.status_code == 200, whole.text
        assert f'"{called}"' in prompt_of(thinker)
        assert calls_of(whole.json()) == [expected]
        events = read_events(http, body)
        assert comparable(assembled(events)) == comparable(whole.json())
        (added,) = [event["item"] for event in events if event["type"] == "response.output_item.added"][1:]
        (done,) = [event for event in events if event["type"] == "response.function_call_arguments.done"]
        assert (added.get("namespace"), added["name"]) == expected
        assert done["name"] == expected[1]
        assert json.loads(done["arguments"]) == {"path": "a.txt"}


def test_calls_of_namespaces_go_on_by_id_or_as_they_were_answered(
    api: openai.OpenAI,  # noqa: F811
    thinker: RunningServer,
) -> None:
    thinker.engine.says = call("mcp__files__read", path="a.txt")
    tools: Any = TOOLS
    first = api.responses.create(model=MODEL_NAME, input="Read it.", tools=tools)
    (called,) = [item for item in first.output if item.type == "function_call"]
    assert (called.namespace, called.name) == ("mcp__files", "read")
    result: Any = {"type": "function_call_output", "call_id": called.call_id, "output": "oaks"}
    thinker.engine.says = "Oaks."
    prompts = []
    history: list[Any] = [{"role": "user", "content": "Read it."}, called.model_dump(), result]
    for fields in ({"input": [result], "previous_response_id": first.id}, {"input": history}):
        assert api.responses.create(model=MODEL_NAME, tools=tools, **fields).output_text == "Oaks."
        prompts.append(prompt_of(thinker))
    assert prompts[0] == prompts[1]
    assert prompts[0].count('{"name": "mcp__files__read", "arguments": {"path": "a.txt"}}') == 1
    # without the tools, the call is still the same
    assert api.responses.create(model=MODEL_NAME, input=history).output_text == "Oaks."
    assert '"mcp__files__read"' in prompt_of(thinker)


def test_the_answer_names_the_tools_that_are_in_force(api: openai.OpenAI, thinker: RunningServer) -> None:  # noqa: F811
    thinker.engine.says = "Hm."
    others = [{"type": "web_search"}, namespace("empty", {"type": "custom", "name": "patch"})]
    tools: Any = [*others, *TOOLS]
    choice: Any = allowed({"type": "web_search"}, CLOCK)
    response = api.responses.create(model=MODEL_NAME, input="Hi", tools=tools, tool_choice=choice).model_dump()
    assert [tool["name"] for tool in response["tools"]] == ["mcp__files", "mcp__mail__", "clock"]
    assert [tool["name"] for tool in response["tools"][1]["tools"]] == ["read"]
    assert [tool["name"] for tool in response["tool_choice"]["tools"]] == ["clock"]


def allowed(*tools: dict[str, Any], mode: str = "auto") -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


def test_a_choice_names_functions_of_namespaces(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ({"type": "function", "name": "write"}, ["mcp__files__write"]),
        ({"type": "function", "name": "read", "namespace": "mcp__mail__"}, ["mcp__mail__read"]),
        ({"type": "function", "name": "mcp__mail__read"}, ["mcp__mail__read"]),
        ({"type": "function", "name": "clock"}, ["clock"]),
        (allowed(CLOCK, {"name": "write"}), ["mcp__files__write", "clock"]),
        (allowed({"type": "namespace", "name": "mcp__files"}), ["mcp__files__read", "mcp__files__write"]),
        (allowed(CLOCK, {"type": "web_search"}, mode="required"), ["clock"]),
        (allowed({"type": "web_search"}), []),
    ]
    for choice, offered in cases:
        names = ["mcp__files__read", "mcp__files__write", "mcp__mail__read", "clock"]
        says = thinker.engine.says = "\n".join(call(name, path="a") for name in names)
        body = {"input": "Hi", "tools": [*TOOLS, {"type": "web_search"}], "tool_choice": choice}
        answer = http.post(PATH, json=body)
        assert answer.status_code == 200, answer.text
        if choice["type"] == "allowed_tools":
            called = [f"{space.rstrip('_')}__{name}" if space else name for space, name in calls_of(answer.json())]
            assert called == offered
            assert offered or answer.json()["output"][0]["content"][0]["text"] == says
        else:
            tag = thinker.engine.received[-1].sampling_params.structural_tag or ""
            assert [name for name in names if name in tag] == offered


DEEP: dict[str, Any] = {"type": "object"}
for _ in range(200):
    DEEP = {"type": "object", "properties": {"a": DEEP}}


def test_what_is_wrong_in_a_namespace_is_named(http: httpx.Client) -> None:
    cases = [
        ({"tools": [namespace("a b", CLOCK)]}, "tools[0].name"),
        ({"tools": [{"type": "namespace", "name": "a"}]}, "tools[0].tools"),
        ({"tools": [{"type": "namespace", "name": "a", "tools": [5]}]}, "tools[0].tools"),
        ({"tools": [namespace("a", {"type": "function", "name": "b c"})]}, "tools[0].tools[0].name"),
        ({"tools": [namespace("a", namespace("b", CLOCK))]}, "tools[0].tools[0].type"),
        ({"tools": [CLOCK, namespace("a", CLOCK), namespace("a", CLOCK)]}, "tools[2].tools[0].name"),
        ({"tools": [namespace("a" * 200, function("b" * 200))]}, "tools[0].tools[0].name"),
        ({"tools": [namespace("a", *(function(f"f{n}") for n in range(257)))]}, "tools"),
        ({"tools": [namespace(f"a{n}", *(function(f"f{m}") for m in range(200))) for n in range(2)]}, "tools"),
        ({"tools": [CLOCK, *(function(f"f{n}") for n in range(255)), namespace("a", CLOCK)]}, "tools"),
        (
            {"tools": [CLOCK, namespace("a", CLOCK, {**function("f"), "strict": True, "parameters": DEEP})]},
            "tools[1].tools[1]",
        ),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "read"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "read", "namespace": "other"}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": []}}, "tool_choice"),
        ({"tools": [MAIL["tools"][1]], "tool_choice": allowed({"type": "custom"}, mode="required")}, "tool_choice"),
    ]
    for fields, param in cases:
        answer = http.post(PATH, json={"input": "Hi", **fields})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == param


def test_what_is_left_out_is_named_in_the_answer_and_once_in_the_log(
    http: httpx.Client, thinker: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    thinker.engine.says = "Hm."
    tools = [{"type": kind} for kind in ("web_search_test", "computer_test")]
    items = [{"role": "user", "content": "Hi"}, {"type": "newer_test_item"}]
    names = ["input.newer_test_item", "tools.web_search_test", "tools.computer_test"]
    with caplog.at_level(logging.WARNING):
        for stream in (False, True, False):
            body = {"input": items, "tools": [*tools, namespace("a", *tools, CLOCK)], "stream": stream}
            answer = http.post(PATH, json=body)
            assert answer.status_code == 200, answer.text
            assert answer.headers["x-bough-ignored-fields"].split(", ") == names
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert [logged.count(f"{name}'") for name in names] == [1, 1, 1]
