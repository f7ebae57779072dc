"""What the recorded program does that the torch path does otherwise; both are compared in tests/models."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import asdict, replace

from bough.constrained.base import MaskWords
from bough.constrained.masks import PendingMasks, TokenMasks, mask_of
from bough.kernels.library import Isa, set_isa
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import RowLogprobs, StepResult
from tests.model_executor.plan_builder import GREEDY, PlanBuilder, RecordingRunner, Sequence, int32, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.native import isa, needs_native
from tests.step_runs import runs_of
from tests.tables import table

__all__ = ["isa"]

pytestmark = needs_native


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(
        tmp_path_factory.mktemp("checkpoint"), "Qwen3", head_dim=16, max_position_embeddings=4096, seed=3
    )


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(VOCAB_SIZE), k=length)


def logits_of(runner: RecordingRunner, tokens: list[int], chunks: list[int]) -> torch.Tensor:
    builder = PlanBuilder(runner)
    sequence = builder.add(tokens)
    builder.generate(sequence, 3, chunks=chunks)
    builder.drop(sequence)
    return torch.stack(sequence.logits)


def test_greedy_rows_get_the_token_that_their_logits_say(checkpoint: Checkpoint) -> None:
    outputs = []
    for recording in (True, False):
        runner = make_runner(checkpoint.path)
        builder = PlanBuilder(runner)
        first, second = builder.add(prompt(20)), builder.add(prompt(33, seed=1))
        builder.step([(first, 20), (second, 11)])
        runner.recording = recording
        builder.step([(first, 1), (second, 22)])
        for _ in range(10):
            builder.step([(second, 1), (first, 1)])
        outputs.append((first.output, second.output))
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == checkpoint.greedy(prompt(20), 12)


def test_greedy_and_random_rows_share_a_step(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path)
    builder = PlanBuilder(runner)
    greedy, drawn, other = (builder.add(prompt(10 + row, seed=row)) for row in range(3))
    builder.step([(greedy, 10)])
    builder.step([(drawn, 11), (greedy, 1)], new_params=SamplingParams(temperature=1.5, top_k=20))
    builder.step([(other, 12), (drawn, 1), (greedy, 1)])
    runner.recording = False
    for _ in range(5):
        builder.step([(greedy, 1), (drawn, 1), (other, 1)])
    assert greedy.output == checkpoint.greedy(prompt(10, seed=0), 8)
    assert other.output == checkpoint.greedy(prompt(12, seed=2), 6)
    assert all(0 <= token < VOCAB_SIZE for token in drawn.output)


@table("dtype", ["float32", "bfloat16"])
def test_logits_depend_neither_on_chunks_nor_on_threads(checkpoint: Checkpoint, dtype: str) -> None:
    tokens = prompt(700)
    runs = []
    for threads in (1, 3):
        runner = make_runner(checkpoint.path, dtype=dtype, threads=threads)
        runs += [logits_of(runner, tokens, chunks) for chunks in ([], [1, 250, 256, 100], [400])]
    for run in runs[1:]:
        assert torch.equal(run, runs[0])


def test_step_larger_than_the_buffers_runs_in_pieces(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = logits_of(make_runner(checkpoint.path), prompt(150), [])
    monkeypatch.setattr("bough.model_executor.cpu_graph_runner.MAX_PIECE_TOKENS", 16)
    assert torch.equal(logits_of(make_runner(checkpoint.path), prompt(150), []), whole)
    runner = make_runner(checkpoint.path)
    builder = PlanBuilder(runner)
    sequences = [builder.add(prompt(length, seed=length)) for length in (1, 40, 3, 16, 29)]
    builder.step([(sequence, sequence.prompt_len) for sequence in sequences])
    for _ in range(3):
        builder.step([(sequence, 1) for sequence in reversed(sequences)])
    for sequence in sequences:
        assert sequence.output == checkpoint.greedy(prompt(sequence.prompt_len, seed=sequence.prompt_len), 4)


def test_every_instruction_set_computes_the_same_within_rounding(checkpoint: Checkpoint, isa: Isa) -> None:
    reference = logits_of(make_runner(checkpoint.path), prompt(60), [])
    assert set_isa(isa)
    ours = logits_of(make_runner(checkpoint.path), prompt(60), [25])
    torch.testing.assert_close(ours, reference, atol=1e-4, rtol=0)
    rounded = logits_of(make_runner(checkpoint.path, dtype="bfloat16"), prompt(60), [25])
    # Weights far larger than a trained model's make these logits spread over ±10.
    assert float((rounded[0] - reference[0]).abs().max()) < 0.3


class FixedMask:
    """Stands for a grammar engine: allows what it was told to."""

    is_accepting = False

    def __init__(self, words: MaskWords) -> None:
        self.words = words

    @staticmethod
    def fill_masks(matchers: Any, bits: MaskWords) -> tuple[int, ...]:
        bits[:] = [each.words for each in matchers]
        return ()


def random_masks(rng: np.random.Generator, num_rows: int) -> TokenMasks:
    """Masks for some of the rows: of many tokens, few, one, or none."""
    rows = np.flatnonzero(rng.random(num_rows) < 0.8).astype(np.int32)
    if not rows.size:
        rows = int32(0)
    shares = rng.choice([0.5, 0.05, 0.0], len(rows), p=[0.5, 0.3, 0.2])
    bits = [mask_of(np.flatnonzero(rng.random(VOCAB_SIZE) < share).tolist(), VOCAB_SIZE) for share in shares]
    return TokenMasks(rows, np.array(bits))


def masked_results(
    checkpoint: Checkpoint, head: torch.Tensor, *, by_logits: bool, pending: bool, logprobs: bool = False
) -> list[StepResult]:
    """Steps of greedy, biased and random rows, most of which may not have all tokens."""
    runner = make_runner(checkpoint.path)
    runner.model.load_weights([("lm_head.weight", head)])
    runner.recording = by_logits
    builder = PlanBuilder(runner)
    rng = np.random.default_rng(0)
    sequences = [builder.add(prompt(length, seed=length)) for length in (1, 20, 3, 16, 9, 5)]
    kinds = [GREEDY, GREEDY, GREEDY, SamplingParams(temperature=0.0, logit_bias={3: 4.0}), SamplingParams(), GREEDY]
    results = []
    for _ in range(8):
        work = [(each, 1 if each.output else each.prompt_len) for each in sequences]
        asked = tuple(RowLogprobs(row, 0, int32(), 2, ()) for row in (1, 4)) if logprobs else ()
        plan = builder.plan(work, logprobs=asked)
        news = [replace(new, sampling_params=kinds[i]) for i, new in enumerate(plan.new_requests)]
        masks = random_masks(rng, plan.num_rows)
        owing = PendingMasks(masks.rows, [FixedMask(bits) for bits in masks.bits], VOCAB_SIZE)
        plan = replace(plan, new_requests=tuple(news), masks=owing if pending else masks)
        results.append(runner.forward_batch_generation(plan))
        for sequence in sequences:
            # Rows that failed go on as well: this is about tokens.
            sequence.tokens.append(0)
    return results


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("piece_tokens", [1024, 16])
def test_masked_greedy_rows_get_the_token_that_their_masked_logits_say(
    checkpoint: Checkpoint, isa: Isa, pending: bool, piece_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.model_executor.cpu_graph_runner.MAX_PIECE_TOKENS", piece_tokens)
    monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", 0)
    # A checkpoint with such a head is refused.
    monkeypatch.setattr("bough.layers.packed_method.check_finite", lambda *_: None)
    assert set_isa(isa)
    weights = checkpoint.reference.lm_head.weight.detach()
    tied = weights[torch.arange(VOCAB_SIZE) % 7]
    unusual = weights.clone()
    unusual[40], unusual[90, 5], unusual[100] = torch.nan, torch.inf, -torch.inf
    for head in (weights, tied, unusual):
        expected = masked_results(checkpoint, head, by_logits=True, pending=pending)
        found = masked_results(checkpoint, head, by_logits=False, pending=pending)
        assert [each.failed_rows for each in found] == [each.failed_rows for each in expected]
        assert any(each.failed_rows for each in expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert runs_of(ours) == runs_of(theirs)


def test_masked_rows_answer_logprobs_beside_masked_choices(checkpoint: Checkpoint) -> None:
    head = checkpoint.reference.lm_head.weight.detach()
    expected = masked_results(checkpoint, head, by_logits=True, pending=True, logprobs=True)
    found = masked_results(checkpoint, head, by_logits=False, pending=True, logprobs=True)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.failed_rows == theirs.failed_rows
        assert [each.row for each in ours.logprobs] == [1, 4]
        logprobs = [[each.sampled_logprob for each in result.logprobs] for result in (ours, theirs)]
        assert np.array_equal(*logprobs, equal_nan=True)  # where nothing is allowed there is none


def test_plan_that_names_what_does_not_exist_is_refused_and_changes_nothing(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path)
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(9))
    plan = builder.plan([(sequence, 9)])
    before = runner.kv_pool.get_key_buffer(0).clone()
    for wrong in (VOCAB_SIZE, -2):
        plan.input_ids[3] = wrong
        with pytest.raises(ValueError, match="not in the vocabulary"):
            runner.forward_batch_generation(plan)
    plan.input_ids[3] = 0
    plan.out_slots[8] = runner.kv_pool.num_slots
    with pytest.raises(ValueError, match="slot that does not exist"):
        runner.forward_batch_generation(plan)
    assert torch.equal(runner.kv_pool.get_key_buffer(0), before)
    assert not runner.req_to_token.any()


@table(
    "changes, message",
    [
        ({"input_ids": int32(*range(9))}, "have 10 new tokens, but it has 9 ids and 10 slots"),
        ({"out_slots": int32(*range(16, 25))}, "have 10 new tokens, but it has 10 ids and 9 slots"),
        ({"extend_lens": int32(6, 5)}, "have 11 new tokens"),
        # They would be read before the second row is looked at.
        ({"extend_lens": int32(15, -5)}, "new tokens, but it has 10 ids"),
        ({"prefix_lens": int32(0)}, "has 2 rows, but 1 prefixes"),
        ({"extend_lens": int32(10)}, "has 2 rows, but 2 prefixes, 1 numbers of new tokens"),
    ],
)
def test_arrays_of_lengths_that_do_not_fit_together_are_refused(
    checkpoint: Checkpoint, changes: dict[str, Any], message: str
) -> None:
    runner = make_runner(checkpoint.path)
    builder = PlanBuilder(runner)
    plan = builder.plan([(builder.add(prompt(6)), 6), (builder.add(prompt(4)), 4)])
    before = runner.kv_pool.get_key_buffer(0).clone()
    wanted = np.zeros(plan.num_rows, dtype=np.uint8)
    with pytest.raises(ValueError, match=message):
        runner.step_runner.forward(replace(plan, **changes), wanted, hidden_states=False)
    with pytest.raises(ValueError, match="and 1 of what is wanted"):
        runner.step_runner.forward(plan, wanted[:1], hidden_states=False)
    assert torch.equal(runner.kv_pool.get_key_buffer(0), before)
    assert not runner.req_to_token.any()


def decoding(checkpoint: Checkpoint) -> tuple[RecordingRunner, PlanBuilder, Sequence]:
    """A runner that chooses tokens natively, and a sequence whose prompt it has computed."""
    runner = make_runner(checkpoint.path)
    runner.recording = False
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(20))
    builder.step([(sequence, 20)])
    return runner, builder, sequence


@table("further, reports_each", [(0, False), (7, False), (7, True)])
def test_greedy_rows_that_are_not_finite_fail_alone(checkpoint: Checkpoint, further: int, reports_each: bool) -> None:
    runner = make_runner(checkpoint.path)
    runner.recording = False
    builder = PlanBuilder(runner)
    healthy, sick = builder.add(prompt(20)), builder.add(prompt(20, seed=1))
    builder.step([(healthy, 20), (sick, 20)])
    runner.kv_pool.get_value_buffer(1)[sick.kv_slots[3]] = float("nan")
    result = builder.step([(healthy, 1), (sick, 1)], further=further, reports_each=reports_each)
    assert (result.num_steps, result.failed_rows) == (1, (1,))
    assert np.isfinite(runner.kv_pool.get_value_buffer(1).numpy()).all()
    assert builder.step([(healthy, 1)], further=further).num_steps == further + 1
    assert healthy.output == checkpoint.greedy(healthy.tokens[:20], further + 3)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"dtype": "float32"}, {}),
        ({"dtype": "bfloat16", "threads": 2}, {}),
        ({"dtype": "float32", "quantization": "int8"}, {}),
        ({"dtype": "bfloat16", "quantization": "int4", "kv_cache_dtype": "int8"}, {}),
        ({"dtype": "float32"}, {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    ],
    ids=str,
)
def test_steps_in_a_row_have_the_tokens_and_the_kv_of_steps_one_by_one(
    tmp_path: Path, options: dict[str, Any], changes: dict[str, Any]
) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16, seed=3, **changes)
    params = [
        GREEDY,
        SamplingParams(temperature=1.5, top_p=0.9, top_k=40),
        SamplingParams(temperature=0.0, repetition_penalty=1.5, logit_bias={7: 3.0}),
        SamplingParams(temperature=1.2, frequency_penalty=0.7, presence_penalty=-0.3),
        SamplingParams(temperature=0.0, repetition_penalty=1.5, repetition_window=-1, frequency_penalty=0.1),
        GREEDY,
        SamplingParams(temperature=0.9, min_p=0.05, logit_bias={3: -5.0, 11: 2.0}),
    ]

    def generate(
        further: int, *, sampled_apart: bool = False, reports_each: bool = False, given_up: int = 0
    ) -> tuple[list[list[int]], torch.Tensor]:
        runner = make_runner(checkpoint.path, **options)
        runner.recording = sampled_apart
        builder = PlanBuilder(runner)
        sequences = [builder.add(prompt(10 + row, seed=row)) for row in range(len(params))]
        for row, sequence in enumerate(sequences):
            builder.step([(sequence, 10 + row)], new_params=params[row])
        while len(sequences[0].output) < 49:
            num_steps = further + 1 - given_up
            way = {"further": further, "reports_each": reports_each, "most_reports": num_steps}
            assert builder.step([(each, 1) for each in sequences], **way).num_steps == num_steps
        slots = [sequence.kv_slots for sequence in sequences]
        keys = torch.cat([runner.kv_pool.get_key_buffer(1)[each] for each in slots])
        return [sequence.output for sequence in sequences], keys

    # The vocabulary is small: histories of penalties end within the run.
    (tokens, keys), others = generate(0, sampled_apart=True), [generate(further) for further in (0, 1, 5, 23)]
    others += [generate(further, reports_each=True) for further in (1, 23)]
    others += [generate(7, reports_each=True, given_up=4)]
    if options == {"dtype": "float32"}:
        assert tokens[0] == checkpoint.greedy(prompt(10, seed=0), 49)
    for other_tokens, other_keys in others:
        assert other_tokens == tokens
        assert torch.equal(other_keys, keys)


@table(
    "options",
    [{"dtype": "float32"}, {"dtype": "bfloat16", "quantization": "int4", "kv_cache_dtype": "int8", "threads": 2}],
)
def test_steps_in_a_row_tell_logprobs_as_steps_one_by_one(checkpoint: Checkpoint, options: dict[str, Any]) -> None:
    params = [
        GREEDY,
        SamplingParams(temperature=1.5, top_p=0.9),
        GREEDY,
        SamplingParams(temperature=0.0, repetition_penalty=1.5, logit_bias={7: 3.0}),
        SamplingParams(temperature=0.8, frequency_penalty=0.7),
    ]
    # Neither all rows ask, nor all that draw, nor all alike.
    asked = (
        RowLogprobs(0, 0, int32(), 3, ()),
        RowLogprobs(1, 0, int32(), 0, (4, 9)),
        RowLogprobs(3, 0, int32(), 1, (7,)),
    )

    def results(*, natively: bool, further: int, reports_each: bool = True) -> list[Any]:
        runner = make_runner(checkpoint.path, **options)
        builder = PlanBuilder(runner)
        sequences = [builder.add(prompt(10 + row, seed=row)) for row in range(len(params))]
        for row, sequence in enumerate(sequences):
            builder.step([(sequence, 10 + row)], new_params=params[row])
        runner.recording = not natively
        found: list[Any] = []
        while len(found) < 12:
            work = [(each, 1) for each in sequences]
            way = {"further": further, "checks_eos": False, "reports_each": reports_each}
            plan = builder.plan(work, logprobs=asked, **way)
            new = [runner.forward_batch_generation(plan)]
            while new[-1].goes_on:
                new.append(runner.forward_further())
            for result in new:
                runs = runs_of(result)
                for step, tokens in enumerate(zip(*runs, strict=True)):
                    logprobs = result.logprobs[step * len(asked) : (step + 1) * len(asked)]
                    found.append((list(tokens), [asdict(each) for each in logprobs]))
                for sequence, run in zip(sequences, runs, strict=True):
                    sequence.tokens += run
        return found

    apart = results(natively=False, further=0)
    assert [row["row"] for row in apart[0][1]] == [0, 1, 3]
    for others in (
        results(natively=True, further=0),
        results(natively=True, further=5),
        results(natively=True, further=5, reports_each=False),
    ):
        np.testing.assert_equal(others, apart)


@pytest.mark.parametrize("reports_each", [False, True])
def test_steps_in_a_row_end_with_one_in_which_a_row_ends(
    checkpoint: Checkpoint, tmp_path: Path, reports_each: bool
) -> None:
    # A row whose greedy answer takes a while to come to a token that it had not had before.
    for seed in range(100):
        tokens = checkpoint.greedy(prompt(20, seed), 8)
        length = next((i + 1 for i in range(3, 8) if tokens[i] not in tokens[:i]), 0)
        if length:
            break
    eos = tokens[length - 1]
    with_end = save_checkpoint(tmp_path, "Qwen3", head_dim=16, seed=3, max_position_embeddings=4096, eos_token_id=eos)
    for checks_eos in (True, False):
        runner = make_runner(with_end.path)
        runner.recording = False
        builder = PlanBuilder(runner)
        sequence, other = builder.add(prompt(20, seed)), builder.add(prompt(9, seed=1))
        builder.step([(sequence, 20), (other, 9)])
        options: dict[str, Any] = {"further": 15, "checks_eos": checks_eos, "reports_each": reports_each}
        result = builder.step([(sequence, 1), (other, 1)], **options)
        assert result.num_steps == (length - 1 if checks_eos else 16)
        builder.step([(sequence, 1), (other, 1)], further=3, checks_eos=False)
        for each in (sequence, other):
            assert each.output == checkpoint.greedy(each.tokens[: each.prompt_len], len(each.output))


@table("reports_each", [False, True])
def test_steps_in_a_row_end_when_there_is_something_to_read(checkpoint: Checkpoint, reports_each: bool) -> None:
    runner, builder, sequence = decoding(checkpoint)
    (quiet, _), (reading, writing) = pipes = os.pipe(), os.pipe()
    try:
        runner.interrupt_on([quiet, reading])
        assert builder.step([(sequence, 1)], further=3, reports_each=reports_each).num_steps == 4
        os.write(writing, b"x")
        assert builder.step([(sequence, 1)], further=3, reports_each=reports_each).num_steps == 1
        os.read(reading, 1)
        assert builder.step([(sequence, 1)], further=3, reports_each=reports_each).num_steps == 4
        runner.interrupt_on([])
    finally:
        for each in (end for pipe in pipes for end in pipe):
            os.close(each)
    assert sequence.output == checkpoint.greedy(prompt(20), 10)


@pytest.mark.parametrize("reports_each", [False, True])
def test_a_row_that_fails_in_a_later_step_leaves_nothing_in_the_pool(
    tmp_path: Path, reports_each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.layers.checkpoint_weight.check_finite", lambda *_: None)  # such weights are refused
    checkpoint = save_checkpoint(tmp_path, "Qwen3", head_dim=16, seed=3, tie_word_embeddings=False)
    for seed in range(100):
        tokens = checkpoint.greedy(prompt(20, seed), 8)
        length = next((i + 1 for i in range(3, 8) if tokens[i] not in tokens[:i]), 0)
        if length:
            break
    runner = make_runner(checkpoint.path)
    runner.recording = False
    embedding = checkpoint.reference.get_parameter("model.embed_tokens.weight").detach().clone()
    embedding[tokens[length - 1]] = float("nan")
    runner.model.load_weights([("model.embed_tokens.weight", embedding)])
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(20, seed))
    builder.step([(sequence, 20)])
    result = builder.step([(sequence, 1)], further=15, reports_each=reports_each)
    assert (result.num_steps, result.failed_rows) == (length, (0,))
    assert np.isfinite(runner.kv_pool.get_value_buffer(1).numpy()).all()
    assert np.isfinite(runner.kv_pool.get_key_buffer(0).numpy()).all()


def test_no_step_follows_but_one_of_the_plan_that_was_run_last(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path)
    runner.recording = False
    builder = PlanBuilder(runner)
    sequence, other = builder.add(prompt(20)), builder.add(prompt(9))
    builder.step([(sequence, 20)])
    assert runner.forward_batch_generation(builder.plan([(sequence, 1)], further=3, reports_each=True)).goes_on
    assert not runner.forward_batch_generation(builder.plan([(other, 9)])).goes_on
    before = runner.kv_pool.get_key_buffer(0).clone()
    with pytest.raises(RuntimeError, match="no step is to follow"):
        runner.forward_further()
    assert torch.equal(runner.kv_pool.get_key_buffer(0), before)


@table("reports_each", [False, True])
def test_steps_in_a_row_end_when_their_time_is_over(checkpoint: Checkpoint, reports_each: bool) -> None:
    _, builder, sequence = decoding(checkpoint)
    options = {"further": 15, "reports_each": reports_each}
    assert builder.step([(sequence, 1)], seconds=0.0, **options).num_steps == 1
    assert builder.step([(sequence, 1)], seconds=60.0, **options).num_steps == 16
    assert sequence.output == checkpoint.greedy(prompt(20), 18)


def test_the_time_of_steps_that_are_reported_is_that_since_the_first_began(checkpoint: Checkpoint) -> None:
    runner, builder, sequence = decoding(checkpoint)
    assert runner.forward_batch_generation(
        builder.plan([(sequence, 1)], further=15, seconds=0.5, reports_each=True)
    ).goes_on
    time.sleep(0.6)
    assert not runner.forward_further().goes_on


def test_steps_in_a_row_that_do_not_fit_are_refused_and_change_nothing(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path, max_total_tokens=64, context_length=40)
    runner.recording = False
    builder = PlanBuilder(runner)
    sequence = builder.add(prompt(20))
    builder.step([(sequence, 20)])
    plan = builder.plan([(sequence, 1)], further=19)
    assert plan.further is not None
    before = runner.kv_pool.get_key_buffer(0).clone(), runner.req_to_token.clone()
    out_slots = plan.further.out_slots
    for slots, message in (
        (np.full_like(out_slots, runner.kv_pool.num_slots), "slot that does not exist"),
        (np.concatenate((out_slots, out_slots[:1])), "longer ones, than there is room for"),
        (np.tile(out_slots, (2, 1)), "39 steps in a row; there is room for 32"),
    ):
        with pytest.raises(ValueError, match=message):
            runner.forward_batch_generation(replace(plan, further=replace(plan.further, out_slots=slots)))
    assert torch.equal(runner.kv_pool.get_key_buffer(0), before[0])
    assert torch.equal(runner.req_to_token, before[1])
    assert runner.forward_batch_generation(plan).num_steps == 20
