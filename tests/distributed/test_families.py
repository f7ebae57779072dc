"""Several ranks compute what one does: logits within rounding, and the same tokens."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from bough.config.architectures import MODEL_MODULES
from bough.errors import BadRequest, BoughError
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import RowLogprobs
from tests.distributed.ranks import Followers
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, Sequence, make_runner
from tests.models.checkpoints import VOCAB_SIZE, save_checkpoint
from tests.models.test_against_transformers import CASES
from tests.tables import table

LOGIT_TOLERANCE = 1e-4
NEW_TOKENS = 8


@pytest.fixture(scope="module")
def two() -> Iterator[Followers]:
    followers = Followers(2)
    yield followers
    followers.close()


def random_prompt(length: int, seed: int) -> list[int]:
    return random.Random(seed * 1000 + length).choices(range(VOCAB_SIZE), k=length)


def sequences_of(runner: RecordingRunner) -> list[Sequence]:
    """Prompts whole, in chunks and beside others, and what follows them."""
    builder = PlanBuilder(runner)
    whole, cut, late = (builder.add(random_prompt(length, seed)) for seed, length in enumerate((37, 50, 9)))
    builder.step([(whole, 37), (cut, 11)])
    builder.step([(whole, 1), (cut, 39), (late, 9)])
    for _ in range(NEW_TOKENS):
        builder.step([(whole, 1), (cut, 1), (late, 1)])
    return [whole, cut, late]


def assert_equal(runner: RecordingRunner, reference: RecordingRunner) -> None:
    assert runner.kv_pool.num_kv_heads <= reference.kv_pool.num_kv_heads
    for ours, wanted in zip(sequences_of(runner), sequences_of(reference), strict=True):
        assert ours.output == wanted.output
        difference = torch.stack(ours.logits) - torch.stack(wanted.logits)
        assert float(difference.abs().max()) <= LOGIT_TOLERANCE


@table("case", CASES)
def test_every_family(two: Followers, tmp_path_factory: pytest.TempPathFactory, case: str) -> None:
    family, overrides = CASES[case]
    path = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(path, family, seed=len(case), **overrides)
    with two.leader(path) as leader:
        assert_equal(leader, make_runner(path, native=False))


def test_ranks_with_whole_experts_compute_and_take_weights(tmp_path_factory: pytest.TempPathFactory) -> None:
    sharing = Followers(2, ep_size=2)
    try:
        for case in ("qwen2-moe", "glm4-moe", "mixtral-window"):
            family, overrides = CASES[case]
            path, other = tmp_path_factory.mktemp(case), tmp_path_factory.mktemp(f"{case}-other")
            save_checkpoint(path, family, seed=len(case), **overrides)
            save_checkpoint(other, family, seed=1, **overrides)
            with sharing.leader(path) as leader:
                assert_equal(leader, make_runner(path, native=False))
                assert leader.weights.prepare_disk(str(other), "auto").write() > 0
                reference = make_runner(other, native=False)
                assert_equal(leader, reference)
                for expert in (0, 2):  # of either rank
                    name = f"model.layers.1.mlp.experts.{expert}.down_proj.weight"
                    assert leader.weights.rows(name, 7) == reference.live_weights.rows(name, 7)
    finally:
        sharing.close()


def test_every_family_is_compared() -> None:
    assert {f"{family}ForCausalLM" for family, _ in CASES.values()} == MODEL_MODULES.keys()


@pytest.fixture(scope="module")
def biased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint with biases everywhere, whose table is tied."""
    path = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(path, "Llama", attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_hidden_layers=2)
    return path


def test_three_ranks_share_two_heads_of_keys(biased: Path) -> None:
    three = Followers(3)
    try:
        with three.leader(biased) as leader:
            runner = make_runner(biased, native=False)
            for ours, wanted in zip(sequences_of(leader), sequences_of(runner), strict=True):
                assert ours.output == wanted.output
    finally:
        three.close()


def test_samples_and_logprobs_of_prompts_are_those_of_one_rank(two: Followers, biased: Path) -> None:
    params = SamplingParams(temperature=0.9, top_p=0.9, frequency_penalty=0.5, repetition_penalty=1.1)
    results = []

    def compute(runner: RecordingRunner) -> None:
        builder = PlanBuilder(runner)
        sequence = builder.add(random_prompt(20, 1))
        targets = np.array(sequence.tokens[5:20], dtype=np.int32)
        asked = RowLogprobs(0, 4, targets, 2, (3,))
        first = builder.step([(sequence, 20)], new_params=params, logprobs=(asked,))
        for _ in range(NEW_TOKENS):
            builder.step([(sequence, 1)])
        results.append((sequence.output, first.logprobs[0]))

    with two.leader(biased) as leader:
        compute(leader)
    compute(make_runner(biased, native=False))
    (ours, logprobs), (wanted, wanted_logprobs) = results
    assert ours == wanted
    np.testing.assert_allclose(logprobs.target_logprobs, wanted_logprobs.target_logprobs, atol=LOGIT_TOLERANCE)
    assert logprobs.sampled_logprob == pytest.approx(wanted_logprobs.sampled_logprob, abs=LOGIT_TOLERANCE)


