"""Another checkpoint's weights take the place of those of a model that is in use, or nothing changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, BoughError, EngineDead, ModelError, RequestFailed, StartupError
from bough.layers.linear_method import TORCH
from bough.layers.packed_method import PackedMethod, packed_method
from bough.layers.stored_formats import StoredFormats
from bough.model_executor.native_path import native_threads
from bough.model_loader.loader import load_model, open_source
from bough.models.base import Model
from bough.models.registry import make_model
from bough.weight_sync.live_weights import MOST_NUMBERS_READ, LiveWeights, state_of
from bough.weight_sync.staged_weights import StagedWeights
from bough.weight_sync.worker_weights import WorkerWeights
from tests.models.checkpoints import save_checkpoint

CPU = torch.device("cpu")
UP = "model.layers.1.mlp.up_proj.weight"
GATE_UP = "model.layers.1.mlp.gate_up_proj.weight"
NORM = "model.norm.weight"
EMBEDDING = "model.embed_tokens.weight"
INV_FREQ = "model.layers.0.self_attn.rotary_emb.inv_freq"


@dataclass
class Live:
    path: Path
    other: Path
    model: Model
    weights: LiveWeights

    def replace(self, path: Path | None = None, load_format: str = "auto") -> None:
        self.weights.replace(config_of(path or self.other), load_format)

    def is_of(self, path: Path) -> bool:
        stored = load_file(path / "model.safetensors")
        return all(torch.equal(self.model.checkpoint_weights[name].read(), each) for name, each in stored.items())


def config_of(path: Path) -> ModelConfig:
    return ModelConfig.from_path(str(path), device="cpu")


def live_of(path: Path, other: Path, *, packed: bool = True, load_format: str = "auto", **facts: Any) -> Live:
    config = config_of(path)
    threads = native_threads(config, CPU, 1) if packed else None
    method = PackedMethod(threads) if threads is not None else TORCH
    source = open_source(config, load_format)
    model = load_model(config, source=source, device=CPU, seed=0, method=method)
    return Live(path, other, model, LiveWeights(model, config, load_format, files=state_of(source), seed=0, **facts))


@pytest.fixture
def live(tmp_path: Path) -> Live:
    for seed, name in enumerate(("first", "second")):
        save_checkpoint(tmp_path / name, "Qwen2", tie_word_embeddings=False, seed=seed)
    return live_of(tmp_path / "first", tmp_path / "second")


def change(path: Path, **changes: torch.Tensor | None) -> None:
    """Write a checkpoint with other tensors; ``None`` leaves one out."""
    tensors: dict[str, Any] = {**load_file(path / "model.safetensors"), **changes}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept, path / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize("packed", [True, False])
def test_all_weights_become_those_of_the_other(live: Live, packed: bool) -> None:
    live = live_of(live.path, live.other, packed=packed)
    addresses = [parameter.data_ptr() for parameter in live.model.parameters()]
    live.replace()
    assert live.is_of(live.other)
    live.replace(live.path)
    assert live.is_of(live.path)
    assert [parameter.data_ptr() for parameter in live.model.parameters()] == addresses


def test_files_that_change_after_the_check_are_not_trusted(live: Live) -> None:
    prepared = live.weights.prepare_replacement(config_of(live.other), "auto")
    change(live.other, **{NORM: torch.full((48,), torch.nan)})
    with pytest.raises(StartupError, match="changed while they were read"):
        prepared.write()
    assert live.is_of(live.path)


def test_random_weights_give_way_and_come_back(live: Live) -> None:
    made = live_of(live.path, live.other, load_format="dummy")
    random = {name: weight.read().clone() for name, weight in made.model.checkpoint_weights.items()}
    made.replace()
    assert made.is_of(made.other)
    made.replace(made.path, "dummy")
    for name, weight in made.model.checkpoint_weights.items():
        assert torch.equal(weight.read(), random[name]), name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({UP: torch.zeros(3, 3)}, "must have shape [80, 48], got [3, 3]"),
        ({UP: torch.zeros(80, 48, dtype=torch.int32)}, "must be floating point"),
        ({UP: None}, "lacks 1 of "),
        ({"model.layers.7.mlp.up_proj.weight": torch.zeros(80, 48)}, "has no weight named model.layers.7"),
        *(({NORM: torch.full((48,), value)}, "not finite") for value in (torch.nan, torch.inf, -torch.inf)),
        ({UP: torch.zeros(80, 48, dtype=torch.bfloat16).index_fill(0, torch.tensor(7), torch.nan)}, "not finite"),
    ],
)
def test_what_does_not_fit_changes_nothing(live: Live, changes: dict[str, Any], message: str) -> None:
    change(live.other, **changes)
    with pytest.raises(StartupError) as raised:
        live.replace()
    assert message in raised.value.message
    assert live.is_of(live.path)


def test_files_that_are_cut_short_change_nothing(live: Live) -> None:
    file = live.other / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(StartupError, match="damaged or cut short"):
        live.replace()
    assert live.is_of(live.path)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("num_hidden_layers", 2, "its num_layers is 2, and this server's is 3"),
        ("rms_norm_eps", 0.5, "its rms_norm_eps is 0.5"),
        ("rope_theta", 5.0, "mixer.rope.rope_theta is 5.0"),
        ("rope_parameters", {"rope_type": "default", "rope_theta": 5.0}, "mixer.rope.rope_theta is 5.0"),
        ("max_position_embeddings", 100, "its longest context is 100, and this server's is 512 or more"),
        ("architectures", ["Qwen3ForCausalLM"], "its architecture is Qwen3ForCausalLM"),
    ],
)
def test_another_model_is_refused_by_name(live: Live, entry: str, value: Any, message: str) -> None:
    file = live.other / "config.json"
    config = json.loads(file.read_text())
    if entry == "rope_theta":
        del config["rope_parameters"]
    file.write_text(json.dumps({**config, entry: value}))
    with pytest.raises(BadRequest) as raised:
        live.replace()
    assert message in raised.value.message
    assert raised.value.param == "model_path"
    assert live.is_of(live.path)


def test_a_longer_context_is_no_other_model(live: Live) -> None:
    file = live.other / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "max_position_embeddings": 1024}))
    live.replace()
    assert live.is_of(live.other)
    live.replace(live.path)
    assert live.is_of(live.path)


class Broken(Exception):
    """What a disk may do."""


def break_at(live: Live, monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[str]:
    """Have the first writes of a norm fail, after which some weights are the new ones."""
    weight, failed = live.model.checkpoint_weights[NORM], list[str]()
    write = weight.write

    def failing(tensor: torch.Tensor) -> None:
        if len(failed) < times:
            failed.append(NORM)
            raise Broken("input/output error")
        write(tensor)

    monkeypatch.setattr(weight, "write", failing)
    return failed


def test_what_breaks_on_the_way_has_the_old_weights_loaded_again(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = break_at(live, monkeypatch, times=1)
    with pytest.raises(RequestFailed, match="input/output error"):
        live.replace()
    assert failed == [NORM]
    assert live.is_of(live.path)
    live.replace()
    assert live.is_of(live.other)


def test_after_an_update_these_are_the_old_ones(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.replace()
    break_at(live, monkeypatch, times=1)
    with pytest.raises(RequestFailed, match="input/output error"):
        live.replace(live.path)
    assert live.is_of(live.other)


def test_neither_the_new_nor_the_old_weights_is_the_end(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    break_at(live, monkeypatch, times=2)
    with pytest.raises(EngineDead, match=r"could not be loaded \(input/output error\), and those of .*first not again"):
        live.replace()


def test_old_files_that_are_gone_are_the_end_as_well(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    break_at(live, monkeypatch, times=1)
    shutil.rmtree(live.path)
    with pytest.raises(EngineDead, match="not again"):
        live.replace()


def test_other_scales_for_a_cache_in_8_bits_are_refused(live: Live) -> None:
    scaled = live_of(live.path, live.other, kv_scales={})
    change(scaled.other, **{"model.layers.0.self_attn.k_scale": torch.tensor(0.5)})
    with pytest.raises(BadRequest, match="other scales for keys and values"):
        scaled.replace()
    assert scaled.is_of(scaled.path)
    live_of(live.path, live.other).replace()


def test_codes_of_one_kind_stay_of_that_kind(live: Live) -> None:
    file = live.other / "config.json"
    entry = {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}
    file.write_text(json.dumps({**json.loads(file.read_text()), "quantization_config": entry}))
    with pytest.raises(BadRequest, match="quantised in another way or not at all"):
        live_of(live.path, live.other, holds_codes=True).replace()


def test_some_weights_are_replaced(live: Live) -> None:
    addresses = [parameter.data_ptr() for parameter in live.model.parameters()]
    wanted = {UP: torch.randn(80, 48), NORM: torch.randn(48)}
    assert live.weights.update_weights(list(wanted.items())) == 2
    for name, stored in load_file(live.path / "model.safetensors").items():
        assert torch.equal(live.model.checkpoint_weights[name].read(), wanted.get(name, stored)), name
    assert [parameter.data_ptr() for parameter in live.model.parameters()] == addresses


@pytest.mark.parametrize(
    "wrong",
    [
        ("nothing", torch.zeros(2)),
        (NORM, torch.zeros(2)),
        (NORM, torch.zeros(48).int()),
        (NORM, torch.full((48,), torch.nan)),
    ],
)
def test_one_that_does_not_fit_has_none_replaced(live: Live, wrong: tuple[str, torch.Tensor]) -> None:
    with pytest.raises(ModelError):
        live.weights.update_weights([(UP, torch.randn(80, 48)), wrong])
    assert live.is_of(live.path)


@pytest.mark.parametrize("form", ["int8", "int4"])
def test_numbers_that_cannot_be_quantised_change_no_bit(live: Live, form: Literal["int8", "int4"]) -> None:
    config = config_of(live.path)
    threads = native_threads(config, CPU, 1)
    assert threads is not None
    source = open_source(config, "auto")
    model = load_model(config, source=source, device=CPU, seed=0, method=packed_method(threads, form))
    weights = LiveWeights(model, config, "auto", files=state_of(source), seed=0)
    before = [parameter.clone() for parameter in model.parameters()]
    wrong = torch.randn(48, 80)
    wrong[3, 5] = torch.nan
    with pytest.raises(ModelError, match="not finite"):
        weights.update_weights([(UP, torch.randn(80, 48)), ("model.layers.1.mlp.down_proj.weight", wrong)])
    for parameter, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter.view(torch.uint8), old.view(torch.uint8))


def coded(directory: Path, form: Literal["int4", "mxfp4"] = "int4") -> LiveWeights:
    """Weights of which every matrix is held in a checkpoint's 4 bits."""
    path = save_checkpoint(directory, "Qwen2", hidden_size=64, intermediate_size=128).path
    config = config_of(path)
    threads = native_threads(config, CPU, 1)
    assert threads is not None
    method = StoredFormats(lambda _: form, {form: PackedMethod(threads, form, exact=True)}, apart=True)
    with torch.device(CPU):
        model = make_model(config, method)
    return LiveWeights(model, config, "auto", files=[], seed=0, holds_codes=True)


