"""The unmodified OpenAI client against the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.entrypoints.http.server import MODEL_NAME, RunningServer, running_server

MESSAGES = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def api(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_chat(api: openai.OpenAI) -> None:
    answer = api.chat.completions.create(model="m", messages=MESSAGES, max_completion_tokens=8, seed=1)
    assert answer.object == "chat.completion"
    assert answer.model == "m"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == answer.usage.prompt_tokens // 2


def test_chat_stream(api: openai.OpenAI) -> None:
    whole = api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=30, seed=1)
    chunks = list(
        api.chat.completions.create(
            model="m", messages=MESSAGES, max_tokens=30, seed=1, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_members_that_openai_always_sends_are_there(client: httpx.Client) -> None:
    body = {"messages": MESSAGES, "max_tokens": 3, "logprobs": True}
    (choice,) = client.post("/v1/chat/completions", json=body).json()["choices"]
    assert choice["message"].keys() >= {"role", "content", "refusal"}
    assert choice["message"]["refusal"] is None
    assert (choice["logprobs"].keys(), choice["logprobs"]["refusal"]) == ({"content", "refusal"}, None)
    assert all(token.keys() == {"token", "logprob", "bytes", "top_logprobs"} for token in choice["logprobs"]["content"])
    events = client.post("/v1/chat/completions", json={**body, "stream": True}).text.split("\n\n")
    parts = [json.loads(event[6:])["choices"][0] for event in events if event.startswith("data: {")]
    assert (parts[0]["delta"]["role"], parts[0]["delta"]["refusal"]) == ("assistant", None)
    assert all(part["logprobs"] is None or part["logprobs"]["refusal"] is None for part in parts)
    assert sum(len((part["logprobs"] or {"content": []})["content"]) for part in parts) == 3


def test_chat_logprobs(api: openai.OpenAI) -> None:
    answer = api.chat.completions.create(
        model="m", messages=MESSAGES, max_tokens=5, logprobs=True, top_logprobs=2, temperature=0
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content) == 5
    assert all(len(token.top_logprobs) == 2 for token in logprobs.content)


def test_completions_and_models(api: openai.OpenAI) -> None:
    answer = api.completions.create(model="m", prompt=["a", "b"], n=2, max_tokens=4, logprobs=1, echo=True)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.choices[0].text.startswith("a")
    assert answer.choices[3].text.startswith("b")
    assert [model.id for model in api.models.list()] == [MODEL_NAME]
    assert api.models.retrieve(MODEL_NAME).id == MODEL_NAME


def test_errors_become_the_clients_exceptions(api: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as bad:
        api.chat.completions.create(model="m", messages=MESSAGES, temperature=-1)
    assert bad.value.param == "temperature"
    assert bad.value.type == "invalid_request_error"
    with pytest.raises(openai.BadRequestError) as too_long:
        api.chat.completions.create(model="m", messages=[{"role": "user", "content": "a" * 4000}])
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        api.models.retrieve("other")


def test_error_in_the_middle_of_a_stream_is_raised(api: openai.OpenAI, server: RunningServer) -> None:
    server.engine.fail_after = 3
    stream = api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=30, stream=True)
    with pytest.raises(openai.APIError, match="out of luck"):
        list(stream)


def test_content_in_parts_and_harmless_fields(api: openai.OpenAI, server: RunningServer) -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    answer = api.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": parts, "name": "me"}, {"role": "assistant", "content": None}],
        max_tokens=2,
        user="somebody",
        metadata={"a": "b"},
        store=True,
        service_tier="auto",
        response_format={"type": "text"},
        tool_choice="none",
        parallel_tool_calls=True,
    )
    assert answer.choices[0].message.content


def test_final_message_can_be_continued(api: openai.OpenAI, server: RunningServer) -> None:
    messages = [*MESSAGES, {"role": "assistant", "content": "Once upon"}]
    body = {"continue_final_message": True}
    api.chat.completions.create(model="m", messages=messages, max_tokens=2, extra_body=body)
    assert prompt_of(server).endswith("assistant\nOnce upon")


def test_only_an_open_message_of_the_assistant_is_continued(client: httpx.Client) -> None:
    cases = [
        ({"role": "user", "content": "a"}, {"continue_final_message": True}, "continue_final_message"),
        ({"role": "user", "content": "a", "prefix": True}, {}, "messages[0].prefix"),
        (
            {"role": "assistant", "content": "a"},
            {"continue_final_message": True, "add_generation_prompt": True},
            "add_generation_prompt",
        ),
    ]
    for path in ["/v1/chat/completions", "/tokenize"]:
        for last, fields, param in cases:
            refused = client.post(path, json={"messages": [last], **fields})
            assert refused.status_code == 400
            assert refused.json()["error"]["param"] == param


def test_template_variables_reach_the_template(api: openai.OpenAI, server: RunningServer) -> None:
    body = {"chat_template_kwargs": {"shout": True}}
    api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=2, extra_body=body)
    assert prompt_of(server).endswith("LOUD ")


def test_prompt_may_be_given_as_ids(api: openai.OpenAI, server: RunningServer) -> None:
    api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=2, extra_body={"input_ids": [1, 2, 3]})
    assert server.engine.received[-1].input_ids == b"\1\0\0\0\2\0\0\0\3\0\0\0"


def test_omitted_max_tokens_goes_on_until_the_context_ends(api: openai.OpenAI) -> None:
    answer = api.chat.completions.create(model="m", messages=MESSAGES, extra_body={"ignore_eos": True})
    assert answer.usage is not None
    assert answer.usage.total_tokens == 512
    assert answer.choices[0].finish_reason == "length"


def prompt_of(server: RunningServer) -> str:
    from array import array

    ids = array("i", server.engine.received[-1].input_ids)
    assert server.tokenizer is not None
    return server.tokenizer.decode(ids.tolist(), skip_special_tokens=False)


class TestServerOptions:
    def params(self, server: RunningServer) -> dict[str, object]:
        params = server.engine.received[-1].sampling_params
        return {"temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k}

    def test_sampling_defaults_of_the_model(self, tmp_path: Path) -> None:
        config = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
        with running_server(tmp_path, generation_config=config) as server:
            api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
            api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=1)
            assert self.params(server) == config
            api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=1, temperature=1.0)
            assert self.params(server) == {**config, "temperature": 1.0}
            api.completions.create(model="m", prompt="a", max_tokens=1)
            assert self.params(server) == config

    def test_what_no_request_may_ask_for_is_no_default_either(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        config = {"temperature": "0.7", "top_p": 1.5, "top_k": 20, "min_p": -1, "repetition_penalty": 2.5}
        with running_server(tmp_path, generation_config=config) as server:
            api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
            api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=1)
            assert self.params(server) == {"temperature": 1.0, "top_p": 1.0, "top_k": 20}
        told = [record.message for record in caplog.records if "generation_config" in record.message]
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            assert sum(f"point: {name} must be" in message for message in told) == 1, told

    def test_sampling_defaults_of_openai(self, tmp_path: Path) -> None:
        config = {"temperature": 0.6, "top_p": 0.95}
        with running_server(tmp_path, generation_config=config, sampling_defaults="openai") as server:
            api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
            api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=1)
            assert self.params(server) == {"temperature": 1.0, "top_p": 1.0, "top_k": -1}

    def test_preferred_sampling_params(self, tmp_path: Path) -> None:
        preferred = {"temperature": 0.25, "max_new_tokens": 3}
        with running_server(tmp_path, preferred_sampling_params=preferred) as server:
            api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
            answer = api.chat.completions.create(model="m", messages=MESSAGES, top_p=0.5)
            assert self.params(server) == {"temperature": 0.25, "top_p": 0.5, "top_k": -1}
            assert answer.usage is not None
            assert answer.usage.completion_tokens == 3
            assert api.completions.create(model="m", prompt="a").usage.completion_tokens == 3  # type: ignore[union-attr]

    def test_an_echo_has_special_tokens_if_the_server_prefers_them(self, tmp_path: Path) -> None:
        preferred = {"skip_special_tokens": False}
        with running_server(tmp_path, more_specials=("<mark>",), preferred_sampling_params=preferred) as server:
            tokenizer = server.manager.tokenizer
            assert tokenizer is not None
            ids = tokenizer.encode("<mark>Hi").tolist()
            body = {"prompt": ids, "echo": True, "max_tokens": 0, "logprobs": 1}
            for extra, text in (({}, "<mark>Hi"), ({"skip_special_tokens": True}, "Hi")):
                (choice,) = httpx.post(f"{server.url}/v1/completions", json={**body, **extra}).json()["choices"]
                assert choice["text"] == text
                assert choice["logprobs"]["text_offset"][1] == len(text) - 2

    def test_without_tokenizer_text_is_refused_and_completions_are_made_of_ids(self, tmp_path: Path) -> None:
        with running_server(tmp_path, skip_tokenizer=True, skip_tokenizer_init=True) as server:
            api = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
            with pytest.raises(openai.BadRequestError, match="tokenizer"):
                api.completions.create(model="m", prompt="a")
            with pytest.raises(openai.BadRequestError, match="tokenizer"):
                api.chat.completions.create(model="m", messages=MESSAGES)
            for field, value in {"echo": True, "stop": ["a"], "suffix": "b", "regex": "a"}.items():
                with pytest.raises(openai.BadRequestError, match=field):
                    api.completions.create(model="m", prompt=[5, 6], extra_body={field: value})
            fields: dict[str, Any] = {"model": "m", "prompt": [[5, 6], [7]], "max_tokens": 4, "logprobs": 1, "seed": 3}
            whole = api.completions.create(**fields).model_dump()["choices"]
            assert [choice["prompt_token_ids"] for choice in whole] == fields["prompt"]
            streamed: list[list[int]] = [[], []]
            for event in api.completions.create(**fields, stream=True):
                for choice in event.model_dump()["choices"]:
                    streamed[choice["index"]] += choice["token_ids"]
            for choice, ids in zip(whole, streamed, strict=True):
                assert choice["text"] == ""
                assert len(choice["token_ids"]) == 4
                assert choice["token_ids"] == ids
                assert choice["logprobs"]["tokens"] == [f"token_id:{token}" for token in ids]


def test_tokens_that_are_no_text_are_told_apart(client: httpx.Client, server: RunningServer) -> None:
    server.engine.says = "äöü"
    body = {"prompt": "Hi", "max_tokens": 4, "logprobs": 3}
    logprobs = client.post("/v1/completions", json=body).json()["choices"][0]["logprobs"]
    assert logprobs["tokens"][:2] == ["bytes:\\xc3", "bytes:\\xa4"]
    for token, alternatives in zip(logprobs["tokens"], logprobs["top_logprobs"], strict=True):
        assert len(alternatives) == 3
        assert token in alternatives
