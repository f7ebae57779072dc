"""One replica loads weights into shared memory, the others map them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.kernels.host_memory import Arena, OutlineArena
from bough.kernels.shared_memory import SharedMapping
from bough.kernels.thread_pool import ThreadPool
from bough.layers.linear_method import MethodChoice
from bough.layers.packed_method import packed_method
from bough.model_loader.loader import load_model, open_source
from bough.model_loader.shared_weights import SharedWeights
from bough.models.base import Model
from bough.models.registry import make_model
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

pytestmark = needs_native

WRITES_TO_WHAT_IT_ONLY_READS = """
import sys
from bough.kernels.shared_memory import SharedMapping

memory = SharedMapping(int(sys.argv[1]), 4096, writable=False).memory
print(int(memory[5]), flush=True)
memory[5] = 1
"""


@pytest.fixture
def descriptor() -> Iterator[int]:
    descriptor = os.memfd_create("weights")
    yield descriptor
    os.close(descriptor)


class Replica:
    def __init__(self, path: Path, descriptor: int, *, is_writer: bool, has_room: bool = True) -> None:
        self.config = ModelConfig.from_path(str(path), device="cpu")
        self.threads = ThreadPool(1)
        self.shared = SharedWeights(descriptor, is_writer=is_writer)
        with torch.device("meta"):
            outline = make_model(self.config, self.method(OutlineArena()))
        self.arena = self.shared.open(outline, lambda _: has_room)

    def method(self, arena: Arena | None) -> MethodChoice:
        return packed_method(self.threads, "int8", arena)

    def load(self) -> Model:
        # A replica that only maps weights has no source of its own here.
        source = open_source(self.config, "auto") if self.shared.is_writer else None
        method, cpu = self.method(self.arena), torch.device("cpu")
        model = load_model(self.config, source=source, device=cpu, seed=0, method=method, arena=self.arena)
        if self.arena is not None and self.shared.is_writer:
            self.shared.complete()
        return model


def test_a_replica_waits_for_the_weights_of_another_and_has_them(tmp_path: Path, descriptor: int) -> None:
    save_checkpoint(tmp_path, "Qwen2", tie_word_embeddings=False)
    readers: list[Replica] = []
    waiting = threading.Thread(target=lambda: readers.append(Replica(tmp_path, descriptor, is_writer=False)))
    waiting.start()
    writer = Replica(tmp_path, descriptor, is_writer=True)
    loaded = writer.load()
    waiting.join(30)
    mapped = readers[0].load()
    for name, weight in loaded.checkpoint_weights.items():
        assert torch.equal(weight.read(), mapped.checkpoint_weights[name].read()), name
    with torch.no_grad():
        next(parameter for name, parameter in loaded.named_parameters() if "norm" in name).fill_(3.0)
    assert bool((next(parameter for name, parameter in mapped.named_parameters() if "norm" in name) == 3.0).all())


def test_replicas_load_their_own_where_shared_memory_is_slow(
    tmp_path: Path, descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, "Qwen2")
    monkeypatch.setattr(SharedMapping, "collapse", lambda _: False)
    assert Replica(tmp_path, descriptor, is_writer=True).arena is None
    assert Replica(tmp_path, descriptor, is_writer=False).arena is None
    other = os.memfd_create("weights")
    assert Replica(tmp_path, other, is_writer=True, has_room=False).arena is not None
    os.close(other)


def test_weights_of_another_size_are_refused(tmp_path: Path, descriptor: int) -> None:
    save_checkpoint(tmp_path / "one", "Qwen2", tie_word_embeddings=False)
    save_checkpoint(tmp_path / "two", "Qwen2", tie_word_embeddings=True)
    Replica(tmp_path / "one", descriptor, is_writer=True).load()
    with pytest.raises(StartupError):
        Replica(tmp_path / "two", descriptor, is_writer=False)


def test_what_is_not_writable_cannot_be_written(descriptor: int) -> None:
    os.ftruncate(descriptor, 2**21)
    os.pwrite(descriptor, bytes(range(9)), 0)
    command = [sys.executable, "-c", WRITES_TO_WHAT_IT_ONLY_READS, str(descriptor)]
    done = subprocess.run(command, pass_fds=[descriptor], capture_output=True, check=False)
    assert done.returncode < 0
    assert done.stdout.strip() == b"5"