def memory_of(model: Model) -> list[bytes]:
    return [each.detach().view(-1).view(torch.uint8).numpy().tobytes() for each in model.parameters()]


@pytest.mark.parametrize("form", ["int4", "mxfp4"])
def test_codes_of_a_checkpoint_take_no_other_numbers(tmp_path: Path, form: Literal["int4", "mxfp4"]) -> None:
    """A matrix that is held in a checkpoint's 4 bits refuses, and nothing else has changed by then."""
    weights = coded(tmp_path / "plain", form)
    before = memory_of(weights.model)
    with pytest.raises(ModelError, match=f"held as {form}"):
        weights.update_weights([(NORM, torch.ones(64)), (UP, torch.randn(128, 64))])
    checks = WorkerWeights(ServerArgs(), weights, CPU)
    for param, overwrite in (
        ("load_format", lambda: weights.replace(weights.config, "dummy")),
        ("action", lambda: checks.prepare_check("reset_tensors")),
    ):
        with pytest.raises(BadRequest, match=f"held as {form}") as refused:
            overwrite()
        assert refused.value.param == param
    assert memory_of(weights.model) == before


def test_weights_are_overwritten_to_see_that_updates_reach_them(live: Live) -> None:
    checks = WorkerWeights(ServerArgs(), live.weights, CPU)
    with pytest.raises(BadRequest):
        checks.prepare_check("compare")
    assert checks.prepare_check("snapshot").write() == 0
    assert checks.prepare_check("compare").write() == 0
    reset = checks.prepare_check("reset_tensors")
    assert live.is_of(live.path)
    assert reset.write() == len(live.model.required_names)
    with pytest.raises(BadRequest) as refused:
        checks.prepare_check("compare")
    assert refused.value.code == "differ"
    live.replace(live.path)
    assert checks.prepare_check("compare").write() == 0


