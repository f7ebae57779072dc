"""What clients can do to requests: abort them at any moment, send nonsense, ask for logprobs."""

from __future__ import annotations

import gc
import itertools
import sys
import tracemalloc
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from bough.config.ranks import ProcessKey
from bough.ipc.messages import (
    BatchTokenIDOutput,
    ControlReply,
    ControlReq,
    Heartbeat,
    TokenizedGenerateReqInput,
    ToScheduler,
)
from bough.managers.detokenizer_manager import DetokenizerManager
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler import reports as reports_module
from bough.scheduler import scheduler as scheduler_module
from bough.scheduler.cost_model import CostModel
from bough.scheduler.req import Req
from bough.scheduler.step_budget import LOGPROBS_AT_ONCE
from bough.step_plan import StepPlan, StepResult
from tests.constrained.following import bundled_tokenizer
from tests.scheduler.harness import VOCAB_SIZE, Harness, prompt_of
from tests.step_runs import failing


def test_abort_at_any_stage_ends_the_request_and_frees_everything() -> None:
    for overlap in [False, True, "ahead"]:
        for steps in [0, 1, 2, 3, 7, 12]:
            harness = Harness(overlap=overlap, chunked_prefill_size=40)
            (victim,) = harness.submit(prompt_of(100), max_new_tokens=50)
            (other,) = harness.submit(prompt_of(90, 1), max_new_tokens=12)
            for _ in range(steps):
                harness.step()
            harness.abort(victim, exact=True)
            reason = harness.outputs[victim].finish_reason
            assert reason is not None
            assert reason.type == "abort"
            assert reason.status_code is None
            harness.run()
            harness.close()
            tokens = harness.outputs[victim].token_ids
            assert tokens == harness.expected(prompt_of(100), 50)[: len(tokens)]
            assert harness.outputs[other].token_ids == harness.expected(prompt_of(90, 1), 12)


def test_abort_by_prefix_and_abort_all() -> None:
    harness = Harness()
    for rid in ("job_1", "job_2", "other"):
        harness.submit(prompt_of(20), rid=rid, max_new_tokens=30)
    harness.step()
    harness.abort("job_")
    assert {rid for rid, output in harness.outputs.items() if output.finish_reason} == {"job_1", "job_2"}
    harness.abort(abort_all=True)
    assert all(output.finish_reason is not None for output in harness.outputs.values())
    harness.run()


def test_exact_abort_leaves_longer_ids_alone() -> None:
    harness = Harness()
    for rid in ("a", "ab"):
        harness.submit(prompt_of(20), rid=rid, max_new_tokens=3)
    harness.step()
    harness.abort("a", exact=True)
    harness.run()
    reason = harness.outputs["ab"].finish_reason
    assert reason is not None
    assert reason.type == "length"


def test_aborting_an_unknown_id_changes_nothing() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(20))
    harness.abort("nobody", exact=True)
    harness.abort("nobody")
    harness.run()
    assert harness.outputs[rid].token_ids == harness.expected(prompt_of(20), 8)


def test_bad_prompt_is_refused_alone() -> None:
    cases = [
        (b"", "prompt is empty"),
        (b"abc", "whole number"),
        (np.array([-1], dtype="<i4").tobytes(), "input_ids"),
        (np.array([1000], dtype="<i4").tobytes(), "input_ids"),
        (np.zeros(5000, dtype="<i4").tobytes(), "5000 tokens"),
    ]
    for ids, field in cases:
        harness = Harness()
        (good,) = harness.submit(prompt_of(20))
        harness.scheduler.process_input_requests([TokenizedGenerateReqInput(["bad"], ids, SamplingParams())])
        reason = harness.outputs["bad"].finish_reason
        assert reason is not None
        assert (reason.type, reason.status_code) == ("abort", 400)
        assert field in (reason.message or "")
        harness.run()
        assert harness.outputs[good].token_ids == harness.expected(prompt_of(20), 8)


