from __future__ import annotations

from array import array
from typing import Any

import msgspec
import pytest

from bough.entrypoints.http.openai.protocol import ChatCompletionRequest
from bough.errors import BadRequest
from bough.ipc.messages import RequestExtras
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import GenerateReqInput, cache_namespace, pack_token_ids


def expand(**fields: Any):
    return GenerateReqInput(**fields).expand()


def test_scalar_makes_one_request() -> None:
    (request,) = expand(text="Hi", sampling_params={"max_new_tokens": 5}, rid="r", stream=True)
    assert request.rids == ["r"]
    assert request.text == "Hi"
    assert request.sampling_params.max_new_tokens == 5
    assert request.stream


def test_errors_call_the_prompt_what_the_caller_calls_it() -> None:
    for fields in ({"text": 5}, {"text": []}, {}, {"text": "a", "input_ids": [1]}, {"text": ["a"] * 3}):
        with pytest.raises(BadRequest) as caught:
            GenerateReqInput(**fields).expand(text_name="prompt", max_outputs=2)
        assert caught.value.param == "prompt"
        assert "prompt" in caught.value.message
        assert "text" not in caught.value.message
    (request,) = GenerateReqInput(text="").expand(text_name="prompt")
    assert request.prompt_param == "prompt"


def test_batch_of_prompts_shares_what_is_given_once() -> None:
    requests = expand(
        text=["a", "b"], sampling_params={"temperature": 0.5}, return_logprob=True, top_logprobs_num=2, extra_key="k"
    )
    assert [request.text for request in requests] == ["a", "b"]
    assert {request.sampling_params.temperature for request in requests} == {0.5}
    assert {request.top_logprobs_num for request in requests} == {2}
    assert {request.extras.extra_key for request in requests} == {"0:k"}
    assert [request.prompt_param for request in requests] == ["text[0]", "text[1]"]


def test_lists_are_dealt_out() -> None:
    requests = expand(
        input_ids=[[1], [2, 3]],
        sampling_params=[{"max_new_tokens": 1}, {"max_new_tokens": 2}],
        return_logprob=[True, False],
        logprob_start_len=[0, -1],
        token_ids_logprob=[[5], None],
        rid=["x", "y"],
        cache_salt=["s", ""],
    )
    assert [list(request.input_ids) for request in requests] == [[1], [2, 3]]
    assert [request.sampling_params.max_new_tokens for request in requests] == [1, 2]
    assert [request.return_logprob for request in requests] == [True, False]
    assert [request.token_ids_logprob for request in requests] == [[5], None]
    assert [request.rids for request in requests] == [["x"], ["y"]]
    assert [request.extras.extra_key for request in requests] == ["1:s", None]


def test_what_is_said_of_logprobs_for_all_prompts_needs_one_that_wants_them() -> None:
    requests = expand(text=["a", "b"], return_logprob=[True, False], top_logprobs_num=2, token_ids_logprob=[3])
    assert [request.top_logprobs_num for request in requests] == [2, 2]
    defaults = {"logprob_start_len": [-1, -1], "top_logprobs_num": 0, "token_ids_logprob": []}
    assert len(expand(text=["a", "b"], **defaults)) == 2


def test_ids_of_outputs() -> None:
    cases = [
        ({"text": "a", "rid": "r"}, [["r"]]),
        ({"text": ["a"], "rid": "r"}, [["r_0"]]),
        ({"text": ["a", "b"], "rid": "r"}, [["r_0"], ["r_1"]]),
        ({"text": "a", "rid": "r", "sampling_params": {"n": 2}}, [["r_0", "r_1"]]),
        ({"text": ["a", "b"], "rid": "r", "sampling_params": {"n": 2}}, [["r_0", "r_1"], ["r_2", "r_3"]]),
        ({"text": ["a", "b"], "rid": ["x", "y"], "sampling_params": {"n": 2}}, [["x_0", "x_1"], ["y_0", "y_1"]]),
    ]
    for fields, rids in cases:
        assert [request.rids for request in expand(**fields)] == rids


def test_ids_are_made_up_and_differ() -> None:
    requests = expand(text=["a"] * 50, sampling_params={"n": 2})
    rids = [rid for request in requests for rid in request.rids]
    assert len(set(rids)) == 100


