"""A trainer in a process of its own sends weights to an engine, and hands it tensors."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from bough import Engine
from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest
from tests.in_process import output_of
from tests.model_companions import ROOT, write_other_checkpoint
from tests.weight_sync.running_trainer import GROUP, RunningTrainer

PROMPT = "<|im_start|>user\nTell me about the oak.<|im_end|>\n<|im_start|>assistant\n"
GREEDY = {"temperature": 0, "max_new_tokens": 24}
NORM = "model.norm.weight"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("companions") / "other")


@pytest.fixture(scope="module")
def tensors(other: Path) -> dict[str, torch.Tensor]:
    return load_file(other / "model.safetensors")


@pytest.fixture(scope="module")
def shared_engine() -> Iterator[Engine]:
    with Engine(cpu_threads=1, max_total_tokens=8192, dtype="float32") as made:
        yield made


@pytest.fixture
def engine(shared_engine: Engine) -> Iterator[Engine]:
    """An engine that has its own weights again after the test."""
    yield shared_engine
    assert shared_engine.update_weights_from_disk(str(bundled_model_path()), weight_version="default").success


@pytest.fixture(scope="module")
def wanted(other: Path) -> str:
    return output_of(PROMPT, GREEDY, model_path=str(other), dtype="float32").text


def said(engine: Engine) -> str:
    return str(engine.generate(PROMPT, GREEDY)["text"])


@pytest.fixture
def trainer(other: Path) -> Iterator[RunningTrainer]:
    made = RunningTrainer(other)
    yield made
    made.close()


def in_group(engine: Engine, trainer: RunningTrainer) -> None:
    assert engine.init_weights_update_group("127.0.0.1", trainer.port, 1, 2, GROUP, "gloo").success
    assert trainer.heard() == "joined"


def about(tensors: dict[str, torch.Tensor], *names: str) -> tuple[list[str], list[torch.dtype], list[list[int]]]:
    chosen = list(names or sorted(tensors))
    return chosen, [tensors[name].dtype for name in chosen], [list(tensors[name].shape) for name in chosen]


def test_weights_come_from_a_trainer(
    engine: Engine, trainer: RunningTrainer, tensors: dict[str, torch.Tensor], wanted: str
) -> None:
    before = said(engine)
    in_group(engine, trainer)
    for version in ("step-1", "step-2"):
        trainer.send()
        done = engine.update_weights_from_distributed(*about(tensors), GROUP, weight_version=version)
        assert done.success, done.message
        assert trainer.heard() == "sent go"
        assert said(engine) == wanted != before
        assert engine.get_model_info()["weight_version"] == version
    assert engine.destroy_weights_update_group(GROUP).success
    gone = engine.update_weights_from_distributed(*about(tensors), GROUP)
    assert gone == (False, "group_name: there is no group 'trainer'")
    assert not engine.destroy_weights_update_group(GROUP).success


def test_all_ranks_are_in_the_group(other: Path, tensors: dict[str, torch.Tensor], wanted: str) -> None:
    trainer = RunningTrainer(other, world_size=3)
    try:
        with Engine(tp_size=2, cpu_threads=1, max_total_tokens=8192, dtype="float32") as engine:
            before = said(engine)
            with pytest.raises(BadRequest, match="world_size must be at least 3"):
                engine.init_weights_update_group("127.0.0.1", trainer.port, 1, 2, GROUP, "gloo")
            assert engine.init_weights_update_group("127.0.0.1", trainer.port, 1, 3, GROUP, "gloo").success
            trainer.send()
            assert engine.update_weights_from_distributed(*about(tensors), GROUP).success
            assert said(engine) == wanted != before
            assert engine.get_weights_by_name(NORM, 256) == tensors[NORM].float().tolist()
            head = engine.get_weights_by_name("model.embed_tokens.weight", 3000)
            assert head == tensors["model.embed_tokens.weight"][:3000].float().tolist()
            check_updates(engine, other)
            assert engine.update_weights_from_tensor([(NORM, torch.zeros(256))]).success
            assert said(engine) != wanted
            assert engine.destroy_weights_update_group(GROUP).success
    finally:
        trainer.close()


def check_updates(engine: Engine, other: Path) -> None:
    """Weights that are overwritten and sent again are those that were noted, on every rank."""
    before = said(engine)
    assert engine.check_weights("snapshot").success
    assert engine.check_weights("compare").success
    assert engine.update_weights_from_tensor([(NORM, torch.zeros(256))]).success
    assert not engine.check_weights("compare").success
    assert engine.check_weights("reset_tensors").success
    assert said(engine) != before
    assert engine.update_weights_from_disk(str(other)).success
    assert engine.check_weights("compare").success
    assert said(engine) == before


@pytest.mark.slow
def test_updates_that_reach_every_replica_are_known_by_the_weights(other: Path) -> None:
    with Engine(model_path=str(other), dp_size=2, cpu_threads=1, max_total_tokens=8192) as engine:
        check_updates(engine, other)


def test_tensors_may_share_memory(engine: Engine) -> None:
    both = torch.arange(512, dtype=torch.float32).view(2, 256)
    first, second = NORM, "model.layers.0.input_layernorm.weight"
    assert engine.update_weights_from_tensor([(first, both[0]), (second, both[1])]).success
    for name, row in ((first, both[0]), (second, both[1])):
        assert engine.get_weights_by_name(name, 256) == row.tolist()


def test_weights_come_one_at_a_time(engine: Engine, other: Path, tensors: dict[str, torch.Tensor]) -> None:
    trainer = RunningTrainer(other, NORM)
    try:
        assert engine.init_process_group("127.0.0.1", trainer.port, 1, 2, GROUP, "gloo").success
        trainer.send()
        done = engine.update_weight(NORM, tensors[NORM].dtype, tensors[NORM].shape, group_name=GROUP)
        assert done == (True, "1 weight is new")
        assert engine.get_weights_by_name(NORM, 256) == tensors[NORM].float().tolist()
    finally:
        trainer.close()
    assert engine.destroy_weights_update_group(GROUP).success


def test_requests_go_on_while_a_group_waits_for_its_trainer(engine: Engine, other: Path) -> None:
    trainer = RunningTrainer(other)
    trainer.close()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        joining = pool.submit(engine.init_weights_update_group, "127.0.0.1", trainer.port, 1, 2, GROUP, "gloo")
        said(engine)
        again = engine.init_weights_update_group("127.0.0.1", trainer.port, 1, 2, GROUP, "gloo")
        assert again.message == "group_name: there is a group 'trainer' already"
        assert not joining.done()
        arguments = [str(trainer.port), "2", GROUP, str(other)]
        with subprocess.Popen([sys.executable, "-m", "tests.weight_sync.trainer", *arguments], cwd=ROOT) as process:
            assert joining.result().success
            process.kill()
    assert engine.destroy_weights_update_group(GROUP).success


def test_what_does_not_fit_is_refused_before_anything_is_received(
    engine: Engine, trainer: RunningTrainer, tensors: dict[str, torch.Tensor]
) -> None:
    before = said(engine)
    in_group(engine, trainer)
    names, dtypes, shapes = about(tensors, NORM)
    for wrong, message in (
        ((["nothing"], dtypes, shapes), "has no weight named nothing"),
        ((names, dtypes, [[3]]), "weight model.norm.weight must have shape [256], got [3]"),
        ((names, ["int8"], shapes), "dtypes[0] must be one of bfloat16, float16"),
        ((names, dtypes, [[2**40, 2]]), "shapes[0] is that of no weight"),
        # What the trainer has sent meanwhile would come next.
        ((names, dtypes, shapes), "the group 'trainer' is out of step"),
    ):
        refused = engine.update_weights_from_distributed(*wrong, GROUP, weight_version="bad")
        assert not refused.success
        assert message in refused.message
    assert said(engine) == before
    assert engine.get_model_info()["weight_version"] == "default"
    assert engine.destroy_weights_update_group(GROUP).success


def test_a_trainer_that_is_gone_changes_nothing(
    engine: Engine, trainer: RunningTrainer, tensors: dict[str, torch.Tensor]
) -> None:
    before = said(engine)
    in_group(engine, trainer)
    trainer.process.kill()
    lost = engine.update_weights_from_distributed(*about(tensors), GROUP)
    assert not lost.success
    assert lost.message.startswith("the trainer's weights did not come: ")
    assert said(engine) == before
    assert engine.destroy_weights_update_group(GROUP).success


@pytest.mark.parametrize(
    ("rank", "world_size", "backend", "message"),
    [
        (2, 2, "gloo", "rank_offset must be from 1, since the trainer is 0, to world_size - 1, got 2 of 2"),
        (1, 2, "nccl", "backend: nccl is for CUDA devices; use gloo here"),
    ],
)
def test_a_group_that_cannot_be_is_refused_at_once(
    engine: Engine, rank: int, world_size: int, backend: Any, message: str
) -> None:
    assert engine.init_weights_update_group("127.0.0.1", 1, rank, world_size, GROUP, backend).message == message


def test_tensors_are_taken_from_the_program(engine: Engine, tensors: dict[str, torch.Tensor], wanted: str) -> None:
    before = said(engine)
    items = list(tensors.items())
    half = len(items) // 2
    assert engine.update_weights_from_tensor(items[:half], flush_cache=False).success
    assert engine.update_weights_from_tensor(items[half:], weight_version="step-1").success
    assert said(engine) == wanted != before
    assert engine.get_weights_by_name(NORM, 4) == tensors[NORM][:4].float().tolist()


def test_tensors_that_do_not_fit_change_nothing(engine: Engine, tensors: dict[str, torch.Tensor]) -> None:
    before = said(engine)
    refused = engine.update_weights_from_tensor([(NORM, torch.zeros(256)), ("other", torch.zeros(2))])
    assert not refused.success
    assert "has no weight named other" in refused.message
    assert said(engine) == before
    with pytest.raises(BadRequest, match="is there twice"):
        engine.update_weights_from_tensor([(NORM, torch.zeros(256)), (NORM, torch.zeros(256))])
    with pytest.raises(BadRequest, match="load_format must be None"):
        engine.update_weights_from_tensor([], load_format="direct")  # type: ignore[arg-type]
