"""States of a loaded model in files: what is read again is the same to the bit, and what does not fit is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.config.local_files import with_local_files
from bough.config.model_config import ModelConfig
from bough.config.packed_manifest import LAYOUT_VERSION
from bough.config.ranks import WeightRank
from bough.config.server_args import ServerArgs
from bough.config.sharding import ShardSpec
from bough.errors import BadRequest, BoughError, ConfigError, StartupError
from bough.model_executor.execution_choice import choose_execution
from bough.model_executor.loaded_model import LoadedModel
from bough.model_loader.packed_state import PackedState
from bough.model_loader.sharded_state import ShardedState, checked_pattern
from bough.models.base import Model
from bough.weight_sync.worker_weights import WorkerWeights
from tests.models.checkpoints import save_checkpoint
from tests.models.microscaled_checkpoints import SIZES, save_microscaled_checkpoint
from tests.models.quantized_checkpoints import awq, quantize
from tests.native import needs_native

CPU = torch.device("cpu")
MANIFEST, WEIGHTS = "bough-packed-0-of-1.json", "bough-packed-0-of-1.bin"


class Loaded:
    def __init__(self, path: Path, rank: WeightRank | None = None, **options: Any) -> None:
        args = with_local_files(ServerArgs(model_path=str(path), device="cpu", **options))
        self.config = ModelConfig.from_args(args)
        loaded = LoadedModel.load(self.config, CPU, args, choose_execution(self.config, CPU, args))
        self.model: Model = loaded.model
        self.live = loaded.memory.live
        self.live.rank = rank or WeightRank()
        self.weights = WorkerWeights(args, self.live, CPU)
        self.path = path

    def save(self, form: Any, directory: Path, *, max_bytes: int | None = None, pattern: str | None = None) -> Path:
        directory.mkdir()
        self.weights.save(form, str(directory), pattern=pattern, max_bytes=max_bytes)
        for each in self.path.glob("*.json"):
            shutil.copy(each, directory)
        return directory


def same(one: Model, other: Model) -> bool:
    there, here = dict(one.named_parameters()), dict(other.named_parameters())
    return there.keys() == here.keys() and all(torch.equal(there[name], each) for name, each in here.items())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "qwen2"
    save_checkpoint(path, "Qwen2", dtype=torch.bfloat16, tie_word_embeddings=True)
    return path


@needs_native
@pytest.mark.parametrize("options", [{}, {"quantization": "int8"}, {"quantization": "int4"}, {"dtype": "float32"}])
def test_a_packed_state_is_the_same_to_the_bit_and_brings_its_options(
    checkpoint: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    saved = Loaded(checkpoint, **options)
    packed = saved.save("packed", tmp_path / "packed")
    source = json.loads((packed / MANIFEST).read_text())["source"]
    assert source["files"] == ["model.safetensors"]
    assert len(source["digest"]) == 64
    again = Loaded(packed)
    assert same(again.model, saved.model)
    assert again.config.dtype == saved.config.dtype


@needs_native
def test_codes_of_a_quantised_checkpoint_stay_what_they_are(tmp_path: Path) -> None:
    original = save_checkpoint(tmp_path / "plain", "Llama", hidden_size=64, intermediate_size=128)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True, "version": "gemm"}
    path = quantize(original, config, awq, bits=4, group=32, symmetric=False).path
    saved = Loaded(path)
    packed = saved.save("packed", tmp_path / "packed")
    again = Loaded(packed)
    assert same(again.model, saved.model)
    with pytest.raises(BadRequest, match="save_packed_state"):
        saved.save("sharded_state", tmp_path / "sharded")


@needs_native
def test_experts_in_mxfp4_stay_so_in_packed_states_and_in_updates(tmp_path: Path) -> None:
    def stored(loaded: Loaded) -> set[str]:
        experts = [expert for layer in loaded.model.model.layers for expert in layer.mlp.experts.values()]
        return {matrix.packed.stored for each in experts for matrix in (each.gate_up_proj, each.down_proj)}

    saved = Loaded(save_microscaled_checkpoint(tmp_path / "one").path)
    live = Loaded(saved.save("packed", tmp_path / "packed"))
    assert same(live.model, saved.model)
    other = Loaded(save_microscaled_checkpoint(tmp_path / "other", seed=1).path)
    live.weights.prepare_disk(str(other.path), "auto").write()
    assert same(live.model, other.model)
    assert not same(live.model, saved.model)
    assert stored(live) == stored(saved) == {"mxfp4"}
    plain = save_checkpoint(tmp_path / "plain", "GptOss", dtype=torch.bfloat16, **SIZES).path
    with pytest.raises(BoughError, match="holds the codes"):
        live.weights.prepare_disk(str(plain), "auto")
    assert same(live.model, other.model)


def edited(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def edit(directory: Path) -> None:
        manifest = json.loads((directory / MANIFEST).read_text())
        change(manifest)
        (directory / MANIFEST).write_text(json.dumps(manifest))

    return edit


def of_two_ranks(directory: Path) -> None:
    for name in (MANIFEST, WEIGHTS):
        (directory / name).rename(directory / name.replace("of-1", "of-2"))


def shortened(directory: Path) -> None:
    os.truncate(directory / WEIGHTS, (directory / WEIGHTS).stat().st_size - 1)


UNFIT: dict[str, tuple[Callable[[Path], object], dict[str, Any], str]] = {
    "version": (edited(lambda m: m.update(layout_version=LAYOUT_VERSION + 1)), {}, "layout version"),
    "isa": (edited(lambda m: m.update(instruction_set="sve")), {}, "instruction set sve"),
    "ranks": (of_two_ranks, {}, "for 2 ranks"),
    "quantization": (lambda _: None, {"quantization": "int4"}, "has int8"),
    "dtype": (lambda _: None, {"dtype": "float32"}, "has bfloat16"),
    "truncated": (shortened, {}, "its manifest says"),
    "no weights": (lambda directory: (directory / WEIGHTS).unlink(), {}, "cannot load"),
    "damaged": (lambda directory: os.truncate(directory / MANIFEST, 100), {}, "damaged"),
    "places": (edited(lambda m: m["tensors"][3].update(offset=0)), {}, "damaged"),
    "tensors": (edited(lambda m: m["tensors"].pop()), {}, "does not fit"),
    "model": (lambda _: None, {"json_model_override_args": {"num_hidden_layers": 2}}, "does not fit"),
    "architecture": (edited(lambda m: m.update(architecture="LlamaForCausalLM")), {}, "architecture"),
}


@needs_native
@pytest.mark.parametrize("case", UNFIT)
def test_a_packed_state_that_does_not_fit_is_refused_in_one_line(checkpoint: Path, tmp_path: Path, case: str) -> None:
    break_it, options, words = UNFIT[case]
    packed = Loaded(checkpoint, quantization="int8").save("packed", tmp_path / "packed")
    break_it(packed)
    with pytest.raises(StartupError, match=words) as raised:
        Loaded(packed, **options)
    assert "\n" not in str(raised.value)


@needs_native
def test_a_packed_state_takes_the_place_of_running_weights(checkpoint: Path, tmp_path: Path) -> None:
    other = save_checkpoint(tmp_path / "other", "Qwen2", dtype=torch.bfloat16, seed=1, tie_word_embeddings=True).path
    packed = Loaded(other, quantization="int8").save("packed", tmp_path / "packed")
    live = Loaded(checkpoint, quantization="int8")
    live.weights.prepare_disk(str(packed), "packed").write()
    assert same(live.model, Loaded(packed).model)
    wrong = Loaded(other).save("packed", tmp_path / "wrong")
    with pytest.raises(BoughError, match="does not fit"):
        live.weights.prepare_disk(str(wrong), "packed").write()
    assert same(live.model, Loaded(packed).model)


@pytest.mark.parametrize("implementation", ["native", "torch"])
def test_a_sharded_state_has_the_checkpoints_weights_in_parts(
    checkpoint: Path, tmp_path: Path, implementation: str
) -> None:
    options = {} if implementation == "native" else {"dtype": "float16"}
    saved = Loaded(checkpoint, **options)
    sharded = saved.save("sharded_state", tmp_path / "sharded", max_bytes=20_000)
    files = sorted(sharded.glob("*.safetensors"))
    assert len(files) > 3
    assert {each.name for each in files} == {f"model-rank-0-part-{part}.safetensors" for part in range(len(files))}
    stored = {name: each for file in files for name, each in load_file(file).items()}
    original = load_file(checkpoint / "model.safetensors")
    assert {name: each.shape for name, each in stored.items()} == {name: each.shape for name, each in original.items()}
    assert all(torch.equal(stored[name].float(), each.float()) for name, each in original.items()) or options
    assert same(Loaded(sharded, load_format="sharded_state", **options).model, saved.model)
    assert same(Loaded(sharded, **options).model, saved.model)  # of one rank, it is a checkpoint like any other


def test_ranks_read_their_own_files(checkpoint: Path, tmp_path: Path) -> None:
    Loaded(checkpoint, WeightRank(0, 2)).save("sharded_state", tmp_path / "sharded")
    Loaded(checkpoint, WeightRank(1, 2)).save("sharded_state", tmp_path / "second")
    for each in (tmp_path / "second").glob("*.safetensors"):
        shutil.move(each, tmp_path / "sharded")
    for index in range(2):
        files = ShardedState(tmp_path / "sharded", WeightRank(index, 2)).files
        assert files
        assert all(f"rank-{index}-" in each.name for each in files)
    with pytest.raises(StartupError, match="for 2 ranks"):
        Loaded(tmp_path / "sharded", load_format="sharded_state")
    # Files of other engines say their rank in their names alone, and name stacks of projections.
    (tmp_path / "vllm").mkdir()
    save_file(load_file(checkpoint / "model.safetensors"), tmp_path / "vllm" / "model-rank-0-part-0.safetensors")
    shutil.copy(checkpoint / "config.json", tmp_path / "vllm")
    assert same(Loaded(tmp_path / "vllm", load_format="sharded_state").model, Loaded(checkpoint).model)
    with pytest.raises(StartupError, match="no sharded state"):
        Loaded(checkpoint, load_format="sharded_state")


def test_ranks_that_divide_the_model_otherwise_are_told_apart(checkpoint: Path, tmp_path: Path) -> None:
    native, other = (ShardSpec(world=2, style=style).division for style in ("gather", "reduce"))
    path = Loaded(checkpoint, WeightRank(0, 2, native)).save("sharded_state", tmp_path / "sharded")
    assert ShardedState(path, WeightRank(0, 2, native)).files
    for division in (other, ShardSpec(world=2, splits_experts=False).division):
        with pytest.raises(StartupError, match="divide") as refused:
            ShardedState(path, WeightRank(0, 2, division))
        assert "\n" not in str(refused.value)


def test_a_packed_state_of_several_ranks_is_read_by_rank(checkpoint: Path, tmp_path: Path) -> None:
    packed = Loaded(checkpoint, WeightRank(1, 2)).save("packed", tmp_path / "packed")
    assert PackedState(packed, WeightRank(1, 2)).manifest.rank == 1
    with pytest.raises(StartupError, match="for 2 ranks"):
        PackedState(packed, WeightRank(0, 3))


@pytest.mark.parametrize(
    "pattern",
    ["{rank}.safetensors", "{part}-{rank}", "a/{rank}{part}.safetensors", "{rank:s}{part}.safetensors", "{", "{0}"],
)
def test_patterns_name_rank_and_part(pattern: str) -> None:
    with pytest.raises(BadRequest, match="pattern"):
        checked_pattern(pattern)


def test_weights_travel_through_tensorizer(checkpoint: Path, tmp_path: Path) -> None:
    saved = Loaded(checkpoint)
    try:
        import tensorizer  # noqa: F401
    except ImportError:
        with pytest.raises(BadRequest, match=r"bough-llm\[tensorizer\]"):
            saved.save("tensorizer", tmp_path / "tensors")
        with pytest.raises(ConfigError, match=r"bough-llm\[tensorizer\]"):
            Loaded(checkpoint, load_format="tensorizer")
        pytest.skip("tensorizer is not installed")
    tensors = saved.save("tensorizer", tmp_path / "tensors")
    assert same(Loaded(tensors, load_format="tensorizer").model, saved.model)
    os.truncate(tensors / "model.tensors", 1000)
    with pytest.raises(StartupError, match="damaged"):
        Loaded(tensors, load_format="tensorizer")


@needs_native
def test_weights_that_are_of_no_checkpoint_have_no_source(checkpoint: Path, tmp_path: Path) -> None:
    live = Loaded(checkpoint, quantization="int8")
    path = tmp_path / "sent.safetensors"
    save_file({"model.norm.weight": torch.full((48,), 2.0)}, path)
    live.weights.prepare_file(str(path)).write()
    packed = live.save("packed", tmp_path / "packed")
    manifest = PackedState(packed).manifest
    assert manifest.source.files == []
    assert manifest.source.digest == ""
    assert same(Loaded(packed).model, live.model)
