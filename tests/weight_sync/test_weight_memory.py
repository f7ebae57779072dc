"""Memory of weights and KV pools goes back to the system and comes again, with the same numbers at the same places."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, RequestFailed
from bough.model_executor.execution_choice import choose_execution
from bough.model_executor.loaded_model import LoadedModel
from bough.model_executor.model_runner import ModelRunner
from bough.weight_sync.weight_memory import WeightMemory, _DevicePieces, _HostCopies
from bough.weight_sync.worker_weights import WorkerWeights
from tests.models.checkpoints import save_checkpoint
from tests.native import needs_native

CPU = torch.device("cpu")
WIDE = {"hidden_size": 512, "intermediate_size": 1024}


class Slept:
    def __init__(self, path: Path, **options: Any) -> None:
        self.args = ServerArgs(model_path=str(path), device="cpu", **options)
        config = ModelConfig.from_args(self.args)
        loaded = LoadedModel.load(config, CPU, self.args, choose_execution(config, CPU, self.args))
        self.model, self.live, self.memory = loaded.model, loaded.memory.live, loaded.memory
        self.weights = WorkerWeights(self.args, loaded.memory.live, CPU)
        self.before = self.numbers()

    def numbers(self) -> dict[str, torch.Tensor]:
        return {name: each.detach().clone() for name, each in self.model.named_parameters()}

    def zeros(self) -> float:
        """Share of the memory that holds nothing."""
        parameters = list(self.model.parameters())
        return sum(int((each == 0).sum()) for each in parameters) / sum(each.numel() for each in parameters)

    def is_as_before(self) -> bool:
        return all(torch.equal(self.before[name], each) for name, each in self.numbers().items())

    def send(self, tmp_path: Path, **tensors: torch.Tensor) -> None:
        save_file({name.replace("__", "."): each for name, each in tensors.items()}, tmp_path / "sent.safetensors")
        self.weights.prepare_file(str(tmp_path / "sent.safetensors")).write()
        self.before = self.numbers()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("source") / "llama", "Llama", dtype=torch.bfloat16, **WIDE).path


def norm(value: float) -> dict[str, torch.Tensor]:
    return {"model__norm__weight": torch.full((512,), value)}


@pytest.mark.parametrize("what", ["keep", "reread"])
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float16"},  # torch's
        pytest.param({}, marks=needs_native),
        pytest.param({"quantization": "int4"}, marks=needs_native),
        {"load_format": "dummy"},
    ],
)
def test_weights_of_a_checkpoint_are_read_again(checkpoint: Path, options: dict[str, Any], what: Any) -> None:
    slept = Slept(checkpoint, **options)
    addresses = [each.data_ptr() for each in slept.model.parameters()]
    for _ in range(2):
        slept.memory.release(what)
        slept.memory.release(what)
        assert slept.zeros() > 0.95
        with pytest.raises(BadRequest, match="asleep"):
            slept.weights.prepare_disk(str(checkpoint), "auto").write()
        with pytest.raises(BadRequest, match="asleep"):
            slept.weights.rows("model.norm.weight", 1)
        slept.memory.resume()
        slept.memory.resume()
        assert slept.is_as_before()
    assert [each.data_ptr() for each in slept.model.parameters()] == addresses
    slept.weights.prepare_disk(str(checkpoint), slept.args.load_format).write()


@pytest.mark.parametrize("options", [{"dtype": "float16"}, pytest.param({"quantization": "int8"}, marks=needs_native)])
def test_weights_of_a_trainer_stay_or_go_to_a_directory(
    checkpoint: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    stays = Slept(checkpoint, **options)
    stays.send(tmp_path, **norm(2.0))
    stays.memory.release("keep")
    assert stays.is_as_before()
    assert stays.memory.num_bytes == 0
    stays.memory.resume()
    goes = Slept(checkpoint, sleep_directory=str(tmp_path / "asleep"), **options)
    for value in (3.0, 4.0):
        goes.send(tmp_path, **norm(value))
        goes.memory.release("keep")
        assert goes.zeros() > 0.95
        assert list((tmp_path / "asleep").iterdir())
        goes.memory.resume()
        assert goes.is_as_before()
        assert not list((tmp_path / "asleep").iterdir())


def test_discarded_weights_are_missing_until_they_are_sent(checkpoint: Path, tmp_path: Path) -> None:
    slept = Slept(checkpoint, dtype="float16")
    slept.memory.release("drop")
    slept.memory.resume()
    everything = slept.weights.num_missing
    assert everything == len(slept.model.required_names)
    slept.send(tmp_path, **norm(1.0))
    assert slept.weights.num_missing == everything - 1
    slept.weights.prepare_disk(str(checkpoint), "auto").write()
    assert slept.weights.num_missing == 0
    slept.send(tmp_path, **norm(2.0))
    slept.memory.release("reread")  # of no checkpoint any more, and nothing keeps them
    slept.memory.resume()
    assert slept.weights.num_missing == everything


def test_weights_that_cannot_be_read_again_stay_asleep(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    shutil.copytree(checkpoint, path)
    slept = Slept(path)
    slept.memory.release("keep")
    (path / "model.safetensors").rename(path / "away")
    for _ in range(2):
        with pytest.raises(RequestFailed, match="cannot be had again"):
            slept.memory.resume()
        assert slept.live.is_asleep
        assert slept.zeros() > 0.95
    (path / "away").rename(path / "model.safetensors")
    slept.memory.resume()
    assert slept.is_as_before()
    # A trainer has written its next checkpoint in the same place: what is served is nowhere else.
    shutil.copy(checkpoint / "model.safetensors", path / "model.safetensors")
    slept.memory.release("keep")
    assert slept.is_as_before()


def test_a_device_gives_its_memory_back_with_the_storage(checkpoint: Path) -> None:
    slept = Slept(checkpoint, dtype="float16")
    pieces, copies = _DevicePieces(slept.model), _HostCopies(slept.model)
    pieces.give_back()
    assert all(each.untyped_storage().nbytes() == 0 for each in slept.model.parameters())
    pieces.take_again()
    copies.restore()
    assert slept.is_as_before()
    assert isinstance(slept.memory, WeightMemory)


def test_a_runner_makes_its_tables_again(checkpoint: Path) -> None:
    runner = ModelRunner(ModelConfig.from_path(str(checkpoint), device="cpu"), CPU, native=False)
    tokens = runner.kv_pool.max_total_tokens
    make = runner.drop_tables()
    assert not hasattr(runner, "kv_pool")
    make()
    assert runner.kv_pool.max_total_tokens == tokens