def test_bad_sampling_parameters_are_refused_alone() -> None:
    harness = Harness()
    (good,) = harness.submit(prompt_of(20))
    (bad,) = harness.submit(prompt_of(20), stop_token_ids=(5000,))
    assert harness.outputs[bad].finish_reason is not None
    assert "stop_token_ids" in (harness.outputs[bad].finish_reason.message or "")
    harness.run()
    assert harness.outputs[good].token_ids == harness.expected(prompt_of(20), 8)


def test_an_id_that_is_alive_is_not_taken_twice() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(20), rid="same")
    harness.step()
    harness.submit(prompt_of(30, 1), rid="same")
    harness.run()
    assert harness.outputs[rid].token_ids == harness.expected(prompt_of(20), 8)


def test_full_queue_refuses_with_503() -> None:
    harness = Harness(max_running_requests=1, max_queued_requests=2)
    kept = [harness.submit(prompt_of(20, seed))[0] for seed in range(3)]
    (refused,) = harness.submit(prompt_of(20, 9))
    reason = harness.outputs[refused].finish_reason
    assert reason is not None
    assert reason.status_code == 503
    harness.run()
    assert all(harness.outputs[rid].token_ids for rid in kept)


def test_queue_is_bounded_where_memory_is_what_is_short() -> None:
    for pool in [100, 400]:
        harness = Harness(max_running_requests=32, max_total_num_tokens=pool, max_queued_requests=2)
        for burst in range(3):
            for seed in range(40):
                harness.submit(prompt_of(60, seed + 100 * burst), max_new_tokens=30)
            if burst:
                assert harness.scheduler.requests.num_waiting <= 2
            harness.step()
            assert harness.scheduler.requests.num_waiting <= 2
        harness.run()
        refused = [output for output in harness.outputs.values() if not output.token_ids]
        assert {output.finish_reason.status_code for output in refused if output.finish_reason} == {503}
        assert len(refused) < 120


def test_idle_server_takes_what_it_can_ever_compute_and_says_so_of_the_rest() -> None:
    harness = Harness(max_running_requests=4, max_queued_requests=2)
    taken = harness.submit(prompt_of(20), n=6)
    harness.run()
    assert all(harness.outputs[rid].token_ids == harness.expected(prompt_of(20), 8) for rid in taken)
    refused = harness.submit(prompt_of(20), n=7)
    for rid in refused:
        reason = harness.outputs[rid].finish_reason
        assert reason is not None
        assert (reason.status_code, reason.param) == (400, "n")
        assert "at most 6" in (reason.message or "")


def test_queue_of_length_zero_takes_what_can_start_at_once() -> None:
    harness = Harness(max_running_requests=1, max_queued_requests=0)
    (taken,) = harness.submit(prompt_of(20))
    (refused,) = harness.submit(prompt_of(20, 1))
    harness.run()
    assert harness.outputs[taken].token_ids == harness.expected(prompt_of(20), 8)
    assert harness.outputs[refused].finish_reason is not None
    assert harness.outputs[refused].finish_reason.status_code == 503


def status_of(harness: Harness, rid: str) -> tuple[str, int | None]:
    reason = harness.outputs[rid].finish_reason
    assert reason is not None
    return reason.type, reason.status_code


def test_a_failing_forward_pass_ends_its_requests_and_nothing_else() -> None:
    for overlap in [False, True]:
        harness = Harness(overlap=overlap, max_running_requests=1)
        original = harness.worker.worker.forward_batch_generation

        def poisoned(plan: StepPlan) -> StepResult:
            assert len({new.req_slot for new in plan.new_requests}) == len(plan.new_requests), "a slot with two owners"
            if any(new.prompt_len == 20 for new in plan.new_requests):
                raise RuntimeError("device error")
            return original(plan)

        harness.worker.worker.forward_batch_generation = poisoned  # type: ignore[method-assign]
        (doomed,) = harness.submit(prompt_of(20))
        others = [harness.submit(prompt_of(30, seed))[0] for seed in range(3)]
        harness.run()
        harness.close()
        assert status_of(harness, doomed) == ("abort", 500)
        for seed, rid in enumerate(others):
            assert harness.outputs[rid].token_ids == harness.expected(prompt_of(30, seed), 8)


