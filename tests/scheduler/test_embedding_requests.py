"""The scheduler with models that make vectors: same limits, aborts and errors, and whole sequences for encoders."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

from bough.ipc.messages import AbortReq, RequestExtras, TokenizedEmbeddingReqInput, TokenizedGenerateReqInput
from bough.sampling.sampling_params import SamplingParams
from bough.step_plan import StepPlan, StepResult
from tests.models.vector_checkpoints import VectorScheduler, save_vector_checkpoint


@pytest.fixture(scope="module")
def encoder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_vector_checkpoint(tmp_path_factory.mktemp("encoder"), "BertModel").path


@pytest.fixture(scope="module")
def decoder_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_vector_checkpoint(tmp_path_factory.mktemp("decoder"), "Qwen3ForCausalLM").path


def recorded(scheduler: VectorScheduler) -> list[StepPlan]:
    """The plans of all steps from now on."""
    plans: list[StepPlan] = []
    worker = scheduler.scheduler.worker
    run = worker.forward_batch_generation

    def forward_batch_generation(plan: StepPlan) -> StepResult:
        plans.append(plan)
        result: StepResult = run(plan)
        return result

    worker.forward_batch_generation = forward_batch_generation
    return plans


def test_encoders_get_whole_sequences_within_the_budget(encoder_path: Path) -> None:
    for chunk in [None, 30, -1]:
        scheduler = VectorScheduler(encoder_path, chunked_prefill_size=chunk, max_running_requests=8)
        plans = recorded(scheduler)
        lengths = [5, 100, 1, 28, 2, 3, 90, 7, 30, 31, 29, 1, 1] * 3
        vectors = scheduler.vectors([[7] * length for length in lengths])
        assert all(
            np.array_equal(vectors[1], vector) for vector, length in zip(vectors, lengths, strict=True) if length == 100
        )
        computed = sorted(length for plan in plans for length in plan.extend_lens.tolist())
        assert computed == sorted(lengths), "every sequence once, and in one piece"
        for plan in plans:
            assert not plan.prefix_lens.any()
            assert plan.num_rows <= 8
            if chunk == 30:
                assert plan.num_tokens <= 30 or plan.num_rows == 1
        assert scheduler.scheduler.requests.kv.check_idle() is None


def test_time_counts_from_the_arrival_in_the_main_process(encoder_path: Path) -> None:
    scheduler = VectorScheduler(encoder_path, queue_timeout=5.0)
    ids = np.array([5], dtype="<i4").tobytes()
    message = TokenizedEmbeddingReqInput("late", ids, arrival_time=time.monotonic() - 6)
    scheduler.scheduler.arrivals.handle_embedding_request(message)
    scheduler.scheduler.arrivals.end_late()
    reason = scheduler.deltas["late"].finish_reason
    assert reason is not None
    assert reason.code == "queue_timeout"


def test_wrong_kinds_of_requests_are_refused(encoder_path: Path) -> None:
    scheduler = VectorScheduler(encoder_path)
    ids = np.array([5], dtype="<i4").tobytes()
    scheduler.scheduler.arrivals.handle_generate_request(TokenizedGenerateReqInput(["g"], ids, SamplingParams()))
    reason = scheduler.deltas["g"].finish_reason
    assert reason is not None
    assert (reason.type, reason.status_code) == ("abort", 400)
    assert "does not generate text" in (reason.message or "")


def test_bad_requests_end_alone(encoder_path: Path) -> None:
    cases = [
        ([5] * 101, {}, "at most 100 are possible"),
        ([], {}, "empty"),
        ([5, 120], {}, r"input_ids must be in \[0, 120\)"),
        ([-1], {}, r"input_ids must be in \[0, 120\)"),
        ([5], {"dimensions": 0}, "dimensions must be in"),
        ([5], {"dimensions": 49}, "dimensions must be in"),
        ([5], {"types": [0, 1]}, "token_types must have one entry per token"),
    ]
    for tokens, fields, complaint in cases:
        scheduler = VectorScheduler(encoder_path)
        scheduler.submit("good", [5, 6])
        scheduler.submit("bad", tokens, **fields)
        scheduler.submit("good", [7])  # an id that is taken
        scheduler.run()
        reason = scheduler.deltas["bad"].finish_reason
        assert reason is not None
        assert (reason.type, reason.status_code) == ("abort", 400)
        assert re.search(complaint, reason.message or "")
        assert len(scheduler.vector("good")) == 48


def test_the_longest_sequence_fits(encoder_path: Path, decoder_path: Path) -> None:
    assert len(VectorScheduler(encoder_path).vectors([[5] * 100])[0]) == 48
    scheduler = VectorScheduler(decoder_path, is_embedding=True, max_total_tokens=112)
    assert len(scheduler.vectors([[5] * 100])[0]) == 48


def test_a_sequence_may_fill_the_pool(decoder_path: Path) -> None:
    for page_size in [1, 16]:
        scheduler = VectorScheduler(decoder_path, is_embedding=True, max_total_tokens=96, page_size=page_size)
        assert scheduler.scheduler.info.max_req_input_len == 96
        for _ in range(2):  # the second time some of it is cached, and locked
            assert [len(vector) for vector in scheduler.vectors([[5] * 96, [5] * 95, [7]])] == [48, 48, 48]


def test_a_full_queue_refuses_and_an_abort_ends_what_waits(encoder_path: Path) -> None:
    scheduler = VectorScheduler(encoder_path, max_running_requests=1, max_queued_requests=1)
    for rid in ("first", "second", "third"):
        scheduler.submit(rid, [5, 6, 7])
    reason = scheduler.deltas["third"].finish_reason
    assert reason is not None
    assert reason.status_code == 503
    scheduler.scheduler.arrivals.abort_request(AbortReq("second"))
    scheduler.run()
    assert scheduler.deltas["second"].embedding is None
    assert len(scheduler.vector("first")) == 48


def test_a_vector_that_is_not_finite_fails_its_request_only(encoder_path: Path) -> None:
    scheduler = VectorScheduler(encoder_path)
    weights = scheduler.scheduler.worker.model.embeddings.word_embeddings.weight
    weights[9] = float("nan")
    scheduler.submit("broken", [5, 9, 6])
    scheduler.submit("whole", [5, 6])
    scheduler.run()
    reason = scheduler.deltas["broken"].finish_reason
    assert reason is not None
    assert (reason.status_code, scheduler.deltas["broken"].embedding) == (500, None)
    assert np.isfinite(scheduler.vector("whole")).all()


def test_a_step_that_fails_ends_its_requests_and_no_later_one(decoder_path: Path) -> None:
    scheduler = VectorScheduler(decoder_path, is_embedding=True, max_total_tokens=2048)
    worker = scheduler.scheduler.worker
    run = worker.forward_batch_generation

    def fail(plan: StepPlan) -> StepResult:
        if plan.input_ids.tolist() != [5, 6]:  # the device itself works
            return run(plan)
        raise RuntimeError("out of luck")

    worker.forward_batch_generation = fail
    scheduler.submit("unlucky", [5, 6])
    scheduler.run()
    worker.forward_batch_generation = run
    reason = scheduler.deltas["unlucky"].finish_reason
    assert reason is not None
    assert reason.status_code == 500
    assert len(scheduler.vectors([[5, 6]])[0]) == 48


def test_vectors_come_with_counts(decoder_path: Path) -> None:
    scheduler = VectorScheduler(decoder_path, is_embedding=True, max_total_tokens=2048, page_size=4)
    prompt = list(range(5, 45))
    (first,) = scheduler.vectors([prompt])
    assert (scheduler.deltas["0"].prompt_tokens, scheduler.deltas["0"].cached_tokens) == (40, 0)
    (second,) = scheduler.vectors([prompt])
    assert scheduler.deltas["0"].cached_tokens == 36
    np.testing.assert_allclose(first, second, atol=1e-5)
    (_,) = scheduler.vectors([prompt], extras=RequestExtras(extra_key="other"))
    assert scheduler.deltas["0"].cached_tokens == 0


def test_plans_say_what_is_pooled(decoder_path: Path) -> None:
    scheduler = VectorScheduler(decoder_path, is_embedding=True, chunked_prefill_size=16, max_total_tokens=2048)
    plans = recorded(scheduler)
    scheduler.vectors([[5] * 40], dimensions=7)
    assert [pooling.ends for plan in plans for pooling in plan.pooling] == [False, False, True]
    assert plans[-1].pooling[0].dimensions == 7
