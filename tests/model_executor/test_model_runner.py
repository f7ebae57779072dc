from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from bough.step_codec import decode_plan, encode_plan
from bough.step_plan import RowLogprobs, StepPlan, StepResult
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, int32, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.step_runs import runs_of
from tests.tables import table

ALL_IDS = tuple(range(VOCAB_SIZE))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Qwen3", head_dim=16, max_position_embeddings=4096)


@pytest.fixture(params=[True, False], ids=["native", "torch"])
def runner(request: pytest.FixtureRequest, checkpoint: Checkpoint) -> RecordingRunner:
    return make_runner(checkpoint.path, native=request.param)


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(VOCAB_SIZE), k=length)


def test_context_of_several_blocks(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path, max_total_tokens=8192)
    builder = PlanBuilder(runner)
    long, short = builder.add(prompt(1500)), builder.add(prompt(40))
    builder.step([(long, 1040), (short, 40)])
    builder.step([(long, 460), (short, 1)])
    for _ in range(5):
        builder.step([(short, 1), (long, 1)])
    for sequence in (long, short):
        reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
        assert sequence.output == reference.argmax(-1).tolist()
        assert float((torch.stack(sequence.logits) - reference).abs().max()) <= 1e-4


def prompt_logprobs(
    runner: RecordingRunner, tokens: list[int], chunks: list[int], *, top_n: int = 0, token_ids: tuple[int, ...] = ()
) -> list[StepResult]:
    """Ask for the logprob of every prompt token after the first, over several chunks."""
    builder = PlanBuilder(runner)
    sequence = builder.add(tokens)
    results, begin = [], 0
    for chunk in chunks:
        targets = int32(*tokens[begin + 1 : begin + chunk + 1])
        request = RowLogprobs(0, 0, targets, top_n, token_ids)
        results.append(builder.step([(sequence, chunk)], logprobs=(request,)))
        begin += chunk
    return results