def test_a_failing_step_spares_who_took_a_slot_after_it_was_planned() -> None:
    harness = Harness(overlap=True, max_running_requests=1)
    original = harness.worker.worker.forward_batch_generation

    def poisoned(plan: StepPlan) -> StepResult:
        if any(new.prompt_len == 20 for new in plan.new_requests):
            raise RuntimeError("device error")
        return original(plan)

    harness.worker.worker.forward_batch_generation = poisoned  # type: ignore[method-assign]
    (doomed,) = harness.submit(prompt_of(20), max_new_tokens=50)
    (heir,) = harness.submit(prompt_of(30, 1))
    harness.step()
    harness.abort(doomed, exact=True)
    harness.run()
    harness.close()
    assert harness.outputs[heir].token_ids == harness.expected(prompt_of(30, 1), 8)


def test_a_retracted_request_is_introduced_to_the_device_once() -> None:
    harness = Harness(max_total_num_tokens=160, max_running_requests=4, schedule_conservativeness=0.05)
    rids = [harness.submit(prompt_of(8 + seed, seed), max_new_tokens=60)[0] for seed in range(4)]
    harness.run()
    introduced = [[new.req_slot for new in plan.new_requests] for plan, _ in harness.worker.steps]
    assert all(len(set(slots)) == len(slots) for slots in introduced)
    assert max(map(len, introduced)) > 1
    assert sum(map(len, introduced)) > 4
    assert harness.scheduler.reports.stats().num_retracted_total > 0
    for seed, rid in enumerate(rids):
        assert harness.outputs[rid].token_ids == harness.expected(prompt_of(8 + seed, seed), 60)


class Moody:
    """A method that raises for one request."""

    def __init__(self, harness: Harness, owner: object, name: str, victim: str) -> None:
        self._original = getattr(owner, name)
        self._harness, self._victim = harness, victim
        setattr(owner, name, self)

    def __call__(self, req: Req, *args: object, **kwargs: object) -> object:
        if req.rid == self._victim:
            raise RuntimeError("out of order")
        return self._original(req, *args, **kwargs)


def test_an_error_in_the_handling_of_a_request_ends_it_alone() -> None:
    for overlap in [False, True]:
        for method in ["computed", "release", "_give_back"]:
            harness = Harness(overlap=overlap, chunked_prefill_size=16)
            harness.scheduler._strict_accounting = False  # what such a request holds is lost, and found at idle
            rids = [harness.submit(prompt_of(40, seed))[0] for seed in range(3)]
            Moody(harness, harness.scheduler.requests, method, rids[1])
            harness.run()
            assert status_of(harness, rids[1]) == ("abort", 500)
            for seed in (0, 2):
                assert harness.outputs[rids[seed]].token_ids == harness.expected(prompt_of(40, seed), 8)
            (later,) = harness.submit(prompt_of(50, 9))
            harness.run()
            harness.close()
            assert harness.outputs[later].token_ids == harness.expected(prompt_of(50, 9), 8)
            assert harness.scheduler.requests.kv.check_idle() is None


def test_an_error_in_ending_one_request_keeps_no_last_word_of_others() -> None:
    harness = Harness()
    harness.scheduler._strict_accounting = False
    rids = [harness.submit(prompt_of(40, seed), max_new_tokens=100)[0] for seed in range(4)]
    harness.step()
    Moody(harness, harness.scheduler.requests, "_give_back", rids[2])
    harness.abort(abort_all=True)
    assert [status_of(harness, rid) for rid in rids] == [
        ("abort", 500) if index == 2 else ("abort", None) for index in range(4)
    ]
    harness.run()
    assert len(harness.scheduler.requests) == 0


