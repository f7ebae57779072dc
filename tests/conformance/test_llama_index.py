from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.conformance.conftest import CONTEXT_LENGTH, MODEL
from tests.conformance.tasks import (
    PIXEL,
    QUESTION,
    TEXTS,
    TOO_LARGE,
    TOO_LONG,
    Tree,
    check_answer,
    check_tree,
    check_vectors,
)
from tests.e2e.server import Server

openai_like = pytest.importorskip("llama_index.llms.openai_like")
embeddings = pytest.importorskip("llama_index.embeddings.openai_like")
llms = pytest.importorskip("llama_index.core.llms")
tools = pytest.importorskip("llama_index.core.tools")
prompts = pytest.importorskip("llama_index.core.prompts")


@pytest.fixture
def model(server: Server) -> Any:
    def make(**fields: Any) -> Any:
        return openai_like.OpenAILike(
            **{
                "model": MODEL,
                "api_base": f"{server.url}/v1",
                "api_key": "none",
                "max_retries": 0,
                "context_window": CONTEXT_LENGTH,
                "is_chat_model": True,
                "is_function_calling_model": True,
                "temperature": 0,
                "max_tokens": 200,
                **fields,
            }
        )

    return make


def describe_tree(name: str, height: int) -> str:
    """Describes a tree."""
    return f"{name}: {height} m"


def test_chat_streams_what_it_answers(model: Any) -> None:
    asked = [llms.ChatMessage(role="user", content=QUESTION)]
    whole = model(max_tokens=60).chat(asked)
    check_answer(whole.message.content)
    *_, last = model(max_tokens=60).stream_chat(asked)
    assert last.message.content == whole.message.content


def test_completions(model: Any) -> None:
    completer = model(max_tokens=20, is_chat_model=False)
    whole = completer.complete("The oak is")
    *_, last = completer.stream_complete("The oak is")
    assert last.text == whole.text != ""


def test_calls_and_their_results(model: Any) -> None:
    function = tools.FunctionTool.from_defaults(fn=describe_tree, fn_schema=Tree)
    asked = llms.ChatMessage(role="user", content=QUESTION)
    called = model().chat_with_tools([function], user_msg=asked, tool_required=True, allow_parallel_tool_calls=False)
    (call,) = model().get_tool_calls_from_response(called)
    assert call.tool_name == "describe_tree"
    check_tree(call.tool_kwargs)
    result = llms.ChatMessage(role="tool", content="oak: 30 m", additional_kwargs={"tool_call_id": call.tool_id})
    answer = model(max_tokens=30).chat_with_tools([function], chat_history=[asked, called.message, result])
    assert answer.message.content or model().get_tool_calls_from_response(answer, error_on_no_tool_call=False)


def test_structured_output(model: Any) -> None:
    template = prompts.PromptTemplate("{question}")
    assert isinstance(model().structured_predict(Tree, template, question=QUESTION), Tree)


def test_calls_are_streamed(model: Any) -> None:
    function = tools.FunctionTool.from_defaults(fn=describe_tree, fn_schema=Tree)
    *_, last = model().stream_chat_with_tools(
        [function], user_msg=QUESTION, tool_required=True, allow_parallel_tool_calls=False
    )
    (call,) = model().get_tool_calls_from_response(last)
    check_tree(call.tool_kwargs)


def test_responses(server: Server) -> None:
    made = openai_like.OpenAILikeResponses(
        model=MODEL,
        api_base=f"{server.url}/v1",
        api_key="none",
        max_retries=0,
        context_window=CONTEXT_LENGTH,
        temperature=0,
        max_output_tokens=60,
    )
    asked = [llms.ChatMessage(role="user", content=QUESTION)]
    whole = made.chat(asked)
    check_answer(whole.message.content)
    *_, last = made.stream_chat(asked)
    assert last.message.content == whole.message.content


def test_embeddings(embedder: Server) -> None:
    made = embeddings.OpenAILikeEmbedding(model_name="minilm", api_base=f"{embedder.url}/v1", api_key="none")
    check_vectors(made.get_text_embedding_batch(TEXTS))


def test_content_in_parts(model: Any) -> None:
    text = llms.TextBlock(text=QUESTION)
    asked = llms.ChatMessage(role="user", blocks=[text])
    check_answer(model(max_tokens=60).chat([asked]).message.content)
    image = llms.ImageBlock(image=PIXEL.encode(), image_mimetype="image/png")
    with pytest.raises(openai.BadRequestError, match="text"):
        model().chat([llms.ChatMessage(role="user", blocks=[text, image])])


def test_errors(model: Any) -> None:
    with pytest.raises(openai.BadRequestError):
        model(additional_kwargs={"extra_body": {"temprature": 1}}).complete(QUESTION)
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        model().complete(TOO_LONG)
    with pytest.raises(openai.APIStatusError) as info:
        model().complete(TOO_LARGE)
    assert info.value.status_code == 413