def test_what_breaks_on_the_way_is_the_end(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    break_at(live, monkeypatch, times=1)
    with pytest.raises(EngineDead, match="could be loaded in part only: input/output error"):
        live.weights.update_weights([(UP, torch.randn(80, 48)), (NORM, torch.randn(48))])


def test_names_are_there_once_and_known(live: Live) -> None:
    for weights, message in (
        ([(NORM, torch.ones(48)), (NORM, torch.ones(48))], "is there twice"),
        ([(UP, torch.ones(80, 48)), (GATE_UP, torch.ones(160, 48))], "shares rows"),
        ([(GATE_UP, torch.ones(160, 48)), (UP, torch.ones(80, 48))], "shares rows"),
        ([], "none of the names"),
        ([(INV_FREQ, torch.zeros(8))], "none of the names"),
    ):
        with pytest.raises(BadRequest, match=message):
            live.weights.update_weights(weights)
    assert live.is_of(live.path)


def test_only_what_is_taken_counts(live: Live) -> None:
    assert live.weights.update_weights([(INV_FREQ, torch.zeros(8)), (NORM, torch.ones(48))]) == 1
    outlines = [(INV_FREQ, torch.empty(2**40, device="meta")), (NORM, torch.empty(48, device="meta"))]
    with pytest.raises(BadRequest, match="more numbers than the model has"):
        live.weights.check(outlines)


@pytest.mark.parametrize(("dtypes", "shapes", "param"), [([], [[48]], "dtypes"), (["float32"], [], "shapes")])
def test_lists_of_a_call_are_of_one_length(live: Live, dtypes: list[str], shapes: list[list[int]], param: str) -> None:
    with pytest.raises(BadRequest, match="must have as many elements as names, 1, got 0") as raised:
        WorkerWeights(ServerArgs(), live.weights, CPU).prepare_group("g", [NORM], dtypes, shapes)
    assert raised.value.param == param


def test_a_tied_head_is_the_embedding(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / "tied", "Qwen2", tie_word_embeddings=True).path
    tied = live_of(path, path)
    wanted = torch.randn(160, 48)
    assert tied.weights.update_weights([("lm_head.weight", wanted)]) == 1
    assert torch.equal(tied.model.checkpoint_weights[EMBEDDING].read(), wanted)
    both = [(EMBEDDING, torch.zeros(160, 48)), ("lm_head.weight", wanted)]
    with pytest.raises(BadRequest, match="shares its memory"):
        tied.weights.update_weights(both)
    assert torch.equal(tied.model.checkpoint_weights[EMBEDDING].read(), wanted)
    assert (
        tied.weights.update_weights([(EMBEDDING, torch.zeros(160, 48)), ("lm_head.weight", torch.zeros(160, 48))]) == 1
    )


def test_files_that_have_changed_meanwhile_are_not_the_old_ones(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    break_at(live, monkeypatch, times=1)
    shutil.copyfile(live.other / "model.safetensors", live.path / "model.safetensors")
    with pytest.raises(EngineDead, match=r"not again .its files have changed since"):
        live.replace(live.path)


def test_weights_of_no_checkpoint_cannot_be_loaded_again(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.weights.update_weights([(UP, torch.randn(80, 48))])
    break_at(live, monkeypatch, times=1)
    with pytest.raises(EngineDead, match="and the old ones were in no checkpoint"):
        live.replace()


def test_after_a_whole_checkpoint_they_can(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    live.weights.update_weights([(UP, torch.randn(80, 48))])
    live.replace()
    break_at(live, monkeypatch, times=1)
    with pytest.raises(RequestFailed, match="input/output error"):
        live.replace(live.path)
    assert live.is_of(live.other)


def test_rows_are_read_as_the_model_has_them(live: Live) -> None:
    stored = load_file(live.path / "model.safetensors")
    assert live.weights.rows(UP, 2) == stored[UP][:2].tolist()
    assert live.weights.rows(NORM, 1000) == stored[NORM].tolist()
    with pytest.raises(BadRequest, match="no weight 'up'") as raised:
        live.weights.rows("up", 1)
    assert raised.value.param == "name"


def test_only_so_many_numbers_are_read(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_NUMBERS_READ == 2**20
    monkeypatch.setattr("bough.weight_sync.live_weights.MOST_NUMBERS_READ", 95)
    assert len(live.weights.rows(UP, 1)) == 1
    with pytest.raises(BadRequest, match=r"2 rows of .* are 96 numbers") as raised:
        live.weights.rows(UP, 2)
    assert raised.value.param == "truncate_size"


def test_errors_are_the_projects_own(live: Live) -> None:
    for path in (live.path.parent, live.path / "config.json"):
        with pytest.raises(BoughError):
            live.replace(path)


def test_an_update_of_several_calls_needs_memory_for_a_copy(live: Live) -> None:
    room = [0]
    weights = WorkerWeights(ServerArgs(), live.weights, CPU, available=lambda device: room[0])
    large = StagedWeights(live.weights, lambda device: room[0])
    large.check_room(1, CPU)
    asked: list[torch.Size] = []

    def sent() -> Iterator[tuple[str, torch.Tensor]]:
        for rows in (2**20, 2**26, 1):
            tensor = torch.empty(1).expand(rows)  # which has no such memory
            asked.append(tensor.shape)
            yield NORM, tensor

    for refuse in (lambda: large.check_room(2**30, CPU), lambda: large.copies(sent())):
        with pytest.raises(RequestFailed) as refused:
            refuse()
        assert refused.value.status_code == 503
    assert len(asked) == 2  # before the others come
    room[0] = 2**40
    weights.begin_update()
    weights.load_weights([(NORM, torch.full((48,), 2.0))])
    assert weights.prepare_loaded().write() == 1
    assert weights.staged is not None
    weights.staged.call = "first"
    weights.load_weights([(NORM, torch.full((48,), 3.0)), (EMBEDDING, torch.zeros(160, 48))])
    assert weights.prepare_loaded().write() == 2
    weights.unstage("first")
    weights.staged.call = "second"
    weights.unstage("second")
    assert live.is_of(live.path)
    assert weights.prepare_end().write() == 1
    assert live.model.checkpoint_weights[NORM].read().tolist() == [2.0] * 48
    with pytest.raises(BadRequest):
        weights.prepare_end().write()
