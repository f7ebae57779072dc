from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.conformance.conftest import MODEL
from tests.conformance.tasks import (
    MESSAGES,
    NAMED,
    PIXEL,
    QUESTION,
    RESULT,
    TEXTS,
    TOO_LARGE,
    TOO_LONG,
    Tree,
    check_answer,
    check_tree,
    check_vectors,
    other_tool,
    schema,
    tool,
)
from tests.e2e.server import Server

CHAT: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "temperature": 0, "max_tokens": 60}
CALL: dict[str, Any] = {**CHAT, "tools": [tool(), other_tool()], "max_tokens": 200, "parallel_tool_calls": False}


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError) as info:
        client.models.retrieve("gpt-nonsense")
    assert info.value.code == "model_not_found"


def test_chat_streams_what_it_answers(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**CHAT)
    check_answer(whole.choices[0].message.content)
    options: Any = {"include_usage": True}
    with client.chat.completions.stream(**CHAT, stream_options=options) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        final = stream.get_final_completion()
    assert text == whole.choices[0].message.content == final.choices[0].message.content
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason
    assert final.usage is not None
    assert whole.usage is not None
    assert final.usage.total_tokens == whole.usage.total_tokens


def test_logprobs(client: openai.OpenAI) -> None:
    choice = client.chat.completions.create(**CHAT, logprobs=True, top_logprobs=2).choices[0]
    assert choice.logprobs is not None
    entries = choice.logprobs.content or []
    assert b"".join(bytes(entry.bytes or ()) for entry in entries).decode() == choice.message.content
    assert all(len(entry.top_logprobs) == 2 and entry.logprob <= 0 for entry in entries)


def test_completions(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "prompt": "The oak is", "max_tokens": 10, "temperature": 0}
    whole = client.completions.create(**fields)
    parts = list(client.completions.create(**fields, stream=True))
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
    assert client.completions.create(**fields, echo=True).choices[0].text == "The oak is" + whole.choices[0].text


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_calls_that_must_be_made(client: openai.OpenAI, choice: Any) -> None:
    whole = client.chat.completions.create(**CALL, tool_choice=choice).choices[0]
    assert whole.finish_reason == "tool_calls"
    (call,) = whole.message.tool_calls or ()
    if choice == NAMED:
        assert call.function.name == "count_trees"
    if call.function.name == "describe_tree":
        check_tree(call.function.arguments)
    else:
        assert json.loads(call.function.arguments)["kind"] in ("oak", "elm")
    with client.chat.completions.stream(**CALL, tool_choice=choice) as stream:
        streamed = stream.get_final_completion().choices[0]
    (again,) = streamed.message.tool_calls or ()
    assert (again.function.name, again.function.arguments) == (call.function.name, call.function.arguments)
    assert streamed.finish_reason == "tool_calls"


def test_calls_that_may_be_made(client: openai.OpenAI) -> None:
    for choice in ("auto", "none"):
        answer = client.chat.completions.create(**CALL, tool_choice=choice).choices[0]
        assert answer.finish_reason in ("stop", "length", "tool_calls")
        assert answer.message.content or answer.message.tool_calls


def test_a_conversation_goes_on_after_a_call(client: openai.OpenAI) -> None:
    message = client.chat.completions.create(**CALL, tool_choice=NAMED).choices[0].message
    (call,) = message.tool_calls or ()
    turns = [*MESSAGES, message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    answer = client.chat.completions.create(**{**CALL, "messages": turns, "max_tokens": 30})
    assert answer.choices[0].message.content or answer.choices[0].message.tool_calls
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 20


def test_pydantic_models_are_parsed(client: openai.OpenAI) -> None:
    fields = {**CHAT, "max_tokens": 200}
    message = client.beta.chat.completions.parse(**fields, response_format=Tree).choices[0].message
    assert isinstance(message.parsed, Tree)
    with client.chat.completions.stream(**fields, response_format=Tree) as stream:
        streamed = stream.get_final_completion().choices[0].message
    assert streamed.parsed == message.parsed
    function = openai.pydantic_function_tool(Tree, name="describe_tree")
    called = client.beta.chat.completions.parse(
        **fields, tools=[function], tool_choice="required", parallel_tool_calls=False
    )
    (call, *_) = called.choices[0].message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Tree)


