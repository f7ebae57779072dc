"""Outputs that follow grammars, from the bundled model behind all processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

import bough
from tests.e2e.server import Server

TEXT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"
SCHEMA = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"height": {"type": "integer", "minimum": 1, "maximum": 99}},
            "required": ["height"],
            "additionalProperties": False,
        }
    },
    "type": "object",
    "properties": {"name": {"enum": ["oak", "ash"]}, "tree": {"$ref": "#/$defs/tree"}, "old": {"type": "boolean"}},
    "required": ["name", "tree", "old"],
    "additionalProperties": False,
}
TAGS = {"structures": [{"begin": "<f>", "schema": SCHEMA, "end": "</f>"}], "triggers": ["<f>"]}
ONE_TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<f>"],
        "tags": [{"begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]{2}"}, "end": "</f>"}],
        "at_least_one": True,
        "stop_after_first": True,
    },
}


def are_pairs(brackets: re.Match[str] | None) -> bool:
    return brackets is not None and len(brackets[1]) == len(brackets[2])


def is_json(text: str) -> bool:
    jsonschema.validate(json.loads(text), SCHEMA)
    return True


CASES: list[tuple[dict[str, Any], Any]] = [
    ({"json_schema": json.dumps(SCHEMA)}, is_json),
    ({"json_schema": SCHEMA}, is_json),
    ({"regex": r"(oak|ash) \d{3}\."}, re.compile(r"(oak|ash) [0-9]{3}\.").fullmatch),
    ({"ebnf": 'root ::= "[" root "]" | [a-z]{2}'}, lambda text: are_pairs(re.fullmatch(r"(\[*)[a-z]{2}(\]*)", text))),
    ({"choice": ["oak", "oaks", "ash"]}, lambda text: text in ("oak", "oaks", "ash")),
    ({"structural_tag": ONE_TAG}, re.compile(r"<f>[0-9]{2}</f>").fullmatch),
    ({"structural_tag": TAGS}, lambda text: all(map(is_json, re.findall("<f>(.*?)</f>", text, re.DOTALL)))),
    (
        {"structural_tag": json.dumps({"type": "structural_tag", **TAGS})},
        lambda text: all(map(is_json, re.findall("<f>(.*?)</f>", text, re.DOTALL))),
    ),
]


@pytest.mark.parametrize(
    ("params", "follows"), CASES, ids=lambda each: next(iter(each)) if isinstance(each, dict) else ""
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_generate_follows(server: Server, params: dict[str, Any], follows: Any, temperature: float) -> None:
    sampling = {"temperature": temperature, "sampling_seed": 5, "max_new_tokens": 150, **params}
    whole = server.generate(text=TEXT, sampling_params=sampling)
    assert whole["meta_info"]["finish_reason"]["type"] == "stop", whole["text"]
    assert follows(whole["text"]), whole["text"]
    events = []
    with server.client.stream(
        "POST", "/generate", json={"text": TEXT, "sampling_params": sampling, "stream": True}
    ) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                events.append(json.loads(line[6:]))
    assert events[-1]["text"] == whole["text"]
    assert events[-1]["output_ids"] == whole["output_ids"]


def test_many_at_once_each_follow_their_own(server: Server) -> None:
    def ask(i: int) -> bool:
        params, follows = CASES[i % len(CASES)]
        sampling = {"temperature": 1.0, "sampling_seed": i, "max_new_tokens": 200, **params}
        answer = server.generate(text=TEXT, sampling_params=sampling)
        if answer["meta_info"]["finish_reason"]["type"] == "length":
            return True
        return bool(follows(answer["text"]))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(28)))


def test_logprobs_come_with_every_token(server: Server) -> None:
    sampling = {"temperature": 0, "max_new_tokens": 100, "json_schema": SCHEMA}
    answer = server.generate(text=TEXT, sampling_params=sampling, return_logprob=True, top_logprobs_num=2)
    logprobs = answer["meta_info"]["output_token_logprobs"]
    assert [entry[1] for entry in logprobs] == answer["output_ids"]
    assert all(entry[0] <= 0 for entry in logprobs)
    json.dumps(answer, allow_nan=False)


def test_impossible_grammars_are_400(server: Server) -> None:
    cases = [
        ({"regex": "(?=x)"}, "regex"),
        ({"json_schema": {"type": "array", "uniqueItems": True}}, "json_schema"),
        ({"ebnf": "nonsense"}, "ebnf"),
        ({"structural_tag": {"structures": []}}, "structural_tag"),
        ({"regex": "a", "choice": ["a"]}, "choice"),
        ({"json_schema": "{"}, "json_schema"),
    ]
    for params, field in cases:
        for stream in [False, True]:
            response = server.post("/generate", text=TEXT, sampling_params=params, stream=stream)
            assert response.status_code == 400
            error = response.json()["error"]
            assert field in error["message"]
            assert error["param"].removeprefix("sampling_params.") == field
            assert error["code"] == "invalid_grammar"


@pytest.fixture(scope="module")
def engine() -> Iterator[bough.Engine]:
    with bough.Engine(cpu_threads=1) as made:
        yield made


def test_engine_follows_grammars(engine: bough.Engine) -> None:
    for params, follows in CASES:
        answer = engine.generate(TEXT, {"temperature": 0, "max_new_tokens": 150, **params})
        assert follows(answer["text"]), answer["text"]
    with pytest.raises(ValueError, match="look-around"):
        engine.generate(TEXT, {"regex": "(?=x)"})


def test_engine_keeps_words_and_tokens_out(engine: bough.Engine) -> None:
    params = {"temperature": 0, "max_new_tokens": 40}
    free = engine.generate(TEXT, params)
    words = re.findall("[a-z]{3,}", free["text"])[:2]
    assert words
    answers = engine.generate([TEXT, TEXT], {**params, "bad_words": words})
    assert not any(set(words) & set(re.findall("[a-z]+", each["text"])) for each in answers)
    allowed = free["output_ids"][:5]
    answer = engine.generate(TEXT, {**params, "allowed_token_ids": allowed})
    assert set(answer["output_ids"]) <= set(allowed)
    for name, wrong in (("bad_words", ["x y " * 40]), ("allowed_token_ids", [])):
        with pytest.raises(ValueError, match=name):
            engine.generate(TEXT, {**params, name: wrong})


def test_what_cannot_be_enforced_is_left_out_unless_the_schema_is_strict(server: Server) -> None:
    for strict in [True, False, None]:
        schema = {"type": "array", "items": {"type": "integer", "maximum": 9}, "maxItems": 3, "uniqueItems": True}
        described = {"name": "digits", "schema": schema} | ({} if strict is None else {"strict": strict})
        response = server.client.post(
            "/v1/completions",
            json={
                "prompt": "Digits: ",
                "response_format": {"type": "json_schema", "json_schema": described},
                "max_tokens": 40,
                "temperature": 0,
            },
        )
        if strict:
            assert response.status_code == 400
            assert "uniqueItems" in response.json()["error"]["message"]
        else:
            text = response.json()["choices"][0]["text"]
            assert len(json.loads(text)) <= 3


def test_required_calls_work_in_a_server(server: Server) -> None:
    properties = {"n": {"enum": [1, 2]}}
    parameters = {"type": "object", "properties": properties, "required": ["n"], "additionalProperties": False}
    response = server.client.post(
        "/v1/chat/completions",
        json={
            "messages": [{"role": "user", "content": "Call it."}],
            "tools": [{"type": "function", "function": {"name": "count", "parameters": parameters}}],
            "tool_choice": "required",
            "max_tokens": 60,
        },
    )
    (call,) = response.json()["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["n"] in (1, 2)


def test_bad_words_do_not_come(server: Server) -> None:
    for temperature in [0.0, 1.0]:
        sampling = {"temperature": temperature, "sampling_seed": 3, "max_new_tokens": 60}
        free = server.generate(text=TEXT, sampling_params=sampling)["text"]
        words = sorted(set(re.findall("[a-z]{3,}", free)))[:4]
        assert words
        text = server.generate(text=TEXT, sampling_params={**sampling, "bad_words": words})["text"]
        assert not set(words) & set(re.findall("[a-z]+", text))
        body = {"prompt": TEXT, "temperature": temperature, "seed": 3, "max_tokens": 60, "bad_words": words}
        text = server.client.post("/v1/completions", json=body).json()["choices"][0]["text"]
        assert not set(words) & set(re.findall("[a-z]+", text))


def test_only_allowed_tokens_come(server: Server) -> None:
    allowed = server.generate(text=TEXT, sampling_params={"max_new_tokens": 5, "temperature": 0.0})["output_ids"]
    sampling = {"max_new_tokens": 20, "temperature": 1.0, "sampling_seed": 1, "allowed_token_ids": allowed}
    answer = server.generate(text=TEXT, sampling_params={**sampling, "n": 2})
    for each in answer:
        assert len(each["output_ids"]) == 20
        assert set(each["output_ids"]) <= set(allowed)
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "allowed_token_ids": allowed[:1]}
    chat = server.client.post("/v1/chat/completions", json={**body, "return_token_ids": True}).json()
    assert set(chat["choices"][0]["token_ids"]) == set(allowed[:1])


def test_tokens_that_leave_nothing_are_refused(server: Server) -> None:
    cases = [
        ({"allowed_token_ids": [10**6]}, "allowed_token_ids must be token ids"),
        ({"allowed_token_ids": []}, "allowed_token_ids must be 1 to 16384 ids"),
        (
            {"allowed_token_ids": [5], "logit_bias": {"5": 1.0}, "bad_words": [" "]},
            "bad_words must be strings that are",
        ),
        ({"bad_words": ["x" * 4097]}, "bad_words must be at most"),
        ({"bad_words": "x"}, "bad_words must be an array, got "),
        ({"allowed_token_ids": [2], "min_new_tokens": 3}, "no token of allowed_token_ids is left"),
        ({"allowed_token_ids": [5], "regex": "[0-9]"}, "no token is left"),
    ]
    for params, said in cases:
        answer = server.client.post(
            "/generate", json={"text": TEXT, "sampling_params": {"max_new_tokens": 5, **params}}
        )
        assert answer.status_code == 400
        assert said in answer.text
