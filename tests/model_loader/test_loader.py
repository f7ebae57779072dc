from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.model_loader.loader import load_model, open_source
from bough.model_loader.sources import SafetensorsSource
from bough.models.base import CausalLM
from bough.observability.progress import Progress
from tests.models.checkpoints import save_checkpoint


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path, "Llama")
    return tmp_path


def load(directory: Path, load_format: str = "auto", seed: int = 0, **options: Any) -> CausalLM:
    config = ModelConfig.from_path(str(directory), device="cpu", **options)
    return load_model(config, source=open_source(config, load_format), device=torch.device("cpu"), seed=seed)


def weights(model: CausalLM) -> dict[str, torch.Tensor]:
    return {name: model.checkpoint_weights[name].read().clone() for name in sorted(model.required_names)}


def assert_same(ours: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == expected.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=0)


def split(directory: Path, shards: int) -> None:
    """Turn a single file into shards with an index."""
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    weight_map = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        shard = {name: tensors[name] for name in sorted(tensors)[number::shards]}
        save_file(shard, directory / file)
        weight_map.update(dict.fromkeys(shard, file))
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_shards_and_single_file_give_the_same_model(directory: Path) -> None:
    single = weights(load(directory))
    assert_same(single, load_file(directory / "model.safetensors"))
    split(directory, 3)
    assert len(SafetensorsSource(directory).files) == 3
    assert_same(weights(load(directory)), single)


def test_files_that_the_index_does_not_name_are_not_read(directory: Path) -> None:
    split(directory, 2)
    save_file({"adapter": torch.zeros(1)}, directory / "adapter.safetensors")
    load(directory)


@pytest.mark.parametrize("name", ["model.norm.weight", "lm_head.weight"])
def test_of_a_tensor_in_two_files_that_counts_which_the_index_names(directory: Path, name: str) -> None:
    single = weights(load(directory))
    split(directory, 3)
    index = directory / "model.safetensors.index.json"
    mapped = json.loads(index.read_text())["weight_map"][name]
    for file in directory.glob("model-*.safetensors"):
        if file.name != mapped:
            save_file({**load_file(file), name: torch.full_like(single[name], 7.0)}, file)
    assert_same(weights(load(directory)), single)
    found = SafetensorsSource(directory).numbers(name)
    assert found is not None
    assert torch.equal(found, single[name])


def test_a_tensor_in_two_files_is_refused_where_no_index_says_which_counts(directory: Path) -> None:
    single = weights(load(directory))
    split(directory, 2)
    (directory / "model.safetensors.index.json").unlink()
    assert_same(weights(load(directory)), single)
    save_file({"model.norm.weight": torch.zeros(48)}, directory / "left-over.safetensors")
    both = r"both left-over\.safetensors and model-0000\d-of-00002\.safetensors have a tensor model\.norm\.weight"
    with pytest.raises(StartupError, match=both):
        load(directory)


def test_weights_are_cast_while_loading(directory: Path) -> None:
    original = load_file(directory / "model.safetensors")
    model = load(directory, dtype="bfloat16")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert_same(weights(model), {name: tensor.bfloat16() for name, tensor in original.items()})


def replace_tensors(directory: Path, **changes: torch.Tensor | None) -> None:
    tensors = load_file(directory / "model.safetensors")
    for name, tensor in changes.items():
        tensors.pop(name)
        if tensor is not None:
            tensors[name] = tensor
    save_file(tensors, directory / "model.safetensors")


def test_missing_weights_are_named(directory: Path) -> None:
    replace_tensors(directory, **{"model.layers.1.mlp.up_proj.weight": None, "model.norm.weight": None})
    with pytest.raises(StartupError, match=r"lacks 2 of 30 weights: model.layers.1.mlp.up_proj.weight, model.norm"):
        load(directory)


def without_prefix(directory: Path) -> dict[str, torch.Tensor]:
    """Store a checkpoint as one of the body alone; its tensors as they were."""
    tensors = load_file(directory / "model.safetensors")
    below = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name != "lm_head.weight"}
    save_file(below, directory / "model.safetensors")
    return tensors


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_checkpoint_of_the_body_alone_loads_as_in_transformers(tmp_path: Path, family: str, shards: int) -> None:
    reference = save_checkpoint(tmp_path, family, tie_word_embeddings=True).reference
    expected = without_prefix(tmp_path)
    if shards > 1:
        split(tmp_path, shards)
    assert_same(weights(load(tmp_path)), expected)
    theirs = type(reference).from_pretrained(tmp_path, dtype=torch.float32)
    assert torch.equal(theirs.model.layers[1].mlp.up_proj.weight, expected["model.layers.1.mlp.up_proj.weight"])


