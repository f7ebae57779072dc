from __future__ import annotations

from pathlib import Path

import pytest

from bough.config.checkpoint import OTHER_WEIGHTS, SMALL_FILES, WEIGHT_FILES, is_on_hub
from bough.config.engine_args import bundled_model_path
from bough.config.local_files import check_model, with_local_files
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.errors import ConfigError
from bough.tokenization.loading import load_tokenizer


def test_revision_of_a_local_directory_is_refused(tmp_path: Path) -> None:
    args = resolve(ServerArgs(revision="v2"))
    with pytest.raises(ConfigError, match="--revision v2 is for models on the hub"):
        with_local_files(args)
    named = resolve(ServerArgs(model_path="sapling", revision="main"))
    with pytest.raises(ConfigError, match="and sapling is the model that comes with Bough"):
        with_local_files(named)
    local = resolve(ServerArgs(model_path=str(tmp_path), revision="main"))
    with pytest.raises(ConfigError, match="is a local directory"):
        with_local_files(local)


def test_local_files_of_the_bundled_model_are_found() -> None:
    args = with_local_files(resolve(ServerArgs()))
    assert args.model_path == str(bundled_model_path())
    assert ModelConfig.from_args(args).architecture == "Qwen3ForCausalLM"


def test_the_bundled_model_has_a_name_unless_a_directory_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = resolve(ServerArgs(model_path="sapling"))
    assert named.served_model_name == "sapling"
    args = with_local_files(named)
    assert args.model_path == args.tokenizer_path == str(bundled_model_path())
    assert with_local_files(resolve(ServerArgs(tokenizer_path="sapling"))).tokenizer_path == str(bundled_model_path())
    (tmp_path / "sapling").mkdir()
    assert with_local_files(named).model_path == str(tmp_path / "sapling")


@pytest.mark.parametrize(
    ("is_there", "models"),
    [
        (False, ["sapling", ".", "/no/such", "no-such.gguf", "./x/y.gguf"]),
        (True, ["gpt2", "Qwen/Qwen3-0.6B", "no-owner/no-model/q8.gguf"]),
    ],
)
def test_what_only_the_hub_can_have(
    is_there: bool, models: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [is_on_hub(model) for model in models] == [is_there] * len(models)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was asked of a hub whose every model is the bundled one without its weights, in ``tmp_path``."""
    asked: list[list[str]] = []
    for file in bundled_model_path().glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda model, revision, allow_patterns, ignore_patterns: asked.append(allow_patterns) or str(tmp_path),
    )
    return asked


def test_a_model_is_checked_without_its_weights(asked: list[list[str]]) -> None:
    check_model(resolve(ServerArgs(model_path="owner/model")))
    check_model(resolve(ServerArgs(model_path="owner/model/file.gguf")))
    check_model(resolve(ServerArgs()))
    assert asked == [list(SMALL_FILES)]
    with pytest.raises(ConfigError, match="no such file"):
        check_model(resolve(ServerArgs(model_path="no-such.gguf")))


def test_a_model_on_the_hub_that_cannot_be_served_is_refused_without_its_weights(
    asked: list[list[str]], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="name one of its GGUF files"):
        check_model(resolve(ServerArgs(model_path="owner/model", load_format="gguf")))
    assert asked == []
    for model in ("owner/model", "owner/model/file.gguf"):
        with pytest.raises(ConfigError, match="no such directory: /no/such") as caught:
            check_model(resolve(ServerArgs(model_path=model, tokenizer_path="/no/such")))
        assert caught.value.param == "tokenizer_path"
    (tmp_path / "config.json").write_text('{"architectures": ["NoSuchModel"]}')
    with pytest.raises(ConfigError, match="architecture NoSuchModel is not supported"):
        check_model(resolve(ServerArgs(model_path="owner/model")))
    assert asked == [list(SMALL_FILES)] * 2


def test_directory_without_any_tokenizer_is_refused_at_once(tmp_path: Path) -> None:
    tmp_path.joinpath("config.json").write_text("{}")
    with pytest.raises(ConfigError, match="has no tokenizer; name one with --tokenizer-path"):
        load_tokenizer(tmp_path)


def test_tokenizer_may_be_a_file_in_a_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    args = with_local_files(resolve(ServerArgs(tokenizer_path="~/tokenizer.json")))
    assert args.tokenizer_path == str(tmp_path / "tokenizer.json")


def test_tokenizer_that_is_not_there_is_not_the_models_fault() -> None:
    for tokenizer, complaint in [("/no/such", "no such directory"), ("x" * 300, "too long")]:
        with pytest.raises(ConfigError, match=complaint) as caught:
            with_local_files(resolve(ServerArgs(tokenizer_path=tokenizer)))
        assert caught.value.param == "tokenizer_path"


def test_no_weights_are_downloaded_twice() -> None:
    from huggingface_hub.utils import filter_repo_objects

    wanted = ["model-00001-of-00002.safetensors", "config.json", "1_Pooling/config.json", "2_Dense/model.safetensors"]
    others = ["consolidated.safetensors", "original/model.safetensors", "onnx/model.safetensors", "pytorch_model.bin"]
    kept = filter_repo_objects(
        [*wanted, *others], allow_patterns=[*SMALL_FILES, *WEIGHT_FILES], ignore_patterns=list(OTHER_WEIGHTS)
    )
    assert list(kept) == wanted