def test_an_error_in_ending_a_request_leaves_nothing_with_the_detokenizer() -> None:
    for fields in [{}, {"stop": ("this does not occur",)}]:
        tokenizer = bundled_tokenizer()
        harness = Harness(tokenizer=tokenizer, vocab_size=tokenizer.vocab_size)
        harness.scheduler._strict_accounting = False
        (rid,) = harness.submit(prompt_of(20, vocab_size=tokenizer.vocab_size), **fields)
        Moody(harness, harness.scheduler.requests, "_give_back", rid)
        harness.run()
        detokenizer = DetokenizerManager(tokenizer)
        last = detokenizer.handle_batch(BatchTokenIDOutput(harness.outputs[rid].deltas)).deltas[-1]
        assert last.text is not None
        assert last.finish_reason is not None
        assert last.finish_reason.message == "internal error while ending the request"
        assert (len(detokenizer), detokenizer.num_failed) == (0, 0)


def test_rows_that_fail_on_the_device_end_alone() -> None:
    harness = Harness()
    rids = [harness.submit(prompt_of(20, seed))[0] for seed in range(3)]
    harness.step()
    original = harness.worker.worker.forward_batch_generation

    def partly(plan: StepPlan) -> StepResult:
        return failing(original(plan), 1)

    harness.worker.worker.forward_batch_generation = partly  # type: ignore[method-assign]
    harness.step()
    harness.worker.worker.forward_batch_generation = original  # type: ignore[method-assign]
    harness.run()
    assert status_of(harness, rids[1]) == ("abort", 500)
    for seed in (0, 2):
        assert harness.outputs[rids[seed]].token_ids == harness.expected(prompt_of(20, seed), 8)


def test_bad_words_that_leave_no_token_are_the_fault_of_their_request() -> None:
    harness = Harness(vocab_size=8)
    every = tuple((token,) for token in range(8))
    rids = [
        harness.submit([1, 2], bad_words=("x",), banned_sequences=banned)[0] for banned in (every, every[:7], every)
    ]
    original = harness.worker.worker.forward_batch_generation
    harness.worker.worker.forward_batch_generation = (  # type: ignore[method-assign]
        lambda plan: failing(original(plan), *range(len(plan.req_slots)))
    )
    harness.step()
    reasons = [harness.outputs[rid].finish_reason for rid in rids]
    assert [reason and (reason.status_code, reason.param) for reason in reasons] == [
        (400, "bad_words"),
        (500, None),
        (400, "bad_words"),
    ]


def test_bad_words_without_their_tokens_or_with_too_many_are_refused() -> None:
    cases = [
        ((), "with their tokens"),
        (((),), "1 to 32 tokens"),
        (((1,) * 33,), "1 to 32 tokens"),
        (((1, VOCAB_SIZE),), f"tokens in [0, {VOCAB_SIZE})"),
        (tuple((token,) * 32 for token in range(129)), "4096 tokens"),
        (tuple((token,) for token in range(513)), "4096 tokens"),
    ]
    for sequences, said in cases:
        harness = Harness()
        (bad,) = harness.submit(prompt_of(20), bad_words=("x",), banned_sequences=sequences)
        (good,) = harness.submit(prompt_of(20), bad_words=("x",), banned_sequences=((1,) * 32,) * 128)
        harness.run()
        reason = harness.outputs[bad].finish_reason
        assert reason is not None
        assert (reason.status_code, reason.param) == (400, "bad_words")
        assert said in (reason.message or "")
        assert harness.outputs[good].token_ids == harness.expected(prompt_of(20), 8)


