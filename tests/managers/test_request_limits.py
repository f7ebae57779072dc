from __future__ import annotations

from typing import Any

import pytest

from bough.errors import BadRequest
from bough.managers.request_limits import RequestLimits
from bough.sampling.sampling_params import SamplingParams


def limits(*, has_tokenizer: bool = True) -> RequestLimits:
    return RequestLimits(
        vocab_size=100,
        context_len=64,
        max_prompt_tokens=63,
        has_tokenizer=has_tokenizer,
        max_parallel_samples=2,
        max_stop_strings=1,
    )


@pytest.mark.parametrize("given", [{"n": 3}, {"stop": ("a", "b")}, {"stop_regex": ("a", "b")}, {"top_p": 2.0}])
def test_a_parameter_out_of_bounds_is_named_as_the_client_called_it(given: dict[str, Any]) -> None:
    (field,) = given
    params = SamplingParams(**given)
    with pytest.raises(BadRequest) as caught:
        limits().check_params(params)
    assert caught.value.param == f"sampling_params.{field}"
    assert f"sampling_params.{field} must be" in caught.value.message
    with pytest.raises(BadRequest) as caught:
        limits().check_params(params, named=lambda name: f"options.{name}")
    assert caught.value.param == f"options.{field}"


@pytest.mark.parametrize(
    "given", [{"stop": ("a",)}, {"stop_regex": ("a",)}, {"bad_words": ("a",)}, {"regex": "a"}, {"choice": ("a",)}]
)
def test_what_needs_a_tokenizer_is_named_where_there_is_none(given: dict[str, Any]) -> None:
    (field,) = given
    limits().check_params(SamplingParams(**given))
    with pytest.raises(BadRequest, match="needs a tokenizer") as caught:
        limits(has_tokenizer=False).check_params(SamplingParams(**given))
    assert caught.value.param == f"sampling_params.{field}"
