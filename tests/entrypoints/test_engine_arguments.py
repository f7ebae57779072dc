"""Arguments of the engine's methods: the same for the plain and the asynchronous form, by position and by name."""

from __future__ import annotations

import inspect
from array import array

import pytest

from bough.entrypoints import engine_arguments
from bough.entrypoints.engine import Engine
from bough.errors import BadRequest
from bough.sampling.sampling_params import SamplingParams


def test_both_forms_of_a_method_have_the_parameters_of_its_arguments() -> None:
    for name in ["generate", "encode", "score"]:
        expected = list(inspect.signature(getattr(engine_arguments, name)).parameters.values())
        for method in (getattr(Engine, name), getattr(Engine, f"async_{name}")):
            assert list(inspect.signature(method).parameters.values())[1:] == expected
        assert inspect.iscoroutinefunction(getattr(Engine, f"async_{name}"))


def test_arguments_by_position_become_fields() -> None:
    params = SamplingParams(temperature=0.5)
    request = engine_arguments.generate("Hi", params, None, True, 0, 2, None, True, "r", 3, "key", True)
    assert (request.text, request.rid, request.priority, request.extra_key) == ("Hi", "r", 3, "key")
    assert request.sampling_params == {"temperature": 0.5}
    assert (request.return_logprob, request.logprob_start_len, request.top_logprobs_num) == (True, 0, 2)
    assert request.stream
    assert request.return_text_in_logprobs
    assert engine_arguments.generate(input_ids=((1, 2), [3])).input_ids == [[1, 2], [3]]
    asked = engine_arguments.score([1, 2], [[3], (4,)], apply_softmax=True)
    assert (asked["query"], asked["items"]) == (array("i", [1, 2]), [array("i", [3]), array("i", [4])])


def test_wrong_arguments_are_refused_by_name() -> None:
    for make, param in (
        (lambda: engine_arguments.generate("x", stream="yes"), "stream"),  # type: ignore[arg-type]
        (lambda: engine_arguments.score("x", 5), "items"),  # type: ignore[arg-type]
        (lambda: engine_arguments.pairs_of(["ab"]), "prompt"),
        (lambda: engine_arguments.start_profile(activities=["RPD"]), "activities"),
        (lambda: engine_arguments.start_profile(num_steps=0), "num_steps"),
        (lambda: engine_arguments.start_profile(profile_id="../x"), "profile_id"),
        (lambda: engine_arguments.start_profile(start_step=3), "start_step"),
    ):
        with pytest.raises(BadRequest) as raised:
            make()
        assert raised.value.param == param
    with pytest.raises(TypeError, match=r"encode\(\)"):
        engine_arguments.encode("x", dimension=3)
