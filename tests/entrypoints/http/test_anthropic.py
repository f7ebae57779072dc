"""``/v1/messages``, with the unmodified Anthropic client and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_tools_and_reasoning import ANSWERS, CALLS, THOUGHTS

PATH = "/v1/messages"
USER = {"role": "user", "content": "Hi"}
WEATHER = {
    "name": "weather",
    "description": "Weather of a place",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CLOCK = {"name": "clock", "input_schema": {"type": "object"}}
TOOLS: Any = [WEATHER, CLOCK]
REFERENCE = {"type": "tool_reference", "tool_name": "weather"}
FOUND = {"type": "search_result", "title": "a", "source": "b", "content": [{"type": "text", "text": "c"}]}
NESTED = {**FOUND, "content": [FOUND]}


@pytest.fixture
def api(thinker: RunningServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=thinker.url, api_key="none", max_retries=0) as client:
        yield client


def read_events(http: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    with http.stream("POST", PATH, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        text = response.read().decode()
    events = []
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def assembled(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that the events build up, after a look at their order."""
    first, ping, *middle, ended, stop = events
    assert (first["type"], ping["type"]) == ("message_start", "ping")
    assert (ended["type"], stop["type"]) == ("message_delta", "message_stop")
    message = first["message"]
    inputs: dict[int, str] = {}
    signed: set[int] = set()
    is_open = False
    for event in middle:
        if event["type"] == "content_block_start":
            assert not is_open
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
            is_open = True
            continue
        assert is_open
        assert event["index"] == len(message["content"]) - 1
        block = message["content"][-1]
        if event["type"] == "content_block_stop":
            is_open = False
            continue
        delta = event["delta"]
        if delta["type"] == "text_delta":
            block["text"] += delta["text"]
        elif delta["type"] == "thinking_delta":
            block["thinking"] += delta["thinking"]
        elif delta["type"] == "signature_delta":
            block["signature"] += delta["signature"]
            signed.add(event["index"])
        else:
            assert delta["type"] == "input_json_delta"
            inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
    assert not is_open
    assert signed == {index for index, block in enumerate(message["content"]) if block["type"] == "thinking"}
    for index, text in inputs.items():
        try:
            message["content"][index]["input"] = json.loads(text)
        except ValueError:
            message["content"][index]["input"] = {"_unparsed": text}
    return {**message, **ended["delta"], "usage": {**message["usage"], **ended["usage"]}}


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    assert message.pop("id").startswith("msg_")
    for block in message["content"]:
        block.pop("id", None)
    return message


@pytest.mark.parametrize("says", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"max_tokens": 20},
        {"stop_sequences": ["think"]},
    ],
    ids=["plain", "tools", "one call", "no thoughts shown", "cut off", "stop"],
)
def test_stream_equals_whole(http: httpx.Client, thinker: RunningServer, says: str, fields: dict[str, Any]) -> None:
    thinker.engine.says = says
    body = {"model": "m", "max_tokens": 500, "messages": [USER], **fields}
    response = http.post(PATH, json=body)
    assert response.status_code == 200, response.text
    whole = response.json()
    assert whole["content"]
    assert comparable(assembled(read_events(http, body))) == comparable(whole)
    assert (whole["stop_reason"] == "tool_use") == (
        whole["content"][-1]["type"] == "tool_use" and "max_tokens" not in fields
    )


