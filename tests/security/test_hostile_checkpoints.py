"""Checkpoints made to harm whoever opens them: each is the bundled model with one thing changed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bough.config.engine_args import bundled_model_path
from bough.config.server_args import ServerArgs
from bough.entrypoints.launch_plan import LaunchPlan
from bough.errors import CheckpointError
from bough.tokenization import text_trial
from bough.tokenization.text_trial import TextTrial

MIB = 2**20
Json = dict[str, Any]
LOOPS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
NAMED = [{"name": "default", "template": "{{ messages }}"}]
DOUBLED = "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s[:] ~ n.s %}{% endfor %}"
DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
TWICE = [{"Sequence": {"id": "A", "type_id": 0}}] * 2
POST = {"type": "TemplateProcessing", "single": TWICE, "pair": TWICE, "special_tokens": {}}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
ADDED = {"content": "a", "single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}


def checkpoint(path: Path, tokenizer: Json, config: Json) -> Path:
    """The bundled model with other entries in two of its files."""
    shutil.copytree(bundled_model_path(), path)
    for name, entries in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        content = json.loads((path / name).read_text(encoding="utf-8"))
        for key, value in entries.items():
            content[key] = value(content[key]) if callable(value) else value
        (path / name).write_text(json.dumps(content), encoding="utf-8")
    return path


def template(source: Any) -> tuple[Json, Json]:
    return {}, {"chat_template": source}


def with_id(token_id: Any) -> tuple[Json, Json]:
    return {"model": lambda model: {**model, "vocab": {**model["vocab"], "zzq": token_id}}}, {}


def sequence(kind: str, *steps: Json) -> Json:
    return {"type": "Sequence", kind: list(steps)}


HOSTILE: dict[str, tuple[tuple[Json, Json], str]] = {
    "normalizer": (({"normalizer": sequence("normalizers", *[DOUBLES] * 30)}, {}), "normalizer can make"),
    "decoder": (({"decoder": sequence("decoders", *[DOUBLES] * 30)}, {}), "decoder can make"),
    "post-processor": (({"post_processor": sequence("processors", *[POST] * 30)}, {}), "post_processor can make"),
    "pre-tokenizer": (({"pre_tokenizer": sequence("pretokenizers", *[BYTES] * 30)}, {}), "pre_tokenizer can make"),
    "at once": (
        (
            {
                "normalizer": sequence("normalizers", *[DOUBLES] * 30),
                "added_tokens": lambda tokens: [*tokens, {"id": 99_999, **ADDED}],
            },
            {},
        ),
        "takes more than",
    ),
    "unknown": (({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}}, {}), "cannot encode"),
    "large id": (with_id(4 * 10**9), "the id 4000000000"),
    "no id": (with_id("x"), "tokenizer.json"),
    "no tokenizer": (({"model": None}, {}), "tokenizer.json"),
    "deep template": (template("{{ " + "(" * 5000 + ")" * 5000 + " }}"), "nested too deeply"),
    "doubled": (template(DOUBLED), "cannot render a short conversation"),
    "of tools": (template([*NAMED, {"name": "tool_use", "template": LOOPS}]), "(tool_use)"),
    "no token": (({}, {"eos_token": ["x"]}), "eos_token"),
    "no declared token": (({}, {"added_tokens_decoder": {"x": 1}}), "added_tokens_decoder"),
}


def largest_child_bytes() -> int:
    """Resident bytes of the largest child that has ended, or of this process: a child counts from before its exec."""
    of = (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)
    return max(resource.getrusage(each).ru_maxrss for each in of) * 1024


@pytest.mark.parametrize("name", HOSTILE)
def test_tokenizers_and_templates_are_refused_in_a_line(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_trial, "MEMORY_BYTES", 256 * MIB)
    (tokenizer, config), what = HOSTILE[name]
    path = checkpoint(tmp_path / "x", tokenizer, config)
    begin = time.monotonic()
    largest_before = largest_child_bytes()
    with pytest.raises(CheckpointError) as raised, TextTrial(str(path), None) as trial:
        trial.finish()
    assert what in raised.value.message
    assert str(path) in raised.value.message
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 1000
    assert time.monotonic() - begin < 60
    assert largest_child_bytes() <= max(1500 * MIB, largest_before)


def test_what_is_not_hostile_passes(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "x", {}, {"chat_template": "{{ raise_exception('no chats here') }}"})
    assert LaunchPlan.make(ServerArgs(model_path=str(path))).local_args.model_path == str(path)


def damage(name: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        (directory / name).unlink(missing_ok=True)
        make(directory / name)

    return change


def no_number(directory: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(directory / "model.safetensors")
    tensors["model.norm.weight"][3] = torch.nan
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (damage("tokenizer.json", lambda path: path.write_text("{", encoding="utf-8")), "tokenizer.json"),
        (damage("model.safetensors", os.mkfifo), "model.safetensors is a named pipe"),
        (damage("chat_template.jinja", lambda path: path.symlink_to("/etc/passwd")), "a link out of the checkpoint"),
        (no_number, "model.norm.weight: it has numbers that are not finite"),
    ],
)
def test_a_server_says_so_in_a_line_and_ends(tmp_path: Path, change: Callable[[Path], None], what: str) -> None:
    path = checkpoint(tmp_path / "x", {}, {})
    change(path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "bough", "serve", str(path), "--port", port, "--log-level", "error"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("bough: error: ")
    assert what in line
