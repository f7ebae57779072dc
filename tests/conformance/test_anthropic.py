from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.conformance.conftest import MODEL
from tests.conformance.tasks import (
    MESSAGES,
    PIXEL,
    QUESTION,
    RESULT,
    TOO_LARGE,
    TOO_LONG,
    Kind,
    check_answer,
    check_tree,
    schema,
)
from tests.e2e.server import Server

FIELDS: dict[str, Any] = {"model": MODEL, "max_tokens": 60, "messages": MESSAGES, "temperature": 0}


def anthropic_tool() -> Any:
    return {"name": "describe_tree", "description": "Describes a tree", "input_schema": schema()}


@pytest.fixture
def client(server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def create(client: anthropic.Anthropic, **fields: Any) -> Any:
    return client.messages.create(**untyped(fields))


def untyped(fields: dict[str, Any]) -> dict[str, Any]:
    """All fields; newer clients no longer have an argument for the temperature."""
    fields = {**FIELDS, **fields}
    temperature = fields.pop("temperature")
    return {**fields, "extra_body": {"temperature": temperature}}


def test_messages_stream_what_they_answer(client: anthropic.Anthropic) -> None:
    whole = create(client)
    check_answer(whole.content[0].text)
    with client.messages.stream(**untyped({})) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)


def test_events_have_the_names_that_are_documented(client: anthropic.Anthropic) -> None:
    events = [event.type for event in create(client, stream=True)]
    assert events[0] == "message_start"
    assert events[-2:] == ["message_delta", "message_stop"]
    assert set(events) == {
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop"),
    }


def test_system_prompts_and_stop_sequences(client: anthropic.Anthropic) -> None:
    answer = create(client, system="You know trees.", stop_sequences=["."])
    assert answer.stop_reason == "stop_sequence"
    assert answer.stop_sequence == "."
    assert "." not in answer.content[0].text


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "describe_tree"}], ids=["any", "tool"])
def test_calls_and_their_results(client: anthropic.Anthropic, choice: dict[str, Any]) -> None:
    fields = {
        "max_tokens": 200,
        "tools": [anthropic_tool()],
        "tool_choice": {**choice, "disable_parallel_tool_use": True},
    }
    called = create(client, **fields)
    assert called.stop_reason == "tool_use"
    call = called.content[-1]
    assert call.name == "describe_tree"
    check_tree(call.input)
    streamed = create(client, **fields, stream=True)
    deltas = [event.delta for event in streamed if event.type == "content_block_delta"]
    fragments = [delta.partial_json for delta in deltas if delta.type == "input_json_delta"]
    check_tree("".join(fragments))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
    turns = [*MESSAGES, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
    answer = create(client, messages=turns, tools=[anthropic_tool()])
    assert answer.content


def test_answers_that_follow_a_schema(client: anthropic.Anthropic) -> None:
    form = {"type": "json_schema", "schema": schema()}
    check_tree(create(client, max_tokens=200, output_config={"format": form}).content[0].text)
    # The client keeps no bounds of lengths in the schemas that it makes.
    assert isinstance(client.messages.parse(**untyped({}), output_format=Kind).parsed_output, Kind)


def test_tokens_are_counted_as_they_are_used(client: anthropic.Anthropic) -> None:
    counted = client.messages.count_tokens(model=MODEL, messages=MESSAGES).input_tokens
    usage = create(client).usage
    assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_models(client: anthropic.Anthropic) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]


def test_content_in_blocks(client: anthropic.Anthropic) -> None:
    text: dict[str, Any] = {"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}
    answer = create(client, messages=[{"role": "user", "content": [text]}])
    assert answer.content[0].text == create(client).content[0].text
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    with pytest.raises(anthropic.BadRequestError, match="text"):
        create(client, messages=[{"role": "user", "content": [text, image]}])


def test_errors_have_their_classes(client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.APIStatusError) as large:
        create(client, messages=[{"role": "user", "content": TOO_LARGE}])
    assert large.value.status_code == 413
    assert large.value.body["error"]["type"] == "request_too_large"  # type: ignore[index]
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nonsense")
    with pytest.raises(anthropic.BadRequestError):
        client.messages.count_tokens(model=MODEL, messages=[])


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": -1},
        {"messages": [{"role": "nobody", "content": "Hi"}]},
        {"tool_choice": {"type": "any"}},
        {"messages": [{"role": "user", "content": TOO_LONG}]},
    ],
    ids=["range", "role", "no tools", "too long"],
)
def test_bad_requests(client: anthropic.Anthropic, fields: dict[str, Any]) -> None:
    with pytest.raises(anthropic.BadRequestError) as info:
        create(client, **fields)
    assert info.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
    with pytest.raises(anthropic.BadRequestError):
        list(create(client, **fields, stream=True))
