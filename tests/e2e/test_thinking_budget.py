"""Thoughts of the bundled model end where a request wants them to, on every route, and the answer follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.e2e.server import Server, running_server

ASKED: list[Any] = [{"role": "user", "content": "What is 17 times 23?"}]
THINKS = {"enable_thinking": True}
GREEDY: dict[str, Any] = {"model": "m", "messages": ASKED, "temperature": 0, "max_tokens": 300}


def chat(server: Server, **fields: Any) -> tuple[str, str, int, list[int]]:
    """Thoughts, answer, tokens of thoughts and all ids."""
    body = {**GREEDY, "chat_template_kwargs": THINKS, "return_token_ids": True, **fields}
    response = server.post("/v1/chat/completions", **body)
    assert response.status_code == 200, response.text
    (choice,), usage = response.json()["choices"], response.json()["usage"]
    message = choice["message"]
    num_thoughts = usage["completion_tokens_details"]["reasoning_tokens"]
    return message.get("reasoning_content") or "", message["content"] or "", num_thoughts, choice["token_ids"]


def test_chat(server: Server) -> None:
    thoughts, answer, free, ids = chat(server)
    assert thoughts
    assert answer
    assert free > 6
    assert chat(server, thinking_token_budget=len(ids)) == (thoughts, answer, free, ids)
    for budget in (6, 1, 0):
        bounded, answer, count, bounded_ids = chat(server, thinking_token_budget=budget)
        assert thoughts.startswith(bounded)
        assert count <= budget
        assert answer
        assert "think>" not in answer
        assert bounded_ids[:budget] == ids[:budget]
    assert chat(server, thinking_token_budget=0)[0] == ""


def test_chat_streams_the_same(openai_client: openai.OpenAI, server: Server) -> None:
    thoughts, answer, count, _ = chat(server, thinking_token_budget=6)
    told: dict[str, str] = {"reasoning_content": "", "content": ""}
    extra = {"thinking_token_budget": 6, "chat_template_kwargs": THINKS}
    usage: Any = None
    for chunk in openai_client.chat.completions.create(
        **GREEDY, stream=True, stream_options={"include_usage": True}, extra_body=extra
    ):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            for name in told:
                told[name] += getattr(choice.delta, name, None) or ""
    assert told == {"reasoning_content": thoughts, "content": answer}
    assert usage.completion_tokens_details.reasoning_tokens == count


def test_several_choices_logprobs_and_a_schema(server: Server) -> None:
    body = {**GREEDY, "chat_template_kwargs": THINKS, "thinking_token_budget": 5, "n": 3, "temperature": 1, "seed": 3}
    body |= {"logprobs": True, "top_logprobs": 1, "return_token_ids": True, "choice": ["oak", "elm"]}
    response = server.post("/v1/chat/completions", **body)
    assert response.status_code == 200, response.text
    for choice in response.json()["choices"]:
        assert choice["message"]["content"] in ("oak", "elm")
        assert choice["finish_reason"] == "stop"
        assert all(entry["logprob"] <= 0 for entry in choice["logprobs"]["content"])
    assert response.json()["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 3 * 5


NEVER_ENDS = {"logit_bias": {str(token): -100 for token in range(5)}}
"""Excludes the bundled model's special tokens and both thinking markers, so that only budgets end a part."""


def test_messages_of_anthropic(tmp_path: Path) -> None:
    options = ("--cpu-threads", "1", "--preferred-sampling-params", json.dumps(NEVER_ENDS))
    with running_server(tmp_path, *options) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        fields: dict[str, Any] = {"model": "m", "messages": ASKED, "max_tokens": 1060, "extra_body": {"temperature": 0}}
        told = client.messages.create(**fields, thinking={"type": "enabled", "budget_tokens": 1024})
        thoughts, answer = told.content
        assert thoughts.type == "thinking"
        assert answer.type == "text"
        assert answer.text
        assert told.usage.output_tokens == 1060
        count = server.post("/tokenize", prompt=thoughts.thinking, add_special_tokens=False).json()["count"]
        assert 512 < count <= 1024
        for wrong in (1060, 1023):
            with pytest.raises(anthropic.BadRequestError, match=r"thinking\.budget_tokens"):
                client.messages.create(**fields, thinking={"type": "enabled", "budget_tokens": wrong})


def test_generate(server: Server) -> None:
    prompt = "<|im_start|>user\nWhat is 17 times 23?<|im_end|>\n<|im_start|>assistant\n"
    for opened in ("<think>\n", ""):
        params: dict[str, Any] = {"temperature": 0, "max_new_tokens": 300, "skip_special_tokens": False}
        if not opened:
            params["regex"] = r"<think>(.|\n)*</think>\n\n\S(.|\n)*"
        for budget in (4, 0):
            answer = server.generate(text=prompt + opened, sampling_params={**params, "thinking_token_budget": budget})
            thoughts, end, said = answer["text"].partition("</think>")
            assert end
            assert said.strip()
            assert thoughts.startswith("" if opened else "<think>")
            assert answer["meta_info"]["reasoning_tokens"] <= budget
            if budget == 0:
                assert thoughts.removeprefix("<think>").strip() == ""
