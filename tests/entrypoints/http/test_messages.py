"""Messages of a conversation, in all the forms in which clients send them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from openai.types.chat import ChatCompletion

from bough.entrypoints.http.openai.protocol import CHAT
from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of

USER = {"role": "user", "content": "Hi"}


def post(client: httpx.Client, *messages: Any, **fields: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 2, **fields})


def test_an_answer_can_be_sent_back_as_the_openai_client_shows_it(client: httpx.Client) -> None:
    answer = ChatCompletion.model_validate(post(client, USER).json()).choices[0].message.model_dump()
    assert "annotations" in answer
    assert post(client, USER, answer, USER).status_code == 200
    assert post(client, USER, {**answer, "annotations": []}, USER).status_code == 200


def test_null_is_the_same_as_absent_in_nested_objects_too(client: httpx.Client) -> None:
    part = {"type": "text", "text": "Hi", "cache_control": None}
    options = {"include_usage": None, "newer": None}
    assert post(client, {"role": "user", "content": [part], "newer": None}).status_code == 200
    assert post(client, USER, stream=True, stream_options=options).status_code == 200


def test_roles_are_compared_without_regard_to_case(client: httpx.Client) -> None:
    answer = post(client, {"role": "System", "content": "Be kind."}, {"role": "USER", "content": "Hi"})
    assert answer.status_code == 200
    plain = post(client, {"role": "system", "content": "Be kind."}, USER)
    assert answer.json()["usage"]["prompt_tokens"] == plain.json()["usage"]["prompt_tokens"]


def test_tool_calls_and_their_results_are_part_of_a_conversation(client: httpx.Client, server: RunningServer) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "x", "content": "42"}
    assert post(client, USER, called, result).status_code == 200
    assert prompt_of(server).endswith(
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "user", "content": "a", "tool_calls": [{"function": {"name": "f"}}]}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": "x"}]}, "messages[0].tool_calls[0]"),
        ({"role": "tool"}, "messages[1].content"),
    ],
)
def test_malformed_tool_messages_are_refused_by_name(client: httpx.Client, message: dict[str, Any], param: str) -> None:
    error = post(client, USER, message).json()["error"]
    assert error["param"] in (param, param.replace("[0]", "[1]", 1))


def test_a_role_that_the_template_does_not_know_becomes_system(client: httpx.Client, server: RunningServer) -> None:
    assert post(client, {"role": "developer", "content": "Be kind."}, USER).status_code == 200
    assert prompt_of(server).startswith("<|im_start|>system\nBe kind.")


@pytest.mark.parametrize("message", [{"role": "user", "content": None}, {"role": "system"}])
def test_content_is_required_but_from_the_assistant(client: httpx.Client, message: dict[str, Any]) -> None:
    response = post(client, USER, message)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "messages[1].content"


def test_unknown_nested_fields_are_dropped_and_logged_if_that_is_allowed(caplog: pytest.LogCaptureFixture) -> None:
    part = {"type": "text", "text": "Hi", "newer": {}}
    message = {"role": "user", "content": [part], "newer": 1}
    raw = json.dumps({"messages": [message, message], "stream_options": {"newest": 1}}).encode()
    body = asyncio.run(CHAT.parse(raw, allow_unknown=True, max_tokens=10))
    assert [each.content[0].text for each in body.messages if isinstance(each.content, list)] == ["Hi", "Hi"]
    (record,) = caplog.records
    for name in ("messages.newer", "messages.content.newer", "stream_options.newest"):
        assert record.getMessage().count(name) == 1
