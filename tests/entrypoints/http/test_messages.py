"""Messages of a conversation, in all the forms in which clients send them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai.types.chat import ChatCompletion

from bough.entrypoints.http.openai.messages import tidy_messages
from bough.ipc.messages import FinishReason
from tests.entrypoints.http.server import RunningServer, running_server
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


CALL = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
REPLAYED: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        "annotations",
        [{"role": "assistant", "content": "b", "annotations": [{"type": "url_citation", "url_citation": {}}]}],
        [{"role": "assistant", "content": "b"}],
    ),
    (
        "nulls of OpenAI's client",
        [
            {
                "role": "assistant",
                "content": "b",
                "refusal": None,
                "audio": None,
                "function_call": None,
                "tool_calls": None,
            }
        ],
        [{"role": "assistant", "content": "b"}],
    ),
    (
        "LiteLLM",
        [
            {
                "role": "assistant",
                "content": "b",
                "reasoning_content": "hm",
                "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
                "provider_specific_fields": {"a": 1},
                "images": [],
            }
        ],
        [{"role": "assistant", "content": "b", "reasoning_content": "hm"}],
    ),
    (
        "Copilot's thoughts",
        [{"role": "assistant", "content": "b", "reasoning_text": "hm", "reasoning_opaque": "x"}],
        [{"role": "assistant", "content": "b", "reasoning_content": "hm"}],
    ),
    (
        "OpenRouter's thoughts",
        [{"role": "assistant", "content": "b", "reasoning": "hm", "reasoning_details": [{"type": "reasoning.text"}]}],
        [{"role": "assistant", "content": "b", "reasoning_content": "hm"}],
    ),
    (
        "Ollama's thoughts",
        [{"role": "assistant", "content": "b", "thinking": "hm", "images": None}],
        [{"role": "assistant", "content": "b", "reasoning_content": "hm"}],
    ),
    (
        "cache marks, ids, options",
        [{"role": "user", "content": "c", "cache_control": {"type": "ephemeral"}, "id": 7, "opts": {"visible": True}}],
        [{"role": "user", "content": "c"}],
    ),
    (
        "the older form of calls",
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "7"},
        ],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, {"role": "tool", "content": "7"}],
    ),
    (
        "calls with an object, an empty text and notes",
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {**CALL, "index": 0, "extra_content": {"google": {}}, "provider_id": "p", "type": None},
                    {"id": "y", "type": "function", "function": {"name": "g", "arguments": {"a": 1}, "output": None}},
                    {"id": "z", "type": "function", "function": {"name": "h", "arguments": "", "parsed": {}}},
                ],
            }
        ],
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    CALL,
                    {"id": "y", "function": {"name": "g", "arguments": '{"a": 1}'}},
                    {"id": "z", "function": {"name": "h", "arguments": "{}"}},
                ],
            }
        ],
    ),
    (
        "a result's tool, state and artifact",
        [
            CALLED,
            {"role": "tool", "tool_call_id": "x", "content": "7", "tool_name": "f", "status": "ok", "artifact": {}},
        ],
        [CALLED, {"role": "tool", "tool_call_id": "x", "content": "7", "name": "f"}],
    ),
    (
        "thoughts in another form",
        [{"role": "assistant", "content": "b", "reasoning": {"text": "hm"}, "thinking": {"signature": "s"}}],
        [{"role": "assistant", "content": "b"}],
    ),
    (
        "thoughts that cannot be read",
        [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "b"}]}],
        [{"role": "assistant", "content": "b"}],
    ),
    (
        "a call of PHP's, put together from a stream",
        [{"role": "assistant", "tool_calls": [{**CALL, "type": "", "function": {"name": "f", "arguments": []}}]}],
        [{"role": "assistant", "tool_calls": [CALL]}],
    ),
    ("a result of null", [CALLED, {"role": "tool", "content": None}], [CALLED, {"role": "tool", "content": ""}]),
    (
        "a result that is an object",
        [CALLED, {"role": "tool", "content": {"a": [1, None]}}],
        [CALLED, {"role": "tool", "content": '{"a":[1,null]}'}],
    ),
    (
        "a result that is a list",
        [CALLED, {"role": "tool", "content": [{"a": 1}, 2]}],
        [CALLED, {"role": "tool", "content": '[{"a":1},2]'}],
    ),
    (
        "a result in parts",
        [CALLED, {"role": "tool", "content": [{"type": "text", "text": "7", "annotations": None, "_meta": {}}]}],
        [CALLED, {"role": "tool", "content": "7"}],
    ),
    (
        "parts of a response",
        [{"role": "user", "content": [{"type": "input_text", "text": "c"}]}],
        [{"role": "user", "content": "c"}],
    ),
    (
        "parts without a type",
        [{"role": "user", "content": ["c", {"text": "d"}]}],
        [{"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]}],
    ),
]


@pytest.mark.parametrize(("sent", "meant"), [each[1:] for each in REPLAYED], ids=[each[0] for each in REPLAYED])
def test_history_of_other_programs_makes_the_prompt_that_is_meant(
    client: httpx.Client, server: RunningServer, sent: list[Any], meant: list[Any]
) -> None:
    prompts = []
    for messages in (sent, meant):
        answer = post(client, USER, *messages, USER)
        assert answer.status_code == 200, answer.text
        prompts.append(prompt_of(server))
    assert prompts[0] == prompts[1]
    tokenized = client.post("/tokenize", json={"messages": [USER, *sent, USER]})
    assert tokenized.status_code == 200, tokenized.text


def test_what_cannot_be_read_in_history_is_refused_by_name(client: httpx.Client) -> None:
    cases = [
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "messages[1].content[0]"),
        ({"role": "tool", "content": [{"type": "image", "data": "x"}]}, "messages[1].content[0]"),
        ({"role": "user", "content": "a", "images": ["aGk="]}, "messages[1].images"),
        ({"role": "tool", "contents": "7"}, "messages[1].content"),
        ({"role": "assistant", "content": "a", "audio": {"id": "audio_1"}}, "messages[1].audio"),
        (
            {"role": "assistant", "tool_calls": [{"type": "custom", "custom": {}}]},
            "messages[1].tool_calls[0]",
        ),
        ({"role": "assistant", "function_call": {"nam": "f"}}, "messages[1].tool_calls[0].function.name"),
        ({"role": "user", "content": {"text": "a"}}, "messages[1].content"),
        ({"content": "a", "rol": "user"}, "messages[1].role"),
        ({"role": "robot", "content": "a"}, "messages[1].role"),
    ]
    for message, param in cases:
        answer = post(client, USER, message)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"].startswith(param)


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


def test_thoughts_may_be_called_reasoning() -> None:
    for first in [{}, {"reasoning_content": None}]:
        [message] = tidy_messages([{"role": "assistant", "content": "4.", **first, "reasoning": "Easy."}], None)
        assert message == {"role": "assistant", "content": "4.", "reasoning_content": "Easy."}


BY_ID = """{%- for m in messages %}{%- if m.role == 'user' %}{{ m.content }}{%- endif %}
{%- for c in m.tool_calls or [] %}[{{ c.id }}]{%- endfor %}
{%- if m.role == 'tool' %}({{ m.content }} of {{ m.tool_call_id }}){%- endif %}{%- endfor %}"""


@pytest.mark.parametrize(
    ("calls", "results", "shown"),
    [
        ("a:f b:g", [{}, {}], "[a][b](0 of a)(1 of b)"),
        ("a:f b:g", [{"tool_call_id": "b"}, {}], "[a][b](0 of b)(1 of a)"),
        ("a:f b:g c:g", [{"name": "g"}, {"name": "h"}, {"name": "g"}], "[a][b][c](0 of b)(1 of a)(2 of c)"),
        ("a:f", [{}, {}], "[a](0 of a)(1 of )"),
        ("a:f :g", [{}], "[a][](0 of )"),
        ("", [{}], "(0 of )"),
    ],
)
def test_results_without_ids_are_of_the_calls_before_them(
    tmp_path: Path, calls: str, results: list[dict[str, str]], shown: str
) -> None:
    """OpenAI insists on ids; most models' templates know of none, and so do clients that were written for them."""
    called = [
        {"function": {"name": name}, **({"id": call_id} if call_id else {})}
        for call_id, name in (each.split(":") for each in calls.split())
    ]
    conversation = [
        {"role": "assistant", "content": "", **({"tool_calls": called} if called else {})},
        *({"role": "tool", "content": str(index), **result} for index, result in enumerate(results)),
    ]
    ollama = [{("tool_name" if key == "name" else key): value for key, value in each.items()} for each in conversation]
    template = tmp_path / "by_id.jinja"
    template.write_text(BY_ID)
    with running_server(tmp_path, chat_template=str(template)) as server, httpx.Client(base_url=server.url) as client:
        assert post(client, USER, *conversation).status_code == 200
        assert prompt_of(server) == f"Hi{shown}"
        answer = client.post("/api/chat", json={"model": "m", "messages": [USER, *ollama], "stream": False})
        assert answer.status_code == 200
        assert prompt_of(server) == f"Hi{shown}"