def test_prompt_logprobs_cover_exactly_what_was_asked_for() -> None:
    for chunk in [None, 7]:
        for start in [0, 1, 13, 29, 30]:
            harness = Harness(chunked_prefill_size=chunk)
            prompt = prompt_of(30)
            harness.submit(prompt)
            harness.run()  # cached now, which must not hide logprobs
            (rid,) = harness.submit(
                prompt, return_logprob=True, logprob_start_len=start, top_logprobs_num=2, token_ids_logprob=[3, 5]
            )
            harness.run()
            output = harness.outputs[rid]
            entries = output.input_logprobs or []
            assert [entry.token_id for entry in entries] == prompt[start:]
            for index, entry in enumerate(entries):
                if start + index == 0:
                    assert entry.logprob is None
                else:
                    assert entry.logprob is not None
                    assert entry.top is not None
                    assert len(entry.top) == 2
                    assert [token for _, token in entry.chosen or []] == [3, 5]
            assert output.token_ids == harness.expected(prompt, 8)
            assert [entry.token_id for entry in output.logprobs] == output.token_ids


def test_a_prompt_is_as_quick_as_others_up_to_where_its_logprobs_begin() -> None:
    for chunk in [None, 100]:

        def pieces(start: int) -> list[int]:
            harness = Harness(max_total_num_tokens=8192, context_len=2048, chunked_prefill_size=chunk, verify=False)
            costs = CostModel(0.1, 4e-4, 0.0)
            costs.observe = lambda *_: None  # type: ignore[method-assign]
            harness.scheduler.planner.cost_model = costs
            harness.submit(prompt_of(5, 1), max_new_tokens=1500)
            harness.step()
            first = len(harness.worker.steps)
            prompt = prompt_of(1000, 2)
            (rid,) = harness.submit(prompt, max_new_tokens=1, return_logprob=start >= 0, logprob_start_len=start)
            while rid not in harness.outputs or harness.outputs[rid].finish_reason is None:
                harness.step()
            entries = harness.outputs[rid].input_logprobs or []
            assert [entry.token_id for entry in entries] == (prompt[start:] if start >= 0 else [])
            return [int(plan.extend_lens[-1]) for plan, _ in harness.worker.steps[first:]]

        without, all_of_it = pieces(-1), pieces(0)
        assert len(all_of_it) > 2 * len(without)
        assert len(pieces(990)) <= len(without) + 1
        half = pieces(500)
        assert half[:3] == without[:3]
        assert half[-3:-1] == all_of_it[-3:-1]


def test_logprobs_of_prompts_come_in_pieces_that_hold_nobody_up() -> None:
    for per_token, most_tokens in [(21, 512), (129, 127), (1000, 16), (20_000, 1)]:
        harness = Harness(max_total_num_tokens=8192, context_len=2048, vocab_size=30_000, verify=False)
        costs = harness.scheduler.planner.cost_model = CostModel(1e-4, 1e-6, 0.0)
        costs.observe = lambda *_: None  # type: ignore[method-assign]
        prompts = [prompt_of(most_tokens * 3, seed) for seed in range(3)]
        wanted = {"return_logprob": True, "logprob_start_len": 0, "token_ids_logprob": list(range(per_token - 1))}
        rids = [harness.submit(prompt, max_new_tokens=1, **wanted)[0] for prompt in prompts]
        harness.run()
        for rid, prompt in zip(rids, prompts, strict=True):
            assert [entry.token_id for entry in harness.outputs[rid].input_logprobs or []] == prompt
        sizes = [[len(item.targets) for item in plan.logprobs] for plan, _ in harness.worker.steps]
        assert max(map(max, sizes)) == most_tokens
        assert max(map(sum, sizes)) <= max(LOGPROBS_AT_ONCE // per_token, 1)


def test_logprobs_travel_with_their_tokens() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(20), return_logprob=True, max_new_tokens=6)
    (whole,) = harness.submit(prompt_of(20), return_logprob=True, max_new_tokens=6, stream=False)
    harness.run()
    for delta in harness.outputs[rid].deltas:
        assert [entry.token_id for entry in delta.logprobs or []] == delta.token_ids
    assert harness.outputs[rid].logprobs == harness.outputs[whole].logprobs


