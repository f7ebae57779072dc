"""Every API for conversations on the bundled model, with constraints that are really enforced."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import ollama
import openai
import pytest

from bough.parsers.structural import MAX_CALLS
from tests.e2e.server import Server

QUESTION: list[Any] = [{"role": "user", "content": "Tell me about the oak."}]
PARAMETERS = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "height": {"type": "integer", "maximum": 99}},
    "required": ["name", "height"],
    "additionalProperties": False,
}
TREE = {"type": "function", "function": {"name": "tree", "description": "About a tree", "parameters": PARAMETERS}}


def check_tree(arguments: Any) -> None:
    assert set(arguments) == {"name", "height"}
    assert isinstance(arguments["name"], str)
    assert isinstance(arguments["height"], int)


def test_required_calls_parse_whole_and_streamed(openai_client: openai.OpenAI) -> None:
    fields: Any = {"model": "m", "messages": QUESTION, "tools": [TREE], "tool_choice": "required", "temperature": 0}
    fields |= {"max_tokens": 200, "parallel_tool_calls": False}
    whole = openai_client.chat.completions.create(**fields).choices[0]
    assert whole.finish_reason == "tool_calls"
    (call,) = whole.message.tool_calls or ()
    assert call.function.name == "tree"  # type: ignore[union-attr]
    check_tree(json.loads(call.function.arguments))  # type: ignore[union-attr]
    del fields["tools"], fields["messages"]
    with openai_client.chat.completions.stream(messages=QUESTION, tools=[TREE], **fields) as stream:
        final = stream.get_final_completion().choices[0]
    assert final.message.tool_calls is not None
    assert final.message.tool_calls[0].function.arguments == call.function.arguments  # type: ignore[union-attr]


def test_required_calls_come_to_an_end_by_themselves(openai_client: openai.OpenAI) -> None:
    loose = {**PARAMETERS}
    del loose["additionalProperties"]
    tool = {"type": "function", "function": {"name": "tree", "parameters": loose}}
    fields: Any = {"model": "m", "messages": QUESTION, "tools": [tool], "tool_choice": "required", "temperature": 0}
    choice = openai_client.chat.completions.create(**fields).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert 1 <= len(choice.message.tool_calls or ()) <= MAX_CALLS
    for call in choice.message.tool_calls or ():
        check_tree(json.loads(call.function.arguments))  # type: ignore[union-attr]


def test_a_call_that_is_cut_off_leaves_no_marker(openai_client: openai.OpenAI) -> None:
    wordy = {"type": "object", "properties": {"name": {"type": "string", "minLength": 80}}, "required": ["name"]}
    tool = {"type": "function", "function": {"name": "tree", "parameters": wordy}}
    fields: Any = {"model": "m", "messages": QUESTION, "tools": [tool], "tool_choice": "required", "temperature": 0}
    for max_tokens in (1, 3, 9, 20, 28):
        choice = openai_client.chat.completions.create(**fields, max_tokens=max_tokens).choices[0]
        assert choice.finish_reason == "length"
        assert choice.message.content == ""
        deltas = [
            chunk.choices[0].delta
            for chunk in openai_client.chat.completions.create(**fields, max_tokens=max_tokens, stream=True)
            if chunk.choices
        ]
        assert not any(delta.content for delta in deltas)
        begun = [call.function.name for delta in deltas for call in delta.tool_calls or () if call.function]
        assert bool(choice.message.tool_calls) == ("tree" in begun)


def test_a_strict_tool_leaves_free_text_as_it_is(openai_client: openai.OpenAI) -> None:
    asked = [{"role": "user", "content": "Hello! Who are you?"}]
    fields: Any = {"model": "m", "messages": asked, "temperature": 0, "max_tokens": 40}
    answers = []
    for strict in (False, True):
        tool: Any = {"type": "function", "function": {**TREE["function"], "strict": strict}}  # type: ignore[dict-item]
        answers.append(openai_client.chat.completions.create(**fields, tools=[tool]).choices[0])
    assert answers[0].message.content
    assert answers[1].message.content == answers[0].message.content
    assert answers[1].finish_reason == answers[0].finish_reason


def test_a_named_call_is_made(openai_client: openai.OpenAI) -> None:
    other = {"type": "function", "function": {"name": "other"}}
    choice: Any = {"type": "function", "function": {"name": "tree"}}
    answer = openai_client.chat.completions.create(
        model="m",
        messages=QUESTION,
        tools=[other, TREE],
        tool_choice=choice,
        max_tokens=200,
        temperature=0,  # type: ignore[list-item]
    )
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.function.name == "tree"  # type: ignore[union-attr]
    check_tree(json.loads(call.function.arguments))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "tree", "schema": PARAMETERS}}},
        {"json_schema": json.dumps(PARAMETERS)},
        {"guided_json": PARAMETERS},
        {"structured_outputs": {"json": PARAMETERS}},
    ],
    ids=["openai", "sglang", "vllm", "vllm, newer"],
)
def test_a_schema_is_followed_under_every_name(openai_client: openai.OpenAI, fields: dict[str, Any]) -> None:
    answer = openai_client.chat.completions.create(
        model="m", messages=QUESTION, max_tokens=200, temperature=0, extra_body=fields
    )
    check_tree(json.loads(answer.choices[0].message.content or ""))


def test_patterns_choices_and_grammars_are_followed(openai_client: openai.OpenAI) -> None:
    cases = [
        ({"regex": "oak|elm"}, ("oak", "elm")),
        ({"guided_choice": ["oak", "elm"]}, ("oak", "elm")),
        ({"ebnf": 'root ::= "oak" | "elm"'}, ("oak", "elm")),
        ({"choice": ["an oak"]}, ("an oak",)),
    ]
    for fields, text in cases:
        chat = openai_client.chat.completions.create(model="m", messages=QUESTION, max_tokens=20, extra_body=fields)
        assert chat.choices[0].message.content in text
        completion = openai_client.completions.create(model="m", prompt="It is ", max_tokens=20, extra_body=fields)
        assert completion.choices[0].text in text


def test_a_bad_schema_is_the_clients_fault(openai_client: openai.OpenAI) -> None:
    for fields in ({"regex": "("}, {"json_schema": {"type": "tree"}}, {"ebnf": "root ::= missing"}):
        with pytest.raises(openai.BadRequestError):
            openai_client.chat.completions.create(model="m", messages=QUESTION, max_tokens=5, extra_body=fields)
    tool = {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": 3}}}},
    }
    with pytest.raises(openai.BadRequestError):
        openai_client.chat.completions.create(
            model="m",
            messages=QUESTION,
            tools=[tool],
            tool_choice="required",
            max_tokens=5,  # type: ignore[list-item]
        )


def test_best_of_returns_the_likeliest(openai_client: openai.OpenAI) -> None:
    fields: Any = {"model": "m", "prompt": "The oak", "max_tokens": 8, "seed": 3, "logprobs": 0}
    every = openai_client.completions.create(n=4, **fields)

    def mean(choice: Any) -> float:
        return sum(choice.logprobs.token_logprobs) / len(choice.logprobs.token_logprobs)

    ranked = sorted(every.choices, key=mean, reverse=True)
    best = openai_client.completions.create(n=2, best_of=4, **fields)
    assert [choice.text for choice in best.choices] == [choice.text for choice in ranked[:2]]
    assert [choice.index for choice in best.choices] == [0, 1]


def test_logprobs_of_the_prompt(server: Server) -> None:
    fields = {"max_tokens": 1, "prompt_logprobs": 2, "temperature": 0, "return_token_ids": True}
    chat = server.post("/v1/chat/completions", messages=QUESTION, **fields).json()
    completion = server.post("/v1/completions", prompt="The oak is", **fields).json()
    for ids, listed in (
        (chat["prompt_token_ids"], chat["prompt_logprobs"]),
        (completion["choices"][0]["prompt_token_ids"], completion["choices"][0]["prompt_logprobs"]),
    ):
        assert len(listed) == len(ids)
        assert listed[0] is None
        for token, entry in zip(ids[1:], listed[1:], strict=True):
            assert str(token) in entry
            assert 2 <= len(entry) <= 3
            likeliest = max(entry.values(), key=lambda each: each["logprob"])
            assert likeliest["rank"] == 1


def test_a_long_prompt_may_be_cut(server: Server) -> None:
    short = {"max_tokens": 2, "temperature": 0, "return_prompt_token_ids": True, "truncate_prompt_tokens": 5}
    whole = server.post("/v1/completions", prompt="One two three four five six", max_tokens=1, return_token_ids=True)
    ids = whole.json()["choices"][0]["prompt_token_ids"]
    for prompt in ("One two three four five six", ids):
        answer = server.post("/v1/completions", prompt=prompt, **short).json()
        assert answer["choices"][0]["prompt_token_ids"] == ids[-5:]
        assert answer["usage"]["prompt_tokens"] == 5
    chat = server.post("/v1/chat/completions", messages=QUESTION, **short).json()
    assert len(chat["choices"][0]["prompt_token_ids"]) == 5


def test_a_message_is_gone_on_with_and_echoed(server: Server) -> None:
    messages = [*QUESTION, {"role": "assistant", "content": "The oak"}]
    fields = {"messages": messages, "continue_final_message": True, "max_tokens": 10, "temperature": 0}
    plain = server.post("/v1/chat/completions", **fields).json()["choices"][0]["message"]["content"]
    echoed = server.post("/v1/chat/completions", **fields, echo=True).json()["choices"][0]["message"]["content"]
    assert echoed == "The oak" + plain


def test_anthropic_messages(server: Server) -> None:
    api = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
    fields: Any = {"model": "m", "max_tokens": 60, "messages": QUESTION, "extra_body": {"temperature": 0}}
    whole = api.messages.create(**fields)
    with api.messages.stream(**fields) as stream:
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text
    assert "oak" in whole.content[0].text.lower()
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    tool: Any = {"name": "tree", "input_schema": PARAMETERS}
    called = api.messages.create(
        **{**fields, "max_tokens": 200}, tools=[tool], tool_choice={"type": "any", "disable_parallel_tool_use": True}
    )
    assert called.stop_reason == "tool_use"
    check_tree(called.content[0].input)


def test_responses(openai_client: openai.OpenAI) -> None:
    model = openai_client.models.list().data[0].id
    fields: Any = {"model": model, "input": "Tell me about the oak.", "temperature": 0, "max_output_tokens": 60}
    whole = openai_client.responses.create(**fields)
    with openai_client.responses.stream(**fields) as stream:
        final = stream.until_done().get_final_response()
    assert final.output_text == whole.output_text
    assert "oak" in whole.output_text.lower()
    assert final.usage is not None
    assert whole.usage is not None
    assert final.usage.output_tokens == whole.usage.output_tokens
    text: Any = {"format": {"type": "json_schema", "name": "tree", "schema": PARAMETERS}}
    follows = openai_client.responses.create(**{**fields, "max_output_tokens": 200}, text=text)
    check_tree(json.loads(follows.output_text))
    more = openai_client.responses.create(
        model=model, input="And the elm?", previous_response_id=whole.id, max_output_tokens=20, temperature=0
    )
    assert more.usage is not None
    assert more.usage.input_tokens > whole.usage.input_tokens


def test_ollama(server: Server) -> None:
    api = ollama.Client(host=server.url)
    options = {"temperature": 0, "num_predict": 60}
    whole = api.chat(model="m", messages=QUESTION, options=options)
    parts = list(api.chat(model="m", messages=QUESTION, options=options, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert "oak" in (whole.message.content or "").lower()
    assert parts[-1].eval_count == whole.eval_count
    follows = api.chat(model="m", messages=QUESTION, format=PARAMETERS, options={**options, "num_predict": 200})
    check_tree(json.loads(follows.message.content or ""))
    (model,) = api.list().models
    assert model.size
