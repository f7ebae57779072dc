from __future__ import annotations

from typing import Any

import ollama
import pytest

from tests.conformance.conftest import MODEL
from tests.conformance.tasks import (
    MESSAGES,
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
    schema,
    tool,
)
from tests.e2e.server import Server

OPTIONS: Any = {"temperature": 0, "num_predict": 60, "seed": 1}


@pytest.fixture
def client(server: Server) -> ollama.Client:
    return ollama.Client(host=server.url)


def test_chat_streams_what_it_answers(client: ollama.Client) -> None:
    whole = client.chat(model=MODEL, messages=MESSAGES, options=OPTIONS)
    check_answer(whole.message.content)
    parts = list(client.chat(model=MODEL, messages=MESSAGES, options=OPTIONS, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert (parts[-1].eval_count, parts[-1].done_reason) == (whole.eval_count, whole.done_reason)


def test_generate_streams_what_it_answers(client: ollama.Client) -> None:
    whole = client.generate(model=MODEL, prompt=QUESTION, options=OPTIONS)
    check_answer(whole.response)
    parts = list(client.generate(model=MODEL, prompt=QUESTION, options=OPTIONS, stream=True))
    assert "".join(part.response for part in parts) == whole.response


def test_answers_that_follow_a_schema(client: ollama.Client) -> None:
    options = {**OPTIONS, "num_predict": 200}
    answer = client.chat(model=MODEL, messages=MESSAGES, format=schema(), options=options)
    check_tree(answer.message.content)
    answer = client.chat(model=MODEL, messages=MESSAGES, format=Tree.model_json_schema(), options=options)
    assert Tree.model_validate_json(answer.message.content or "")
    client.chat(model=MODEL, messages=MESSAGES, format="json", options=options)


def test_tools_and_their_results(client: ollama.Client) -> None:
    answer = client.chat(model=MODEL, messages=MESSAGES, tools=[tool()], options=OPTIONS)
    assert answer.message.content or answer.message.tool_calls
    call = {"function": {"name": "describe_tree", "arguments": {"name": "oak", "height": 30}}}
    turns: list[Any] = [
        *MESSAGES,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "describe_tree", "content": RESULT},
    ]
    assert client.chat(model=MODEL, messages=turns, tools=[tool()], options=OPTIONS).message.content is not None


def test_embeddings(embedder: Server) -> None:
    client = ollama.Client(host=embedder.url)
    answer = client.embed(model="minilm", input=TEXTS)
    check_vectors(answer.embeddings)
    # torch computes encoders, and rounds a product of one row otherwise than the same row among others.
    alone = pytest.approx(answer.embeddings[0], abs=1e-6)
    assert list(client.embed(model="minilm", input=TEXTS[0]).embeddings[0]) == alone
    assert list(client.embeddings(model="minilm", prompt=TEXTS[0]).embedding) == alone
    assert client.embed(model="minilm", input=TOO_LONG).embeddings, "it is truncated"
    with pytest.raises(ollama.ResponseError) as info:
        client.embed(model="minilm", input=TOO_LONG, truncate=False)
    assert info.value.status_code == 400


def test_errors_have_their_statuses(client: ollama.Client) -> None:
    seen: dict[str, Any] = {"role": "user", "content": QUESTION, "images": [PIXEL]}
    for status, ask in (
        (400, lambda: client.chat(model=MODEL, messages=[seen])),
        (400, lambda: client.embed(model=MODEL, input=TEXTS)),
        (413, lambda: client.generate(model=MODEL, prompt=TOO_LARGE)),
        (404, lambda: client.pull(MODEL)),
    ):
        with pytest.raises(ollama.ResponseError) as info:
            ask()
        assert info.value.status_code == status
        assert info.value.error


def test_models(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert model.model is not None
    assert model.model.startswith(MODEL)
    shown = client.show(MODEL)
    assert "completion" in (shown.capabilities or ())
    assert client.ps().models


@pytest.mark.parametrize(
    "fields",
    [
        {"options": {"temperature": -1}},
        {"messages": [{"role": "user", "content": TOO_LONG}]},
    ],
    ids=["range", "too long"],
)
def test_bad_requests(client: ollama.Client, fields: dict[str, Any]) -> None:
    for stream in (False, True):
        with pytest.raises(ollama.ResponseError) as info:
            list(client.chat(**{"model": MODEL, "messages": MESSAGES, **fields}, stream=stream))
        assert info.value.status_code == 400
        assert info.value.error
