from __future__ import annotations

import json
from typing import Any

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
    tool,
)
from tests.e2e.server import Server

litellm = pytest.importorskip("litellm")

ROUTES = {"openai": "/v1", "hosted_vllm": "/v1", "anthropic": "", "ollama_chat": ""}
"""By the provider that LiteLLM takes the server for, the path that it is told."""


def ask(server: Server, provider: str = "openai", **fields: Any) -> Any:
    fields = {"messages": MESSAGES, "temperature": 0, "max_tokens": 200, **fields}
    return litellm.completion(
        model=f"{provider}/{MODEL}", api_base=server.url + ROUTES[provider], api_key="none", num_retries=0, **fields
    )


@pytest.mark.parametrize("provider", ROUTES)
def test_answers_stream_as_they_are(server: Server, provider: str) -> None:
    whole = ask(server, provider, max_tokens=60)
    check_answer(whole.choices[0].message.content)
    parts = list(ask(server, provider, max_tokens=60, stream=True, stream_options={"include_usage": True}))
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == whole.choices[0].message.content
    assert whole.usage.completion_tokens > 5


# As hosted_vllm LiteLLM leaves additionalProperties out of schemas, and the bundled model would write them for ever.
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_calls_and_their_results(server: Server, provider: str) -> None:
    tools = [tool(), other_tool()]
    message = ask(server, provider, tools=tools, tool_choice=NAMED).choices[0].message
    (call, *_) = message.tool_calls
    assert call.function.name == "count_trees"
    fields: dict[str, Any] = {"tool_choice": "required", "parallel_tool_calls": False}
    first = ask(server, provider, tools=[tool()], **fields).choices[0].message.tool_calls[0]
    check_tree(first.function.arguments)
    built = litellm.stream_chunk_builder(list(ask(server, provider, tools=[tool()], stream=True, **fields)))
    streamed = built.choices[0].message.tool_calls[0].function
    assert json.loads(streamed.arguments) == json.loads(first.function.arguments)
    turns = [*MESSAGES, message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    turns[-2]["tool_calls"] = turns[-2]["tool_calls"][:1]
    answer = ask(server, provider, messages=turns, tools=tools, max_tokens=30).choices[0].message
    assert answer.content or answer.tool_calls


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_structured_output(server: Server, provider: str) -> None:
    content = ask(server, provider, response_format=Tree).choices[0].message.content
    assert Tree.model_validate_json(content)


def test_text_completions_and_responses(server: Server) -> None:
    place = {"api_base": f"{server.url}/v1", "api_key": "none"}
    fields = {"model": f"text-completion-openai/{MODEL}", "prompt": "The oak is", "max_tokens": 10}
    assert litellm.text_completion(**fields, **place).choices[0].text
    answer = litellm.responses(model=f"openai/{MODEL}", input=QUESTION, max_output_tokens=60, temperature=0, **place)
    check_answer(answer.output[0].content[0].text)


def test_embeddings(embedder: Server) -> None:
    answer = litellm.embedding(
        model="openai/minilm", input=TEXTS, api_base=f"{embedder.url}/v1", api_key="none", encoding_format="float"
    )
    check_vectors([entry["embedding"] for entry in answer.data])


def test_embeddings_in_the_words_of_others(embedder: Server) -> None:
    for provider, path in (("ollama", ""), ("hosted_vllm", "/v1")):
        answer = litellm.embedding(model=f"{provider}/minilm", input=TEXTS, api_base=embedder.url + path)
        check_vectors([entry["embedding"] for entry in answer.data])


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])
def test_content_in_parts(server: Server, provider: str) -> None:
    text: dict[str, Any] = {"type": "text", "text": QUESTION}
    content = [text]
    answer = ask(server, provider, messages=[{"role": "user", "content": content}], max_tokens=60)
    check_answer(answer.choices[0].message.content)
    content.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}})
    with pytest.raises(litellm.BadRequestError):
        ask(server, provider, messages=[{"role": "user", "content": content}])


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "anthropic"])
def test_errors(server: Server, provider: str) -> None:
    with pytest.raises(litellm.BadRequestError):
        ask(server, provider, temperature=-1)
    with pytest.raises(litellm.ContextWindowExceededError):
        ask(server, provider, messages=[{"role": "user", "content": TOO_LONG}])
    # What it makes of 413 depends on the provider, and not on the server.
    with pytest.raises((litellm.BadRequestError, litellm.APIError), match="max-body-size"):
        ask(server, provider, messages=[{"role": "user", "content": TOO_LARGE}])


def test_any_model_name_is_answered(server: Server) -> None:
    url = f"{server.url}/v1"
    answer = litellm.responses(model="openai/gpt-nonsense", input=QUESTION, api_base=url, api_key="none")
    assert answer.output
