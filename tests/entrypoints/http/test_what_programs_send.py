"""Bodies as well-known programs send them, where they go beyond what the API's description has."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from openai.types.chat import ParsedChatCompletion

from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.test_openai_client import prompt_of

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def chat(client: httpx.Client, *messages: Any, **fields: Any) -> httpx.Response:
    return client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 2, **fields})


def messages(client: httpx.Client, *given: Any, **fields: Any) -> httpx.Response:
    return client.post("/v1/messages", json={"model": "m", "max_tokens": 2, "messages": given, **fields})


def test_openais_client_sends_parsed_answers_back(client: httpx.Client) -> None:
    answer = ParsedChatCompletion[Any].model_validate(chat(client, USER).json())
    message = answer.choices[0].message.model_dump()
    assert "parsed" in message
    function = {**CALL["function"], "parsed_arguments": {"a": 1}}  # type: ignore[dict-item]
    message["tool_calls"] = [{**CALL, "function": function}]
    result = {"role": "tool", "tool_call_id": "c1", "content": "noon"}
    assert chat(client, USER, {**message, "parsed": {"a": 1}}, result).status_code == 200


def test_lm_eval_gives_each_message_a_type(client: httpx.Client) -> None:
    assert chat(client, {**USER, "type": "text"}).status_code == 200
    assert chat(client, {**USER, "type": "human"}).status_code == 200
    assert chat(client, {**USER, "type": 7}).status_code == 400


def test_agno_and_transformers_note_things_about_tools(client: httpx.Client) -> None:
    notes = {"requires_confirmation": False, "external_execution": False, "return": {"type": "string"}}
    function = {**TOOL["function"], **notes}  # type: ignore[dict-item]
    assert chat(client, USER, tools=[{"type": "function", "function": function}]).status_code == 200


def test_guidellm_names_the_bound_twice(client: httpx.Client) -> None:
    for bounds, length in (
        ({"max_tokens": 3, "max_completion_tokens": 3}, 3),
        ({"max_completion_tokens": 2}, 2),
        ({}, 16),
    ):
        answer = client.post("/v1/completions", json={"prompt": "a", "ignore_eos": True, **bounds}).json()
        assert answer["usage"]["completion_tokens"] == length
    body = {"prompt": "a", "max_tokens": 3, "max_completion_tokens": 4}
    assert "differ" in client.post("/v1/completions", json=body).json()["error"]["message"]


def test_a_schema_may_stand_by_itself_as_at_llama_cpp(client: httpx.Client, server: RunningServer) -> None:
    cases = [
        ({"type": "json_object", "schema": SCHEMA}, "response_format.schema"),
        ({"type": "json_schema", "schema": SCHEMA}, "response_format.schema"),
        ({"type": "json_schema", "name": "n", "strict": True, "schema": SCHEMA}, "response_format.schema"),
    ]
    for format_, field in cases:
        assert chat(client, USER, response_format=format_).status_code == 200
        grammar = server.engine.received[-1].sampling_params.grammar
        assert grammar is not None
        assert '"a"' in grammar.text
        wrong = chat(client, USER, response_format={**format_, "schema": 5})
        assert wrong.json()["error"]["param"] == field
        both = chat(client, USER, response_format={**format_, "json_schema": {"name": "n", "schema": SCHEMA}})
        assert both.status_code == 400


def test_no_bound_on_the_likeliest_tokens_may_be_written_as_zero(client: httpx.Client, server: RunningServer) -> None:
    for path in ["/v1/completions", "/v1/chat/completions", "/v1/messages", "/v1/responses"]:
        body = {"model": "m", "max_tokens": 2, "top_k": 0, "prompt": "a", "messages": [USER]}
        if path == "/v1/responses":
            body = {"input": "Hi", "max_output_tokens": 2, "top_k": 0}
        names = {"/v1/completions": ("messages",), "/v1/responses": ()}.get(path, ("prompt",))
        answer = client.post(path, json={name: value for name, value in body.items() if name not in names})
        assert answer.status_code == 200, answer.text
        assert server.engine.received[-1].sampling_params.top_k == -1


def test_open_webui_numbers_calls_outside_their_functions(client: httpx.Client, server: RunningServer) -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "now", "arguments": {}}}
    given = [USER, {"role": "assistant", "content": "", "tool_calls": [call]}]
    results = (
        {"role": "tool", "content": "noon", "name": "now"},
        {"role": "tool", "content": "noon", "tool_name": "now"},
    )
    prompts = []
    for result in results:
        body = {"model": "m", "messages": [*given, result], "stream": False, "options": {"num_predict": 2}}
        answer = client.post("/api/chat", json=body)
        assert answer.status_code == 200, answer.text
        prompts.append(prompt_of(server))
    assert prompts[0] == prompts[1]


class TestClaudeCode:
    def test_its_line_about_billing_is_not_shown_to_the_model(
        self, client: httpx.Client, server: RunningServer
    ) -> None:
        line = "x-anthropic-billing-header: cc_version=2.1; cch={};"
        prompts = set()
        for number in (1, 2):
            blocks = [{"type": "text", "text": line.format(number)}, {"type": "text", "text": "Be kind."}]
            assert messages(client, USER, system=blocks).status_code == 200
            prompts.add(prompt_of(server))
            assert messages(client, USER, system=f"{line.format(number)}\nBe kind.").status_code == 200
            prompts.add(prompt_of(server))
        assert messages(client, USER, system="Be kind.").status_code == 200
        assert prompts == {prompt_of(server)}
        assert messages(client, USER, system=line).status_code == 200
        assert messages(client, USER).status_code == 200

    @pytest.mark.parametrize(
        "edits",
        [
            [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}],
            [{"type": "clear_thinking_20251015"}],
            [],
        ],
    )
    def test_thoughts_that_may_be_cleared_stay(self, client: httpx.Client, edits: list[Any]) -> None:
        assert messages(client, USER, context_management={"edits": edits}).status_code == 200

    def test_directives_are_no_messages(self, client: httpx.Client, server: RunningServer) -> None:
        directive = {"role": "system", "content": [], "output_config": {"effort": "low"}}
        assert messages(client, USER, directive).status_code == 200
        prompt = prompt_of(server)
        assert messages(client, USER).status_code == 200
        assert prompt_of(server) == prompt

    def test_its_tools_say_who_may_call_them(self, client: httpx.Client) -> None:
        tool = {"name": "now", "input_schema": {"type": "object"}, "allowed_callers": ["direct"]}
        assert messages(client, USER, tools=[tool]).status_code == 200


def test_examples_of_a_tools_input_are_shown_with_its_description(client: httpx.Client, server: RunningServer) -> None:
    tool = {"name": "now", "description": "The time.", "input_schema": {"type": "object"}}
    assert messages(client, USER, tools=[{**tool, "input_examples": [{"zone": "Köln"}, {}]}]).status_code == 200
    assert r"The time.\nExamples of its input:\n{\"zone\": \"Köln\"}\n{}" in prompt_of(server)
    assert messages(client, USER, tools=[{**tool, "input_examples": []}]).status_code == 200
    assert "Examples" not in prompt_of(server)
    wrong = messages(client, USER, tools=[{**tool, "input_examples": ["Köln"]}])
    assert (wrong.status_code, "input_examples" in wrong.text) == (400, True)


def test_codex_says_who_it_is(client: httpx.Client) -> None:
    body = {
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        "max_output_tokens": 2,
        "client_metadata": {"x-codex-installation-id": "1", "session_id": "2"},
        "reasoning": {"effort": None, "context": "auto"},
        "stream": True,
        "stream_options": {"reasoning_summary_delivery": "sequential"},
    }
    answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    assert "response.completed" in answer.text or "response.incomplete" in answer.text
    wrong = client.post("/v1/responses", json={**body, "client_metadata": "me"})
    assert wrong.json()["error"]["param"] == "client_metadata"


def test_vllms_benchmark_finds_the_tokenizer(client: httpx.Client, server: RunningServer) -> None:
    (card,) = client.get("/v1/models").json()["data"]
    assert card["root"] == server.manager.server_args.model_path
