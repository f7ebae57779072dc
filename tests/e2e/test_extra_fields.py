"""What SGLang's and vLLM's clients may say besides OpenAI's fields does what it says, on a real model."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.e2e.server import Server
from tests.e2e.test_conversations import QUESTION

GUIDE = {"role": "system", "content": "You are Sapling, a friendly guide to trees."}
PROMPT = "Once upon a time a young maple stood at the end of a long valley. It was the smallest of all"
OF_PATH: dict[str, dict[str, Any]] = {
    # Longer than a page of the KV cache.
    "/v1/chat/completions": {"messages": [GUIDE, *QUESTION]},
    "/v1/completions": {"prompt": PROMPT},
}


def ask(server: Server, path: str, **fields: Any) -> dict[str, Any]:
    body = {**OF_PATH[path], "temperature": 0, "max_tokens": 24, **fields}
    response = server.post(path, **{name: value for name, value in body.items() if value is not None})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def text_of(answer: dict[str, Any]) -> str:
    (choice,) = answer["choices"]
    return str(choice["text"] if "text" in choice else choice["message"]["content"])


@pytest.fixture(params=OF_PATH)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.one_scheduler
def test_prefixes_are_shared_only_with_the_same_key(server: Server, path: str) -> None:
    for field in ["cache_salt", "extra_key"]:

        def cached(**fields: Any) -> int:
            return int(ask(server, path, max_tokens=1, **fields)["usage"]["prompt_tokens_details"]["cached_tokens"])

        cached()
        assert cached() > 0
        own = f"{field} of {path}"
        assert cached(**{field: own}) == 0
        assert cached(**{field: own}) > 0
        assert cached(**{field: f"not {own}"}) == 0


def test_an_output_has_at_least_so_many_tokens(server: Server, path: str) -> None:
    usual = ask(server, path, max_tokens=200)
    assert usual["choices"][0]["finish_reason"] == "stop"
    count = usual["usage"]["completion_tokens"]
    longer = ask(server, path, max_tokens=200, min_tokens=count + 3)
    assert longer["usage"]["completion_tokens"] >= count + 3
    endless = ask(server, path, max_tokens=count + 20, ignore_eos=True)
    assert endless["usage"]["completion_tokens"] == count + 20
    assert endless["choices"][0]["finish_reason"] == "length"


def test_tokens_and_patterns_end_an_output(server: Server, path: str) -> None:
    whole = ask(server, path, return_token_ids=True)
    ids = whole["choices"][0]["token_ids"]
    cut = ask(server, path, stop_token_ids=[ids[4]], return_token_ids=True)["choices"][0]
    assert cut["token_ids"] == ids[: ids.index(ids[4]) + 1]
    assert (cut["finish_reason"], cut["matched_stop"]) == ("stop", ids[4])
    word = re.findall(r"[a-z]{4,}", text_of(whole))[0]
    pattern = f"{word[:-1]}[a-z]"
    ended = text_of(ask(server, path, stop_regex=pattern))
    assert word not in ended
    assert text_of(ask(server, path, stop_regex=pattern, no_stop_trim=True)) == ended + word


def test_the_likeliest_token_is_taken_where_no_other_is_left(server: Server, path: str) -> None:
    likeliest = text_of(ask(server, path))
    for only in ({"top_k": 1}, {"min_p": 1.0}, {"top_p": 1e-6}):
        assert text_of(ask(server, path, temperature=5.0, seed=3, **only)) == likeliest


def test_special_tokens_are_shown_on_request(server: Server, path: str) -> None:
    fields = {"max_tokens": 200, "no_stop_trim": True}
    hidden = text_of(ask(server, path, **fields))
    shown = text_of(ask(server, path, **fields, skip_special_tokens=False))
    assert "<|" not in hidden
    assert shown.startswith(hidden)
    assert shown[len(hidden) :].startswith("<|")


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_json": {"enum": ["oak"]}},
        {"guided_regex": "o[a]k"},
        {"guided_choice": ["oak"]},
        {"guided_grammar": 'root ::= "oak"'},
        {"structured_outputs": {"json": {"enum": ["oak"]}}},
        {"structured_outputs": {"regex": "o[a]k"}},
        {"structured_outputs": {"choice": ["oak"]}},
        {"structured_outputs": {"grammar": 'root ::= "oak"'}},
    ],
    ids=str,
)
def test_outputs_follow_what_vllm_calls_otherwise(server: Server, path: str, fields: dict[str, Any]) -> None:
    answer = ask(server, path, **fields)
    assert text_of(answer).strip('"') == "oak"
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_any_object_may_be_asked_for_in_vllms_words(server: Server, path: str) -> None:
    answer = ask(server, path, structured_outputs={"json_object": True}, max_tokens=400, logit_bias=None)
    text, (choice,) = text_of(answer), answer["choices"]
    assert text.startswith("{")
    assert choice["finish_reason"] == "length" or isinstance(json.loads(text), dict)


def test_the_prompt_of_a_chat_may_be_given_as_token_ids(server: Server) -> None:
    chat = "/v1/chat/completions"
    ids = server.post("/tokenize", **OF_PATH[chat]).json()["tokens"]
    answer = ask(server, chat, input_ids=ids, messages=[{"role": "user", "content": "ignored"}])
    assert text_of(answer) == text_of(ask(server, chat))
    assert answer["usage"]["prompt_tokens"] == len(ids)
    without = ask(server, chat, add_generation_prompt=False, return_token_ids=True)["prompt_token_ids"]
    assert without == ids[: len(without)]
    assert len(without) < len(ids)


def test_the_gap_before_a_suffix_needs_a_model_that_fills_gaps(server: Server) -> None:
    refused = server.post("/v1/completions", prompt="a", suffix="b")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "suffix")
