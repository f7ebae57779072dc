from __future__ import annotations

from array import array
from typing import Any

import pytest

from bough import ceilings
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, PayloadTooLarge
from bough.managers.io_struct import GenerateRequest
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import SamplingParams


def limits(*, has_tokenizer: bool = True, marks_thoughts: bool = False) -> RequestLimits:
    return RequestLimits(
        ServerArgs(max_parallel_samples=2, max_stop_strings=1),
        vocab_size=100,
        context_len=64,
        max_prompt_tokens=63,
        has_tokenizer=has_tokenizer,
        marks_thoughts=marks_thoughts,
    )


def test_a_parameter_out_of_bounds_is_named_as_the_client_called_it() -> None:
    for given in [{"n": 3}, {"stop": ("a", "b")}, {"stop_regex": ("a", "b")}, {"top_p": 2.0}]:
        (field,) = given
        params = SamplingParams(**given)
        with pytest.raises(BadRequest) as caught:
            limits().check_params(params)
        assert caught.value.param == f"sampling_params.{field}"
        assert f"sampling_params.{field} must be" in caught.value.message
        with pytest.raises(BadRequest) as caught:
            limits().check_params(params, named=lambda name: f"options.{name}")
        assert caught.value.param == f"options.{field}"


def test_thoughts_are_bounded_where_it_is_known_how_they_are_marked() -> None:
    params = SamplingParams(thinking_token_budget=0)
    limits(marks_thoughts=True).check_params(params)
    with pytest.raises(BadRequest, match="not known how this model marks its thoughts") as caught:
        limits().check_params(params, named=lambda field: f"options.{field}")
    assert caught.value.param == "options.thinking_token_budget"


def test_what_needs_a_tokenizer_is_named_where_there_is_none() -> None:
    for given in [{"stop": ("a",)}, {"stop_regex": ("a",)}, {"bad_words": ("a",)}, {"regex": "a"}, {"choice": ("a",)}]:
        (field,) = given
        limits().check_params(SamplingParams(**given))
        with pytest.raises(BadRequest, match="needs a tokenizer") as caught:
            limits(has_tokenizer=False).check_params(SamplingParams(**given))
        assert caught.value.param == f"sampling_params.{field}"


class TestLogprobs:
    @staticmethod
    def fitted(count: int = 1, *, length: int = 100, max_new_tokens: int | None = 10, n: int = 1, **fields: Any) -> Any:
        limits = RequestLimits(
            ServerArgs(), vocab_size=300, context_len=131_072, max_prompt_tokens=131_071, has_tokenizer=True
        )
        params = SamplingParams(n=n, max_new_tokens=max_new_tokens, min_new_tokens=3)
        requests = [
            GenerateRequest(
                rids=[f"{number}_{sample}" for sample in range(n)],
                input_ids=array("i", [5] * length),
                sampling_params=params,
                return_logprob=True,
                **fields,
            )
            for number in range(count)
        ]
        return limits.fit_logprobs(requests, [limits.fit_into_context(request) for request in requests])

    def test_the_product_of_outputs_positions_and_alternatives_is_bounded(self) -> None:
        ids = list(range(255))
        assert self.fitted(n=16, length=1014, logprob_start_len=0, token_ids_logprob=ids)[0].max_new_tokens == 10
        with pytest.raises(PayloadTooLarge, match="4198400 logprobs") as raised:
            self.fitted(n=16, length=1015, logprob_start_len=0, token_ids_logprob=ids)
        assert raised.value.param == "token_ids_logprob"

    def test_all_prompts_of_a_call_count_together(self) -> None:
        fields: dict[str, Any] = {"length": 8000, "logprob_start_len": 0, "top_logprobs_num": 20}
        self.fitted(24, **fields)
        with pytest.raises(PayloadTooLarge) as raised:
            self.fitted(25, **fields)
        assert raised.value.param == "top_logprobs_num"

    def test_a_whole_context_with_the_most_alternatives_of_openai_is_no_matter(self) -> None:
        (params,) = self.fitted(length=131_000, logprob_start_len=0, top_logprobs_num=20, max_new_tokens=None)
        assert params.max_new_tokens == 72

    def test_outputs_without_a_bound_share_what_is_left(self) -> None:
        (params,) = self.fitted(n=128, max_new_tokens=None, top_logprobs_num=20)
        assert params.max_new_tokens == ceilings.LOGPROB_ENTRIES // (128 * 21)
        (params,) = self.fitted(max_new_tokens=None, top_logprobs_num=20)
        assert params.max_new_tokens == 131_072 - 100
        with pytest.raises(PayloadTooLarge):
            self.fitted(128, n=128, max_new_tokens=None, token_ids_logprob=list(range(1024)))
