"""Checkpoint files must be regular files of the checkpoint itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from bough.config.checkpoint import check_files, has_file, read_json
from bough.errors import CheckpointError


def bind_socket(path: Path) -> None:
    directory = os.open(path.parent, os.O_PATH)  # the path itself may be too long for a socket
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a named pipe": os.mkfifo,
    "a socket": bind_socket,
    "a directory": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "where nothing is": lambda path: path.symlink_to("nowhere"),
    "levels": lambda path: path.symlink_to(path.name),
    "a link out of the checkpoint": lambda path: path.symlink_to("/etc/passwd"),
}


@pytest.mark.parametrize(
    "name",
    [
        *("config.json", "model.safetensors", "chat_template.jinja", "x.gguf", "vocab.txt", "tokenizer.model"),
        *("1_Pooling/config.json", "additional_chat_templates/tool_use.jinja"),
    ],
)
def test_what_is_no_file_of_the_checkpoint_is_named_as_what_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for what, make in NO_FILES.items():
        if what == "a link out of the checkpoint" and path.suffix in (".safetensors", ".gguf"):
            continue
        make(path)
        with pytest.raises(CheckpointError) as raised:
            check_files(tmp_path)
        assert str(path) in raised.value.message
        assert what in raised.value.message
        path.rmdir() if what == "a directory" else path.unlink()
    check_files(tmp_path)


def test_links_stay_within_the_checkpoint_or_the_cache_of_the_hub(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "1", tmp_path / "models--a--b" / "blobs"
    for folder in (snapshot, blobs, tmp_path / "local"):
        folder.mkdir(parents=True)
    (blobs / "abc").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/abc")
    (tmp_path / "local" / "config.json").symlink_to(blobs / "abc")  # as older versions of the hub's client download
    (tmp_path / "local" / "tokenizer.json").symlink_to("config.json")
    (tmp_path / "link").symlink_to(snapshot)
    for directory in (snapshot, tmp_path / "local", tmp_path / "link"):
        check_files(directory)
        assert has_file(directory / "config.json")
    assert not has_file(snapshot / "generation_config.json")


def test_no_pipe_is_waited_for_that_comes_after_the_check(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    for path in (tmp_path / "config.json", Path("/dev/zero")):
        with pytest.raises(CheckpointError, match="no regular file"):
            read_json(path)
