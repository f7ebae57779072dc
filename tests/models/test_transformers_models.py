"""Models that transformers computes give its logits here, however the work is cut into steps; the rest is refused."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bough.config import architectures
from bough.config.architectures import TESTED_WITH_TRANSFORMERS, UNSUPPORTED_MODEL
from bough.config.model_config import ModelConfig
from bough.errors import BadRequest, ConfigError, StartupError
from bough.models.registry import complete_config
from bough.models.transformers_code import Halves
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, Sequence, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.models.microscaled_checkpoints import save_microscaled_checkpoint
from tests.models.quantized_checkpoints import float8, gptq, quantize
from tests.models.transformers_checkpoints import FURTHER, REFUSED, SERVED, configuration, save_transformers_checkpoint
from tests.tables import table

LOGIT_TOLERANCE = 1e-4
_LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 1e4,
    "original_max_position_embeddings": 48,
    "short_factor": [1.0 + i / 8 for i in range(8)],
    "long_factor": [2.0 + i / 2 for i in range(8)],
}
NEW_TOKENS = 8


@pytest.fixture(scope="module", params=SERVED, ids=str)
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_transformers_checkpoint(tmp_path_factory.mktemp("checkpoint"), *SERVED[request.param])


@pytest.fixture(scope="module")
def runner(checkpoint: Checkpoint) -> RecordingRunner:
    return make_runner(checkpoint.path, page_size=16)


@pytest.fixture(scope="module")
def olmo(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_transformers_checkpoint(tmp_path_factory.mktemp("olmo"), *SERVED["Olmo2ForCausalLM"])


def random_prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed * 1000 + length).choices(range(3, VOCAB_SIZE), k=length)


def assert_as_reference(checkpoint: Checkpoint, sequence: Sequence) -> None:
    reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
    assert float((torch.stack(sequence.logits) - reference).abs().max()) <= LOGIT_TOLERANCE
    assert sequence.output == reference.argmax(-1).tolist()


def write_config(path: Path, model_type: str, overrides: dict[str, Any], *architectures: str) -> None:
    path.mkdir(exist_ok=True)
    config = configuration(model_type, overrides)
    known = [name for name, (kind, *_) in {**SERVED, **REFUSED}.items() if kind == model_type]
    config.architectures = list(architectures) or known
    config.save_pretrained(path)


def test_list_of_tested_architectures_is_the_list_of_these_tests() -> None:
    assert sorted(SERVED) == sorted(TESTED_WITH_TRANSFORMERS)


def test_logits_are_those_of_transformers(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    """Cold, from a cached prefix, in chunks, in mixed batches, with contexts beyond the windows."""
    builder = PlanBuilder(runner)
    first = builder.add(random_prompt(45))
    builder.generate(first, NEW_TOKENS)
    cached = builder.add(first.tokens[:32] + random_prompt(9, seed=3), prefix_of=first, prefix_len=32)
    builder.generate(cached, NEW_TOKENS)
    chunked = builder.add(random_prompt(45, seed=1))
    builder.generate(chunked, NEW_TOKENS, chunks=[3, 17, 1])
    short, long, middle = (builder.add(random_prompt(length, seed=5)) for length in (1, 70, 23))
    builder.step([(short, 1), (long, 30)])
    builder.step([(short, 1), (long, 1), (middle, 11)])
    builder.step([(long, 39), (short, 1), (middle, 12)])
    for _ in range(NEW_TOKENS):
        builder.step([(middle, 1), (short, 1), (long, 1)])
    for sequence in (first, cached, chunked, short, long, middle):
        assert_as_reference(checkpoint, sequence)


@pytest.mark.slow
@table("model_type", FURTHER)
def test_logits_of_further_models(tmp_path: Path, model_type: str) -> None:
    checkpoint = save_transformers_checkpoint(tmp_path / model_type, model_type, FURTHER[model_type])
    builder = PlanBuilder(make_runner(checkpoint.path, page_size=16, model_impl="transformers"))
    for seed, chunks in enumerate([[], [3, 17, 1]]):
        sequence = builder.add(random_prompt(45, seed))
        builder.generate(sequence, NEW_TOKENS, chunks=chunks)
        assert_as_reference(checkpoint, sequence)


def test_facts_are_those_of_the_calls(tmp_path: Path) -> None:
    found: dict[str, ModelConfig] = {}
    for name, (model_type, overrides) in {
        "GptOssForCausalLM": ("gpt_oss", FURTHER["gpt_oss"]),
        **{name: SERVED[name] for name in ("Gemma2ForCausalLM", "DeepseekV3ForCausalLM")},
    }.items():
        write_config(tmp_path / name, model_type, overrides, name)
        config = ModelConfig.from_path(str(tmp_path / name), model_impl="transformers")
        found[name] = complete_config(config)
    sinks, caps, widths = found.values()
    assert sinks.windows() == (16, None)
    assert [call.sinks for call in sinks.attention_arguments] == [
        f"layers.{layer}.self_attn.sinks" for layer in range(4)
    ]
    assert {call.logit_cap for call in caps.attention_arguments} == {5.0}
    assert {(call.key_width, call.value_width) for call in widths.attention_arguments} == {(24, 12)}
    assert widths.kv_layout().head_dim == 24
    assert widths.kv_layout().num_kv_heads == 4


@table("architecture", REFUSED)
def test_models_that_cannot_be_served_are_refused_by_name(tmp_path: Path, architecture: str) -> None:
    model_type, overrides, reason = REFUSED[architecture]
    path = tmp_path / architecture
    write_config(path, model_type, overrides)
    config = ModelConfig.from_path(str(path), model_impl="transformers", context_length=128)
    with pytest.raises(ConfigError, match=architecture) as refusal:
        complete_config(config)
    assert refusal.value.code == UNSUPPORTED_MODEL
    assert reason in refusal.value.message


def test_experts_in_mxfp4_are_refused_by_name(tmp_path: Path) -> None:
    save_microscaled_checkpoint(tmp_path)
    config = ModelConfig.from_path(str(tmp_path), model_impl="transformers")
    with pytest.raises(ConfigError, match=r"GptOssForCausalLM.*MXFP4") as refusal:
        complete_config(config)
    assert refusal.value.code == UNSUPPORTED_MODEL


def test_a_soft_cap_that_bounds_to_nothing_is_refused_by_name(tmp_path: Path) -> None:
    model_type, overrides = SERVED["Gemma2ForCausalLM"]
    write_config(tmp_path, model_type, {**overrides, "attn_logit_softcapping": 0.0})
    config = ModelConfig.from_path(str(tmp_path), model_impl="transformers")
    with pytest.raises(ConfigError, match=r"Gemma2ForCausalLM.*soft-cap") as refusal:
        complete_config(config)
    assert refusal.value.code == UNSUPPORTED_MODEL


def test_unknown_architecture_is_refused_by_name(olmo: Checkpoint) -> None:
    config = ModelConfig.from_path(str(olmo.path), json_model_override_args={"architectures": ["NoSuchForCausalLM"]})
    with pytest.raises(ConfigError, match="NoSuchForCausalLM") as refusal:
        complete_config(config)
    assert refusal.value.code == UNSUPPORTED_MODEL


def test_code_of_checkpoints_is_never_run(olmo: Checkpoint) -> None:
    remote = {"model_type": "no_such", "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}}
    config = ModelConfig.from_path(str(olmo.path), json_model_override_args=remote)
    with pytest.raises(ConfigError) as refusal:
        complete_config(config)
    assert refusal.value.code == UNSUPPORTED_MODEL


def test_pickled_weights_are_refused(olmo: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((olmo.path / "config.json").read_bytes())
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(StartupError, match="pickled"):
        make_runner(tmp_path)


def test_missing_and_unknown_tensors_are_named(olmo: Checkpoint, tmp_path: Path) -> None:
    runner = make_runner(olmo.path)
    with pytest.raises(BadRequest, match=r"no weight 'model\.layers\.9"):
        runner.live_weights.rows("model.layers.9.mlp.up_proj.weight", 1)
    tensor = torch.zeros(96, 64)
    assert runner.live_weights.update_weights([("model.layers.0.mlp.up_proj.weight", tensor)]) == 1
    assert runner.live_weights.rows("layers.0.mlp.up_proj.weight", 1) == tensor[:1].tolist()


@table("model_type, overrides", [SERVED["DeepseekV3ForCausalLM"], ("gpt_oss", FURTHER["gpt_oss"])])
def test_half_precision_keeps_what_transformers_keeps(
    tmp_path: Path, model_type: str, overrides: dict[str, Any]
) -> None:
    checkpoint = save_transformers_checkpoint(tmp_path / model_type, model_type, overrides)
    reference = transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint.path, dtype=torch.bfloat16, attn_implementation="eager"
    )
    runner = make_runner(checkpoint.path, dtype="bfloat16", model_impl="transformers")
    ours = {name: weight.dtype for name, weight in runner.model.checkpoint_weights.items()}
    theirs = {name: tensor.dtype for name, tensor in reference.state_dict().items()}
    assert {name: ours[name] for name in ours.keys() & theirs.keys()} == {
        name: theirs[name] for name in ours.keys() & theirs.keys()
    }
    sequence = PlanBuilder(runner).add(random_prompt(20))
    PlanBuilder(runner).generate(sequence, 1)
    exact, near = (
        each.logits(sequence.tokens[:-1])[-1] for each in (checkpoint, Checkpoint(checkpoint.path, reference.eval()))
    )
    assert (sequence.logits[0] - exact).abs().mean() <= 1.5 * (near - exact).abs().mean()


@table(
    "config, store, bits",
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False, "desc_act": False}, gptq, 4),
        (
            {"quant_method": "fp8", "weight_block_size": [32, 32]},
            partial(float8, block=(32, 32), scales_name="weight_scale_inv"),
            8,
        ),
    ],
)
def test_quantised_checkpoints_become_the_dtype(tmp_path: Path, config: dict[str, Any], store: Any, bits: int) -> None:
    plain = save_transformers_checkpoint(tmp_path / config["quant_method"], *SERVED["Olmo2ForCausalLM"])
    checkpoint = quantize(plain, config, store, bits=bits, group=32, symmetric=False)
    runner = make_runner(checkpoint.path, dtype="float32")
    sequence = PlanBuilder(runner).add(random_prompt(20))
    PlanBuilder(runner).generate(sequence, 4)
    assert_as_reference(checkpoint, sequence)


@table("context_length", [48, 128])
def test_long_rotation_follows_the_served_context(tmp_path: Path, context_length: int) -> None:
    """On either side of the original length; transformers itself switches with the length of each call."""
    overrides = {"rope_parameters": _LONG_ROPE, "original_max_position_embeddings": 48}
    checkpoint = save_transformers_checkpoint(tmp_path / str(context_length), "phi3", overrides)
    runner = make_runner(checkpoint.path, context_length=context_length, model_impl="transformers")
    sequence = PlanBuilder(runner).add(random_prompt(context_length - 5 if context_length == 48 else 60))
    PlanBuilder(runner).generate(sequence, 4, chunks=[20])
    assert_as_reference(checkpoint, sequence)


def test_rotation_by_the_length_of_a_call_is_refused(tmp_path: Path) -> None:
    rope = {**_LONG_ROPE, "short_mscale": 1.1, "long_mscale": 1.3}
    overrides = {"rope_parameters": rope, "num_local_experts": 4, "num_experts_per_tok": 2}
    checkpoint = save_transformers_checkpoint(tmp_path, "phimoe", overrides)
    with pytest.raises(ConfigError, match="PhimoeForCausalLM") as refusal:
        make_runner(checkpoint.path)
    assert refusal.value.code == UNSUPPORTED_MODEL


@table("dtype", ["float32", "bfloat16"])
def test_model_that_remembers_beside_the_cache_is_refused(
    olmo: Checkpoint, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Here, it counts the tokens of a call in place of their positions."""
    states = Halves.states

    def counted(self: Halves, tokens: torch.Tensor, positions: torch.Tensor, step: Any) -> torch.Tensor:
        return states(self, tokens, torch.arange(len(positions), device=positions.device), step)

    monkeypatch.setattr(Halves, "states", counted)
    with pytest.raises(ConfigError, match="Olmo2ForCausalLM") as refusal:
        make_runner(olmo.path, dtype=dtype)
    assert refusal.value.code == UNSUPPORTED_MODEL


