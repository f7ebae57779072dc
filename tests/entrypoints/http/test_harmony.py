"""Answers of gpt-oss, on channels: thoughts and calls in chat completions, responses and messages, and sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.entrypoints.http import streams, test_anthropic, test_responses
from tests.entrypoints.http.server import RunningServer, running_server
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_tools_and_reasoning import CLOCK, USER, WEATHER
from tests.tokenization.test_template_families import LIKE_GPT_OSS

CHAT = "/v1/chat/completions"
THOUGHTS = "Is it «wärm» 🌳? Let me think."
ANALYSIS = f"<|channel|>analysis<|message|>{THOUGHTS}<|end|><|start|>assistant"
ARGUMENTS = '{"city": "Zürich", "n": [1, {"a": "}"}]}'
CALL = f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
FINAL = "<|channel|>final<|message|>It is nine.<|return|>"
NOTE = "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant"
ANSWERS = {
    "answer": (FINAL, "", "It is nine.", False),
    "thoughts and answer": (ANALYSIS + FINAL, THOUGHTS, "It is nine.", False),
    "thoughts and call": (ANALYSIS + CALL, THOUGHTS, "", True),
    "thoughts, note and call": (ANALYSIS + NOTE + CALL, THOUGHTS, "I look it up.", True),
    "recipient before the channel": (
        f"{ANALYSIS} to=functions.weather<|channel|>commentary json<|message|>{ARGUMENTS}<|call|>",
        THOUGHTS,
        "",
        True,
    ),
    # Ends of turns are stop tokens, of which there is no text.
    "call without its end": (ANALYSIS + CALL.removesuffix("<|call|>"), THOUGHTS, "", True),
    "answer without its end": (ANALYSIS + FINAL.removesuffix("<|return|>"), THOUGHTS, "It is nine.", False),
}
"""Of each the thoughts, the text, and whether it calls."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory: Path = tmp_path_factory.mktemp("harmony")
    template = directory / "template.jinja"
    template.write_text(LIKE_GPT_OSS)
    with running_server(directory, context_len=4096, chat_template=str(template)) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20) as client:
        yield client


@pytest.mark.parametrize(("says", "thoughts", "text", "calls"), ANSWERS.values(), ids=ANSWERS.keys())
def test_parts_of_an_answer_in_chat_completions(
    http: httpx.Client, server: RunningServer, says: str, thoughts: str, text: str, calls: bool
) -> None:
    server.engine.says = says
    body = {"messages": [USER], "tools": [WEATHER, CLOCK], "stream_options": {"include_usage": True}}
    streamed = streams.assembled(CHAT, body, streams.read_events(http, CHAT, body))
    whole = streams.whole_answer(http, CHAT, {"messages": [USER], "tools": [WEATHER, CLOCK]})
    message = whole["choices"][0]["message"]
    assert (message["reasoning_content"] or "", message["content"] or "") == (thoughts, text)
    assert [call["function"]["name"] for call in message["tool_calls"] or ()] == ["weather"] * calls
    assert [json.loads(call["function"]["arguments"]) for call in message["tool_calls"] or ()] == (
        [json.loads(ARGUMENTS)] * calls
    )
    assert whole["choices"][0]["finish_reason"] == ("tool_calls" if calls else "stop")
    assert streams.comparable(streamed) == streams.comparable(whole)
    assert server.tokenizer is not None
    assert whole["usage"]["reasoning_tokens"] == len(server.tokenizer.encode(thoughts, add_special_tokens=False))


@pytest.mark.parametrize(("says", "thoughts", "text", "calls"), ANSWERS.values(), ids=ANSWERS.keys())
def test_parts_of_an_answer_in_responses(
    http: httpx.Client, server: RunningServer, says: str, thoughts: str, text: str, calls: bool
) -> None:
    server.engine.says = says
    tools = [{"type": "function", **each["function"]} for each in (WEATHER, CLOCK)]
    body = {"model": "m", "input": "Hi", "tools": tools, "max_output_tokens": 500}
    whole = http.post("/v1/responses", json=body).json()
    by_type: dict[str, list[Any]] = {}
    for item in whole["output"]:
        by_type.setdefault(item["type"], []).append(item)
    said = [part["text"] for item in by_type.get("message", ()) for part in item["content"]]
    assert "".join(said) == text
    assert [part["text"] for item in by_type.get("reasoning", ()) for part in item["content"]] == (
        [thoughts] if thoughts else []
    )
    assert [json.loads(item["arguments"]) for item in by_type.get("function_call", ())] == [
        json.loads(ARGUMENTS)
    ] * calls
    streamed = test_responses.assembled(test_responses.read_events(http, body))
    assert test_responses.comparable(streamed) == test_responses.comparable(whole)