def test_malformed_tool_messages_are_refused_by_name(client: httpx.Client) -> None:
    cases = [
        ({"role": "user", "content": "a", "tool_calls": [{"function": {"name": "f"}}]}, "messages[1].tool_calls"),
        ({"role": "assistant", "tool_calls": [{"id": "x"}]}, "messages[0].tool_calls[0].function"),
        ({"role": "tool"}, "messages[1].content"),
    ]
    for message, param in cases:
        error = post(client, USER, message).json()["error"]
        assert error["param"] in (param, param.replace("[0]", "[1]", 1))


def test_a_role_that_the_template_does_not_know_becomes_system(client: httpx.Client, server: RunningServer) -> None:
    assert post(client, {"role": "developer", "content": "Be kind."}, USER).status_code == 200
    assert prompt_of(server).startswith("<|im_start|>system\nBe kind.")


def test_content_is_required_but_from_the_assistant(client: httpx.Client) -> None:
    for message in [{"role": "user", "content": None}, {"role": "system"}]:
        response = post(client, USER, message)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "messages[1].content"


def test_parts_that_are_no_text_are_refused_in_clear_words(client: httpx.Client) -> None:
    for kind in ["image_url", "input_audio", "video_url", "file"]:
        for path in ["/v1/chat/completions", "/tokenize"]:
            part = {"type": kind, kind: {"url": "https://example.org/x"}}
            response = client.post(path, json={"messages": [USER, {"role": "user", "content": [part]}]})
            error = response.json()["error"]
            assert (response.status_code, error["param"]) == (400, "messages[1].content[0]")
            assert f"reads text only, not {kind!r}" in error["message"]