class TestChoice:
    def test_auto_prefers_our_own_families(self, olmo: Checkpoint, tmp_path: Path) -> None:
        llama = save_checkpoint(tmp_path, "Llama")
        assert ModelConfig.from_path(str(llama.path)).implementation == "bough"
        assert ModelConfig.from_path(str(llama.path), model_impl="transformers").implementation == "transformers"
        assert ModelConfig.from_path(str(olmo.path)).implementation == "transformers"

    def test_our_own_family_computes_the_same_through_transformers(self, tmp_path: Path) -> None:
        llama = save_checkpoint(tmp_path, "Llama")
        runner = make_runner(llama.path, model_impl="transformers")
        sequence = PlanBuilder(runner).add(random_prompt(20))
        PlanBuilder(runner).generate(sequence, NEW_TOKENS)
        assert_as_reference(llama, sequence)

    def test_bough_never_leaves_a_model_to_transformers(self, olmo: Checkpoint) -> None:
        with pytest.raises(ConfigError, match="Olmo2ForCausalLM is not supported"):
            ModelConfig.from_path(str(olmo.path), model_impl="bough")

    def test_without_the_package_the_error_says_how_to_get_it(
        self, olmo: Checkpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(architectures.importlib.util, "find_spec", lambda name: None)
        for wanted in ("auto", "transformers"):
            with pytest.raises(ConfigError) as refusal:
                ModelConfig.from_path(str(olmo.path), model_impl=wanted)
            assert architectures.TRANSFORMERS_EXTRA in refusal.value.message

    @table(
        "option, value",
        [("quantization", "int8"), ("attention_backend", "triton"), ("enable_deterministic_inference", True)],
    )
    def test_options_of_our_own_layers_are_refused(self, olmo: Checkpoint, option: str, value: Any) -> None:
        with pytest.raises(ConfigError) as refusal:
            make_runner(olmo.path, **{option: value})
        assert refusal.value.param == option

    def test_embeddings_are_refused(self, olmo: Checkpoint) -> None:
        with pytest.raises(ConfigError, match="no embeddings"):
            ModelConfig.from_path(str(olmo.path), is_embedding=True)


def test_weights_of_another_configuration_are_refused(olmo: Checkpoint, tmp_path: Path) -> None:
    runner = make_runner(olmo.path)
    values = json.loads((olmo.path / "config.json").read_text())
    other = {**values, "rms_norm_eps": 0.5, "max_position_embeddings": 512}
    (tmp_path / "config.json").write_text(json.dumps(other))
    config = complete_config(ModelConfig.from_path(str(tmp_path), device="cpu"))
    with pytest.raises(BadRequest, match="rms_norm_eps"):
        runner.live_weights.replace(config, "auto")
