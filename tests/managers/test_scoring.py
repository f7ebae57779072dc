from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from bough.errors import BadRequest
from bough.managers.scoring import score
from bough.managers.tokenizer_manager import TokenizerManager


@pytest.mark.parametrize("temperature", [0, 0.0, -1.0, float("nan"), float("inf"), 10**400, "1"])
def test_a_temperature_that_divides_nothing_is_refused_before_anything_is_asked(temperature: Any) -> None:
    nobody = cast(TokenizerManager, None)
    with pytest.raises(BadRequest, match="temperature must be a finite number above 0") as caught:
        asyncio.run(score(nobody, "a", ["b"], [1], apply_softmax=True, temperature=temperature))
    assert caught.value.param == "temperature"
