"""What a request says counts, whatever it says; what it leaves out is the server's to choose."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.entrypoints.http.json_body import LARGE_BODY_BYTES
from bough.entrypoints.http.logprobs import Echo
from bough.errors import EngineDead
from tests.entrypoints.http.server import RunningServer, running_server

PREFERRED = {"frequency_penalty": 0.7, "max_new_tokens": 5, "min_p": 0.1, "skip_special_tokens": False}
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
COMPLETION = {"prompt": "Hi there, old oak"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("preferring"), preferred_sampling_params=PREFERRED) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20) as http:
        yield http


def test_a_default_that_is_asked_for_goes_before_what_the_server_prefers(
    server: RunningServer, client: httpx.Client
) -> None:
    for path, body in [("/v1/chat/completions", CHAT), ("/v1/completions", COMPLETION)]:
        assert client.post(path, json=body).status_code == 200
        params = server.engine.received[-1].sampling_params
        assert (params.frequency_penalty, params.min_p, params.skip_special_tokens) == (0.7, 0.1, False)
        assert params.max_new_tokens == 5
        given = {"frequency_penalty": 0.0, "min_p": 0.0, "skip_special_tokens": True, "max_tokens": 16}
        assert client.post(path, json={**body, **given}).status_code == 200
        params = server.engine.received[-1].sampling_params
        assert (params.frequency_penalty, params.min_p, params.skip_special_tokens) == (0.0, 0.0, True)
        assert params.max_new_tokens == 16


NEUTRAL = {
    "use_beam_search": False,
    "length_penalty": 1.0,
    "early_stopping": False,
    "bad_words": [],
    "allowed_token_ids": None,
    "vllm_xargs": {},
    "kv_transfer_params": None,
    "include_reasoning": True,
    "return_tokens_as_token_ids": False,
    "spaces_between_special_tokens": True,
    "structured_outputs": {"disable_any_whitespace": False},
    "guided_decoding_backend": "xgrammar",
    "guided_whitespace_pattern": None,
}


def test_what_vllm_clients_send_passes_where_it_asks_for_nothing(client: httpx.Client) -> None:
    cases = [
        ("/v1/chat/completions", {**CHAT, "add_special_tokens": False}),
        ("/v1/completions", {**COMPLETION, "add_special_tokens": True}),
    ]
    for path, body in cases:
        neutral = {k: v for k, v in NEUTRAL.items() if k != "include_reasoning" or path != "/v1/completions"}
        response = client.post(path, json={**body, **neutral})
        assert response.status_code == 200, response.text
        for name, value in {
            "use_beam_search": True,
            "length_penalty": 2.0,
            "early_stopping": True,
            "vllm_xargs": {"a": 1},
            "kv_transfer_params": {"a": 1},
            "structured_outputs": {"disable_any_whitespace": True},
            "guided_whitespace_pattern": " ",
        }.items():
            refused = client.post(path, json={**body, name: value})
            assert refused.status_code == 400
            assert "not supported" in refused.json()["error"]["message"], name
            assert refused.json()["error"]["param"].startswith(name)


def test_tokens_by_their_numbers(server: RunningServer, client: httpx.Client) -> None:
    assert server.tokenizer is not None
    fields = {"return_tokens_as_token_ids": True, "max_tokens": 2, "return_token_ids": True}
    chat = client.post("/v1/chat/completions", json={**CHAT, **fields, "logprobs": True}).json()["choices"][0]
    shown = [entry["token"] for entry in chat["logprobs"]["content"]]
    assert shown == [f"token_id:{token}" for token in chat["token_ids"]]
    completion = client.post("/v1/completions", json={**COMPLETION, **fields, "logprobs": 1}).json()["choices"][0]
    assert completion["logprobs"]["tokens"] == [f"token_id:{token}" for token in completion["token_ids"]]


def test_a_prompt_that_was_cut_is_echoed_as_it_is(server: RunningServer, client: httpx.Client) -> None:
    assert server.tokenizer is not None
    ids = server.tokenizer.encode(COMPLETION["prompt"]).tolist()
    fields = {"echo": True, "truncate_prompt_tokens": 4, "max_tokens": 1, "logprobs": 0, "return_token_ids": True}
    for prompt in (COMPLETION["prompt"], ids):
        choice = client.post("/v1/completions", json={"prompt": prompt, **fields}).json()["choices"][0]
        assert array("i", server.engine.received[-1].input_ids).tolist() == ids[-4:] == choice["prompt_token_ids"]
        assert choice["text"].startswith(server.tokenizer.decode(ids[-4:]))
        assert len(choice["text"]) < len(COMPLETION["prompt"])
        assert len(choice["logprobs"]["tokens"]) == 5


def test_an_echo_is_made_once_for_all_choices_of_its_prompt(
    server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[int]] = []
    decode, encoded = server.manager.tokenizer.decode, Echo.encoded.func
    monkeypatch.setattr(
        server.manager.tokenizer, "decode", lambda ids, **options: (made.append(list(ids)), decode(ids, **options))[1]
    )
    texts: list[str] = []
    counted = cached_property(lambda echo: (texts.append(echo.text), encoded(echo))[1])
    counted.__set_name__(Echo, "encoded")
    monkeypatch.setattr(Echo, "encoded", counted)
    body = {"prompt": [[65, 66], [67]], "n": 3, "echo": True, "logprobs": 0, "max_tokens": 1}
    assert client.post("/v1/completions", json=body).status_code == 200
    assert [each for each in made if each in ([65, 66], [67])] == [[65, 66], [67]]
    assert len(texts) == 2


def test_a_prompt_that_is_too_long_is_not_prepared_to_be_echoed(client: httpx.Client) -> None:
    body = {"prompt": ["Hi", "a" * 100_000], "n": 3, "echo": True, "logprobs": 0}
    refused = client.post("/v1/completions", json=body)
    assert refused.json()["error"]["param"] == "prompt[1]"
    assert refused.json()["error"]["code"] == "context_length_exceeded"


def test_a_text_that_is_far_too_long_may_be_cut(client: httpx.Client) -> None:
    for path, body in (
        ("/v1/completions", {"prompt": "a" * 100_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * 100_000}]}),
    ):
        answer = client.post(path, json={**body, "truncate_prompt_tokens": 7, "max_tokens": 1})
        assert answer.status_code == 200, answer.text
        assert answer.json()["usage"]["prompt_tokens"] == 7


def test_token_ids_that_are_far_too_many_may_be_cut(server: RunningServer, client: httpx.Client) -> None:
    for kept in [7, -1]:
        ids = list(range(100, 200)) * 200
        for path, body in (("/v1/completions", {"prompt": ids}), ("/v1/chat/completions", {**CHAT, "input_ids": ids})):
            assert len(json.dumps(body)) > LARGE_BODY_BYTES
            assert client.post(path, json=body).json()["error"]["code"] == "context_length_exceeded"
            answer = client.post(path, json={**body, "truncate_prompt_tokens": kept, "max_tokens": 1})
            assert answer.status_code == 200, answer.text
            received = array("i", server.engine.received[-1].input_ids).tolist()
            assert received == ids[-len(received) :]
            assert len(received) == kept if kept > 0 else len(received) > 100


def test_special_tokens_around_a_text_may_be_left_out(
    server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bool] = []
    encode = server.manager.tokenizer.encode_batch

    def recording(texts: Any, add_special_tokens: bool = True, **options: Any) -> Any:
        if COMPLETION["prompt"] in texts:
            given.append(add_special_tokens)
        return encode(texts, add_special_tokens, **options)

    monkeypatch.setattr(server.manager.tokenizer, "encode_batch", recording)
    client.post("/v1/completions", json={**COMPLETION, "add_special_tokens": False, "max_tokens": 1})
    client.post("/v1/completions", json={**COMPLETION, "max_tokens": 1})
    assert given == [False, True]


def test_routes_of_other_servers_say_so(client: httpx.Client) -> None:
    cases = [
        *("/update_weights_from_ipc", "/load_lora_adapter", "/v1/systemone", "/v1/conversations"),
        *("/v1/responses/compact", "/v1/responses/input_tokens"),  # which might be read as ids
    ]
    for path in cases:
        for response in (client.post(path, json={}), client.get(path)):
            assert response.status_code == 404, "a client would try again after 501"
            error = response.json()["error"]
            assert path in error["message"]
            assert error["code"] == "not_supported"


def test_invocations_speak_the_dialect_of_what_is_invoked(tmp_path: Path) -> None:
    body = {"text": "Hi", "sampling_params": {"max_new_tokens": 400, "ignore_eos": True}, "stream": True}
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=20) as client:
        server.engine.token_delay = 0.05
        with client.stream("POST", "/invocations", json=body) as response:
            lines = response.iter_lines()
            assert next(lines).startswith('data: {"text"')
            server.loop.call_soon_threadsafe(server.manager.fail_all, EngineDead("gone"))
            (error,) = [json.loads(line[6:])["error"] for line in lines if '"error"' in line]
        assert error["retryable"] is False
        assert isinstance(error["code"], int)


def test_thoughts_are_counted_in_native_answers(tmp_path: Path) -> None:
    with running_server(tmp_path, reasoning_parser="qwen3", context_len=4096) as thinker:
        thinker.engine.says = "<think>Hm, an oak.</think>Yes."
        assert thinker.tokenizer is not None
        expected = len(thinker.tokenizer.encode("Hm, an oak.", add_special_tokens=False))
        with httpx.Client(base_url=thinker.url, timeout=20) as http:
            body = {"text": "Hi", "sampling_params": {"max_new_tokens": 100}}
            info = http.post("/generate", json=body).json()["meta_info"]
            assert info["reasoning_tokens"] == expected
            assert {"queue_time", "first_token_latency", "request_received_ts", "forward_entry_time"} <= info.keys()
            # An answer that ends within its thoughts, and is too long to be rendered at once.
            thinker.engine.says = "<think>" + "Hm, an oak. " * 100
            body["sampling_params"]["max_new_tokens"] = 3000
            whole = http.post("/generate", json=body).json()["meta_info"]
            streamed = http.post("/generate", json={**body, "stream": True}).text.strip().split("\n\n")
            last = json.loads(streamed[-2].removeprefix("data: "))["meta_info"]
            assert whole["reasoning_tokens"] == last["reasoning_tokens"] > 256


def test_thoughts_are_left_out_on_request(tmp_path: Path) -> None:
    with running_server(tmp_path, reasoning_parser="qwen3", context_len=4096) as thinker:
        thinker.engine.says = "<think>Hm, an oak.</think>Yes."
        with httpx.Client(base_url=thinker.url, timeout=20) as http:
            answer = http.post("/v1/chat/completions", json={**CHAT, "include_reasoning": False}).json()
            assert answer["choices"][0]["message"]["content"] == "Yes."
            assert not answer["choices"][0]["message"]["reasoning_content"]
            assert answer["usage"]["reasoning_tokens"] > 0
            streamed = http.post("/v1/chat/completions", json={**CHAT, "include_reasoning": False, "stream": True}).text
            assert "oak" not in streamed


def test_grammars_are_bounded_by_options(tmp_path: Path) -> None:
    deep: Any = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}}}}
    with (
        running_server(tmp_path, max_grammar_size=200, max_grammar_depth=4) as server,
        httpx.Client(base_url=server.url, timeout=20) as http,
    ):
        for fields, said in (
            ({"regex": "x" * 201}, "--max-grammar-size"),
            ({"json_schema": deep}, "--max-grammar-depth"),
        ):
            refused = http.post("/v1/chat/completions", json={**CHAT, **fields})
            assert refused.status_code == 400, refused.text
            assert said in refused.json()["error"]["message"]
            assert [refused.json()["error"]["param"]] == list(fields)
            native = http.post("/generate", json={"text": "Hi", "sampling_params": fields})
            assert native.status_code == 400
        fine = http.post("/v1/chat/completions", json={**CHAT, "json_schema": {"type": "object"}})
        assert fine.status_code == 200