def test_parts_that_are_text_in_other_words(client: httpx.Client, server: RunningServer) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "refusal", "refusal": "No."},
        {"type": "text", "text": "Never.", "cache_control": {"type": "ephemeral"}},
    ]
    assert post(client, USER, {"role": "assistant", "content": parts}, USER).status_code == 200
    assert "No.\nNever." in prompt_of(server)
    refused = post(client, {"role": "user", "content": [parts[0]]})
    assert refused.json()["error"]["param"] == "messages[0].content"


def test_roles_that_speak_for_the_application_become_system(client: httpx.Client, server: RunningServer) -> None:
    for role in ["developer", "root", "latest_reminder"]:
        assert post(client, {"role": role, "content": "Be kind."}, USER).status_code == 200
        assert prompt_of(server).startswith("<|im_start|>system\nBe kind.")


def test_a_prefix_is_gone_on_with(client: httpx.Client, server: RunningServer) -> None:
    beginning = {"role": "assistant", "content": "The time is", "prefix": True}
    assert post(client, USER, beginning).status_code == 200
    assert prompt_of(server).endswith("assistant\nThe time is")
    assert post(client, USER, beginning, USER).json()["error"]["param"] == "messages[1].prefix"


CALLED = {"type": "function_call", "name": "f", "call_id": "x"}


