from __future__ import annotations

import pytest
from huggingface_hub import constants

from bough.config.checkpoint import resolve_model_path
from bough.errors import ConfigError


@pytest.fixture
def models(tmp_path):
    (tmp_path / "models" / "Qwen3-0.6B").mkdir(parents=True)
    (tmp_path / "models" / "qwen3-q8_0.gguf").touch()
    return tmp_path


def test_a_mistyped_path_is_answered_with_one_that_exists(models) -> None:
    cases = [
        ("models/Qwen3-06B", "models/Qwen3-0.6B"),
        ("model/qwen3-0.6B/", "models/Qwen3-0.6B"),
        ("models/qwen3-q4_0.gguf", "models/qwen3-q8_0.gguf"),
    ]
    for typed, meant in cases:
        with pytest.raises(ConfigError, match=rf"no such .*; did you mean '{models}/{meant}'\?"):
            resolve_model_path(f"{models}/{typed}")


def test_a_path_like_no_other_is_answered_with_what_to_give(models):
    with pytest.raises(ConfigError, match="entirely-else; give the directory of a checkpoint"):
        resolve_model_path(f"{models}/entirely-else")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("Qwen/Qwen3-06B", "did you mean 'Qwen/Qwen3-0.6B'?"),
        ("saplin", "did you mean 'sapling', which comes with Bough?"),
    ],
)
def test_a_mistyped_model_of_the_hub_is_answered_with_one_that_is_here(tmp_path, monkeypatch, typed, message):
    (tmp_path / "models--Qwen--Qwen3-0.6B").mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError) as caught:
        resolve_model_path(typed)
    assert str(caught.value).endswith(message)


def test_a_model_that_is_like_none_here_is_answered_with_what_to_look_at(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError) as caught:
        resolve_model_path("nobody/nothing")
    message = str(caught.value)
    assert message.startswith("cannot get model nobody/nothing: there is neither a local directory of that name nor ")
    for part in (str(tmp_path), "HF_HUB_OFFLINE", "mistyped", "give the path of its directory"):
        assert part in message