def test_a_step_that_fails_before_it_is_sent_leaves_the_ranks_in_step(two: Followers, biased: Path) -> None:
    with two.leader(biased) as leader:
        wanted = [sequence.output for sequence in sequences_of(leader)]
        builder = PlanBuilder(leader)
        plan = builder.plan([(builder.add(random_prompt(9, 0)), 9)])
        plan.prefix_lens[0] = 10_000
        with pytest.raises(ValueError, match="goes beyond"):
            leader.forward_batch_generation(plan)
        assert [sequence.output for sequence in sequences_of(leader)] == wanted


def test_sampling_that_fails_leaves_the_ranks_in_step(
    two: Followers, biased: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    with two.leader(biased) as leader:
        wanted = [sequence.output for sequence in sequences_of(leader)]
        builder = PlanBuilder(leader)
        with monkeypatch.context() as patched:
            patched.setattr(leader.sampler, "sample", fail)
            with pytest.raises(MemoryError):
                builder.step([(builder.add(random_prompt(9, 0)), 9)])
        assert [sequence.output for sequence in sequences_of(leader)] == wanted


@table("options", [{}, {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "num_hidden_layers": 2}])
def test_each_rank_saves_its_part_and_loads_it(
    two: Followers, tmp_path_factory: pytest.TempPathFactory, options: dict[str, Any]
) -> None:
    path, state = tmp_path_factory.mktemp("checkpoint"), tmp_path_factory.mktemp("state")
    save_checkpoint(path, "Llama", seed=5, **options)
    with two.leader(path) as leader:
        wanted = [sequence.output for sequence in sequences_of(leader)]
        leader.weights.save("sharded_state", str(state), pattern=None, max_bytes=20_000)
    ranks: list[dict[str, torch.Tensor]] = [{}, {}]
    for rank, weights in enumerate(ranks):
        for file in state.glob(f"model-rank-{rank}-part-*.safetensors"):
            weights |= load_file(file)
    name = "model.layers.0.mlp.down_proj.weight"
    assert torch.equal(torch.cat([each[name] for each in ranks], 1), load_file(path / "model.safetensors")[name])
    shutil.copy(path / "config.json", state)
    with two.leader(state, load_format="sharded_state") as leader:
        assert [sequence.output for sequence in sequences_of(leader)] == wanted
        assert leader.weights.prepare_disk(str(path), "auto").write() > 0
        assert leader.weights.prepare_disk(str(state), "sharded_state").write() > 0
        assert [sequence.output for sequence in sequences_of(leader)] == wanted
    next(state.glob("model-rank-1-part-0.safetensors")).unlink()
    with two.leader(path) as leader:
        with pytest.raises(BoughError, match="lacks"):
            leader.weights.prepare_disk(str(state), "sharded_state")
        assert [sequence.output for sequence in sequences_of(leader)] == wanted


def test_weights_reach_all_ranks_or_none(two: Followers, tmp_path: Path, biased: Path) -> None:
    save_checkpoint(
        tmp_path, "Llama", seed=3, attention_bias=True, mlp_bias=True, tie_word_embeddings=True, num_hidden_layers=2
    )
    with two.leader(biased) as leader:
        before = [sequence.output for sequence in sequences_of(leader)]
        assert leader.weights.prepare_disk(str(tmp_path), "auto").write() > 0
        reference = make_runner(tmp_path, native=False)
        assert_equal(leader, reference)
        names = (
            "model.embed_tokens.weight",
            "model.layers.1.mlp.down_proj.weight",
            "model.layers.0.self_attn.o_proj.bias",
        )
        for name in names:
            assert leader.weights.rows(name, 40) == reference.live_weights.rows(name, 40)
        with pytest.raises(BadRequest, match="no weight"):
            leader.weights.rows("nothing", 1)
        # Only the last rank has the numbers that are not finite.
        wrong = torch.zeros(VOCAB_SIZE, 48)
        wrong[-1] = torch.nan
        file = tmp_path / "wrong.safetensors"
        save_file({"model.norm.weight": torch.zeros(48), "model.embed_tokens.weight": wrong}, file)
        with pytest.raises(BadRequest, match="not finite"):
            leader.weights.prepare_file(str(file)).write()
        assert_equal(leader, reference)
        assert leader.weights.prepare_disk(str(biased), "auto").write() > 0
        assert [sequence.output for sequence in sequences_of(leader)] == before