def test_flush_cache_needs_an_idle_engine_or_waits_for_it() -> None:
    harness = Harness()
    harness.submit(prompt_of(50))
    harness.step()
    (refused,) = harness.scheduler.process_input_requests([ControlReq("1", "flush_cache")])
    assert not refused.success
    assert harness.scheduler.process_input_requests([ControlReq("2", "flush_cache", {"timeout": 60.0})]) == []
    harness.run()
    (done,) = harness.scheduler.process_input_requests([])
    assert (done.call_id, done.success) == ("2", True)
    (rid,) = harness.submit(prompt_of(50))
    harness.run()
    assert harness.outputs[rid].cached_tokens == 0


def test_a_flood_of_messages_does_not_hold_up_the_requests_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Flood:
        heartbeat_due = False
        descriptors = ()

        def __init__(self, count: int) -> None:
            self.left = count
            self.replies: list[object] = []

        def recv(self, timeout_s: float) -> list[TokenizedGenerateReqInput]:
            count = min(self.left, 64)
            self.left -= count
            ids = np.array(prompt_of(20), dtype="<i4").tobytes()
            rids = [f"{id(self)}-{self.left}-{i}" for i in range(count)]
            return [TokenizedGenerateReqInput([rid], ids, SamplingParams()) for rid in rids]

        def send_to_tokenizer(self, message: object) -> None:
            self.replies.append(message)

    def taken(flood: Flood) -> int:
        before = len(harness.scheduler.requests)
        harness.scheduler.recv_requests(flood, busy=True)  # type: ignore[arg-type]
        return len(harness.scheduler.requests) - before

    harness = Harness()
    clock = SimpleNamespace(monotonic=itertools.count().__next__)
    monkeypatch.setattr(scheduler_module, "time", clock)
    monkeypatch.setattr(scheduler_module, "INTAKE_SECONDS", 10)
    flood = Flood(1 << 20)
    assert [taken(flood) for _ in range(20)] == [10] * 20
    assert (1 << 20) - flood.left < 200 + 64
    clock.monotonic = lambda: 0
    assert taken(Flood(0)) == 64 - 200 % 64
    assert taken(Flood(60)) == 60
    harness.abort(abort_all=True)


class UntilIdle:
    """Channels on which nothing comes, and that end the loop when all is answered."""

    heartbeat_due = False
    descriptors = ()

    def __init__(self, harness: Harness, on_heartbeat: Callable[[Heartbeat], object]) -> None:
        self._scheduler, self._on_heartbeat = harness.scheduler, on_heartbeat

    def recv(self, timeout_s: float) -> list[ToScheduler]:
        self._scheduler.shutting_down = not self._scheduler.has_unfinished_requests()
        return []

    def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
        assert isinstance(message, Heartbeat)
        self._on_heartbeat(message)


def test_a_queue_that_is_full_or_has_room_again_is_told_at_once() -> None:
    harness = Harness(max_running_requests=1, max_queued_requests=1)
    sent: list[Heartbeat] = []
    for _ in range(2):
        harness.submit(prompt_of(5), max_new_tokens=5)
    harness.scheduler.run_event_loop(UntilIdle(harness, sent.append))
    assert [beat.stats.num_queue_reqs for beat in sent if beat.stats is not None] == [1, 0]


def test_a_step_that_will_take_long_is_told_of_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, silences in [(4.0, set()), (11.0, {33.0, 66.0})]:
        for overlap in [False, True]:
            harness = Harness(max_running_requests=1, overlap=overlap)
            scheduler = harness.scheduler
            monkeypatch.setattr(scheduler.planner.cost_model, "seconds", lambda *_: seconds)
            told: list[float] = []
            """Silences that are told of, and 0.0 for each step that begins."""
            submit = scheduler.executor.submit
            monkeypatch.setattr(scheduler.executor, "submit", lambda plan: (told.append(0.0), submit(plan)))

            harness.submit(prompt_of(5), max_new_tokens=5)
            scheduler.run_event_loop(UntilIdle(harness, lambda beat: told.append(beat.expected_silence)))
            assert told.count(0.0) >= 5
            if silences:
                before, steps = told[::2], told[1::2]
                assert set(before) == (silences if overlap else {min(silences)})
                assert set(steps) == {0.0}
            else:
                assert set(told) == {0.0}