def test_what_cannot_be_is_refused_naming_the_field() -> None:
    cases = [
        ({}, "text"),
        ({"text": "a", "input_ids": [1]}, "text"),
        ({"text": []}, "text"),
        ({"text": 5}, "text"),
        ({"input_ids": "abc"}, "input_ids"),
        ({"input_ids": [1, "x"]}, "input_ids"),
        ({"input_ids": [[1], 2]}, "input_ids[1]"),
        ({"input_ids": [True]}, "input_ids"),
        ({"input_ids": [2**31]}, "input_ids"),
        ({"text": "a", "sampling_params": {"n": "x"}}, "sampling_params.n"),
        ({"text": "a", "sampling_params": {"temperature": float("nan")}}, "sampling_params.temperature"),
        ({"text": "a", "sampling_params": 5}, "sampling_params"),
        ({"text": ["a", "b"], "sampling_params": [{}]}, "sampling_params"),
        ({"text": "a", "sampling_params": {"n": 2}, "return_logprob": [True]}, "return_logprob"),
        ({"text": "a", "return_logprob": 1}, "return_logprob"),
        ({"text": "a", "top_logprobs_num": 1000}, "top_logprobs_num"),
        ({"text": "a", "top_logprobs_num": 2}, "top_logprobs_num"),
        ({"text": "a", "token_ids_logprob": [1.5]}, "token_ids_logprob"),
        ({"text": "a", "token_ids_logprob": list(range(2000))}, "token_ids_logprob"),
        ({"text": "a", "rid": ""}, "rid"),
        ({"text": "a", "stream": "yes"}, "stream"),
    ]
    for fields, param in cases:
        with pytest.raises(BadRequest) as raised:
            expand(**fields)
        assert raised.value.param == param
        assert param.partition("[")[0] in raised.value.message


def test_unsupported_sampling_parameters_are_refused_unless_empty() -> None:
    (request,) = expand(text="a", sampling_params={"watermark": None, "beam_width": 1, "max_new_tokens": 3})
    assert request.sampling_params.max_new_tokens == 3
    with pytest.raises(BadRequest, match="beam_width is not supported"):
        expand(text="a", sampling_params={"beam_width": 2})


def test_preferred_sampling_parameters_fill_gaps() -> None:
    fields = GenerateReqInput(text="a", sampling_params={"top_p": 0.9})
    (request,) = fields.expand(preferred={"top_p": 0.5, "top_k": 7})
    assert (request.sampling_params.top_p, request.sampling_params.top_k) == (0.9, 7)


def test_a_grammar_of_the_request_replaces_the_preferred_one() -> None:
    preferred = {"regex": "a+", "top_k": 7}
    (request,) = GenerateReqInput(text="a", sampling_params={"choice": ["x"]}).expand(preferred=preferred)
    assert (request.sampling_params.regex, request.sampling_params.choice) == (None, ("x",))
    assert request.sampling_params.top_k == 7
    (request,) = GenerateReqInput(text="a").expand(preferred=preferred)
    assert request.sampling_params.regex == "a+"


def test_number_of_outputs_can_be_bounded() -> None:
    fields = GenerateReqInput(text=["a"] * 5, sampling_params={"n": 2})
    assert len(fields.expand(max_outputs=10)) == 5
    with pytest.raises(BadRequest, match="10 outputs"):
        fields.expand(max_outputs=9)


def test_namespaces_of_different_pairs_differ() -> None:
    pairs = [(None, None), ("a", None), (None, "a"), ("a", "a"), ("1:a", None), ("a", "1:"), ("", "aa"), ("aa", "")]
    spaces = [cache_namespace(key, salt) for key, salt in pairs]
    assert spaces[0] is None
    assert len(set(spaces)) == len(pairs)
    assert cache_namespace("", "") is None


def test_packed_ids_are_taken_as_they_are() -> None:
    ids = array("i", [1, 2])
    assert pack_token_ids(ids, "x") is ids
    assert pack_token_ids((3, 4), "x") == array("i", [3, 4])


def test_extras_of_bodies_reach_the_scheduler_whole() -> None:
    given = {"priority": 3, "timeout": 2.0, "extra_key": "k", "routed_dp_rank": 1}
    derived = {"goes_on", "routed_experts_from"}
    assert given.keys() == {*RequestExtras.__struct_fields__} - derived, "a new one is a field of bodies too"
    bodies = [
        msgspec.convert(given | {"text": "x"}, GenerateReqInput),
        msgspec.convert(given | {"text": ["x", "y"], "extra_key": ["k", "k"]}, GenerateReqInput),
        msgspec.convert(given | {"text": ["x", "y"]}, EmbeddingReqInput),
    ]
    for body in bodies:
        for request in body.requests():
            request.input_ids = array("i", [1])
            assert request.to_message(request.sampling_params).extras == RequestExtras(3, 2.0, "0:k", 1)
    chat = {"messages": [{"role": "user", "content": "x"}]}
    assert msgspec.convert(given | chat, ChatCompletionRequest).extras == RequestExtras(3, 2.0, "0:k", 1)