@pytest.mark.parametrize("logits_at_a_time", [1, 7, 10**6])
def test_prompt_logprobs_are_those_of_the_reference(
    checkpoint: Checkpoint, runner: RecordingRunner, logits_at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.model_executor.model_runner.LOGIT_CHUNK_ELEMENTS", logits_at_a_time * VOCAB_SIZE)
    tokens = prompt(30)
    results = prompt_logprobs(runner, tokens, [11, 19], top_n=3, token_ids=ALL_IDS)
    expected = checkpoint.logits(tokens).log_softmax(-1)
    answers = [result.logprobs[0] for result in results]
    chosen = np.concatenate([answer.target_chosen for answer in answers if answer.target_chosen is not None])
    np.testing.assert_allclose(chosen, expected[:-1], atol=1e-4)
    values = np.concatenate([answer.target_logprobs for answer in answers])
    np.testing.assert_allclose(values, expected[np.arange(29), tokens[1:]], atol=1e-4)
    top_values = np.concatenate([answer.target_top[0] for answer in answers if answer.target_top])
    top_ids = np.concatenate([answer.target_top[1] for answer in answers if answer.target_top])
    reference_top = expected[:-1].topk(3)
    np.testing.assert_allclose(top_values, reference_top.values, atol=1e-4)
    np.testing.assert_array_equal(top_ids, reference_top.indices)
    assert answers[0].sampled_logprob is None
    (sampled,) = results[1].tokens.tolist()
    assert answers[1].sampled_logprob == pytest.approx(float(expected[-1, sampled]), abs=1e-4)
    assert answers[1].sampled_top is not None
    assert answers[1].sampled_top[1][0] == sampled
    assert answers[1].sampled_chosen is not None
    np.testing.assert_allclose(answers[1].sampled_chosen, expected[-1], atol=1e-4)


def test_logits_exist_only_for_the_positions_that_need_them(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path, native=False)
    rows: list[int] = []
    compute_logits = runner.model.compute_logits

    def counting(hidden_states: torch.Tensor) -> torch.Tensor:
        rows.append(len(hidden_states))
        return compute_logits(hidden_states)

    runner.model.compute_logits = counting  # type: ignore[method-assign]
    builder = PlanBuilder(runner)
    first, second = builder.add(prompt(50)), builder.add(prompt(60))
    builder.step([(first, 50), (second, 31)])
    builder.step([(second, 20)])
    builder.step([(second, 9), (first, 1)])
    assert rows == [1, 2]


def test_rows_without_targets_get_empty_answers(runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(5))
    request = RowLogprobs(0, 0, int32(), 2, (4, 5, 6))
    (answer,) = builder.step([(sequence, 5)], logprobs=(request,)).logprobs
    assert answer.target_logprobs.shape == (0,)
    assert answer.target_top is not None
    assert answer.target_top[0].shape == (0, 2)
    assert answer.target_chosen is not None
    assert answer.target_chosen.shape == (0, 3)
    assert answer.sampled_top is not None
    assert answer.sampled_top[0].shape == (2,)
    assert answer.sampled_chosen is not None
    assert answer.sampled_chosen.shape == (3,)


def test_row_whose_logits_are_not_finite_fails_alone(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    healthy, sick = builder.add(prompt(20)), builder.add(prompt(20, seed=1))
    builder.step([(healthy, 20), (sick, 20)])
    runner.kv_pool.get_value_buffer(1)[sick.kv_slots[3]] = float("nan")
    result = builder.step([(healthy, 1), (sick, 1)])
    assert result.failed_rows == (1,)
    assert runs_of(result) == [healthy.tokens[-1:], []]
    assert healthy.output == checkpoint.greedy(healthy.tokens[:20], 2)


def test_chunk_that_is_not_finite_fails_before_it_samples(runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(20))
    builder.step([(sequence, 8)])
    runner.kv_pool.get_key_buffer(0)[sequence.kv_slots[3]] = float("inf")
    result = builder.step([(sequence, 8)])
    assert result.failed_rows == (0,)
    assert runs_of(result) == [[]]


def test_failed_row_leaves_nothing_that_harms_the_next_owner_of_its_pages(
    checkpoint: Checkpoint, runner: RecordingRunner
) -> None:
    builder = PlanBuilder(runner)
    sick = builder.add(prompt(40, seed=1))
    builder.step([(sick, 40)])
    for layer in range(runner.kv_pool.num_layers):
        runner.kv_pool.get_key_buffer(layer)[sick.kv_slots] = float("nan")
        runner.kv_pool.get_value_buffer(layer)[sick.kv_slots] = float("nan")
    assert builder.step([(sick, 1)]).failed_rows == (0,)
    used = dict.fromkeys(slot // runner.page_size for slot in sick.kv_slots)
    builder.free_pages.extend(reversed(used))
    heir = builder.add(prompt(3))
    builder.generate(heir, 5)
    assert heir.kv_slots[0] in sick.kv_slots
    assert heir.output == checkpoint.greedy(heir.tokens[:3], 5)


def test_recorded_plans_replay_to_the_same_results(checkpoint: Checkpoint, runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    first, second = builder.add(prompt(33)), builder.add(prompt(7))
    plans, results = [], []
    original = runner.forward_batch_generation

    def recording(plan: StepPlan) -> StepResult:
        plans.append(encode_plan(plan))
        results.append(original(plan))
        return results[-1]

    runner.forward_batch_generation = recording  # type: ignore[assignment, method-assign]
    builder.step([(first, 20)])
    builder.step([(first, 13), (second, 7)])
    for _ in range(4):
        builder.step([(first, 1), (second, 1)])
    other = make_runner(checkpoint.path)
    replayed = [other.forward_batch_generation(decode_plan(frames)) for frames in plans]
    assert [*map(runs_of, replayed)] == [*map(runs_of, results)]


def test_step_beyond_the_table_is_refused(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path, context_length=32)
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(40))
    builder.step([(sequence, 32)])
    with pytest.raises(ValueError, match="beyond 32 tokens"):
        builder.step([(sequence, 1)])


def test_step_without_rows_has_no_results(runner: RecordingRunner) -> None:
    builder = PlanBuilder(runner)
    result = runner.forward_batch_generation(builder.plan([]))
    assert (runs_of(result), result.logprobs, result.failed_rows) == ([], (), ())


@table("dtype", ["bfloat16", "float16"])
def test_lower_precision_stays_near_and_cutting_changes_little(checkpoint: Checkpoint, dtype: str) -> None:
    runner = make_runner(checkpoint.path, dtype=dtype)
    tokens = prompt(40)
    expected = checkpoint.logits(tokens).log_softmax(-1)[:-1]
    runs = []
    for chunks in ([40], [13, 1, 26]):
        answers = [result.logprobs[0] for result in prompt_logprobs(runner, tokens, chunks, token_ids=ALL_IDS)]
        runs.append(np.concatenate([answer.target_chosen for answer in answers if answer.target_chosen is not None]))
    # Weights far larger than a trained model's make these logits spread over ±10: a hundredth of that.
    assert np.abs(runs[0] - runs[1]).max() < 0.15
    assert np.abs(runs[0] - expected.numpy()).max() < 0.3


def test_weights_can_be_replaced_between_steps(checkpoint: Checkpoint, tmp_path: Path) -> None:
    other = save_checkpoint(tmp_path, "Qwen3", head_dim=16, max_position_embeddings=4096, seed=5)
    runner = make_runner(checkpoint.path)
    builder = PlanBuilder(runner)
    before = builder.add(prompt(12))
    builder.generate(before, 3)
    runner.model.load_weights(iter(other.reference.state_dict().items()))
    after = builder.add(prompt(12))
    builder.generate(after, 3)
    assert before.output == checkpoint.greedy(prompt(12), 3)
    assert after.output == other.greedy(prompt(12), 3)