class TestLongConversations:
    ARGUMENTS = json.dumps({"text": "x" * 50_000})

    def conversation(self, arguments: str) -> list[dict[str, Any]]:
        call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return [USER, {"role": "assistant", "content": None, "tool_calls": [call]}]

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/v1/chat/completions", {"messages": [USER, {"role": "assistant", "reasoning_content": ARGUMENTS}]}),
            ("/v1/chat/completions", {"messages": [{**USER, "name": ARGUMENTS}]}),
            ("/v1/chat/completions", {"messages": [USER], "documents": [{"text": ARGUMENTS}]}),
            ("/v1/responses", {"input": [{**CALLED, "arguments": ARGUMENTS}]}),
        ],
    )
    def test_all_their_text_is_made_a_prompt_of_in_a_thread(
        self, client: httpx.Client, server: RunningServer, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
    ) -> None:
        threads = self.threads(server, monkeypatch)
        client.post(path, json=body)
        assert threads == ["bough-encode-1"]

    def test_arguments_and_tools_count_too(
        self, client: httpx.Client, server: RunningServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        threads = self.threads(server, monkeypatch)
        post(client, *self.conversation(self.ARGUMENTS))
        tool = {"type": "function", "function": {"name": "f", "description": self.ARGUMENTS}}
        post(client, USER, tools=[tool])
        assert threads == ["bough-encode-1"] * 2
        post(client, USER)
        assert not threads[2].startswith("bough-encode")

    def threads(self, server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        seen: list[str] = []
        template = server.manager.chat_template
        assert template is not None
        render = template.render

        def watched(*args: Any, **kwargs: Any) -> str:
            seen.append(threading.current_thread().name)
            return render(*args, **kwargs)

        monkeypatch.setattr(template, "render", watched)
        return seen

    def test_arguments_of_very_many_values_are_refused(self, client: httpx.Client) -> None:
        response = post(client, *self.conversation(json.dumps({"a": [0] * 70_000})))
        assert response.status_code == 400
        assert "more than 65536 values" in response.json()["error"]["message"]

    def test_arguments_that_are_no_object_stay_text(self, client: httpx.Client, server: RunningServer) -> None:
        assert post(client, *self.conversation('{"a": 1')).status_code == 200
        assert '{"a\\": 1' in prompt_of(server) or '{"a": 1' in prompt_of(server) or '\\"a\\": 1' in prompt_of(server)
        assert post(client, *self.conversation("")).status_code == 200
        assert '"arguments": {}' in prompt_of(server)


def test_allowed_tools(client: httpx.Client, server: RunningServer) -> None:
    for mode in ["auto", "required"]:
        tools = [{"type": "function", "function": {"name": name}} for name in ("first", "second")]
        allowed = [{"type": "function", "function": {"name": "second"}}]
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
        assert post(client, USER, tools=tools, tool_choice=choice).status_code == 200
        tag = server.engine.received[-1].sampling_params.structural_tag
        assert (tag is not None) == (mode == "required")
        assert json.dumps("first") not in json.dumps(json.loads(tag or "{}")).replace("\\", "")
        allowed[0]["function"]["name"] = "third"  # type: ignore[index]
        assert post(client, USER, tools=tools, tool_choice=choice).json()["error"]["param"] == "tool_choice"


def test_what_is_wrong_with_a_grammar_is_told_in_the_words_of_the_client(
    client: httpx.Client, server: RunningServer
) -> None:
    cases = [
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"guided_regex": "a"}, "guided_regex"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"}, "tools"),
    ]
    for fields, param in cases:
        for stream in [False, True]:
            for kind in ("structural_tag", "json_schema", "regex"):
                message = f"{kind}: far too deep"
                server.engine.refusal = FinishReason(
                    "abort", message=message, status_code=400, param=kind, code="invalid_grammar"
                )
                error = post(client, USER, stream=stream, **fields).json()["error"]
                assert (error["param"], error["message"], error["code"]) == (
                    param,
                    f"{param}: far too deep",
                    "invalid_grammar",
                )
            if "tools" not in fields:
                body = {"prompt": "Hi", "stream": stream, **fields}
                assert client.post("/v1/completions", json=body).json()["error"]["param"] == param
