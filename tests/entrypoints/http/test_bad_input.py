"""Every field of every body: wrong types, out of range, null, empty, huge, unknown. Made from the field tables."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.native.pauses import ABORT
from bough.entrypoints.http.native.protocol import GENERATE
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.entrypoints.http.openapi import openapi_schema
from bough.entrypoints.http.route import Route
from bough.entrypoints.http.routes import ROUTES
from bough.errors import BadRequest
from bough.sampling.sampling_params import SamplingParams
from tests.entrypoints.http.server import CONTEXT_LEN, RunningServer, running_server

ENDPOINTS: dict[str, tuple[BodySpec[Any], dict[str, Any]]] = {
    "/generate": (GENERATE, {"text": "Hi", "sampling_params": {"max_new_tokens": 1}}),
    "/v1/completions": (COMPLETIONS, {"prompt": "Hi", "max_tokens": 1}),
    "/v1/chat/completions": (CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}),
    "/abort_request": (ABORT, {}),
}
OF_TYPE = {"string": "x", "integer": 3, "number": 1.5, "boolean": True, "array": [[[]]], "object": {"a": {"b": 1}}}
TAKEN_ALL_THE_SAME = ('{"stop": ""}', '{"reasoning": true}')
"""Values that the declarations do not have, and that clients send."""

HUGE = 10**30
VOCAB = 300


def schema_of(spec: BodySpec[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    (reference,), components = msgspec.json.schema_components([spec.model], ref_template="{name}")
    return components[reference["$ref"]]["properties"], components


def alternatives(schema: dict[str, Any], components: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in schema:
        yield components[schema["$ref"]]
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from alternatives(each, components)
    else:
        yield schema


def wrong_values(schema: dict[str, Any], components: dict[str, Any]) -> Iterator[Any]:
    """Values of types that a field does not have, and numbers and lengths just beyond its bounds."""
    kinds = list(alternatives(schema, components))
    types = {kind.get("type") for kind in kinds}
    if None in types:
        return  # any value: has tests of its own
    for name, value in OF_TYPE.items():
        if name not in types and not (name == "integer" and "number" in types) and name not in ("array", "object"):
            yield value
    if "array" not in types:
        yield []
    if "object" not in types:
        yield {"a": 1}
    for kind in kinds:
        step = 1 if kind.get("type") == "integer" else 1e-3
        if "minimum" in kind:
            yield kind["minimum"] - step
        if "maximum" in kind:
            yield kind["maximum"] + step
        if "exclusiveMinimum" in kind:
            yield kind["exclusiveMinimum"]
        if kind.get("type") in ("integer", "number"):
            yield HUGE
        if "maxLength" in kind:
            yield "x" * (kind["maxLength"] + 1)
        if kind.get("minLength"):
            yield ""
        if "maxItems" in kind:
            item = next(iter(alternatives(kind.get("items", {}), components)))
            yield [OF_TYPE.get(item.get("type", "string"), "x")] * (kind["maxItems"] + 1)


def cases() -> Iterator[Any]:
    for path, (spec, base) in ENDPOINTS.items():
        properties, components = schema_of(spec)
        for field, schema in properties.items():
            for value in wrong_values(schema, components):
                if json.dumps({field: value}) in TAKEN_ALL_THE_SAME:
                    continue
                yield path, base, field, value


def fields() -> Iterator[Any]:
    for path, (spec, base) in ENDPOINTS.items():
        for field in spec.names:
            yield path, base, field


def refused() -> Iterator[Any]:
    for path, (spec, base) in ENDPOINTS.items():
        for field, rule in spec.refused.items():
            yield path, base, field, rule.neutral


def assert_refused(response: httpx.Response, field: str, status: int = 400) -> None:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert field in error["message"]
    assert error["param"].startswith(field)
    assert isinstance(error["code"], str)
    assert error["type"] == "invalid_request_error"


def assert_still_serving(client: httpx.Client) -> None:
    assert client.post("/generate", json=ENDPOINTS["/generate"][1]).status_code == 200


def test_wrong_value_is_refused_naming_the_field(client: httpx.Client) -> None:
    for path, base, field, value in list(cases()):
        assert_refused(client.post(path, json={**base, field: value}), field)


def test_null_is_the_same_as_absent(client: httpx.Client) -> None:
    for path, base, field in list(fields()):
        if field in base and field not in ("max_tokens", "sampling_params"):
            response = client.post(path, json={**base, field: None})
            assert_refused(response, field)
            continue
        assert client.post(path, json={**base, field: None}).status_code == 200


def test_unsupported_field_is_refused_unless_it_asks_for_nothing(client: httpx.Client) -> None:
    for path, base, field, neutral in list(refused()):
        response = client.post(path, json={**base, field: {"asks": "for something"}})
        assert_refused(response, field)
        assert response.json()["error"]["code"] == "unsupported_parameter"
        for value in neutral:
            assert client.post(path, json={**base, field: value}).status_code == 200


def test_default_values_are_the_same_as_absent(client: httpx.Client) -> None:
    for path in ENDPOINTS:
        spec, base = ENDPOINTS[path]
        defaults = {f.name: f.default for f in msgspec.structs.fields(spec.model) if f.default is not msgspec.NODEFAULT}
        assert client.post(path, json={**defaults, **base}).status_code == 200


def test_unknown_field_is_refused_with_a_suggestion(client: httpx.Client) -> None:
    for path in ENDPOINTS:
        spec, base = ENDPOINTS[path]
        known = spec.names[0]
        response = client.post(path, json={**base, known + "x": 1})
        assert_refused(response, known + "x")
        assert response.json()["error"]["code"] == "unknown_parameter"
        assert known in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"{'text': 1}",
        b'{"text": "Hi",}',
        b'{"text": "Hi"} x',
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": "\xff\xfe"}',
        b'{"\xff": 1}',
        b'{"text": "\\ud800"}',
        b'{"text": "a\x01b"}',
        b"\xff\xfe{\x00}\x00",
        b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"sampling_params": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b', "text": "Hi"}',
        b'{"input_ids": [' + b"9" * 5_000 + b"]}",
        b'{"input_ids": [1,' + b"1," * 40_000 + b"]}",
        b'{"input_ids": [1,,' + b"1," * 40_000 + b"1]}",
        b'{"text": "' + b"a" * 70_000,
        b"{" + b" " * 70_000 + b"}x",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_what_is_not_a_json_object_is_refused(client: httpx.Client, body: bytes) -> None:
    for path in ENDPOINTS:
        response = client.post(path, content=body, headers={"content-type": "application/json"})
        assert response.status_code == 400, (path, response.text)
        assert response.json()["error"]["message"]
    assert_still_serving(client)


def test_token_ids_out_of_range_are_refused(client: httpx.Client) -> None:
    for wrong in [-1, VOCAB, 2**31, 2**40, "x", 1.5, True, [1], None]:

        def refused(path: str, field: str, **body: Any) -> None:
            response = client.post(path, json={**ENDPOINTS[path][1], **body})
            assert response.status_code == 400, response.text
            assert field in response.json()["error"]["message"]

        def native(field: str, **body: Any) -> None:
            response = client.post("/generate", json=body)
            assert response.status_code == 400, response.text
            assert field in response.json()["error"]["message"]

        native("input_ids", input_ids=[1, wrong])
        native("input_ids", input_ids=[[1], [2, wrong]])
        if wrong is not None:
            native("token_ids_logprob", text="Hi", return_logprob=True, token_ids_logprob=[1, wrong])
            native("stop_token_ids", text="Hi", sampling_params={"stop_token_ids": [1, wrong]})
            native("logit_bias", text="Hi", sampling_params={"logit_bias": {json.dumps(wrong): 1.0}})
            for path in ("/v1/completions", "/v1/chat/completions"):
                refused(path, "stop_token_ids", stop_token_ids=[1, wrong])
                refused(path, "logit_bias", logit_bias={json.dumps(wrong): 1.0})
        refused("/v1/completions", "prompt", prompt=[1, wrong])
        refused("/v1/chat/completions", "input_ids", input_ids=[1, wrong])


def test_sampling_parameter_of_wrong_type_is_refused(client: httpx.Client) -> None:
    for name in [field.name for field in msgspec.structs.fields(SamplingParams)]:
        field = f"sampling_params.{name}"
        for value in ({"a": {}}, [[[]]], "x" * 2000, HUGE, -HUGE):
            if name == "max_new_tokens" and value == HUGE:
                continue  # as much as fits, however much that is
            if (name in ("json_schema", "structural_tag") and isinstance(value, dict)) or (
                name in ("regex", "ebnf") and isinstance(value, str)
            ):
                continue  # of the right type; whether it is a grammar is for the scheduler to say
            response = client.post("/generate", json={"text": "Hi", "sampling_params": {name: value}})
            assert_refused(response, field)
        assert client.post("/generate", json={"text": "Hi", "sampling_params": {name: None}}).status_code == 200


def test_bad_sampling_parameters_are_refused(client: httpx.Client) -> None:
    cases = [
        ({"regex": "a+", "ebnf": "root ::= []"}, "ebnf"),
        ({"json_schema": "{"}, "json_schema"),
        ({"json_schema": "[]"}, "json_schema"),
        ({"structural_tag": "true"}, "structural_tag"),
        ({"choice": ["a", "a"]}, "choice"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["x"] * 33}, "stop"),
        ({"stop_regex": "("}, "stop_regex"),
        ({"stop_regex": "a*"}, "stop_regex"),
        ({"stop_regex": "(?=look)ahead"}, "stop_regex"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"top_p": -0.1}, "top_p"),
        ({"temperature": -1}, "temperature"),
        ({"min_new_tokens": 9, "max_new_tokens": 8}, "min_new_tokens"),
        ({"logit_bias": {"3": 101}}, "logit_bias"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
    ]
    for params, field in cases:
        assert_refused(
            client.post("/generate", json={"text": "Hi", "sampling_params": params}), f"sampling_params.{field}"
        )


PADDED_STREAM = {"stream": True, "stream_options": {"include_obfuscation": True}}


def test_bad_combinations_are_refused(client: httpx.Client) -> None:
    cases = [
        ("/v1/completions", {"stop_regex": "("}, "stop_regex"),
        ("/v1/completions", {"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
        ("/v1/completions", {"top_k": -2}, "top_k"),
        ("/v1/completions", {"allowed_token_ids": []}, "allowed_token_ids"),
        ("/v1/completions", {"prompt": []}, "prompt"),
        ("/v1/completions", {"prompt": ""}, "prompt"),
        ("/v1/completions", {"prompt": [[]]}, "prompt"),
        ("/v1/completions", {"prompt": ["a", [1]]}, "prompt"),
        ("/v1/completions", {"prompt": ["x"] * 1025, "n": 2}, "prompt"),
        ("/v1/chat/completions", {"messages": []}, "messages"),
        ("/v1/chat/completions", {"messages": [{"content": "Hi"}]}, "messages[0].role"),
        ("/v1/chat/completions", {"messages": [{"role": "alien", "content": "Hi"}]}, "messages[0].role"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ("/v1/completions", PADDED_STREAM, "stream_options.include_obfuscation"),
        ("/v1/chat/completions", PADDED_STREAM, "stream_options.include_obfuscation"),
        ("/v1/chat/completions", {"logit_bias": {"3": 1, "5": 101}}, "logit_bias.5"),
        ("/v1/chat/completions", {"logit_bias": {"3": 1, "a": 1}}, "logit_bias.a"),
        ("/v1/completions", {"prompt": [""]}, "prompt[0]"),
        ("/v1/completions", {"prompt": [[VOCAB]]}, "prompt[0]"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0]",
        ),
        ("/v1/chat/completions", {"top_logprobs": 2}, "top_logprobs"),
        ("/v1/chat/completions", {"max_completion_tokens": 7}, "max_tokens"),
        ("/v1/chat/completions", {"chat_template_kwargs": {"chat_template": "x"}}, "chat_template_kwargs"),
        (
            "/v1/chat/completions",
            {"continue_final_message": True, "messages": [{"role": "assistant"}]},
            "continue_final_mes",
        ),
        ("/generate", {"text": None, "input_ids": []}, "input_ids"),
        ("/generate", {"text": None, "input_ids": [[1], []]}, "input_ids[1]"),
        ("/generate", {"text": ""}, "text"),
        ("/generate", {"text": []}, "text"),
        ("/generate", {"text": ["a"], "rid": ["x", "y"]}, "rid"),
        ("/generate", {"text": ["a", "b"], "rid": ["x", "x"]}, "rid"),
        ("/generate", {"text": ["a", "b"], "return_logprob": [True]}, "return_logprob"),
        ("/generate", {"return_logprob": True, "logprob_start_len": 2}, "logprob_start_len"),
        ("/generate", {"text": ["a", "b"], "sampling_params": [{"n": 1}, {"n": 2}]}, "sampling_params.n"),
        ("/generate", {"text": ["a"] * 2049}, "text"),
        ("/generate", {"top_logprobs_num": 2}, "top_logprobs_num"),
        ("/generate", {"logprob_start_len": 0}, "logprob_start_len"),
        ("/generate", {"token_ids_logprob": [1]}, "token_ids_logprob"),
        (
            "/generate",
            {"text": ["a", "b"], "return_logprob": [True, False], "top_logprobs_num": [0, 1]},
            "top_logprobs_num",
        ),
        ("/generate", {"top_logprobs": 2, "top_logprobs_num": 3}, "top_logprobs"),
        ("/generate", {"sampling_params": {"beam_width": 2}}, "sampling_params.beam_width"),
        ("/generate", {"sampling_params": {"beam_width": 0}}, "sampling_params.beam_width"),
    ]
    for path, fields, named in cases:
        response = client.post(path, json={**ENDPOINTS[path][1], **fields})
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"].startswith(named)
        assert_still_serving(client)


def test_no_prompt_and_two_prompts_are_told_apart(client: httpx.Client) -> None:
    for path in ["/generate", "/encode"]:
        neither = client.post(path, json={}).json()["error"]
        assert (neither["param"], neither["code"]) == ("text", "missing_required_parameter")
        assert "not both" not in neither["message"]
        both = client.post(path, json={"text": "a", "input_ids": [1]}).json()["error"]
        assert both["param"] == "text"
        assert "not both" in both["message"]
        assert both["code"] != "missing_required_parameter"


def ineffective() -> Iterator[Any]:
    for info in ROUTES:
        for name in info.body.no_effect if info.body is not None else ():
            yield info.body, name


def test_what_changes_nothing_has_a_type_all_the_same() -> None:
    for spec, name in list(ineffective()):
        with pytest.raises(BadRequest, match=name) as caught:
            asyncio.run(spec.parse(json.dumps({name: [[None]]}).encode(), unknown=None, max_tokens=1))
        assert str(caught.value.param).startswith(name)


def test_a_body_that_is_compressed_is_refused_by_its_header(client: httpx.Client) -> None:
    for path, (_, base) in ENDPOINTS.items():
        body, kind = json.dumps(base).encode(), {"content-type": "application/json"}
        refused = client.post(path, content=gzip.compress(body), headers={**kind, "content-encoding": "gzip"})
        assert refused.status_code == 415
        assert "Content-Encoding" in refused.json()["error"]["message"]
        assert client.post(path, content=body, headers={**kind, "content-encoding": "identity"}).status_code == 200


def test_unknown_query_parameters_are_refused_by_control_routes_and_logged_by_others(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    refused = client.post("/flush_cache?timeout=0&foo=1")
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "foo"
    assert client.post("/flush_cache?timeout=0").status_code == 200
    path, (_, base) = "/generate", ENDPOINTS["/generate"]
    assert client.post(f"{path}?brand_new=1", json=base).status_code == 200
    assert "query parameters of /generate: 'brand_new'" in caplog.text
    assert client.get("/health?foo=1").status_code == 200
    caplog.clear()
    message = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
    assert client.post("/v1/messages?beta=true", json=message).status_code == 200
    assert "beta" not in caplog.text


def test_a_query_parameter_is_said_once(client: httpx.Client) -> None:
    for path in ["/flush_cache?timeout=0&timeout=1", "/v1/messages?beta=true&beta=true"]:
        message = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
        refused = client.post(path, json=message)
        assert refused.status_code == 400
        assert "more than once" in refused.json()["error"]["message"]


def questions(count: int) -> list[dict[str, Any]]:
    return [{"id": str(index), "type": "yes_no", "question": "Is it?"} for index in range(count)]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/decisions", {"input": "a" * 1000, "questions": questions(9)}, "questions"),
        ("/v1/rerank", {"query": "a" * 1000, "documents": ["b"] * 9}, "documents"),
        ("/v1/score", {"query": "a" * 1000, "items": ["b"] * 9, "label_token_ids": [1]}, "items"),
        ("/v1/score", {"query": [1] * 1000, "items": [[2]] * 9, "label_token_ids": [1]}, "items"),
        ("/v1/score", {"text_1": "a" * 1000, "text_2": ["b"] * 9}, "text_2"),
    ],
)
def test_a_body_cannot_ask_for_more_prompts_than_it_could_hold(
    tmp_path: Path, path: str, body: dict[str, Any], param: str
) -> None:
    with running_server(tmp_path, max_body_size=8192) as server:
        response = httpx.post(f"{server.url}{path}", json=body)
        assert response.status_code == 413, response.text
        error = response.json()["error"]
        assert error["param"] == param
        assert "--max-body-size" in error["message"]
        assert not server.engine.received


def test_items_to_be_scored_may_have_as_many_tokens_as_there_is_room_for(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=20) as http:
        body = {"query": [1, 2], "items": [[100] * 300] * 230, "label_token_ids": [1]}
        assert http.post("/v1/score", json=body).status_code == 200
        assert len(server.engine.received) == 230
        assert array("i", server.engine.received[-1].input_ids).tolist() == [1, 2, *[100] * 300]
        for items in ([100] * 40_000, [100]):
            refused = http.post("/v1/score", json={**body, "items": items})
            assert refused.status_code == 400, refused.text
            assert refused.json()["error"]["param"].startswith("items")


def test_decisions_need_a_model_whose_answer_comes_first(tmp_path: Path) -> None:
    with running_server(tmp_path, reasoning_parser="gpt-oss") as server:
        response = httpx.post(f"{server.url}/v1/decisions", json={"input": "a", "questions": questions(1)})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "unsupported_by_model"
    assert "channel" in response.json()["error"]["message"]


def test_bounds_that_options_lower_name_their_flag(tmp_path: Path) -> None:
    bounds = {"max_outputs_per_request": 3, "max_parallel_samples": 2, "max_logprobs": 1, "max_stop_strings": 1}
    chat = ENDPOINTS["/v1/chat/completions"][1]
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("/generate", {"text": ["a"] * 4}, "outputs"),
        ("/v1/completions", {"prompt": ["a"] * 4}, "choices"),
        ("/generate", {"text": "a", "sampling_params": {"n": 3}}, "--max-parallel-samples"),
        ("/v1/completions", {"prompt": "a", "n": 3}, "--max-parallel-samples"),
        ("/v1/chat/completions", {**chat, "n": 3}, "--max-parallel-samples"),
        ("/generate", {"text": "a", "return_logprob": True, "top_logprobs_num": 2}, "--max-logprobs"),
        ("/v1/completions", {"prompt": "a", "logprobs": 2}, "--max-logprobs"),
        ("/v1/chat/completions", {**chat, "logprobs": True, "top_logprobs": 2}, "--max-logprobs"),
        ("/generate", {"text": "a", "sampling_params": {"stop": ["x", "y"]}}, "--max-stop-strings"),
        ("/v1/chat/completions", {**chat, "stop_regex": ["x", "y"]}, "--max-stop-strings"),
        ("/v1/decisions", {"input": "a", "questions": questions(4)}, "--max-outputs-per-request"),
        ("/v1/rerank", {"query": "a", "documents": ["b"] * 4}, "--max-outputs-per-request"),
        ("/rerank", {"query": "a", "documents": ["b"] * 4}, "--max-outputs-per-request"),
        ("/v1/score", {"query": "a", "items": ["b"] * 4, "label_token_ids": [1]}, "--max-outputs-per-request"),
        ("/v1/score", {"text_1": "a", "text_2": ["b"] * 4}, "--max-outputs-per-request"),
    ]
    with running_server(tmp_path, **bounds) as server:
        for path, body, named in cases:
            response = httpx.post(f"{server.url}{path}", json=body)
            assert response.status_code == 400, (path, body)
            assert named in response.json()["error"]["message"]


def test_bounds_that_options_lower_name_the_field_as_the_client_called_it(tmp_path: Path) -> None:
    chat = ENDPOINTS["/v1/chat/completions"][1]
    messages = {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "a"}]}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("/generate", {"text": "a", "sampling_params": {"n": 3}}, "sampling_params.n"),
        ("/generate", {"text": "a", "sampling_params": {"stop": ["x", "y"]}}, "sampling_params.stop"),
        ("/v1/completions", {"prompt": "a", "n": 3}, "n"),
        ("/v1/completions", {"prompt": "a", "n": 1, "best_of": 3}, "best_of"),
        ("/v1/chat/completions", {**chat, "stop": ["x", "y"]}, "stop"),
        ("/v1/chat/completions", {**chat, "stop_regex": ["x", "y"]}, "stop_regex"),
        ("/v1/messages", {**messages, "stop_sequences": ["x", "y"]}, "stop_sequences"),
        ("/api/generate", {"model": "m", "prompt": "a", "options": {"stop": ["x", "y"]}}, "options.stop"),
    ]
    with running_server(tmp_path, max_parallel_samples=2, max_stop_strings=1) as server:
        for path, body, param in cases:
            response = httpx.post(f"{server.url}{path}", json=body)
            assert response.status_code == 400, (path, body)
            error = response.json()["error"]
            message = error if isinstance(error, str) else error["message"]
            assert message.removeprefix("the number of entries of ").startswith(f"{param} must be at most"), path
            assert isinstance(error, str) or error.get("param", param) == param


def test_what_cannot_be_decoded_is_named(client: httpx.Client) -> None:
    cases = [
        (b'{"text": "a", "sampling_params": {"temperature": 1e999}}', "sampling_params.temperature"),
        (b'{"text": "a", "sampling_params": [{}, {"stop": ["a", 1e999]}]}', "sampling_params[1].stop[1]"),
        (b'{"text": "a", "rid": "\\ud800"}', "rid"),
        (b'{"text": "\\ud800"}', "text"),
    ]
    for body, param in cases:
        for padding in [0, 70_000]:
            headers = {"content-type": "application/json"}
            response = client.post(
                "/generate", content=b'{"session_id": "%b", %b' % (b"a" * padding, body[1:]), headers=headers
            )
            assert response.status_code == 400
            assert response.json()["error"]["param"] == param


class TestContextLength:
    def test_too_long_prompt_is_refused_with_both_numbers(self, client: httpx.Client) -> None:
        for path, body in {
            "/generate": {"input_ids": [1] * 600},
            "/v1/completions": {"prompt": [1] * 600},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "a" * 600}]},
        }.items():
            error = client.post(path, json=body).json()["error"]
            assert error["code"] == "context_length_exceeded"
            assert str(CONTEXT_LEN) in error["message"]
            assert re.search(r"\b6\d\d\b", error["message"])

    def test_hopelessly_long_text_is_refused_unread(self, client: httpx.Client) -> None:
        response = client.post("/generate", json={"text": "word " * 400_000})
        assert response.json()["error"]["code"] == "context_length_exceeded"
        assert "2000000 characters" in response.json()["error"]["message"]

    @pytest.mark.parametrize(("count", "said"), [(100_000, "has 100000"), (1_000_000, r"has at least [12]\d{5}")])
    def test_far_too_many_ids_are_refused_with_their_number(self, client: httpx.Client, count: int, said: str) -> None:
        for path, field in (("/generate", "input_ids"), ("/v1/completions", "prompt")):
            error = client.post(path, json={field: [7] * count}).json()["error"]
            assert error["code"] == "context_length_exceeded"
            assert re.search(f"{said} tokens", error["message"])
            assert error["param"] == field

    def test_an_answer_that_does_not_fit_ends_with_the_context(self, client: httpx.Client) -> None:
        for wanted in (12, 13, 2**31 - 1):
            body = {"prompt": [1] * 500, "max_tokens": wanted, "min_tokens": wanted, "ignore_eos": True}
            answer = client.post("/v1/completions", json=body).json()
            assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (12, "length")
            cut = {**body, "prompt": [1] * 900, "truncate_prompt_tokens": -1}
            kept = client.post("/v1/completions", json=cut).json()["usage"]["prompt_tokens"]
            assert kept == CONTEXT_LEN - (wanted if wanted < CONTEXT_LEN else 1)
        messages = [{"role": "user", "content": "Hi"}]
        for path, asked in {
            "/v1/chat/completions": {"messages": messages, "max_tokens": 9000},
            "/v1/messages": {"model": "m", "messages": messages, "max_tokens": 9000},
            "/v1/responses": {"input": "Hi", "max_output_tokens": 9000},
            "/api/chat": {"model": "m", "messages": messages, "stream": False, "options": {"num_predict": 9000}},
            "/generate": {"text": "Hi", "sampling_params": {"max_new_tokens": 9000}},
        }.items():
            assert client.post(path, json=asked).status_code == 200

    def test_native_requests_are_cut_to_what_fits(self, client: httpx.Client, server: RunningServer) -> None:
        params = {"max_new_tokens": 9999, "ignore_eos": True}
        answer = client.post("/generate", json={"input_ids": [1] * 500, "sampling_params": params}).json()
        assert answer["meta_info"]["completion_tokens"] == CONTEXT_LEN - 500
        assert server.engine.received[-1].sampling_params.max_new_tokens == CONTEXT_LEN - 500

    def test_the_window_is_usable_to_the_last_token(self, client: httpx.Client) -> None:
        body = {"messages": [{"role": "user", "content": "Hi"}], "ignore_eos": True}
        usage = client.post("/v1/chat/completions", json=body).json()["usage"]
        assert usage["total_tokens"] == CONTEXT_LEN


def test_content_type_must_be_json_on_openai_routes(client: httpx.Client) -> None:
    body = json.dumps(ENDPOINTS["/v1/completions"][1])
    for wrong in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert client.post("/v1/completions", content=body, headers={"content-type": wrong}).status_code == 415
    for right in ({}, {"content-type": ""}, {"content-type": "application/vnd.api+json; charset=utf-8"}):
        assert client.post("/v1/completions", content=body, headers=right).status_code == 200
    native = json.dumps(ENDPOINTS["/generate"][1])
    assert client.post("/generate", content=native, headers={"content-type": "text/plain"}).status_code == 200


@pytest.mark.parametrize("info", [info for info in ROUTES if info.bodies], ids=lambda info: info.path)
def test_content_type_is_asked_for_where_it_is_documented(client: httpx.Client, info: Route) -> None:
    answer = client.post(info.path, content=b'{"nonsense": 1, ', headers={"content-type": "text/plain"})
    documented = openapi_schema()["paths"][info.path]["post"]["responses"]
    assert answer.status_code == (415 if "415" in documented else 400), answer.text


def test_whole_numbers_may_be_written_as_floats(client: httpx.Client) -> None:
    body = {"prompt": "Hi", "max_tokens": 2.0, "n": 1.0, "top_k": 1e2, "stop_token_ids": [7.0]}
    assert client.post("/v1/completions", json=body).json()["usage"]["completion_tokens"] == 2
    native = {"text": "Hi", "sampling_params": {"max_new_tokens": 2.0}}
    assert client.post("/generate", json=native).json()["meta_info"]["completion_tokens"] == 2
    assert_refused(client.post("/v1/completions", json={**body, "max_tokens": 2.5}), "max_tokens")
    streamed = client.post("/v1/completions", json={**body, "stream": 1.0})
    assert streamed.json()["error"]["message"] == "stream must be true or false, got 1.0"
    for size in (3, 20_000):
        assert_refused(client.post("/v1/completions", json={"prompt": [7.0] * size}), "prompt")


class Item(msgspec.Struct):
    count: int | None = None
    lists: list[str | list[int]] = []
    named: dict[str, int] = {}
    anything: Any = None


class Items(msgspec.Struct):
    items: list[Item]


def test_only_declared_integers_are_made_of_floats() -> None:
    anything = {"count": 2.0, "lists": [1.0]}
    item = {"count": 2.0, "lists": ["a", [1.0, 2], [3.0]], "named": {"x": 4.0}, "anything": anything}
    body = json.dumps({"items": [{"anything": 5.0}, item]}).encode()
    first, second = asyncio.run(BodySpec(Items).parse(body, unknown=None, max_tokens=1))[0].items
    assert (second.count, second.lists, second.named) == (2, ["a", [1, 2], [3]], {"x": 4})
    assert json.dumps([first.anything, second.anything]) == json.dumps([5.0, anything])


def test_wrong_choices_are_told_the_right_ones(client: httpx.Client) -> None:
    cases = [
        ("/v1/responses", {"input": "Hi", "reasoning": {"effort": "x"}}, "reasoning.effort", "low, medium, high"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "Hi"}, {"role": "x" * 10_000, "content": "Hi"}]},
            "messages[1].role",
            "system, developer",
        ),
        ("/v1/responses", {"input": "Hi", "include": ["x"]}, "include[0]", "reasoning.encrypted_content"),
        ("/v1/embeddings", {"input": "Hi", "encoding_format": "x"}, "encoding_format", "float, base64"),
    ]
    for path, body, param, choices in cases:
        error = client.post(path, json=body).json()["error"]
        assert error["param"] == param
        assert choices in error["message"].partition(" must be one of ")[2]
        assert len(error["message"]) < 400


def test_what_is_no_route_is_refused_in_the_words_of_its_dialect(client: httpx.Client) -> None:
    for method in ["GET", "POST"]:
        wrong = {"GET": 405, "POST": 404}[method]
        ollama = client.request(method, "/api/chat" if wrong == 405 else "/api/nothing")
        assert ollama.status_code == wrong
        assert isinstance(ollama.json()["error"], str)
        anthropic = client.request(method, "/v1/messages" if wrong == 405 else "/v1/messages/nothing")
        assert anthropic.status_code == wrong
        kind = {404: "not_found_error", 405: "invalid_request_error"}[wrong]
        assert anthropic.json()["type"] == "error"
        assert anthropic.json()["error"]["type"] == kind


def test_models_of_other_servers_are_refused_in_the_words_of_who_asks(client: httpx.Client) -> None:
    assert client.get("/v1/models/x").json()["error"]["code"] == "model_not_found"
    anthropic = client.get("/v1/models/x", headers={"anthropic-version": "2023-06-01"})
    assert anthropic.status_code == 404
    assert anthropic.json()["error"]["type"] == "not_found_error"
    pull = client.post("/api/pull", json={"model": "x"})
    assert pull.status_code == 404
    assert "not supported" in pull.json()["error"]


def test_wrong_paths_and_methods(client: httpx.Client) -> None:
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/generate").status_code == 405
    assert client.get("/v1/nothing").json()["error"]["code"] == "not_found"
    assert client.get("/generate").json()["error"]["code"] == "method_not_allowed"


def test_every_dialect_takes_the_name_of_a_replica(server: RunningServer, client: httpx.Client) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    bodies = {
        "/generate": {"text": "Hi", "sampling_params": {"max_new_tokens": 1}},
        "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
        "/v1/chat/completions": {"messages": messages, "max_tokens": 1},
        "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
        "/v1/messages": {"model": "m", "messages": messages, "max_tokens": 1},
        "/api/chat": {"model": "m", "messages": messages, "stream": False, "options": {"num_predict": 1}},
        "/api/generate": {"model": "m", "prompt": "Hi", "stream": False, "options": {"num_predict": 1}},
    }
    for path, body in bodies.items():
        for fields, headers in (({"data_parallel_rank": 0}, {}), ({}, {"X-Data-Parallel-Rank": "0"})):
            assert client.post(path, json={**body, **fields}, headers=headers).status_code == 200, path
            assert server.engine.received[-1].extras.routed_dp_rank == 0, path
        for fields, headers in (({"routed_dp_rank": 1}, {}), ({}, {"X-Data-Parallel-Rank": "1"})):
            assert client.post(path, json={**body, **fields}, headers=headers).status_code == 400, path


def test_headers_that_ask_for_what_is_not_done_are_refused(client: httpx.Client) -> None:
    cases = [
        ("X-Data-Parallel-Rank", "one", "invalid_value"),
        ("X-Data-Parallel-Rank", "-1", "invalid_value"),
        ("X-Data-Parallel-Rank", "9" * 5000, "invalid_value"),
        ("X-Data-Parallel-Rank", "0", None),
        ("x-sglext-return-input-ids", "1", "unsupported_parameter"),
        ("x-sglext-return-output-ids", "1", "unsupported_parameter"),
        ("x-sglext-ids-framed", "1", "unsupported_parameter"),
        ("x-sglext-ids-framed", "0", None),
    ]
    for path in ["/v1/chat/completions", "/v1/completions"]:
        for name, value, code in cases:
            body = {"max_tokens": 1, "prompt": "Hi"}
            if path.endswith("chat/completions"):
                body = {"max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
            response = client.post(path, json=body, headers={name: value})
            if code is None:
                assert response.status_code == 200
                continue
            error = response.json()["error"]
            assert (response.status_code, error["param"].lower()) == (400, name.lower())
            assert error.get("code") == code or code == "invalid_value"


def test_a_name_of_a_session_is_not_given_with_its_parameters(client: httpx.Client) -> None:
    cases = [
        ("/generate", {"text": "Hi"}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ]
    for path, body in cases:
        for fields in (
            {"session_id": "a", "session_params": {"id": "s"}},
            {"session_params": {"id": "s"}, "session_id": "a"},
        ):
            response = client.post(path, json={**body, **fields})
            assert (response.status_code, response.json()["error"]["param"]) == (400, "session_id")
        assert client.post(path, json={**body, "session_id": "a", "session_params": None}).status_code == 200


def test_responses_refuse_what_other_routes_refuse(client: httpx.Client) -> None:
    for field in ["lora_path", "bootstrap_host"]:
        error = client.post("/v1/responses", json={"input": "Hi", field: 1}).json()["error"]
        assert (error["param"], error["code"]) == (field, "unsupported_parameter")
