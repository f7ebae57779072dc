from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bough.config.pooling import PoolingConfig
from bough.errors import BadRequest
from bough.managers.scoring import class_probabilities, score
from bough.managers.tokenizer_manager import TokenizerManager


def test_scores_of_a_regression_are_what_they_are() -> None:
    for scores in [[2.5], [-3.0, 0.5, 7.0]]:
        labels = tuple(f"LABEL_{index}" for index in range(len(scores)))
        assert class_probabilities(PoolingConfig("cls", False, len(scores), labels, "identity"), scores) == scores


def test_a_temperature_that_divides_nothing_is_refused_before_anything_is_asked() -> None:
    for temperature in [0, 0.0, -1.0, float("nan"), float("inf"), 10**400, "1"]:
        nobody = cast(TokenizerManager, None)
        with pytest.raises(BadRequest, match="temperature must be a finite number above 0") as caught:
            asyncio.run(score(nobody, "a", ["b"], [1], apply_softmax=True, temperature=temperature))
        assert caught.value.param == "temperature"
