from __future__ import annotations

from pathlib import Path

import pytest

from bough.config.engine_args import bundled_model_path
from bough.config.local_files import load_model_config, with_local_files
from bough.config.server_args import ServerArgs, resolve
from bough.errors import ConfigError
from bough.tokenization.tokenizer import Tokenizer


def test_revision_of_a_local_directory_is_refused() -> None:
    args = resolve(ServerArgs(revision="v2"))
    with pytest.raises(ConfigError, match="--revision v2 is for models on the hub"):
        with_local_files(args)


def test_local_files_of_the_bundled_model_are_found() -> None:
    args = with_local_files(resolve(ServerArgs()))
    assert args.model_path == str(bundled_model_path())
    assert load_model_config(args).architecture == "Qwen3ForCausalLM"


def test_directory_without_any_tokenizer_is_refused_at_once(tmp_path: Path) -> None:
    tmp_path.joinpath("config.json").write_text("{}")
    with pytest.raises(ConfigError, match="has no tokenizer; name one with --tokenizer-path"):
        Tokenizer.from_pretrained(tmp_path)


def test_tokenizer_may_be_a_file_in_a_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    args = with_local_files(resolve(ServerArgs(tokenizer_path="~/tokenizer.json")))
    assert args.tokenizer_path == str(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(("tokenizer", "complaint"), [("/no/such", "no such directory"), ("x" * 300, "too long")])
def test_tokenizer_that_is_not_there_is_not_the_models_fault(tokenizer: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        with_local_files(resolve(ServerArgs(tokenizer_path=tokenizer)))
    assert caught.value.param == "tokenizer_path"