@pytest.mark.parametrize(("says", "thoughts", "text", "calls"), ANSWERS.values(), ids=ANSWERS.keys())
def test_parts_of_an_answer_in_messages(
    http: httpx.Client, server: RunningServer, says: str, thoughts: str, text: str, calls: bool
) -> None:
    server.engine.says = says
    tools = [{"name": "weather", "input_schema": WEATHER["function"]["parameters"]}]  # type: ignore[index]
    body = {"model": "m", "max_tokens": 500, "messages": [USER], "tools": tools}
    whole = http.post("/v1/messages", json=body).json()
    blocks = {block["type"]: block for block in whole["content"]}
    assert blocks.get("thinking", {}).get("thinking", "") == thoughts
    assert blocks.get("text", {}).get("text", "") == text
    assert blocks.get("tool_use", {}).get("input") == (json.loads(ARGUMENTS) if calls else None)
    assert whole["stop_reason"] == ("tool_use" if calls else "end_turn")
    streamed = test_anthropic.assembled(test_anthropic.read_events(http, body))
    assert test_anthropic.comparable(streamed) == test_anthropic.comparable(whole)


LATER = (
    f"<|start|>assistant<|channel|>analysis<|message|>{THOUGHTS}\n\nI look it up.<|end|>"
    "<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>"
    f"{ARGUMENTS}<|call|>"
    '<|start|>functions.weather to=assistant<|channel|>commentary<|message|>"Warm."<|end|><|start|>assistant'
)
"""Prompt behind a question, when the answer has been sent back with the result of its call."""


def test_an_answer_of_chat_completions_is_sent_back(server: RunningServer) -> None:
    server.engine.says = ANALYSIS + NOTE + CALL
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as api:
        messages: list[Any] = [USER]
        first = api.chat.completions.create(model="m", messages=messages, tools=[WEATHER])  # type: ignore[list-item]
        message = first.choices[0].message
        assert message.tool_calls is not None
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Warm."}
        messages += [message.model_dump(exclude_none=True), result]
        server.engine.says = FINAL
        second = api.chat.completions.create(model="m", messages=messages, tools=[WEATHER])  # type: ignore[list-item]
        assert second.choices[0].message.content == "It is nine."
    assert prompt_of(server).endswith(LATER)


def test_an_answer_of_messages_is_sent_back(server: RunningServer) -> None:
    server.engine.says = ANALYSIS + NOTE + CALL
    tools: Any = [{"name": "weather", "input_schema": WEATHER["function"]["parameters"]}]  # type: ignore[index]
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as api:
        messages: list[Any] = [USER]
        first = api.messages.create(model="m", max_tokens=500, messages=messages, tools=tools)
        called = next(block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": called.id, "content": "Warm."}
        messages += [
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
            {"role": "user", "content": [result]},
        ]
        server.engine.says = FINAL
        api.messages.create(model="m", max_tokens=500, messages=messages, tools=tools)
    assert prompt_of(server).endswith(LATER)


def test_an_answer_of_responses_is_continued(server: RunningServer) -> None:
    server.engine.says = ANALYSIS + NOTE + CALL
    tools: Any = [{"type": "function", **WEATHER["function"]}]  # type: ignore[dict-item]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as api:
        first = api.responses.create(model="m", input="Hi", tools=tools)
        called = next(item for item in first.output if item.type == "function_call")
        result: Any = {"type": "function_call_output", "call_id": called.call_id, "output": "Warm."}
        server.engine.says = FINAL
        second = api.responses.create(model="m", input=[result], tools=tools, previous_response_id=first.id)
        assert second.output_text == "It is nine."
    assert prompt_of(server).endswith(LATER)


def test_an_answer_with_its_thoughts_in_the_text_is_sent_back(http: httpx.Client, server: RunningServer) -> None:
    server.engine.says = ANALYSIS + FINAL
    first = http.post(CHAT, json={"model": "m", "messages": [USER], "separate_reasoning": False}).json()
    message = first["choices"][0]["message"]
    assert THOUGHTS in message["content"]
    second = http.post(CHAT, json={"model": "m", "messages": [USER, message, USER]})
    assert second.status_code == 200
    assert "<|start|>assistant<|channel|>final<|message|>It is nine.<|end|>" in prompt_of(server)
    assert THOUGHTS not in prompt_of(server)