def test_thoughts_text_and_calls_are_blocks(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    thinker.engine.says = ANSWERS["thoughts, text and calls"]
    message = api.messages.create(model="m", max_tokens=500, messages=[USER], tools=TOOLS)  # type: ignore[list-item]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    call = message.content[2]
    assert call.type == "tool_use"
    assert (call.name, call.input["city"]) == ("weather", "Zürich")
    assert (message.role, message.stop_reason, message.model) == ("assistant", "tool_use", "m")
    assert thinker.tokenizer is not None
    said = thinker.tokenizer.encode(thinker.engine.says, add_special_tokens=False)
    assert message.usage.output_tokens == len(said) + 1, "and the token that ends it"
    assert message.usage.cache_read_input_tokens


def test_stream_helper(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    thinker.engine.says = THOUGHTS + "It is nine."
    with api.messages.stream(model="m", max_tokens=500, messages=[USER]) as stream:  # type: ignore[list-item]
        assert "".join(stream.text_stream) == "It is nine."
        final = stream.get_final_message()
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens > 10


def test_a_conversation_with_tools_goes_on(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    thinker.engine.says = THOUGHTS + CALLS
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": None}]}]
    first = api.messages.create(model="m", max_tokens=500, messages=messages, tools=TOOLS, system="Be kind.")
    calls = [block for block in first.content if block.type == "tool_use"]
    messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "9 o'clock"} for call in calls]
    messages.append({"role": "user", "content": [*results, {"type": "text", "text": "So?"}]})
    thinker.engine.says = "Nine."
    second = api.messages.create(model="m", max_tokens=500, messages=messages, tools=TOOLS, system="Be kind.")
    assert second.content[0].type == "text"
    prompt = prompt_of(thinker)
    assert prompt.startswith("<|im_start|>system\nBe kind.")
    assert prompt.count("9 o'clock") == 2
    assert prompt.endswith("user\nSo?<|im_end|>\n<|im_start|>assistant\n")


def test_the_assistants_last_message_is_gone_on_with(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    messages: list[Any] = [USER, {"role": "assistant", "content": "The time is"}]
    api.messages.create(model="m", max_tokens=5, messages=messages)
    assert prompt_of(thinker).endswith("assistant\nThe time is")


def test_stop_sequences_and_limits_are_told_apart(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    thinker.engine.says = "It is nine."
    ended = api.messages.create(model="m", max_tokens=50, messages=[USER], stop_sequences=["nine"])  # type: ignore[list-item]
    assert (ended.stop_reason, ended.stop_sequence) == ("stop_sequence", "nine")
    assert ended.content[0].text == "It is "  # type: ignore[union-attr]
    cut = api.messages.create(model="m", max_tokens=3, messages=[USER])  # type: ignore[list-item]
    assert (cut.stop_reason, cut.stop_sequence) == ("max_tokens", None)
    far = api.messages.create(model="m", max_tokens=100_000, messages=[USER], timeout=20)  # type: ignore[list-item]
    assert far.stop_reason == "end_turn"


def test_tokens_are_counted_as_they_are_used(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    counted = api.messages.count_tokens(model="m", messages=[USER], tools=TOOLS, system="Be kind.")  # type: ignore[list-item]
    used = api.messages.create(model="m", max_tokens=1, messages=[USER], tools=TOOLS, system="Be kind.").usage  # type: ignore[list-item]
    assert counted.input_tokens == used.input_tokens + (used.cache_read_input_tokens or 0)


def test_a_conversation_that_is_too_long_is_counted_too(http: httpx.Client) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "a" * 100_000}]}
    assert http.post(f"{PATH}/count_tokens", json=body).json()["input_tokens"] > 100_000
    assert http.post(PATH, json={**body, "max_tokens": 1}).status_code == 400
    body["messages"][0]["content"] = "a" * (4 << 20)
    assert http.post(f"{PATH}/count_tokens", json=body).status_code == 413


def test_tools_that_a_server_would_run_are_left_out(http: httpx.Client, thinker: RunningServer) -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    body = {"model": "m", "max_tokens": 5, "messages": [USER], "tools": [search, WEATHER]}
    assert http.post(PATH, json=body).status_code == 200
    assert '"weather"' in prompt_of(thinker)
    assert "web_search" not in prompt_of(thinker)
    assert http.post(PATH, json={**body, "tools": [search]}).status_code == 200


def test_a_result_may_refer_to_tools(http: httpx.Client, thinker: RunningServer) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "clock", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [REFERENCE]}
    messages = [USER, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    body = {"model": "m", "max_tokens": 5, "messages": messages, "tools": TOOLS}
    assert http.post(PATH, json=body).status_code == 200
    assert "<tool_response>\nweather\n</tool_response>" in prompt_of(thinker)


def test_a_strict_tool_constrains_calls_only(http: httpx.Client, thinker: RunningServer) -> None:
    tool = {**WEATHER, "strict": True, "cache_control": {"type": "ephemeral"}, "defer_loading": False}
    body = {"model": "m", "max_tokens": 5, "messages": [USER], "tools": [tool]}
    assert http.post(PATH, json=body).status_code == 200
    assert "triggered_tags" in (thinker.engine.received[-1].sampling_params.structural_tag or "")


def test_a_format_constrains_the_answer(http: httpx.Client, thinker: RunningServer) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    config = {"format": {"type": "json_schema", "schema": schema}, "effort": "low"}
    body = {"model": "m", "max_tokens": 5, "messages": [USER], "output_config": config}
    assert http.post(PATH, json=body).status_code == 200
    tag = json.loads(thinker.engine.received[-1].sampling_params.structural_tag or "")
    assert {"type": "json_schema", "json_schema": schema} in tag["format"]["elements"]


def test_bad_requests_are_refused_by_name(http: httpx.Client) -> None:
    cases = [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]"),
        ({"tools": [{**WEATHER, "input_examples": {}}]}, "tools[0].input_examples"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1].name"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}, WEATHER, WEATHER]}, "tools[2].name"),
        ({"context_management": "auto"}, "context_management"),
        ({"messages": [{"role": "user", "content": [NESTED]}]}, "messages[0].content[0].content[0]: only text"),
        ({"messages": [{"role": "user", "content": [REFERENCE]}]}, "messages[0].content[0]"),
        ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools[0].name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.budget_tokens"),
        ({"speed": 1}, "speed"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
    ]
    for fields, param in cases:
        response = http.post(PATH, json={"model": "m", "max_tokens": 5, "messages": [USER], **fields})
        assert response.status_code == 400, response.text
        body = response.json()
        assert body["type"] == "error"
        assert body["error"]["type"] == "invalid_request_error"
        assert param in body["error"]["message"]


def test_the_budget_of_thoughts_bounds_them(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    thinker.engine.says = ANSWERS["thoughts, text and calls"]
    fields: Any = {"model": "m", "max_tokens": 3000, "messages": [USER]}
    api.messages.create(**fields, thinking={"type": "enabled", "budget_tokens": 1024})
    received = thinker.engine.received[-1]
    assert received.sampling_params.thinking_token_budget == 1024
    assert received.thoughts is not None
    assert (received.thoughts.start, received.thoughts.ends[0]) == ("<think>", "</think>")
    api.messages.create(**fields, thinking={"type": "enabled"})  # type: ignore[typeddict-item]
    assert thinker.engine.received[-1].sampling_params.thinking_token_budget is None
    assert thinker.engine.received[-1].thoughts is None


def test_a_model_that_is_not_known_to_think_has_no_thoughts_to_bound(
    client: httpx.Client, server: RunningServer
) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1024}
    body = {"model": "m", "max_tokens": 3000, "messages": [USER], "thinking": thinking}
    assert client.post("/v1/messages", json=body).status_code == 200
    assert server.engine.received[-1].thoughts is None
    assert server.engine.received[-1].sampling_params.thinking_token_budget is None


def test_errors_become_the_clients_exceptions(api: anthropic.Anthropic, thinker: RunningServer) -> None:
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        api.messages.create(model="m", max_tokens=5, messages=[USER], extra_body={"temperature": -1})  # type: ignore[list-item]
    thinker.engine.fail_after = 3
    with pytest.raises(anthropic.APIStatusError, match="out of luck"):
        api.messages.create(model="m", max_tokens=50, messages=[USER])  # type: ignore[list-item]
    with (
        pytest.raises(anthropic.APIError, match="out of luck"),
        api.messages.stream(model="m", max_tokens=50, messages=[USER]) as stream,  # type: ignore[list-item]
    ):
        stream.until_done()


def test_leaving_early_ends_the_request(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.token_delay = 0.01
    with http.stream(
        "POST", PATH, json={"model": "m", "max_tokens": 3000, "messages": [USER], "stream": True}
    ) as response:
        next(response.iter_raw())
    thinker.assert_idle()