def test_unknown_control_method_is_answered_with_the_known_ones() -> None:
    (reply,) = Harness().scheduler.process_input_requests([ControlReq("1", "reboot")])
    assert not reply.success
    assert "flush_cache" in reply.message


def test_decode_step_costs_a_bounded_number_of_python_calls_per_request() -> None:
    def calls(running: int) -> int:
        harness = Harness(max_running_requests=running, max_total_num_tokens=running * 100, verify=False)
        for seed in range(running):
            harness.submit(prompt_of(4, seed), max_new_tokens=50)
        for _ in range(4):
            harness.step()
        count = 0

        def profile(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        harness.scheduler.planner.cost_model.observe = lambda *_: None  # type: ignore[method-assign]  # slow steps cost more
        sys.setprofile(profile)
        harness.step()
        sys.setprofile(None)
        return count

    few, many = calls(8), calls(64)
    # One append and one delta per streaming request (and the harness's own bookkeeping of a delta).
    assert (many - few) / 56 <= 10
    assert few <= 400


def test_decode_step_allocates_a_bounded_amount_per_request() -> None:
    def allocated(running: int) -> tuple[int, int]:
        """Most bytes that a step holds at a time, and bytes that it keeps, from Python and numpy alike."""
        harness = Harness(max_running_requests=running, max_total_num_tokens=running * 100, verify=False)
        for seed in range(running):
            harness.submit(prompt_of(4, seed), max_new_tokens=50)
        for _ in range(8):
            harness.step()
        gc.collect()
        tracemalloc.start()
        harness.step()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(4):
            harness.step()
        after, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak - before, (after - before) // 4

    (few_peak, few_kept), (many_peak, many_kept) = allocated(8), allocated(64)
    # A delta per streaming request, which the harness keeps, with its list of one id.
    assert (many_peak - few_peak) / 56 <= 1600
    assert (many_kept - few_kept) / 56 <= 400
    assert few_peak <= 32 * 1024


def test_control_call_with_a_senseless_timeout_is_refused() -> None:
    for timeout in ["5", float("nan"), [1]]:
        harness = Harness()
        harness.submit(prompt_of(50))
        harness.step()
        (reply,) = harness.scheduler.process_input_requests([ControlReq("1", "flush_cache", {"timeout": timeout})])
        assert not reply.success
        harness.run()


def test_failing_steps_in_a_row_do_not_end_a_device_that_works() -> None:
    harness = Harness()
    original = harness.worker.worker.forward_batch_generation

    def poisoned(plan: StepPlan) -> StepResult:
        if 666 in plan.input_ids:
            raise RuntimeError("device error")
        return original(plan)

    harness.worker.worker.forward_batch_generation = poisoned  # type: ignore[method-assign]
    for _ in range(7):
        (bad,) = harness.submit([5, 666, 7])
        harness.run()
        assert harness.outputs[bad].finish_reason is not None
        assert harness.outputs[bad].finish_reason.status_code == 500
    (good,) = harness.submit(prompt_of(20))
    harness.run()
    assert harness.outputs[good].token_ids == harness.expected(prompt_of(20), 8)


def test_a_device_that_is_broken_ends_the_scheduler() -> None:
    harness = Harness()

    def broken(plan: StepPlan) -> StepResult:
        raise RuntimeError("device error")

    harness.worker.worker.forward_batch_generation = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="device error"):  # noqa: PT012
        for _ in range(4):
            harness.submit(prompt_of(20))
            harness.run()