def test_the_body_alone_of_a_model_with_a_head_of_its_own_lacks_it(directory: Path) -> None:
    without_prefix(directory)
    with pytest.raises(StartupError, match=r"lacks 1 of 30 weights: lm_head\.weight"):
        load(directory)


def test_weight_of_wrong_shape_is_named_with_its_file(directory: Path) -> None:
    replace_tensors(directory, **{"model.norm.weight": torch.zeros(47)})
    with pytest.raises(StartupError, match=r"model.safetensors: weight model.norm.weight must have shape \[48\]"):
        load(directory)


def test_damaged_file_is_named(directory: Path) -> None:
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(StartupError, match=r"cannot load .*model\.safetensors: .*download it again"):
        load(directory)


def test_missing_shard_is_named(directory: Path) -> None:
    split(directory, 2)
    (directory / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(StartupError, match=r"lacks model-00002-of-00002\.safetensors"):
        load(directory)


@pytest.mark.parametrize(
    "index",
    ["[]", '{"weight_map": 3}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "../x"}}'],
)
def test_bad_index_is_refused(directory: Path, index: str) -> None:
    (directory / "model.safetensors").unlink()
    (directory.parent / "x").write_bytes(b"")
    (directory / "model.safetensors.index.json").write_text(index)
    with pytest.raises(StartupError, match="index"):
        load(directory)


def test_a_single_file_counts_before_an_index_that_does_not_name_it(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    single = weights(load(directory))
    old = {name: torch.zeros_like(tensor) for name, tensor in single.items()}
    save_file(old, directory / "old.safetensors")
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(old, "old.safetensors")}))
    assert_same(weights(load(directory)), single)
    assert "has both model.safetensors and model.safetensors.index.json, which does not name it" in caplog.text
    caplog.clear()
    places = {**dict.fromkeys(single, "model.safetensors"), "model.norm.weight": "old.safetensors"}
    index.write_text(json.dumps({"weight_map": places}))
    assert_same(weights(load(directory)), {**single, "model.norm.weight": old["model.norm.weight"]})
    assert not caplog.records


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_model.bin"])
@pytest.mark.parametrize("saved_as", ["model.safetensors", "weights.safetensors"])
def test_an_adapter_beside_a_model_is_not_applied_and_said_not_to_be(
    directory: Path, caplog: pytest.LogCaptureFixture, name: str, saved_as: str
) -> None:
    single = weights(load(directory))
    (directory / "model.safetensors").rename(directory / saved_as)
    (directory / "adapter_config.json").write_text("{}")
    load(directory)
    assert not caplog.records
    save_file({"base_model.model.lm_head.lora_A.weight": torch.ones(1)}, directory / name)
    assert_same(weights(load(directory)), single)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "has an adapter beside the model (adapter_config.json), which is not applied" in caplog.text
    (directory / saved_as).unlink()
    with pytest.raises(StartupError, match="has the weights of an adapter and not those of its model; merge"):
        load(directory)