def test_json_objects(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_object"}
    content = client.chat.completions.create(**{**CHAT, "max_tokens": 300}, response_format=form).choices[0]
    if content.finish_reason == "stop":
        assert isinstance(json.loads(content.message.content or ""), dict)


def test_responses(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "temperature": 0, "max_output_tokens": 60}
    whole = client.responses.create(input=QUESTION, **fields)
    check_answer(whole.output_text)
    events = list(client.responses.create(input=QUESTION, stream=True, **fields))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text
    again = client.responses.retrieve(whole.id)
    assert again.output_text == whole.output_text
    more = client.responses.create(input="And the elm?", previous_response_id=whole.id, **fields)
    assert more.previous_response_id == whole.id
    client.responses.delete(whole.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(whole.id)


def test_responses_with_schemas_and_tools(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "temperature": 0, "max_output_tokens": 200}
    parsed = client.responses.parse(input=QUESTION, text_format=Tree, **fields)
    assert isinstance(parsed.output_parsed, Tree)
    function: Any = {"type": "function", "name": "describe_tree", "parameters": schema(), "strict": True}
    called = client.responses.create(
        input=QUESTION, tools=[function], tool_choice="required", parallel_tool_calls=False, **fields
    )
    (call,) = [item for item in called.output if item.type == "function_call"]
    check_tree(call.arguments)
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    more = client.responses.create(input=[result], previous_response_id=called.id, tools=[function], **fields)
    assert more.output


def test_embeddings(embedder: Server) -> None:
    with openai.OpenAI(base_url=f"{embedder.url}/v1", api_key="none", max_retries=0) as client:
        # The client asks for base 64 unless it is told not to.
        for more in ({}, {"encoding_format": "float"}):
            answer = client.embeddings.create(model="minilm", input=TEXTS, **more)  # type: ignore[arg-type]
            check_vectors([entry.embedding for entry in answer.data])
            assert answer.usage.prompt_tokens > len(TEXTS)
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(**CHAT)


def test_embeddings_of_bad_input(embedder: Server) -> None:
    with openai.OpenAI(base_url=f"{embedder.url}/v1", api_key="none", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as info:
            client.embeddings.create(model="minilm", input=[])
        assert info.value.param == "input"
        with pytest.raises(openai.BadRequestError) as info:
            client.embeddings.create(model="minilm", input=TOO_LONG)
        assert info.value.code == "context_length_exceeded"


def test_content_in_parts(client: openai.OpenAI) -> None:
    parts: list[Any] = [{"type": "text", "text": QUESTION}]
    asked: Any = {**CHAT, "messages": [{"role": "user", "content": parts}]}
    whole = client.chat.completions.create(**CHAT).choices[0].message.content
    assert client.chat.completions.create(**asked).choices[0].message.content == whole
    parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}})
    with pytest.raises(openai.BadRequestError, match="text") as info:
        client.chat.completions.create(**asked)
    assert info.value.param == "messages[0].content[1]"


def test_several_answers_are_told_apart(client: openai.OpenAI) -> None:
    fields: Any = {**CHAT, "n": 3, "temperature": 1, "seed": 5}
    whole = client.chat.completions.create(**fields).choices
    texts = ["", "", ""]
    for chunk in client.chat.completions.create(**fields, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert texts == [choice.message.content for choice in whole]


def test_asynchronous_client_can_leave(server: Server) -> None:
    async def leave() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            stream: Any = await client.chat.completions.create(**{**CHAT, "max_tokens": 500}, stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    await stream.close()
                    return str(chunk.choices[0].delta.content)
            return ""

    assert asyncio.run(leave())
    server.assert_idle_and_whole()


def test_bodies_that_are_too_large(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": TOO_LARGE}]
    with pytest.raises(openai.APIStatusError, match="max-body-size") as info:
        client.chat.completions.create(**{**CHAT, "messages": messages})
    assert info.value.status_code == 413


def test_paths_that_are_none(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.get("/no-such-thing", cast_to=object)
    with pytest.raises(openai.NotFoundError) as unsupported:
        client.files.list()
    assert unsupported.value.code == "not_supported"


def test_responses_in_the_background(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "temperature": 0, "background": True}
    response = client.responses.create(input=QUESTION, max_output_tokens=40, **fields)
    while response.status in ("queued", "in_progress"):
        time.sleep(0.02)
        response = client.responses.retrieve(response.id)
    check_answer(response.output_text)
    (item,) = client.responses.input_items.list(response.id).data
    assert item.type == "message"
    numbers: Any = {"type": "array", "items": {"type": "integer", "maximum": 9}, "minItems": 500}
    fields["text"] = {"format": {"type": "json_schema", "name": "numbers", "schema": numbers}}
    long = client.responses.create(input=QUESTION, max_output_tokens=1500, **fields)
    assert client.responses.cancel(long.id).status == "cancelled"


def test_responses_streamed_with_tools_and_schemas(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "temperature": 0, "max_output_tokens": 200, "input": QUESTION}
    function: Any = {"type": "function", "name": "describe_tree", "parameters": schema(), "strict": True}
    with client.responses.stream(
        **fields, tools=[function], tool_choice="required", parallel_tool_calls=False
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
        (call,) = [item for item in stream.get_final_response().output if item.type == "function_call"]
    check_tree("".join(pieces))
    assert "".join(pieces) == call.arguments
    with client.responses.stream(**fields, text_format=Tree) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_response().output_parsed, Tree)


def test_responses_to_bad_requests(client: openai.OpenAI) -> None:
    fields: Any = {"model": MODEL, "max_output_tokens": 20}
    image: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]}]
    for given, code in ((image, None), (TOO_LONG, "context_length_exceeded")):
        for stream in (False, True):
            with pytest.raises(openai.BadRequestError) as info:
                client.responses.create(**{**fields, "input": given}, stream=stream)
            assert code is None or info.value.code == code


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "nobody", "content": ""}]}, "messages[0].role"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"extra_body": {"temprature": 1}}, "temprature"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "tree"}}}}, None),
    ],
    ids=str,
)
def test_bad_requests_name_the_field(client: openai.OpenAI, fields: dict[str, Any], param: str | None) -> None:
    with pytest.raises(openai.BadRequestError) as info:
        client.chat.completions.create(**{**CHAT, **fields})
    assert info.value.type == "invalid_request_error"
    assert info.value.code
    if param is not None:
        assert info.value.param == param


def test_prompts_that_are_too_long(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": TOO_LONG}]
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as info:
            client.chat.completions.create(**{**CHAT, "messages": messages}, stream=stream)
        assert info.value.code == "context_length_exceeded"
