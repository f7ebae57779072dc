from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.conformance.conftest import MODEL
from tests.conformance.tasks import (
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
    tool,
)
from tests.e2e.server import Server

langchain_openai = pytest.importorskip("langchain_openai")
messages = pytest.importorskip("langchain_core.messages")


@pytest.fixture
def chat(server: Server) -> Any:
    def make(**fields: Any) -> Any:
        return langchain_openai.ChatOpenAI(
            **{
                "model": MODEL,
                "base_url": f"{server.url}/v1",
                "api_key": "none",
                "max_retries": 0,
                "temperature": 0,
                "max_tokens": 200,
                **fields,
            }
        )

    return make


@pytest.mark.parametrize("more", [{}, {"use_responses_api": True}], ids=["chat", "responses"])
def test_answers_stream_as_they_are(chat: Any, more: dict[str, Any]) -> None:
    model = chat(max_tokens=60, stream_usage=True, **more)
    whole = model.invoke(QUESTION)
    check_answer(whole.text)
    joined = None
    for chunk in model.stream(QUESTION):
        joined = chunk if joined is None else joined + chunk
    assert joined is not None
    assert joined.text == whole.text
    assert whole.usage_metadata["output_tokens"] == joined.usage_metadata["output_tokens"] > 5


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat: Any, method: str) -> None:
    assert isinstance(chat().with_structured_output(Tree, method=method).invoke(QUESTION), Tree)


def test_calls_and_their_results(chat: Any) -> None:
    model = chat().bind_tools([tool()], tool_choice="required", parallel_tool_calls=False)
    called = model.invoke(QUESTION)
    (call,) = called.tool_calls
    assert call["name"] == "describe_tree"
    check_tree(call["args"])
    joined = None
    for chunk in model.stream(QUESTION):
        joined = chunk if joined is None else joined + chunk
    assert joined is not None
    assert joined.tool_calls[0]["args"] == call["args"]
    result = messages.ToolMessage(RESULT, tool_call_id=call["id"])
    answer = chat(max_tokens=30).bind_tools([tool()]).invoke([messages.HumanMessage(QUESTION), called, result])
    assert answer.text or answer.tool_calls


def test_structured_output_of_responses_and_streams(chat: Any) -> None:
    made = chat(use_responses_api=True).with_structured_output(Tree, method="json_schema")
    assert isinstance(made.invoke(QUESTION), Tree)
    *_, last = chat().with_structured_output(Tree, method="json_schema").stream(QUESTION)
    assert isinstance(last, Tree)


def test_asynchronous_calls(chat: Any) -> None:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(chat(max_tokens=20).ainvoke(QUESTION) for _ in range(4)))

    assert len({answer.text for answer in asyncio.run(ask())}) == 1


def test_content_in_parts(chat: Any) -> None:
    text: dict[str, Any] = {"type": "text", "text": QUESTION}
    model = chat(max_tokens=20)
    assert model.invoke([messages.HumanMessage([text])]).text == model.invoke(QUESTION).text
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    with pytest.raises(openai.BadRequestError, match="text"):
        model.invoke([messages.HumanMessage([text, image])])


def test_embeddings(embedder: Server) -> None:
    model = langchain_openai.OpenAIEmbeddings(
        model="minilm",
        base_url=f"{embedder.url}/v1",
        api_key="none",
        check_embedding_ctx_length=False,  # would count tokens as OpenAI's models do
    )
    check_vectors(model.embed_documents(TEXTS))


def test_errors(chat: Any) -> None:
    with pytest.raises(openai.BadRequestError):
        chat(temperature=-1).invoke(QUESTION)
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        chat().invoke(TOO_LONG)
    with pytest.raises(openai.APIStatusError) as info:
        chat().invoke(TOO_LARGE)
    assert info.value.status_code == 413


def test_any_model_name_is_answered(chat: Any) -> None:
    assert chat(use_responses_api=True, model="gpt-nonsense", max_tokens=20).invoke(QUESTION).text
