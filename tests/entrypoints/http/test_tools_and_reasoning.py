"""Tool calls, reasoning and constraints in chat completions, on an engine that says what it is told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.entrypoints.http.server import RunningServer, running_server
from tests.entrypoints.http.streams import assembled, comparable, read_events, whole_answer
from tests.entrypoints.http.test_openai_client import prompt_of

PATH = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a place",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}
THOUGHTS = "<think>\nIs it «wärm» 🌳? Let me think.\n</think>\n\n"
CALLS = (
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich", "n": [1, {"a": "}"}]}}\n</tool_call>\n'
    '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
)
ANSWERS = {
    "plain": "It is nine.",
    "thoughts": THOUGHTS + "It is nine.",
    "only thoughts, cut off": THOUGHTS[:30],
    "calls": CALLS,
    "thoughts, text and calls": THOUGHTS + "I look it up.\n" + CALLS,
    "call cut off": THOUGHTS + CALLS[:60],
    "malformed": '<tool_call>\n{"name": "weather", "arg</tool_call> so what',
    "unknown function": '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>',
}


def answer(http: httpx.Client, server: RunningServer, says: str, **fields: Any) -> dict[str, Any]:
    """The whole answer, after a look at whether the stream says the same."""
    server.engine.says = says
    body = {"messages": [USER], "stream_options": {"include_usage": True}, **fields}
    streamed = assembled(PATH, body, read_events(http, PATH, body))
    del body["stream_options"]
    whole = whole_answer(http, PATH, body)
    ids = [call["id"] for choice in whole["choices"] for call in choice["message"]["tool_calls"] or ()]
    assert len(set(ids)) == len(ids)
    assert all(call_id.startswith("call_") for call_id in ids)
    assert comparable(streamed) == comparable(whole)
    return whole


@pytest.mark.parametrize("says", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": [WEATHER, CLOCK]},
        {"tools": [WEATHER, CLOCK], "logprobs": True, "top_logprobs": 2},
        {"tools": [WEATHER, CLOCK], "parallel_tool_calls": False, "return_token_ids": True},
        {"tools": [WEATHER, CLOCK], "separate_reasoning": False},
        {"stream_reasoning": False, "n": 2},
    ],
    ids=["no tools", "tools", "logprobs", "one call", "one text", "reasoning at once"],
)
def test_stream_equals_whole(http: httpx.Client, thinker: RunningServer, says: str, fields: dict[str, Any]) -> None:
    whole = answer(http, thinker, says, **fields)
    for choice in whole["choices"]:
        message = choice["message"]
        assert (choice["finish_reason"] == "tool_calls") == bool(message["tool_calls"])
        if "return_token_ids" in fields:
            assert len(choice["token_ids"]) == whole["usage"]["completion_tokens"]
        if "logprobs" in fields:
            assert len(choice["logprobs"]["content"]) == whole["usage"]["completion_tokens"]


def test_calls_and_thoughts_are_told_apart(http: httpx.Client, thinker: RunningServer) -> None:
    whole = answer(http, thinker, ANSWERS["thoughts, text and calls"], tools=[WEATHER, CLOCK])
    (choice,) = whole["choices"]
    message = choice["message"]
    assert message["reasoning_content"] == "Is it «wärm» 🌳? Let me think."
    assert message["content"].strip() == "I look it up."
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["weather", "clock"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"])["city"] == "Zürich"
    assert (choice["finish_reason"], choice["matched_stop"]) == ("tool_calls", None)


def test_tokens_of_reasoning_are_counted(http: httpx.Client, thinker: RunningServer) -> None:
    usage = answer(http, thinker, ANSWERS["thoughts"])["usage"]
    assert thinker.tokenizer is not None
    expected = len(thinker.tokenizer.encode("Is it «wärm» 🌳? Let me think.", add_special_tokens=False))
    assert usage["reasoning_tokens"] == usage["completion_tokens_details"]["reasoning_tokens"] == expected
    assert answer(http, thinker, ANSWERS["plain"])["usage"]["reasoning_tokens"] == 0


@pytest.mark.parametrize("fields", [{"separate_reasoning": False}, {"include_reasoning": False}])
@pytest.mark.parametrize("tools", [{}, {"tools": [WEATHER, CLOCK]}])
@pytest.mark.parametrize("says", ANSWERS.values(), ids=ANSWERS.keys())
def test_tokens_of_reasoning_are_counted_wherever_it_is_put(
    http: httpx.Client, thinker: RunningServer, says: str, tools: dict[str, Any], fields: dict[str, Any]
) -> None:
    usual = answer(http, thinker, says, **tools)["usage"]
    assert answer(http, thinker, says, **tools, **fields)["usage"] == usual


def test_one_call_only_without_parallel_calls(http: httpx.Client, thinker: RunningServer) -> None:
    whole = answer(http, thinker, CALLS, tools=[WEATHER, CLOCK], parallel_tool_calls=False)
    assert [each["function"]["name"] for each in whole["choices"][0]["message"]["tool_calls"]] == ["weather"]


def test_tools_are_not_shown_and_calls_not_looked_for_if_there_shall_be_none(
    http: httpx.Client, thinker: RunningServer
) -> None:
    whole = answer(http, thinker, CALLS, tools=[WEATHER, CLOCK], tool_choice="none")
    assert whole["choices"][0]["message"]["content"] == CALLS
    assert "weather" not in prompt_of(thinker)
    answer(http, thinker, CALLS, tools=[WEATHER])
    assert '"name": "weather"' in prompt_of(thinker), "the template has no place for tools, so a message tells"


def test_required_calls_are_constrained(http: httpx.Client, thinker: RunningServer) -> None:
    answer(http, thinker, THOUGHTS + CALLS, tools=[WEATHER, CLOCK], tool_choice="required")
    required = tag_of(thinker)
    named = {"type": "function", "function": {"name": "clock"}}
    answer(http, thinker, THOUGHTS + CALLS, tools=[WEATHER, CLOCK], tool_choice=named)
    assert "weather" in json.dumps(required)
    assert "weather" not in json.dumps(tag_of(thinker))


def test_reasoning_comes_before_what_a_schema_constrains(http: httpx.Client, thinker: RunningServer) -> None:
    schema = {"type": "object", "properties": {"a": {"const": 1}}}
    answer(http, thinker, THOUGHTS + '{"a": 1}', json_schema=schema)
    tag = tag_of(thinker)
    assert {"type": "json_schema", "json_schema": schema} in tag["format"]["elements"]
    assert "<think>" in json.dumps(tag)
    answer(http, thinker, '{"a": 1}', json_schema=schema, tools=[CLOCK])
    assert "<tool_call>" in json.dumps(tag_of(thinker)), "a call is an answer too"


def tag_of(server: RunningServer) -> Any:
    tag = server.engine.received[-1].sampling_params.structural_tag
    assert tag is not None
    return json.loads(tag)


CLOSED = {"reasoning_effort": "none"}
ASKED = {"reasoning_effort": "high"}
NO_ANSWER = {"add_generation_prompt": False}


def going_on(text: str) -> dict[str, Any]:
    messages = [USER, {"role": "assistant", "content": text}]
    return {"messages": messages, "continue_final_message": True, "add_generation_prompt": False}


@pytest.mark.parametrize(
    ("end", "cases"),
    [
        (
            "{{ '<think></think>' if enable_thinking is false }}",
            [({}, "possible"), (ASKED, "possible"), (CLOSED, "none"), (NO_ANSWER, "possible")],
        ),
        (
            "{{ '<think>' if enable_thinking }}",
            [({}, "none"), (ASKED, "begun"), (CLOSED, "none"), (NO_ANSWER, "possible")],
        ),
        ("<think>", [({}, "begun"), (NO_ANSWER, "possible")]),
        ("", [(going_on("It"), "none"), (going_on("<think>It"), "begun"), (going_on("<think>It</think>Is"), "none")]),
    ],
    ids=["closes", "opens if asked", "opens", "neither"],
)
def test_an_answer_that_is_constrained_has_thoughts_where_the_prompt_leaves_room_for_them(
    tmp_path: Path, end: str, cases: list[tuple[dict[str, Any], str]]
) -> None:
    template = tmp_path / "template.jinja"
    body = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
    template.write_text(body + "{% if add_generation_prompt %}<assistant>" + end + "{% endif %}")
    with (
        running_server(tmp_path, reasoning_parser="qwen3", chat_template=str(template)) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
    ):
        assert server.tokenizer is not None
        ids = [server.tokenizer.encode(text, add_special_tokens=False).tolist() for text in ("Hi<think></think>", "Hi")]
        for fields, thoughts in [*cases, ({"input_ids": ids[0]}, "none"), ({"input_ids": ids[1]}, "possible")]:
            server.engine.says = "yes"
            whole_answer(client, PATH, {"messages": [USER], "choice": ["yes", "no"], **fields})
            params = server.engine.received[-1].sampling_params
            if thoughts == "none":
                assert (params.choice, params.structural_tag) == (("yes", "no"), None), fields
            else:
                tag = json.dumps(tag_of(server))
                assert ("<think>" in tag, "</think>" in tag) == (thoughts == "possible", True), fields


def test_what_is_said_of_thinking_reaches_the_template(
    http: httpx.Client, thinker: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        ({"reasoning_effort": "none"}, {"enable_thinking": False, "thinking": False, "reasoning_effort": "none"}),
        ({"reasoning_effort": "high"}, {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
        ({"reasoning": {"enabled": False, "effort": None}}, {"enable_thinking": False, "thinking": False}),
        ({"thinking": {"type": "disabled"}}, {"enable_thinking": False, "thinking": False}),
        (
            {"thinking": True, "chat_template_kwargs": {"enable_thinking": False}},
            {"enable_thinking": False, "thinking": True},
        ),
        ({"chat_template_kwargs": {"enable_thinking": None, "mood": "maybe"}}, {"mood": "maybe"}),
        (
            {"thinking": True, "chat_template_kwargs": {"thinking": None}},
            {"enable_thinking": True, "thinking": True},
        ),
    ]
    template = thinker.manager.chat_template
    assert template is not None
    render = template.render
    for fields, variables in cases:
        seen: list[Any] = []
        monkeypatch.setattr(
            template,
            "render",
            lambda messages, **options: (seen.append(options["kwargs"]), render(messages, **options))[1],
        )
        thinker.engine.says = "Yes."
        whole_answer(http, PATH, {"messages": [USER], **fields})
        assert seen == [variables]


def test_a_call_that_is_required_goes_before_a_format(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}},
        {"response_format": {"type": "json_object"}},
        {"regex": "a+"},
    ]
    for named in [False, True]:
        for format_ in cases:
            choice = {"type": "function", "function": {"name": WEATHER["function"]["name"]}} if named else "required"
            fields = {"messages": [USER], "tools": [WEATHER], "tool_choice": choice, "max_tokens": 4}
            tags = []
            for extra in ({}, format_):
                assert http.post(PATH, json={**fields, **extra}).status_code == 200
                tags.append(thinker.engine.received[-1].sampling_params.grammar)
            assert tags[0] == tags[1]
            assert tags[0] is not None


def test_what_does_not_fit_together_is_refused_by_name(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "custom"}}, "tool_choice"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1].function.name"),
        ({"thinking": {"type": "much"}}, "thinking"),
        ({"chat_template_kwargs": {"enable_thinking": "maybe"}}, "chat_template_kwargs.enable_thinking"),
        ({"chat_template_kwargs": {"enable_thinking": 0}}, "chat_template_kwargs.enable_thinking"),
        ({"chat_template_kwargs": {"thinking": "false"}}, "chat_template_kwargs.thinking"),
        ({"reasoning_effort": "some"}, "reasoning_effort"),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, "reasoning"),
        ({"echo": True}, "echo"),
    ]
    for fields, param in cases:
        response = http.post(PATH, json={"messages": [USER], **fields})
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == param


class TestOpenAIClient:
    def test_a_conversation_with_a_tool(self, thinker: RunningServer) -> None:
        api = openai.OpenAI(base_url=f"{thinker.url}/v1", api_key="none", max_retries=0)
        thinker.engine.says = THOUGHTS + CALLS
        messages: list[Any] = [USER]
        first = api.chat.completions.create(model="m", messages=messages, tools=[WEATHER, CLOCK])  # type: ignore[list-item]
        message = first.choices[0].message
        assert message.tool_calls is not None
        messages.append(message.model_dump())
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in message.tool_calls]
        thinker.engine.says = "Done."
        second = api.chat.completions.create(model="m", messages=messages, tools=[WEATHER, CLOCK])  # type: ignore[list-item]
        assert second.choices[0].message.content == "Done."
        assert '"city": "Zürich"' in prompt_of(thinker)

    def test_stream_helper_puts_calls_together(self, thinker: RunningServer) -> None:
        api = openai.OpenAI(base_url=f"{thinker.url}/v1", api_key="none", max_retries=0)
        thinker.engine.says = CALLS
        with api.chat.completions.stream(model="m", messages=[USER], tools=[WEATHER, CLOCK]) as stream:  # type: ignore[list-item]
            final = stream.get_final_completion()
        calls = final.choices[0].message.tool_calls
        assert calls is not None
        assert json.loads(calls[0].function.arguments)["city"] == "Zürich"
        assert final.choices[0].finish_reason == "tool_calls"


def test_a_budget_of_thoughts_goes_with_what_is_known_of_them(tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(
        "{% for message in messages %}{{ message.content }}{% endfor %}"
        "{% if add_generation_prompt and enable_thinking %}<think>{% endif %}"
    )
    budget = {"thinking_token_budget": 7}
    cases: list[tuple[str, dict[str, Any], bool]] = [
        (PATH, {"messages": [USER], **budget, **ASKED}, True),
        (PATH, {"messages": [USER], **budget}, False),
        (PATH, {**going_on("<think>It"), **budget}, True),
        (PATH, {**going_on("It"), **budget}, False),
        ("/v1/responses", {"input": "Hi", "reasoning": {"effort": "high"}, **budget}, True),
        ("/v1/completions", {"prompt": "Hi<think>\n", **budget}, True),
        ("/v1/completions", {"prompt": "Hi", **budget}, False),
        ("/generate", {"text": "Hi<think>", "sampling_params": budget}, True),
        ("/generate", {"text": "Hi<think>a</think>", "sampling_params": budget}, False),
    ]
    with (
        running_server(tmp_path, chat_template=str(template)) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
    ):
        for path, body, begun in cases:
            response = client.post(path, json=body)
            assert response.status_code == 200, response.text
            received = server.engine.received[-1]
            assert received.sampling_params.thinking_token_budget == 7
            assert received.thoughts is not None
            assert (received.thoughts.start, received.thoughts.begun) == ("<think>", begun), (path, body)
            assert received.thoughts.close
        for wrong in (-1, 2**31, "7"):
            for path, body, _ in cases:
                given = json.loads(json.dumps(body).replace(": 7", f": {json.dumps(wrong)}"))
                response = client.post(path, json=given)
                assert response.status_code == 400, response.text
                assert response.json()["error"]["param"].endswith("thinking_token_budget")


def test_a_budget_of_thoughts_that_nothing_is_known_of_is_refused(client: httpx.Client) -> None:
    budget = {"thinking_token_budget": 7}
    for path, body, param in (
        (PATH, {"messages": [USER], **budget}, "thinking_token_budget"),
        ("/v1/completions", {"prompt": "Hi", **budget}, "thinking_token_budget"),
        ("/v1/responses", {"input": "Hi", **budget}, "thinking_token_budget"),
        ("/generate", {"text": "Hi", "sampling_params": budget}, "sampling_params.thinking_token_budget"),
    ):
        response = client.post(path, json=body)
        assert response.status_code == 400, response.text
        message = response.json()["error"]["message"]
        assert message.startswith(f"{param}: it is not known how this model marks its thoughts")