def test_logprob_ids_outside_the_vocabulary_are_refused_alone() -> None:
    harness = Harness()
    (bad,) = harness.submit(prompt_of(20), return_logprob=True, token_ids_logprob=[5000])
    (good,) = harness.submit(prompt_of(20))
    harness.run()
    assert harness.outputs[bad].finish_reason is not None
    assert harness.outputs[bad].finish_reason.status_code == 400
    assert harness.outputs[good].token_ids == harness.expected(prompt_of(20), 8)


def test_what_is_told_of_waiting_prompts_takes_a_bounded_look_at_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    for _ in range(2):
        harness.submit(prompt_of(40))
        if not harness.outputs:
            harness.run()
    requests, looked_up = harness.scheduler.requests, []
    uncached = harness.scheduler.reports.internal_state
    assert uncached()["num_waiting_uncached_tokens"] == 1  # the last token is computed, whatever is cached
    match = requests.kv.match
    monkeypatch.setattr(requests.kv, "match", lambda ids, key: (looked_up.append(len(ids)), match(ids, key))[1])
    monkeypatch.setattr(reports_module, "MAX_LOOKED_UP_TOKENS", 100)
    for _ in range(9):
        harness.submit(prompt_of(40))
    assert uncached()["num_waiting_uncached_tokens"] == 2 + 20 + 7 * 40
    assert looked_up == [40, 40, 20]
    harness.run()


def test_state_tells_what_waits_and_what_decoding_took() -> None:
    harness = Harness(max_running_requests=1, chunked_prefill_size=16)
    state = harness.scheduler.reports.internal_state
    harness.submit(prompt_of(40), max_new_tokens=5)
    harness.submit([*prompt_of(40), *prompt_of(8, 1)], max_new_tokens=5)
    assert state()["num_waiting_uncached_tokens"] == 88
    assert state()["decode_moments"][0] == 0
    harness.step()
    assert state()["num_waiting_uncached_tokens"] == 88 - 16  # a chunk is computed
    harness.run()
    harness.close()
    after = state()
    steps, rows, micros, squares, products, tokens = after["decode_moments"]
    assert after["num_waiting_uncached_tokens"] == after["num_retracted_reqs"] == after["num_compiling_reqs"] == 0
    assert steps == rows == squares == tokens == 8  # two requests, one at a time, whose first token ends the prompt
    assert micros == products > 0


def test_a_prefix_is_used_by_who_starts_and_not_by_who_waits_for_memory() -> None:
    waited = 0
    for own in range(4, 60, 4):
        harness = Harness(max_total_num_tokens=256, context_len=256)
        shared = prompt_of(60)
        harness.submit(shared, max_new_tokens=1)
        harness.run()
        harness.submit(prompt_of(80, 1), max_new_tokens=60)
        harness.step()
        harness.submit([*shared, *prompt_of(own, 2)], rid="late", max_new_tokens=60)
        while harness.scheduler.requests.waiting_queue:
            harness.step()
            waited += bool(harness.scheduler.requests.waiting_queue)
        harness.run()
        (hits,) = {
            node.hits for node in harness.scheduler.requests.kv.prefix_cache.outline(9) if node.head == shared[:16]
        }
        assert hits <= 1 + harness.scheduler.reports.stats().num_retracted_total
        harness.close()
        assert harness.outputs["late"].token_ids == harness.expected([*shared, *prompt_of(own, 2)], 60)
    assert waited > 10


def test_replicas_draw_different_random_numbers_for_requests_without_a_seed() -> None:
    outputs = []
    for dp in (None, 0, 1, 1):
        harness = Harness(key=ProcessKey("scheduler", dp))
        for seed in (None, 7):
            harness.submit([1, 2, 3], rid=str(seed), temperature=1.0, sampling_seed=seed)
        harness.run()
        outputs.append({rid: tuple(output.token_ids) for rid, output in harness.outputs.items()})
    assert len({each["None"] for each in outputs}) == 3
    assert outputs[2] == outputs[3]
    assert len({each["7"] for each in outputs}) == 1