def test_pickled_weights_are_refused_with_a_reason(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(StartupError, match=r"pickled weights.*convert the checkpoint to safetensors"):
        load(directory)


def test_no_weights_at_all(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    with pytest.raises(StartupError, match=r"no \*\.safetensors files; .* --load-format dummy"):
        load(directory)


def test_dummy_weights_need_no_files_and_follow_the_seed(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    first, again, other = (weights(load(directory, "dummy", seed)) for seed in (1, 1, 2))
    assert_same(first, again)
    embedding = "model.embed_tokens.weight"
    assert not torch.equal(first[embedding], other[embedding])
    assert not torch.equal(first[embedding][0], first[embedding][1])
    assert 0.01 < float(first[embedding].std()) < 0.05
    assert bool((first["model.norm.weight"] == 1).all())


def test_progress_is_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "bough.observability.progress")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    with Progress("Loading weights", 10) as progress:
        progress.advance(4)
        progress.advance(6)
    assert screen.getvalue().startswith("\rLoading weights")
    assert screen.getvalue().endswith("100 %\n")


def test_progress_is_log_lines_elsewhere(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    caplog.set_level(logging.INFO)
    with Progress("Loading weights", 10) as progress:
        progress.advance(1)
        now[0] = 6.0
        progress.advance(1)
    assert [record.message for record in caplog.records] == ["Loading weights: 20 %"]


def test_a_file_that_the_system_does_not_map_is_named_with_its_size(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("unable to mmap 51539607752 bytes from file: Cannot allocate memory (12)")

    monkeypatch.setattr("bough.model_loader.sources.safe_open", refuse)
    with pytest.raises(StartupError, match=r"cannot map .*model\.safetensors, 0\.00 GiB, .*several smaller files"):
        load(directory)


@pytest.fixture
def tied(tmp_path: Path) -> Path:
    save_checkpoint(tmp_path, "Llama", tie_word_embeddings=True)
    return tmp_path


def with_head(directory: Path, head: torch.Tensor) -> torch.Tensor:
    """Add a head of its own to a tied checkpoint; its embedding."""
    tensors = load_file(directory / "model.safetensors")
    save_file({**tensors, "lm_head.weight": head}, directory / "model.safetensors")
    return tensors["model.embed_tokens.weight"]


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_tied_checkpoint_with_another_head_is_refused_unless_it_is_to_be_used(tied: Path, shards: int) -> None:
    head = torch.randn(160, 48)
    embedding = with_head(tied, head)
    if shards > 1:
        split(tied, shards)
    with pytest.raises(StartupError, match=r"another lm_head\.weight than .*tie_word_embeddings.*--json-model-overr"):
        load(tied)
    loaded = weights(load(tied, json_model_override_args={"tie_word_embeddings": False}))
    assert torch.equal(loaded["lm_head.weight"], head)
    assert torch.equal(loaded["model.embed_tokens.weight"], embedding)


def test_a_tied_checkpoint_may_have_the_head_twice(tied: Path) -> None:
    expected = load_file(tied / "model.safetensors")
    with_head(tied, expected["model.embed_tokens.weight"].clone())
    assert_same(weights(load(tied)), expected)
    assert_same(weights(load(tied, dtype="bfloat16")), {name: tensor.bfloat16() for name, tensor in expected.items()})


def test_a_head_that_differs_is_refused_beside_a_body_without_its_prefix(tied: Path) -> None:
    without_prefix(tied)
    save_file(
        {**load_file(tied / "model.safetensors"), "lm_head.weight": torch.randn(160, 48)}, tied / "model.safetensors"
    )
    with pytest.raises(StartupError, match=r"another lm_head\.weight"):
        load(tied)


def test_a_tied_checkpoint_may_have_the_heads_name_alone(tied: Path) -> None:
    expected = load_file(tied / "model.safetensors")
    others = {name: tensor for name, tensor in expected.items() if name != "model.embed_tokens.weight"}
    save_file({**others, "lm_head.weight": expected["model.embed_tokens.weight"]}, tied / "model.safetensors")
    assert_same(weights(load(tied)), expected)


def test_scales_of_kv_in_a_checkpoint_that_is_not_quantised_are_no_weights(directory: Path) -> None:
    algorithms = {"quant_algo": None, "kv_cache_quant_algo": "FP8"}
    (directory / "hf_quant_config.json").write_text(json.dumps({"quantization": algorithms}))
    expected = load_file(directory / "model.safetensors")
    scales = {"0.self_attn.k_proj.k_scale": 0.5, "0.self_attn.v_proj.v_scale": 0.25}
    scales |= {"1.self_attn.k_proj.output_scale": 2.0}
    more = {f"model.layers.{name}": torch.tensor(scale) for name, scale in scales.items()}
    save_file(expected | more, directory / "model.safetensors")
    split(directory, 2)
    assert_same(weights(load(directory)), expected)
    source = open_source(ModelConfig.from_path(str(directory), device="cpu"), "auto")
    assert source is not None
    assert source.kv_scales() == {0: (0.5, 0.25), 1: (2.0, 1.0)}


def test_an_index_decides_only_between_files_that_have_a_tensor(tmp_path: Path) -> None:
    save_file({"x": torch.ones(1), "y": torch.ones(1)}, tmp_path / "a.safetensors")
    save_file({"z": torch.ones(1)}, tmp_path / "b.safetensors")
    weight_map = {"x": "a.safetensors", "y": "b.safetensors", "z": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    source = SafetensorsSource(tmp_path)
    found = {}
    for file in ("a.safetensors", "b.safetensors"):
        with safe_open(tmp_path / file, "pt") as tensors:
            found[file] = sorted(source.names_in(tmp_path / file, tensors))
    assert found == {"a.safetensors": ["x", "y"], "b.safetensors": ["z"]}
