"""Files that stand in the place of a checkpoint's files are named as what they are, in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bough.config.engine_args import bundled_model_path
from bough.config.model_config import ModelConfig
from bough.errors import BoughError
from bough.model_loader.loader import open_source
from bough.model_loader.sources import open_tensors
from bough.tokenization.loading import load_tokenizer

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 988097824\n"
CONTENTS = {
    "Git LFS pointer": POINTER,
    "pickled": b"PK\x03\x04" + bytes(200),
    "pickled, as": b"\x80\x02}q\x00" + bytes(200),
    "a web page": b"<!DOCTYPE html>\n<html><head></head></html>",
    "before GGUF": b"tjgg\x03\x00\x00\x00" + bytes(100),
    "is empty": b"",
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The small files of the bundled model, and its weights as a link."""
    directory = tmp_path / "model"
    directory.mkdir()
    for file in bundled_model_path().iterdir():
        if file.suffix == ".safetensors":
            (directory / file.name).symlink_to(file)
        elif file.is_file():
            shutil.copy(file, directory)
    return directory


def refusal(path: Path) -> str:
    """Return the error for a checkpoint; empty if all of its files can be opened."""
    try:
        config = ModelConfig.from_path(str(path))
        load_tokenizer(path)
        source = open_source(config, "auto")
        for file in source.files if source is not None else ():
            open_tensors(file)
    except BoughError as error:
        message = error.message
    else:
        message = ""
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"])
def test_what_is_there_in_place_of_a_file_is_named(checkpoint: Path, name: str) -> None:
    assert refusal(checkpoint) == ""
    file = checkpoint / name
    existed = file.exists()
    for what, content in CONTENTS.items():
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        message = refusal(checkpoint)
        assert what in message, message
        assert name in message
    file.unlink()
    file.symlink_to("../../blobs/0123")
    message = refusal(checkpoint)
    if existed and name != "generation_config.json":
        assert "a link to ../../blobs/0123, where nothing is" in message
        assert name in message


def test_ggufs_that_are_none_are_named(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    for what, content in {**CONTENTS, "big-endian": b"FUGG" + bytes(60)}.items():
        file.write_bytes(content)
        message = refusal(file)
        assert what in message
        assert "is not a GGUF file" in message
    file.write_bytes(b"GGUF\x03\x00\x00\x00" + bytes(4))
    assert "cut short" in refusal(file)
    file.write_bytes(next(bundled_model_path().glob("*.safetensors")).read_bytes()[:100_000_000])
    assert "a safetensors file" in refusal(file)
    file.unlink()
    file.symlink_to("nowhere.gguf")
    assert "a link to nowhere.gguf, where nothing is" in refusal(file)


def test_mlx_is_named(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    for key in ("quantization", "quantization_config"):
        (checkpoint / "config.json").write_text(json.dumps({**config, key: {"group_size": 64, "bits": 4}}))
        assert "MLX's format (4 bits)" in refusal(checkpoint)
    (checkpoint / "config.json").write_text(json.dumps(config))
    (checkpoint / "model.safetensors").unlink()
    (checkpoint / "weights.npz").write_bytes(b"PK")
    assert "MLX's format (weights.npz)" in refusal(checkpoint)
