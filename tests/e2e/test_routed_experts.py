"""Which experts have computed each token, as trainers replay it: in answers, in streams, and with cached prefixes."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bough import Engine
from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest
from tests.models.checkpoints import save_checkpoint

LAYERS, PER_TOKEN = 3, 2
SIZES: dict[str, Any] = {
    "num_experts": 6,
    "num_experts_per_tok": PER_TOKEN,
    "moe_intermediate_size": 40,
    "head_dim": 24,
    "num_hidden_layers": LAYERS,
}
OPTIONS: dict[str, Any] = {"device": "cpu", "cpu_threads": 1, "log_level": "error", "skip_tokenizer_init": True}
GREEDY = {"temperature": 0.0, "max_new_tokens": 12, "ignore_eos": True}


def experts_of(answer: Any) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(answer["meta_info"]["routed_experts"]), dtype="<i4")
    return data.reshape(-1, LAYERS, PER_TOKEN)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("mixture"), "Qwen3Moe", seed=2, **SIZES).path


@pytest.fixture(scope="module")
def engine(path: Path) -> Iterator[Engine]:
    options = {"max_total_tokens": 512, "chunked_prefill_size": 32, "enable_return_routed_experts": True}
    with Engine(model_path=str(path), **options, **OPTIONS) as made:
        yield made


def test_answers_and_streams_carry_them(engine: Engine) -> None:
    prompt = random.Random(0).choices(range(160), k=70)
    first = engine.generate(input_ids=prompt, sampling_params=GREEDY, return_routed_experts=True)
    found = experts_of(first)
    assert len(found) == 70 + 12 - 1
    assert (found[:, :, 0] < found[:, :, 1]).all()
    again = engine.generate(input_ids=prompt, sampling_params=GREEDY, return_routed_experts=True)
    assert again["meta_info"]["cached_tokens"] > 0
    assert np.array_equal(experts_of(again), found)
    *before, last = engine.generate(
        input_ids=prompt,
        sampling_params=GREEDY,
        stream=True,
        return_routed_experts=True,
        routed_experts_start_len=70,
    )
    assert np.array_equal(experts_of(last), found[70:])
    assert not any("routed_experts" in event["meta_info"] for event in before)
    batch = engine.generate(input_ids=[prompt, prompt[:9]], sampling_params=GREEDY, return_routed_experts=True)
    assert [len(experts_of(each)) for each in batch] == [81, 20]
    plain = engine.generate(input_ids=prompt, sampling_params=GREEDY)
    assert "routed_experts" not in plain["meta_info"]


def test_tokens_that_a_grammar_forces_have_them_up_to_the_end(tmp_path: Path) -> None:
    tokenizer = bundled_model_path()
    vocab_size = json.loads((tokenizer / "config.json").read_text())["vocab_size"]
    path = save_checkpoint(tmp_path, "Qwen3Moe", seed=2, **SIZES, vocab_size=vocab_size).path
    options = {**OPTIONS, "skip_tokenizer_init": False, "tokenizer_path": str(tokenizer)}
    with Engine(model_path=str(path), max_total_tokens=512, enable_return_routed_experts=True, **options) as engine:
        for length in (5, 100):
            params = {"temperature": 0.0, "max_new_tokens": length, "regex": "(yes|no), and nothing more can be said"}
            answer = engine.generate(input_ids=list(range(9)), sampling_params=params, return_routed_experts=True)
            assert len(experts_of(answer)) == 9 + len(answer["output_ids"]) - 1


def test_what_cannot_be_told_is_refused_by_name(engine: Engine, path: Path, tmp_path: Path) -> None:
    prompt: dict[str, Any] = {"input_ids": list(range(9)), "sampling_params": GREEDY}
    with pytest.raises(BadRequest) as caught:
        engine.generate(**prompt, return_routed_experts=True, routed_experts_start_len=10)
    assert caught.value.param == "routed_experts_start_len"
    with pytest.raises(BadRequest) as caught:
        engine.generate(**prompt, routed_experts_start_len=3)
    assert caught.value.param == "routed_experts_start_len"
    dense = save_checkpoint(tmp_path, "Llama").path
    for other in (path, dense):
        with Engine(model_path=str(other), **OPTIONS) as without:
            with pytest.raises(BadRequest) as caught:
                without.generate(**prompt, return_routed_experts=True)
            assert caught.value.param == "return_routed_experts"
