"""``/v1/responses``, with the unmodified OpenAI client and without."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.asgi import Call
from bough.entrypoints.http.bodies import BodyIntake
from bough.entrypoints.http.responses.convert import conversation
from bough.entrypoints.http.responses.handlers import ResponsesHandlers
from bough.entrypoints.http.responses.store import EventLog, ResponseStore, StoredResponse, items_at, page_of
from bough.entrypoints.http.responses.tools import OfferedTools
from bough.errors import BadRequest, NotFound, Overloaded
from tests.entrypoints.http.server import MODEL_NAME, RunningServer, running_server
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_tools_and_reasoning import ANSWERS, CALLS, THOUGHTS

PATH = "/v1/responses"
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a place",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CLOCK = {"type": "function", "name": "clock"}
TOOLS: Any = [WEATHER, CLOCK]


@pytest.fixture
def api(thinker: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{thinker.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def read_events(http: httpx.Client, body: dict[str, Any]) -> list[dict[str, Any]]:
    with http.stream("POST", PATH, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        text = response.read().decode()
    return events_of(text)


def events_of(text: str, first: int = 0) -> list[dict[str, Any]]:
    events = []
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    for number, block in enumerate(blocks, first):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert event["sequence_number"] == number
        events.append(event)
    return events


def assembled(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The response of the last event, after a look at whether the others build it up."""
    first, second, *middle, last = events
    assert (first["type"], second["type"]) == ("response.created", "response.in_progress")
    assert first["response"]["output"] == []
    output: list[dict[str, Any]] = []
    text, logprobs = "", []
    for event in middle:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert event["output_index"] == len(output)
            assert event["item"]["status"] == "in_progress"
            text, logprobs = "", []
            output.append(event["item"])
            continue
        assert event["output_index"] == len(output) - 1
        if kind.endswith(".delta"):
            assert event["item_id"] == output[-1]["id"]
            text += event["delta"]
            logprobs += event.get("logprobs", [])
        elif kind == "function_call_arguments.done":
            assert event["arguments"] == text
        elif kind in ("output_text.done", "reasoning_text.done"):
            assert event["text"] == text
            assert event.get("logprobs", []) == logprobs
        elif kind == "content_part.done":
            assert event["part"]["text"] == text
        elif kind == "output_item.done":
            output[-1] = event["item"]
        else:
            assert kind == "content_part.added"
    response: dict[str, Any] = last["response"]
    assert last["type"] == f"response.{response['status']}"
    assert response["output"] == output
    return response


def comparable(response: dict[str, Any]) -> dict[str, Any]:
    assert response.pop("id").startswith("resp_")
    for name in ("created_at", "completed_at"):
        assert response.pop(name) > 0
    for item in response["output"]:
        item.pop("id")
        item.pop("call_id", None)
    return response


@pytest.mark.parametrize("says", [*ANSWERS.values(), ""], ids=[*ANSWERS.keys(), "nothing"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": TOOLS},
        {"tools": TOOLS, "parallel_tool_calls": False},
        {"max_output_tokens": 20, "store": False},
        {"top_logprobs": 2},
    ],
    ids=["plain", "tools", "one call", "cut off", "logprobs"],
)
def test_stream_equals_whole(http: httpx.Client, thinker: RunningServer, says: str, fields: dict[str, Any]) -> None:
    thinker.engine.says = says
    body = {"input": "Hi", "metadata": {"a": "b"}, **fields}
    answer = http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    whole = answer.json()
    assert whole["output"]
    streamed = assembled(read_events(http, body))
    if "store" not in fields:
        assert http.get(f"{PATH}/{streamed['id']}").json() == streamed
        assert http.get(f"{PATH}/{whole['id']}").json() == whole
    else:
        assert http.get(f"{PATH}/{whole['id']}").status_code == 404
    assert comparable(streamed) == comparable(whole)
    if whole["status"] == "incomplete":
        assert whole["incomplete_details"] == {"reason": "max_output_tokens"}


