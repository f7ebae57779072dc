"""A saved state is a directory that is complete, or none."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from bough.config.ranks import SCHEDULER
from bough.errors import BadRequest, RequestFailed
from bough.ipc.messages import ControlReply
from bough.managers.health import HealthMonitor
from bough.managers.saved_weights import SavedWeights

FILES = ("config.json", "tokenizer.json", "merges.txt", "1_Pooling/config.json", "additional_chat_templates/a.jinja")


class Control:
    """Schedulers that write one file, or fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.params: dict[str, Any] = {}

    async def load(self, method: str, params: dict[str, Any], timeout: float) -> list[ControlReply]:
        self.params = params
        Path(params["directory"], "model-rank-0-part-0.safetensors").write_bytes(b"weights")
        if self.fails:
            return [ControlReply("1", SCHEDULER, False, "the disk is full")]
        return [ControlReply("1", SCHEDULER, True, "", {"num_bytes": 7})]


def saving(tmp_path: Path, control: Control) -> SavedWeights:
    source = tmp_path / "source"
    for name in (*FILES, "model.safetensors", "model.safetensors.index.json", "bough-packed-0-of-1.json", "notes.md"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    health = HealthMonitor(max_silence=5.0)
    health.set_ready()
    return SavedWeights(str(source), control, health)  # type: ignore[arg-type]


def test_configuration_and_tokenizer_come_with_the_weights(tmp_path: Path) -> None:
    control = Control()
    asyncio.run(saving(tmp_path, control).save("sharded_state", str(tmp_path / "new" / "state"), max_size=5))
    state = tmp_path / "new" / "state"
    assert control.params["form"] == "sharded_state"
    assert control.params["max_size"] == 5
    found = {str(path.relative_to(state)) for path in state.rglob("*") if path.is_file()}
    assert found == {*FILES, "model-rank-0-part-0.safetensors"}
    assert os.listdir(state.parent) == ["state"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RequestFailed, match="the disk is full"):
        asyncio.run(saving(tmp_path, Control(fails=True)).save("packed", str(tmp_path / "state")))
    assert os.listdir(tmp_path) == ["source"]


def test_files_that_are_there_are_not_replaced(tmp_path: Path) -> None:
    saved = saving(tmp_path, Control())
    (tmp_path / "file").write_text("mine")
    for place in ("source", "file", "file/below"):
        with pytest.raises(BadRequest, match="path"):
            asyncio.run(saved.save("packed", str(tmp_path / place)))
    assert (tmp_path / "file").read_text() == "mine"
    gguf = SavedWeights(str(tmp_path / "file"), Control(), saved._health)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="Hugging Face"):
        asyncio.run(gguf.save("packed", str(tmp_path / "state")))
