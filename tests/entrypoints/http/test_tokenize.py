from __future__ import annotations

from array import array
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.server import CONTEXT_LEN, RunningServer, running_server

TEXT = "the tree 🌳 naïve"
CONVERSATION = [{"role": "user", "content": TEXT}]


def test_there_and_back(server: RunningServer, client: httpx.Client) -> None:
    for prefix in ["", "/v1"]:
        answer = client.post(f"{prefix}/tokenize", json={"prompt": TEXT}).json()
        assert answer["tokens"] == server.tokenizer.encode(TEXT).tolist()
        assert answer["count"] == len(answer["tokens"])
        assert answer["max_model_len"] == CONTEXT_LEN
        assert client.post(f"{prefix}/detokenize", json={"tokens": answer["tokens"]}).json() == {"text": TEXT}


def test_lists_give_lists(client: httpx.Client) -> None:
    answer = client.post("/tokenize", json={"prompt": ["the", ""], "return_token_strs": True}).json()
    assert answer["count"] == [1, 0]
    assert answer["token_strs"] == [["the"], []]
    assert client.post("/detokenize", json={"tokens": answer["tokens"]}).json() == {"text": ["the", ""]}
    assert client.post("/detokenize", json={"tokens": []}).json() == {"text": ""}


def test_conversation_is_tokenized_as_a_chat_completion_would(server: RunningServer, client: httpx.Client) -> None:
    answer = client.post("/tokenize", json={"messages": CONVERSATION, "chat_template_kwargs": {"shout": 1}}).json()
    body = {"messages": CONVERSATION, "chat_template_kwargs": {"shout": 1}, "max_tokens": 1}
    client.post("/v1/chat/completions", json=body)
    assert answer["tokens"] == array("i", server.engine.received[-1].input_ids).tolist()


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [TOOL]},
        {"tools": [TOOL], "tool_choice": "none"},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"add_generation_prompt": False},
        {"reasoning_effort": "high", "documents": [{"title": "Oaks", "text": "An oak is a tree."}]},
        {"thinking": False},
    ],
    ids=str,
)
def test_everything_that_shapes_a_prompt_counts(
    server: RunningServer, client: httpx.Client, fields: dict[str, Any]
) -> None:
    tokens = client.post("/tokenize", json={"messages": CONVERSATION, **fields}).json()["tokens"]
    answer = client.post("/v1/chat/completions", json={"messages": CONVERSATION, "max_tokens": 1, **fields})
    assert answer.status_code == 200, answer.text
    assert tokens == array("i", server.engine.received[-1].input_ids).tolist()


def test_prompts_longer_than_the_context_are_measured(client: httpx.Client) -> None:
    assert client.post("/tokenize", json={"prompt": "a" * 100_000}).json()["count"] == 100_000
    long = [{"role": "user", "content": "a" * 100_000}]
    assert client.post("/tokenize", json={"messages": long}).json()["count"] > 100_000


def test_special_tokens_are_left_out_unless_wanted(server: RunningServer, client: httpx.Client) -> None:
    special = server.tokenizer.eos_token_id
    assert client.post("/detokenize", json={"tokens": [special]}).json()["text"] == ""
    body = {"tokens": [special], "skip_special_tokens": False}
    assert client.post("/detokenize", json=body).json()["text"] == "<|im_end|>"


def test_long_texts_are_written_whole(client: httpx.Client) -> None:
    with_ids = client.post("/tokenize", json={"prompt": ["x" * 500] * 300}).json()
    assert with_ids["count"] == [500] * 300
    texts = client.post("/detokenize", json={"tokens": with_ids["tokens"]}).json()["text"]
    assert texts == ["x" * 500] * 300


def test_bad_requests_name_the_field(client: httpx.Client) -> None:
    cases = [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "messages": CONVERSATION}, "prompt"),
        ("/tokenize", {"prompt": []}, "prompt"),
        ("/tokenize", {"prompt": "a", "tools": []}, "tools"),
        ("/tokenize", {"messages": CONVERSATION, "tool_choice": "required"}, "tool_choice"),
        ("/tokenize", {"messages": CONVERSATION, "thinking": {"type": "x"}}, "thinking"),
        ("/tokenize", {"prompt": "a", "chat_template_kwargs": {"a": 1}}, "chat_template_kwargs"),
        ("/tokenize", {"messages": []}, "messages"),
        ("/tokenize", {"messages": [{"role": "user"}]}, "messages[0].content"),
        ("/tokenize", {"messages": CONVERSATION, "add_special_tokens": False}, "add_special_tokens"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": "a"}, "tokens"),
        ("/detokenize", {"tokens": [1, -1]}, "tokens"),
        ("/detokenize", {"tokens": [[1], [300]]}, "tokens[1]"),
        ("/detokenize", {"tokens": [[1], 2]}, "tokens[1]"),
        ("/detokenize", {"tokens": [True]}, "tokens"),
        ("/detokenize", {"tokens": [2**40]}, "tokens"),
        ("/detokenize", {"tokens": [[]] * 3000}, "tokens"),
    ]
    for path, body, param in cases:
        response = client.post(path, json=body)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == param


def test_server_without_a_tokenizer_says_so(tmp_path: Any) -> None:
    with running_server(tmp_path, skip_tokenizer=True) as server, httpx.Client(base_url=server.url) as client:
        for path, body in (("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [1]})):
            response = client.post(path, json=body)
            assert response.status_code == 400
            assert "tokenizer" in response.json()["error"]["message"]