class TestClient:
    def test_create_and_retrieve(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says = THOUGHTS + "It is nine."
        response = api.responses.create(
            model=MODEL_NAME, input="Hi", instructions="Be kind.", reasoning={"effort": "low"}
        )
        assert response.output_text == "It is nine."
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert (response.status, response.model) == ("completed", MODEL_NAME)
        assert response.usage is not None
        assert response.usage.output_tokens_details.reasoning_tokens > 10
        assert prompt_of(thinker).startswith("<|im_start|>system\nBe kind.")
        assert api.responses.retrieve(response.id).output_text == "It is nine."
        api.responses.delete(response.id)
        with pytest.raises(openai.NotFoundError):
            api.responses.retrieve(response.id)

    def test_tools_that_are_no_functions_are_left_out(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says = "It is nine."
        others: Any = [{"type": "web_search"}, {"type": "custom", "name": "apply_patch"}]
        assert api.responses.create(model=MODEL_NAME, input="Hi", tools=[*others, *TOOLS]).output_text == "It is nine."
        assert '"weather"' in prompt_of(thinker)
        assert "apply_patch" not in prompt_of(thinker)
        assert api.responses.create(model=MODEL_NAME, input="Hi", tools=others).output_text == "It is nine."

    def test_stream_helper(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says = THOUGHTS + CALLS
        with api.responses.stream(model=MODEL_NAME, input="Hi", tools=TOOLS) as stream:
            for _ in stream:
                pass
            final = stream.get_final_response()
        calls = [item for item in final.output if item.type == "function_call"]
        assert [call.name for call in calls] == ["weather", "clock"]
        assert json.loads(calls[0].arguments)["city"] == "Zürich"

    def test_a_conversation_goes_on_by_id(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says = THOUGHTS + CALLS
        first = api.responses.create(model=MODEL_NAME, input="Weather?", tools=TOOLS, instructions="Be kind.")
        calls = [item for item in first.output if item.type == "function_call"]
        results: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "9"} for call in calls]
        thinker.engine.says = "Nine."
        second = api.responses.create(model=MODEL_NAME, input=results, tools=TOOLS, previous_response_id=first.id)
        assert second.output_text == "Nine."
        prompt = prompt_of(thinker)
        assert "Be kind." not in prompt
        assert prompt.index("Weather?") < prompt.index('"city": "Zürich"') < prompt.index("<tool_response>\n9\n")
        third = api.responses.create(model=MODEL_NAME, input="And now?", previous_response_id=second.id)
        assert "Weather?" in prompt_of(thinker)
        listed = list(api.responses.input_items.list(third.id, order="asc"))
        assert listed[0].content[0].text == "Weather?"  # type: ignore[union-attr]
        assert listed[-1].content[0].text == "And now?"  # type: ignore[union-attr]
        assert len(listed) == 8

    def test_output_items_can_be_sent_back(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says = THOUGHTS + CALLS
        first = api.responses.create(model=MODEL_NAME, input="Hi", tools=TOOLS, store=False)
        items: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
        items += [item.model_dump() for item in first.output]
        items += [
            {"type": "function_call_output", "call_id": item.call_id, "output": [{"type": "input_text", "text": "9"}]}
            for item in first.output
            if item.type == "function_call"
        ]
        thinker.engine.says = "Nine."
        assert api.responses.create(model=MODEL_NAME, input=items, tools=TOOLS).output_text == "Nine."

    def test_a_format_constrains_the_answer(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        thinker.engine.says = '{"a": 1}'
        text: Any = {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}
        assert api.responses.create(model=MODEL_NAME, input="Hi", text=text).output_text == '{"a": 1}'
        tag = json.loads(thinker.engine.received[-1].sampling_params.structural_tag or "")
        assert {"type": "json_schema", "json_schema": schema} in tag["format"]["elements"]


class TestBackground:
    def test_it_is_worked_on_after_the_answer(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.says, thinker.engine.token_delay = "It is nine.", 0.01
        response = api.responses.create(model=MODEL_NAME, input="Hi", background=True)
        assert response.status == "queued"
        seen = set()
        for _ in range(500):
            response = api.responses.retrieve(response.id)
            seen.add(response.status)
            if response.status == "completed":
                break
            time.sleep(0.01)
        assert response.output_text == "It is nine."
        assert "in_progress" in seen

    def test_it_can_be_cancelled(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.token_delay = 0.05
        response = api.responses.create(model=MODEL_NAME, input="Hi", background=True)
        with pytest.raises(openai.BadRequestError, match="not complete"):
            api.responses.create(model=MODEL_NAME, input="So?", previous_response_id=response.id)
        assert api.responses.cancel(response.id).status == "cancelled"
        thinker.assert_idle()
        assert api.responses.retrieve(response.id).status == "cancelled"

    def test_deleting_it_ends_the_work(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.token_delay = 0.05
        response = api.responses.create(model=MODEL_NAME, input="Hi", background=True)
        api.responses.delete(response.id)
        thinker.assert_idle()

    async def begun(self, thinker: RunningServer, **fields: Any) -> tuple[ResponsesHandlers, StoredResponse]:
        """A response in the background whose work has been asked for and not begun."""
        content = {"input": "Hi", "background": True, "request_id": "resp_mine", **fields}

        async def body() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(content).encode(), "more_body": False}

        handlers = ResponsesHandlers(thinker.manager, ChatCore(thinker.manager))
        scope = {"method": "POST", "path": PATH, "query_string": b"", "headers": []}
        call = Call(scope, body, BodyIntake(10_000, 10_000))
        await call.read_body()
        await handlers.create(call)
        return handlers, handlers.store.get("resp_mine")

    def test_one_that_was_deleted_does_not_come_back_in_place_of_the_next_of_its_id(
        self, thinker: RunningServer
    ) -> None:
        thinker.run(thinker.engine.gate.clear)

        async def replace() -> None:
            handlers, deleted = await self.begun(thinker)
            assert deleted.task is not None
            await asyncio.sleep(0)  # the work begins
            handlers.store.delete("resp_mine")
            other = StoredResponse("resp_mine", {"output": []}, [], None)
            handlers.store.put(other)
            await asyncio.wait([deleted.task])
            assert handlers.store.holds(other)

        thinker.call(replace())
        thinker.run(thinker.engine.gate.set)

    def test_one_that_is_cancelled_before_its_first_step_ends(self, thinker: RunningServer) -> None:
        async def cancel() -> None:
            _, begun = await self.begun(thinker, stream=True)
            assert begun.task is not None
            begun.task.cancel()  # in the same turn of the loop
            await asyncio.wait([begun.task])
            assert json.loads(begun.to_json())["status"] == "cancelled"
            assert begun.log is not None
            events = [event async for event in begun.log.follow(0)]
            assert b"response.incomplete" in b"".join(events)

        thinker.call(asyncio.wait_for(cancel(), 10))
        thinker.assert_idle()

    def test_it_can_be_followed_again_by_whoever_has_left(self, http: httpx.Client, thinker: RunningServer) -> None:
        thinker.engine.says, thinker.engine.token_delay = THOUGHTS + "It is nine.", 0.01
        body = {"input": "Hi", "background": True, "stream": True}
        with http.stream("POST", PATH, json=body) as response:
            lines = response.iter_lines()
            first = next(line for line in lines if line.startswith("data: "))
        response_id = json.loads(first.removeprefix("data: "))["response"]["id"]
        events = events_of(http.get(f"{PATH}/{response_id}", params={"stream": "true"}).text)
        assert assembled(events) == http.get(f"{PATH}/{response_id}").json()
        rest = http.get(f"{PATH}/{response_id}", params={"stream": "true", "starting_after": 4}).text
        assert events_of(rest, 5) == events[5:]
        bad = http.get(f"{PATH}/{response_id}", params={"stream": "true", "starting_after": "x"})
        assert bad.json()["error"]["param"] == "starting_after"
        other = http.post(PATH, json={"input": "Hi"}).json()["id"]
        refused = http.get(f"{PATH}/{other}", params={"stream": "true"})
        assert refused.json()["error"]["param"] == "stream"

    def test_a_failure_ends_the_stream(self, http: httpx.Client, thinker: RunningServer) -> None:
        thinker.engine.fail_after = 3
        events = read_events(http, {"input": "Hi", "background": True})
        assert events[-1]["type"] == "response.failed"
        assert http.get(f"{PATH}/{events[0]['response']['id']}").json()["status"] == "failed"

    def test_failure_is_told(self, api: openai.OpenAI, thinker: RunningServer) -> None:
        thinker.engine.fail_after = 3
        response = api.responses.create(model=MODEL_NAME, input="Hi", background=True)
        thinker.assert_idle()
        response = api.responses.retrieve(response.id)
        assert response.status == "failed"
        assert response.error is not None
        assert response.error.message == "out of luck"


def test_a_failure_in_a_stream_is_an_event(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.fail_after = 3
    last = read_events(http, {"input": "Hi"})[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["message"] == "out of luck"


def test_leaving_early_ends_the_request(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.token_delay = 0.01
    with http.stream("POST", PATH, json={"input": "Hi", "stream": True}) as response:
        next(response.iter_raw())
    thinker.assert_idle()


def test_a_bound_on_tools_of_the_server_is_given_back_and_counts_no_functions(http: httpx.Client) -> None:
    body = {"input": "Hi", "max_output_tokens": 2, "stream_options": {"include_obfuscation": False}}
    assert http.post(PATH, json=body).json()["max_tool_calls"] is None
    assert http.post(PATH, json={**body, "max_tool_calls": 3}).json()["max_tool_calls"] == 3


def test_bad_requests_are_refused_by_name(http: httpx.Client) -> None:
    cases = [
        ({"input": []}, "input"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input"),
        ({"input": [{"type": []}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": "x", "id": 7}]}, "input[0].id"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a" * 65: "b"}}, "metadata." + "a" * 64),
        ({"metadata": {"a": "b" * 513}}, "metadata.a"),
        ({"tools": [CLOCK], "tool_choice": {"type": "allowed_tools", "tools": [{"name": []}]}}, "tool_choice"),
        ({"tools": [CLOCK], "tool_choice": {"type": "allowed_tools", "tools": 5}}, "tool_choice"),
        ({"tools": [CLOCK], "tool_choice": {"type": "allowed_tools", "mode": [], "tools": [CLOCK]}}, "tool_choice"),
        ({"tools": [CLOCK], "tool_choice": {"type": "function", "name": {}}}, "tool_choice"),
        ({"request_id": "x"}, "request_id"),
        ({"request_id": "resp_x\n"}, "request_id"),
        ({"input": [{"role": "assistant", "content": "x", "phase": 1}]}, "input[0].phase"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
        ({"tools": [{"type": "fancy"}]}, "tools[0].type"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "web_search"}, CLOCK], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [CLOCK], "top_logprobs": 1}, "top_logprobs"),
        ({"tools": [CLOCK], "include": ["message.output_text.logprobs"]}, "include"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "schema": {}, "strict": 1}}}, "text.format.strict"),
        ({"text": {"format": {"type": "json_object", "name": 1}}}, "text.format.name"),
        ({"text": {"format": {"type": "text", "schema": 1}}}, "text.format.schema"),
        ({"background": True, "store": False}, "background"),
        ({"truncation": "some"}, "truncation"),
        ({"conversation": "x"}, "conversation"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
        ({"reasoning": {"effort": "some"}}, "reasoning.effort"),
    ]
    for fields, param in cases:
        for stream in [False, True]:
            response = http.post(PATH, json={"stream": stream, "input": "Hi", **fields})
            assert response.status_code == 400, response.text
            assert response.json()["error"]["param"] == param


def test_any_name_of_a_model_is_taken_and_given_back(http: httpx.Client) -> None:
    answer = http.post(PATH, json={"input": "Hi", "model": "other", "max_output_tokens": 2})
    assert (answer.status_code, answer.json()["model"]) == (200, "other")


def test_the_client_may_choose_the_id(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = "It is nine."
    body = {"input": "Hi", "request_id": "resp_mine"}
    assert http.post(PATH, json=body).json()["id"] == "resp_mine"
    assert http.post(PATH, json=body).json()["error"]["param"] == "request_id"
    assert http.get(f"{PATH}/resp_mine").json()["status"] == "completed"
    http.delete(f"{PATH}/resp_mine")


def test_an_id_is_taken_while_its_response_is_made(http: httpx.Client, thinker: RunningServer) -> None:
    for stream in [False, True]:
        thinker.run(thinker.engine.gate.clear)
        body = {"input": "Hi", "request_id": "resp_twice", "max_output_tokens": 3}
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(http.post, PATH, json={**body, "stream": stream})
            thinker.wait_until(lambda: thinker.engine.running)
            refused = http.post(PATH, json=body)
            thinker.run(thinker.engine.gate.set)
            assert first.result(10).status_code == 200
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "request_id"
        assert "is being made" in refused.json()["error"]["message"]
        assert http.get(f"{PATH}/resp_twice").json()["status"] == "incomplete"
        http.delete(f"{PATH}/resp_twice")
        assert http.post(PATH, json=body).status_code == 200
        http.delete(f"{PATH}/resp_twice")


def test_what_fails_leaves_its_id_to_others(http: httpx.Client, thinker: RunningServer) -> None:
    body = {"input": "Hi", "request_id": "resp_again"}
    assert http.post(PATH, json={**body, "input": "x" * 20_000}).status_code == 400
    thinker.engine.fail_after = 0
    assert http.post(PATH, json=body).status_code == 500
    thinker.engine.fail_after = None
    assert http.post(PATH, json=body).status_code == 200
    http.delete(f"{PATH}/resp_again")


def test_items_can_be_referred_to(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = "It is nine."
    (said,) = http.post(PATH, json={"input": "What time is it?"}).json()["output"]
    items = [{"type": "item_reference", "id": said["id"]}, {"role": "user", "content": "Really?"}]
    assert http.post(PATH, json={"input": items}).status_code == 200
    assert "It is nine." in prompt_of(thinker)
    items[0]["id"] = "msg_x"
    answer = http.post(PATH, json={"input": items})
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "input[0].id")


def test_allowed_tools_are_those_that_may_be_called(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = CALLS
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "clock"}]}
    output = http.post(PATH, json={"input": "Hi", "tools": TOOLS, "tool_choice": allowed}).json()["output"]
    assert [item["name"] for item in output if item["type"] == "function_call"] == ["clock"]


def test_logprobs_are_those_of_the_message(http: httpx.Client, thinker: RunningServer) -> None:
    assert thinker.tokenizer is not None
    thinker.engine.says = THOUGHTS + "It is nine."
    answer = http.post(PATH, json={"input": "Hi", "include": ["message.output_text.logprobs"]}).json()
    (part,) = answer["output"][-1]["content"]
    assert b"".join(bytes(each["bytes"]) for each in part["logprobs"]).decode() == "It is nine."


def test_a_conversation_that_is_too_long_may_lose_its_beginning(http: httpx.Client, thinker: RunningServer) -> None:
    for length in [40, 3000]:
        items: list[Any] = [{"role": "system", "content": "Be kind."}]
        for number in range(120_000 // length):
            items += [{"role": "user", "content": f"{number} " + "x" * length}, {"role": "assistant", "content": "So."}]
        items.append({"role": "user", "content": "And now?"})
        body = {"input": items, "max_output_tokens": 16}
        refused = http.post(PATH, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
        answer = http.post(PATH, json={**body, "truncation": "auto"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["truncation"] == "auto"
        assert 2000 < answer.json()["usage"]["input_tokens"] <= 4096 - 16
        prompt = prompt_of(thinker)
        assert prompt.startswith("<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n")
        assert prompt.endswith("And now?<|im_end|>\n<|im_start|>assistant\n")
        one = {"input": "x" * 50_000, "truncation": "auto"}
        assert http.post(PATH, json=one).json()["error"]["code"] == "context_length_exceeded"


def test_unknown_ids_are_not_found(http: httpx.Client) -> None:
    assert http.get(f"{PATH}/resp_x").status_code == 404
    assert http.delete(f"{PATH}/resp_x").status_code == 404
    assert http.post(f"{PATH}/resp_x/cancel").status_code == 404
    assert http.get(f"{PATH}/resp_x/input_items").status_code == 404
    answer = http.post(PATH, json={"input": "Hi", "previous_response_id": "resp_x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "previous_response_id")


def test_a_server_may_keep_nothing(tmp_path: Path) -> None:
    with running_server(tmp_path, max_stored_responses=0) as server, httpx.Client(base_url=server.url) as http:
        response = http.post(PATH, json={"input": "Hi", "max_output_tokens": 3}).json()
        assert response["output"]
        assert http.get(f"{PATH}/{response['id']}").status_code == 404
        assert http.post(PATH, json={"input": "Hi", "background": True}).status_code == 400


class Working:
    def done(self) -> bool:
        return False


class TestStore:
    def entry(self, name: str, size: int = 0, *, working: bool = False, after: Any = None) -> StoredResponse:
        entry = StoredResponse(name, {"output": []}, [{"id": f"item_{name}", "text": "x" * size}], after)
        if working:
            entry.task = Working()  # type: ignore[assignment]
        else:
            entry.complete(b'{"output":[]}')
        return entry

    def test_the_one_not_used_for_longest_makes_room(self) -> None:
        store = ResponseStore(2, 10_000)
        store.put(self.entry("a"))
        store.put(self.entry("b"))
        store.get("a")
        store.put(self.entry("c"))
        assert [store.has(name) for name in "abc"] == [True, False, True]

    def test_bytes_are_bounded_too(self) -> None:
        store = ResponseStore(100, 6000)
        for name in "abcdef":
            store.put(self.entry(name, 1000))
            assert store.num_bytes <= 6000
        assert len(store) == 3

    def test_one_that_cannot_fit_takes_no_room_from_others(self) -> None:
        store = ResponseStore(100, 6000)
        store.put(self.entry("a", 1000))
        store.put(self.entry("large", 9000))
        assert (store.has("a"), store.has("large")) == (True, False)
        store.put(self.entry("b", 1000, working=True))
        store.put(self.entry("c", 4000))
        assert [store.has(name) for name in "abc"] == [True, True, False]

    def test_what_is_worked_on_stays(self) -> None:
        store = ResponseStore(2, 10_000)
        store.put(self.entry("a", working=True))
        store.put(self.entry("b", working=True))
        store.put(self.entry("c"))
        assert not store.has("c")
        with pytest.raises(Overloaded):
            store.put(self.entry("d"), must_fit=True)
        assert store.has("a")
        with pytest.raises(NotFound):
            store.get("d")

    def test_what_a_conversation_has_in_common_is_counted_once_and_as_long_as_it_is_needed(self) -> None:
        store = ResponseStore(100, 100_000)
        first = self.entry("a", 1000)
        store.put(first)
        second = self.entry("b", 10, after=first)
        alone = store.num_bytes
        store.put(second)
        assert store.num_bytes < alone + 1500
        store.delete("a")
        assert store.num_bytes > 1000
        assert [item["id"] for item in second.conversation()] == ["item_a", "item_b"]
        store.put(second)
        store.delete("b")
        assert store.num_bytes == 0

    def test_another_of_the_same_id_takes_the_place_of_the_first(self) -> None:
        store = ResponseStore(100, 100_000)
        for _ in range(3):
            store.put(self.entry("a", 1000))
        alone = store.num_bytes
        store.put(self.entry("a", 1000))
        assert (len(store), store.num_bytes) == (1, alone)
        other = StoredResponse("a", {"output": []}, [{"id": "item_other"}], None)
        store.put(other)
        assert store.holds(other)
        with pytest.raises(NotFound):
            store.finder()("item_a", "input[0].id")
        store.delete("a")
        assert store.num_bytes == 0

    def test_an_id_is_reserved_by_one_at_a_time(self) -> None:
        store = ResponseStore(100, 100_000)
        give_back = store.reserve("a", "request_id")
        with pytest.raises(BadRequest, match="is being made"):
            store.reserve("a", "request_id")
        give_back()
        store.reserve("a", "request_id")
        give_back()
        with pytest.raises(BadRequest, match="is being made"):
            store.reserve("a", "request_id")
        store.put(self.entry("a"))
        with pytest.raises(BadRequest, match="there is a response"):
            store.reserve("a", "request_id")
        store.delete("a")
        store.reserve("a", "request_id")

    def test_what_is_being_made_counts_as_it_grows(self) -> None:
        store = ResponseStore(100, 300_000)
        store.put(self.entry("old", 100_000))
        body = {"output": [], "instructions": "x" * 50_000}
        made = StoredResponse("made", body, [{"id": "item_made"}])
        made.task = Working()  # type: ignore[assignment]
        made.log = EventLog()
        store.put(made, must_fit=True)
        assert 150_000 < store.num_bytes < 152_000
        made.log.add([b"x" * 40_000])
        made.growth = 20_000
        store.note_growth(made)
        assert store.num_bytes < 152_000, "little by little it would cost too much"
        made.log.add([b"x" * 40_000])
        store.note_growth(made)
        assert 250_000 < store.num_bytes < 252_000
        made.log.add([b"x" * 100_000])
        store.note_growth(made)
        assert [store.has(name) for name in ("old", "made")] == [False, True]
        made.complete(b'{"output":[]}')
        store.put(made)
        assert 180_000 < store.num_bytes < 182_000
        made.task = None
        store.delete("made")
        assert store.num_bytes == 0
        made.log.add([b"x" * 100_000])
        store.note_growth(made)
        assert store.num_bytes == 0, "it is forgotten"

    def test_a_long_conversation_needs_no_recursion(self) -> None:
        store = ResponseStore(3, 2**30)
        entry = None
        for number in range(3000):
            entry = self.entry(str(number), after=entry)
            store.put(entry)
        assert entry is not None
        assert len(entry.conversation()) == 3000
        for name in ("2997", "2998", "2999"):
            store.delete(name)
        assert store.num_bytes == 0

    def test_items_are_found_by_id_as_long_as_their_response_is_kept(self) -> None:
        store = ResponseStore(1, 10_000)
        store.put(self.entry("a"))
        assert store.finder()("item_a", "input[0].id")["id"] == "item_a"
        store.put(self.entry("b"))
        with pytest.raises(NotFound, match="input"):
            store.finder()("item_a", "input[0].id")

    def test_an_item_is_that_of_the_response_it_comes_from(self) -> None:
        store = ResponseStore(2, 10_000)
        first = self.entry("a")
        again = StoredResponse("b", {"output": []}, [{"id": "item_a", "text": "changed"}])
        store.put(first)
        store.put(again)
        assert store.finder()("item_a", "input[0].id")["text"] == ""
        store.delete("b")
        assert store.finder()("item_a", "input[0].id")["text"] == ""
        store.put(again)
        store.delete("a")
        assert store.finder()("item_a", "input[0].id")["text"] == "changed"

    def test_a_request_gets_each_item_once_and_each_response_is_decoded_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, decoded = ResponseStore(2, 100_000), []
        store.put(StoredResponse("a", {"output": []}, [{"id": f"item_{number}"} for number in range(50)]))
        whole = StoredResponse.items
        monkeypatch.setattr(StoredResponse, "items", lambda entry: (decoded.append(entry.id), whole(entry))[1])
        find = store.finder()
        assert [find(f"item_{number}", "input")["id"] for number in range(50)] == [f"item_{n}" for n in range(50)]
        assert decoded == ["a"]
        with pytest.raises(BadRequest, match=r"^input\[3\]\.id: the item 'item_7' is in the input already"):
            find("item_7", "input[3].id")


def test_all_thoughts_before_an_answer_are_its_thoughts() -> None:
    cases = [
        ([{"summary": [], "content": "A"}, {"summary": [], "content": "B"}], "A\nB"),
        ([{"summary": [{"type": "summary_text", "text": "S"}], "content": []}], "S"),
        ([{"summary": "S", "content": "A"}], "A"),
    ]
    for items, thought in cases:
        thoughts = [{"type": "reasoning", "id": f"r{number}", **item} for number, item in enumerate(items)]
        answer = {"type": "message", "id": "m", "role": "assistant", "content": "hi"}
        assert conversation([*thoughts, answer], OfferedTools()) == [
            {"role": "assistant", "content": "hi", "reasoning_content": thought}
        ]


def test_the_phase_of_a_message_reaches_the_template(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = "It is nine."
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "hm", "phase": "commentary"},
        {"role": "assistant", "content": "ho", "phase": None},
    ]
    made = http.post(PATH, json={"input": messages}).json()
    listed = http.get(f"{PATH}/{made['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert [item.get("phase") for item in listed] == [None, "commentary", None]
    assert conversation(listed, OfferedTools())[1:] == [
        {"role": "assistant", "content": "hm", "phase": "commentary"},
        {"role": "assistant", "content": "ho"},
    ]


def test_pages_of_a_conversation_have_its_items_in_order(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = "It is nine."
    first = http.post(PATH, json={"input": [{"role": "user", "content": f"a{number}"} for number in range(3)]}).json()
    again = {"previous_response_id": first["id"], "input": [{"role": "user", "content": f"b{n}"} for n in range(2)]}
    last = http.post(PATH, json=again).json()
    for order in ("asc", "desc"):
        whole = http.get(f"{PATH}/{last['id']}/input_items", params={"order": order}).json()
        texts = [item["content"][0]["text"] for item in whole["data"]]
        expected = ["a0", "a1", "a2", "It is nine.", "b0", "b1"]
        assert texts == (expected if order == "asc" else expected[::-1])
        assert whole["has_more"] is False
        paged, after = [], {}
        for has_more in (True, True, False):
            query = {"order": order, "limit": "2", **after}
            page = http.get(f"{PATH}/{last['id']}/input_items", params=query).json()
            assert page["has_more"] is has_more
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][1]["id"])
            paged += page["data"]
            after = {"after": page["last_id"]}
        assert paged == whole["data"]
        end = http.get(f"{PATH}/{last['id']}/input_items", params={"order": order, **after}).json()
        assert end == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    assert http.get(f"{PATH}/{last['id']}/input_items", params={"after": "x"}).json()["error"]["param"] == "after"


def test_a_page_decodes_only_the_responses_that_are_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry, decoded = None, []
    for number in range(50):
        entry = StoredResponse(str(number), {"output": [{"id": f"out_{number}"}]}, [{"id": f"in_{number}"}], entry)
        entry.complete(b'{"output":[{"id":"out_%d"}]}' % number)
    assert entry is not None
    for name in ("items", "output"):
        whole = getattr(StoredResponse, name)
        monkeypatch.setattr(
            StoredResponse, name, lambda part, name=name, whole=whole: (decoded.append((name, part.id)), whole(part))[1]
        )

    def page(after: str | None, limit: int, *, newest_first: bool) -> list[str]:
        places, _ = asyncio.run(page_of(entry, after, limit, newest_first=newest_first))
        return [item["id"] for item in items_at(places)]

    assert page(None, 2, newest_first=True) == ["in_49", "out_48"]
    assert decoded == [("items", "49"), ("items", "48"), ("output", "48")]
    decoded.clear()
    assert page("out_20", 3, newest_first=False) == ["in_21", "out_21", "in_22"]
    assert decoded == [("items", "21"), ("output", "21"), ("items", "22")]


def test_a_long_conversation_is_not_read_on_the_event_loop(
    http: httpx.Client, thinker: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinker.engine.says = "It is nine."
    threads: list[threading.Thread] = []
    decoding = StoredResponse.items
    monkeypatch.setattr(
        StoredResponse, "items", lambda entry: (threads.append(threading.current_thread()), decoding(entry))[1]
    )
    first = http.post(PATH, json={"input": [{"role": "user", "content": "a" * 1000}]}).json()
    (item,) = http.get(f"{PATH}/{first['id']}/input_items").json()["data"]
    http.post(PATH, json={"input": "Hi", "previous_response_id": first["id"]}).raise_for_status()
    http.post(PATH, json={"input": [{"id": item["id"]}]}).raise_for_status()
    assert len(threads) == 3
    assert all(thread.name.startswith("bough-encode") for thread in threads)
