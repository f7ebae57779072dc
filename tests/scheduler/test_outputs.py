"""Whatever happens inside the scheduler, every request gets the tokens that its prompt alone determines.

The fake device derives each token from the KV slots a request reads, so a slot that is stale, shared by mistake or
overwritten changes the output.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bough.config.port_args import PortArgs
from bough.errors import ConfigError
from bough.ipc.channels import SchedulerChannels, TokenizerChannels
from bough.ipc.messages import AbortReq, PositionLogprobs, ShutdownReq, TokenizedGenerateReqInput
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler import output_processor
from bough.scheduler.req import Req
from bough.scheduler.step_budget import LOGPROBS_AT_ONCE
from bough.step_codec import decode_plan, encode_plan
from bough.step_plan import RowLogprobResult, StepResult
from bough_fake.runner import StepDuration
from tests.entrypoints.leftovers import eventually
from tests.scheduler.harness import Harness, Output, prompt_of
from tests.step_runs import runs_of
from tests.thoroughness import examples

POLICIES = ["lpm", "fcfs", "dfs-weight", "lof", "random", "priority"]


def test_single_request_gets_its_tokens() -> None:
    harness = Harness()
    prompt = prompt_of(40)
    (rid,) = harness.submit(prompt, max_new_tokens=20)
    harness.run()
    output = harness.outputs[rid]
    assert output.token_ids == harness.expected(prompt, 20)
    assert output.finish_reason is not None
    assert output.finish_reason.type == "length"
    assert output.finish_reason.length == 20


def test_streams_one_delta_per_token() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(5), max_new_tokens=12)
    harness.run()
    assert [len(delta.token_ids) for delta in harness.outputs[rid].deltas] == [1] * 12


def test_stream_interval_groups_tokens_after_the_first() -> None:
    for interval in [2, 5]:
        harness = Harness()
        (rid,) = harness.submit(prompt_of(5), max_new_tokens=12, stream_interval=interval)
        harness.run()
        sizes = [len(delta.token_ids) for delta in harness.outputs[rid].deltas]
        assert sizes[0] == 1
        assert set(sizes[1:-1]) == {interval}
        assert sum(sizes) == 12


def test_whole_answer_is_not_streamed_token_by_token() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(5), max_new_tokens=50, stream=False)
    harness.run()
    assert len(harness.outputs[rid].deltas) == 2
    assert harness.outputs[rid].token_ids == harness.expected(prompt_of(5), 50)


def test_no_new_tokens_wanted_computes_the_prompt_and_ends() -> None:
    harness = Harness()
    (rid,) = harness.submit(prompt_of(30), max_new_tokens=0)
    harness.run()
    output = harness.outputs[rid]
    assert output.token_ids == []
    assert output.finish_reason is not None
    assert output.finish_reason.type == "length"


def test_output_ends_at_the_last_position_of_the_context() -> None:
    harness = Harness(context_len=64)
    prompt = prompt_of(50)
    (rid,) = harness.submit(prompt, max_new_tokens=None)
    harness.run()
    info = harness.scheduler.info
    assert len(harness.outputs[rid].token_ids) == info.max_req_len - 50
    assert harness.outputs[rid].token_ids == harness.expected(prompt, info.max_req_len - 50)


def test_eos_ends_the_output_and_ignore_eos_does_not() -> None:
    prompt = prompt_of(10)
    eos = Harness().expected(prompt, 5)[4]
    harness = Harness(eos_token_ids=[eos])
    (stopped,) = harness.submit(prompt, max_new_tokens=10)
    (ignoring,) = harness.submit(prompt, max_new_tokens=10, ignore_eos=True)
    harness.run()
    expected = harness.expected(prompt, 10)
    end = expected.index(eos) + 1
    assert harness.outputs[stopped].token_ids == expected[:end]
    reason = harness.outputs[stopped].finish_reason
    assert reason is not None
    assert (reason.type, reason.matched) == ("stop", eos)
    assert harness.outputs[ignoring].token_ids == expected


def test_own_stop_token_ends_only_its_request() -> None:
    prompt = prompt_of(10)
    harness = Harness()
    expected = harness.expected(prompt, 10)
    (stopped,) = harness.submit(prompt, max_new_tokens=10, stop_token_ids=(expected[3],))
    (other,) = harness.submit(prompt, max_new_tokens=10)
    harness.run()
    end = expected.index(expected[3]) + 1
    assert harness.outputs[stopped].token_ids == expected[:end]
    assert harness.outputs[other].token_ids == expected


def test_lone_request_may_fill_the_pool_and_then_ends_with_length() -> None:
    harness = Harness(max_total_num_tokens=64, context_len=1024, max_running_requests=2)
    prompt = prompt_of(20)
    (rid,) = harness.submit(prompt, max_new_tokens=500)
    harness.run()
    output = harness.outputs[rid]
    assert output.finish_reason is not None
    assert output.finish_reason.type == "length"
    assert 40 <= len(output.token_ids) <= 45
    assert output.token_ids == harness.expected(prompt, len(output.token_ids))


def test_retracted_requests_continue_with_identical_output() -> None:
    for overlap in [False, True, "ahead"]:
        for radix in [False, True]:
            for page_size in [1, 4, 16]:
                harness = Harness(
                    overlap=overlap,
                    max_total_num_tokens=256,
                    max_running_requests=8,
                    page_size=page_size,
                    disable_radix_cache=not radix,
                    schedule_conservativeness=0.1,
                )
                prompts = [prompt_of(16, seed) for seed in range(8)]
                rids = [harness.submit(prompt, max_new_tokens=60)[0] for prompt in prompts]
                harness.run()
                harness.close()
                assert harness.scheduler.requests.stats.num_retracted_total > 0, "the pool was meant to run out"
                for rid, prompt in zip(rids, prompts, strict=True):
                    assert harness.outputs[rid].token_ids == harness.expected(prompt, 60)


def test_oldest_running_request_is_never_retracted() -> None:
    harness = Harness(max_total_num_tokens=128, max_running_requests=4, schedule_conservativeness=0.1)
    first, *others = (harness.submit(prompt_of(16, seed), max_new_tokens=80)[0] for seed in range(4))
    harness.run()
    assert harness.outputs[first].deltas[-1].num_retractions == 0
    assert sum(harness.outputs[rid].deltas[-1].num_retractions for rid in others) > 0


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_traffic_is_answered_exactly_and_leaves_nothing_behind(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 2**32)))
    page_size = data.draw(st.sampled_from([1, 2, 16, 64]))
    harness = Harness(
        overlap=data.draw(st.booleans()),
        max_total_num_tokens=data.draw(st.sampled_from([256, 512, 2048])) // page_size * page_size,
        max_running_requests=data.draw(st.integers(1, 8)),
        context_len=200,
        page_size=page_size,
        schedule_policy=data.draw(st.sampled_from(POLICIES)),
        radix_eviction_policy=data.draw(st.sampled_from(["lru", "lfu", "fifo", "mru", "priority"])),
        disable_radix_cache=data.draw(st.booleans()),
        chunked_prefill_size=data.draw(st.sampled_from([None, 16, 50, -1])),
        schedule_conservativeness=data.draw(st.sampled_from([0.1, 1.0])),
        max_steps=data.draw(st.sampled_from([1, 2, 7, 32])),
        eos_token_ids=(ends := data.draw(st.sampled_from([range(0), range(5, 1000, 30)]))),
    )
    whole = data.draw(st.booleans())
    own_stops = data.draw(st.sampled_from([(), tuple(range(20, 1000, 40))]))
    stops_after = data.draw(st.sampled_from([1.0, 0.7, 0.0]))
    harness.worker.worker.model_runner.stops_early = lambda: rng.random() > stops_after
    bases = [prompt_of(rng.randint(1, 120), seed) for seed in range(3)]
    expected: dict[str, list[int]] = {}
    all_stops: dict[str, set[int]] = {}
    lengths: dict[str, int] = {}
    aborted: set[str] = set()
    for _ in range(rng.randint(1, 14)):
        prompt = rng.choice(bases)[: rng.randint(1, 120)] + prompt_of(rng.randint(0, 30), rng.randint(0, 5))
        count = rng.randint(0, 40)
        for rid in harness.submit(
            prompt,
            max_new_tokens=count,
            n=rng.choice([1, 1, 1, 3]),
            stream=not whole and rng.random() < 0.7,
            extra_key=rng.choice([None, "tenant"]),
            priority=rng.randint(-2, 2),
            stop_token_ids=(stops := rng.choice([(), own_stops])),
        ):
            tokens = harness.expected(prompt, count)
            until = next((i + 1 for i, token in enumerate(tokens) if token in ends or token in stops), count)
            expected[rid], all_stops[rid] = tokens[:until], {*ends, *stops}
            lengths[rid] = len(prompt)
        for _ in range(rng.randint(0, 6)):
            harness.step()
        if rng.random() < 0.25:
            victim = rng.choice(list(expected))
            harness.abort(victim, exact=True)
            aborted.add(victim)
    harness.run()
    harness.close()
    for rid, tokens in expected.items():
        output = harness.outputs[rid]
        assert output.finish_reason is not None
        if rid in aborted and output.finish_reason.type == "abort":
            assert output.token_ids == tokens[: len(output.token_ids)]
        else:
            assert output.finish_reason.type == (
                "stop" if output.token_ids[-1:] and output.token_ids[-1] in all_stops[rid] else "length"
            )
            # A request that alone fills the pool may end early, never wrongly.
            assert output.token_ids == tokens[: len(output.token_ids)]
            room = harness.scheduler.info.max_total_num_tokens - page_size
            assert len(output.token_ids) == len(tokens) or lengths[rid] + len(output.token_ids) >= room


def test_cached_prompt_of_whole_pages_is_answered_from_the_cache() -> None:
    harness = Harness(page_size=16)
    prompt = prompt_of(64)
    (first,) = harness.submit(prompt)
    harness.run()
    (second,) = harness.submit(prompt)
    harness.run()
    assert harness.outputs[first].cached_tokens == 0
    assert harness.outputs[second].cached_tokens == 48
    assert harness.outputs[second].token_ids == harness.outputs[first].token_ids


def test_second_turn_reuses_prompt_and_answer() -> None:
    harness = Harness()
    prompt = prompt_of(50)
    (first,) = harness.submit(prompt, max_new_tokens=30)
    harness.run()
    follow_up = prompt + harness.outputs[first].token_ids + prompt_of(10, 9)
    (second,) = harness.submit(follow_up)
    harness.run()
    assert harness.outputs[second].cached_tokens == 79, "all but the last token of the answer, which has no KV"
    assert harness.outputs[second].token_ids == harness.expected(follow_up, 8)


def test_extra_keys_never_share() -> None:
    harness = Harness()
    prompt = prompt_of(50)
    harness.submit(prompt, extra_key="a")
    harness.run()
    (other,) = harness.submit(prompt, extra_key="b")
    (same,) = harness.submit(prompt, extra_key="a")
    harness.run()
    assert harness.outputs[other].cached_tokens == 0
    assert harness.outputs[same].cached_tokens == 49


def test_recorded_plans_replay_on_another_worker() -> None:
    for overlap in [False, True]:
        harness = Harness(
            overlap=overlap, max_total_num_tokens=256, schedule_conservativeness=0.1, chunked_prefill_size=32
        )
        for seed in range(6):
            harness.submit(prompt_of(40, seed % 3), max_new_tokens=40, n=2)
        harness.run()
        harness.close()
        fresh = Harness(max_total_num_tokens=256).worker.worker
        assert len(harness.worker.steps) > 40
        for plan, result in harness.worker.steps:
            replayed = fresh.forward_batch_generation(decode_plan(encode_plan(plan)))
            assert runs_of(replayed) == runs_of(result)


def test_overlap_and_normal_say_and_cache_the_same() -> None:
    def serve(overlap: bool) -> tuple[list[tuple[str, list[int], object]], list[int]]:
        harness = Harness(overlap=overlap, eos_token_ids=[7, 77], max_total_num_tokens=4096)
        prompts = [prompt_of(20 + seed, seed % 4) for seed in range(12)]
        rids = [harness.submit(prompt, max_new_tokens=40 + i)[0] for i, prompt in enumerate(prompts)]
        harness.run()
        harness.close()
        said = [(rid, harness.outputs[rid].token_ids, harness.outputs[rid].finish_reason) for rid in rids]
        cached = [
            harness.scheduler.requests.kv.match(np.array(prompt + harness.outputs[rid].token_ids, dtype=np.int32), None)
            for rid, prompt in zip(rids, prompts, strict=True)
        ]
        return said, cached

    assert serve(overlap=False) == serve(overlap=True)


def test_overlap_launches_a_step_before_it_processes_the_one_before() -> None:
    harness = Harness(overlap=True)
    harness.submit(prompt_of(10), max_new_tokens=10)
    harness.run()
    harness.close()
    launches = {step: i for i, (name, step) in enumerate(harness.events) if name == "launch"}
    processed = {step: i for i, (name, step) in enumerate(harness.events) if name == "process"}
    later = [step for step in processed if step + 1 in launches]
    assert later
    assert all(launches[step + 1] < processed[step] for step in later)

    normal = Harness(overlap=False)
    normal.submit(prompt_of(10), max_new_tokens=10)
    normal.run()
    assert normal.events == [(name, step) for step in range(1, 11) for name in ("launch", "process")]


def test_accounts_that_do_not_add_up_are_an_error_in_tests_and_a_counted_repair_in_production(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lose_a_slot() -> Harness:
        harness = Harness()
        harness.submit(prompt_of(20))
        harness.step()
        assert harness.scheduler.requests.kv.allocator.alloc_extend(1, 0, -1) is not None
        return harness

    with pytest.raises(RuntimeError, match="KV accounting does not add up"):
        lose_a_slot().run()
    harness = lose_a_slot()
    harness.scheduler._strict_accounting = False
    harness.run()
    assert "KV accounting does not add up, starting over with an empty cache" in caplog.text
    for _ in range(2):
        assert harness.scheduler.reports.stats().kv_accounting_repairs_total == 1
        assert harness.scheduler.requests.kv.check_idle() is None
        (later,) = harness.submit(prompt_of(20))
        harness.run()
        assert harness.outputs[later].token_ids == harness.expected(prompt_of(20), 8)


def test_where_memory_is_lost_a_request_that_has_no_room_waits_for_nothing() -> None:
    harness = Harness(max_total_num_tokens=64)
    harness.scheduler._strict_accounting = False
    assert harness.scheduler.requests.kv.allocator.alloc_extend(1, 0, -1) is not None
    (large,) = harness.submit(prompt_of(63), max_new_tokens=1)
    (small,) = harness.submit(prompt_of(20), max_new_tokens=1)
    harness.run(max_steps=20)
    reason = harness.outputs[large].finish_reason
    assert reason is not None
    assert (reason.type, reason.status_code) == ("abort", 503)
    assert harness.outputs[small].token_ids == harness.expected(prompt_of(20), 1)
    (large,) = harness.submit(prompt_of(63), max_new_tokens=1)
    harness.run(max_steps=20)
    assert harness.outputs[large].token_ids == harness.expected(prompt_of(63), 1)


def test_an_interval_longer_than_any_output_holds_back_all_but_the_first_token() -> None:
    harness = Harness(max_total_num_tokens=64, schedule_conservativeness=0.05)
    for number in range(4):
        harness.submit(prompt_of(8, seed=number), rid=f"{number}", max_new_tokens=40, stream_interval=2**31 - 1)
    harness.run()
    assert harness.scheduler.requests.stats.num_retracted_total > 0, "and goes on after a retraction"
    for number in range(4):
        output = harness.outputs[f"{number}"]
        assert output.token_ids == harness.expected(prompt_of(8, seed=number), 40)
        assert [len(delta.token_ids) for delta in output.deltas] == [1, 39]


def test_steps_follow_one_another_while_nobody_is_to_be_told_anything() -> None:
    harness = Harness(max_steps=16)
    prompts = [prompt_of(20, seed) for seed in range(3)]
    rids = [harness.submit(prompt, max_new_tokens=50, stream=False)[0] for prompt in prompts]
    harness.run()
    assert [harness.outputs[rid].token_ids for rid in rids] == [harness.expected(prompt, 50) for prompt in prompts]
    assert [plan.num_steps for plan, _ in harness.worker.steps] == [1, 16, 16, 16, 1]
    assert harness.scheduler.reports.stats().decode_tokens_total == 3 * 50


def test_plans_have_one_step_where_tokens_cannot_be_chosen_natively_alone() -> None:
    harness = Harness(max_steps=16)
    harness.submit(prompt_of(20), max_new_tokens=30, stream=False, bad_words=("x",), banned_sequences=((1, 2),))
    harness.run()
    assert {plan.num_steps for plan, _ in harness.worker.steps} == {1}


def test_steps_in_a_row_have_the_logprobs_of_steps_one_by_one() -> None:
    for stream_interval in [None, 3, 10]:

        def outputs(max_steps: int) -> list[Output]:
            harness = Harness(max_steps=max_steps)
            fields = {
                "max_new_tokens": 40,
                "stream": stream_interval is not None,
                "stream_interval": stream_interval or 1,
            }
            asking = {"return_logprob": True, "top_logprobs_num": 2, "token_ids_logprob": [5, 7]}
            (told,) = harness.submit(prompt_of(20), **asking, **fields)
            (other,) = harness.submit(prompt_of(20, 1), **fields)
            harness.run()
            assert (max(plan.num_steps for plan, _ in harness.worker.steps) > 1) == (max_steps > 1)
            return [harness.outputs[told], harness.outputs[other]]

        one_by_one, in_a_row = outputs(1), outputs(13)
        assert len(in_a_row[0].logprobs) == 40
        assert [position.token_id for position in in_a_row[0].logprobs] == in_a_row[0].token_ids
        assert [each.logprobs for each in in_a_row] == [each.logprobs for each in one_by_one]
        assert [each.token_ids for each in in_a_row] == [each.token_ids for each in one_by_one]


def test_an_error_in_the_logprobs_of_earlier_steps_ends_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(max_steps=13)
    fields = {"max_new_tokens": 40, "stream": False, "return_logprob": True}
    (bad,), (good,) = (harness.submit(prompt_of(20, seed), **fields) for seed in (1, 2))
    read = output_processor.sampled_logprobs

    def raise_for_one(req: Req, token: int, result: RowLogprobResult) -> PositionLogprobs:
        if req.rid == bad and len(req.pending_logprobs) == 5:
            raise ValueError("a wrong number of ids")
        return read(req, token, result)

    monkeypatch.setattr(output_processor, "sampled_logprobs", raise_for_one)
    harness.run()
    reason = harness.outputs[bad].finish_reason
    assert reason is not None
    assert (reason.type, reason.status_code) == ("abort", 500)
    assert harness.outputs[good].token_ids == harness.expected(prompt_of(20, 2), 40)
    assert len(harness.outputs[good].logprobs) == 40


def test_steps_that_are_reported_together_have_no_more_logprobs_than_are_handled_at_once() -> None:
    harness = Harness(max_steps=100)
    fields = {"max_new_tokens": 60, "stream": False, "return_logprob": True}
    harness.submit(prompt_of(20), top_logprobs_num=999, **fields)
    harness.submit(prompt_of(20, 1), top_logprobs_num=23, **fields)
    harness.run()
    assert LOGPROBS_AT_ONCE // 1024 == 16
    assert [plan.num_steps for plan, _ in harness.worker.steps] == [1, 16, 16, 16, 11]


def test_streams_are_told_of_each_token_before_the_next_step_of_a_run() -> None:
    for own_stops in [False, True]:
        harness = Harness(max_steps=16)
        expected = [harness.expected(prompt_of(20, seed), 50) for seed in range(3)]
        fields: dict[str, Any] = {"stop_token_ids": (min(set(range(1000)).difference(*expected)),)} if own_stops else {}
        rids = [
            harness.submit(prompt_of(20, seed), max_new_tokens=50, stream_interval=1, **fields)[0] for seed in range(2)
        ]
        (whole,) = harness.submit(prompt_of(20, 2), max_new_tokens=50, stream=False)
        told: list[int] = []
        run_further = harness.worker.worker.forward_further

        def forward_further() -> StepResult:
            told.append(len(harness.outputs[rids[0]].token_ids))
            return run_further()

        harness.worker.worker.forward_further = forward_further  # type: ignore[method-assign]
        harness.run()
        assert [harness.outputs[rid].token_ids for rid in (*rids, whole)] == expected
        assert {len(delta.token_ids) for rid in rids for delta in harness.outputs[rid].deltas} == {1}
        assert told == [count for count in range(1, 50) if count % 16 != 1]
        assert harness.scheduler.reports.stats().decode_tokens_total == 3 * 50
        assert harness.scheduler.requests.stats.steps_total == 50


def test_a_run_ends_with_a_stop_token_of_a_request_s_own() -> None:
    for stream in [False, True]:
        for page_size in [1, 4]:
            harness = Harness(max_steps=16, page_size=page_size)
            tokens = harness.expected(prompt_of(20), 40)
            length = next(count for count in range(6, 16) if tokens[count] not in tokens[:count])
            fields = {"max_new_tokens": 40, "stream": stream}
            (stopping,) = harness.submit(prompt_of(20), stop_token_ids=(tokens[length],), **fields)
            (other,) = harness.submit(prompt_of(20, 1), **fields)
            harness.step()
            harness.step()
            while harness.scheduler.steps.plan_goes_on:
                harness.step()
            assert harness.outputs[stopping].token_ids == tokens[: length + 1]
            reason = harness.outputs[stopping].finish_reason
            assert reason is not None
            assert (reason.type, reason.matched) == ("stop", tokens[length])
            assert harness.worker.steps[-1][0].num_steps == 16
            assert len(harness.worker.steps) == 1 + length, "no step more than it takes"
            kv = harness.scheduler.requests.kv
            kv.check_integrity()
            assert kv.usage().private + kv.usage().protected == -(-(20 + length) // page_size) * page_size
            harness.run()
            assert harness.outputs[other].token_ids == harness.expected(prompt_of(20, 1), 40)


def test_a_message_between_two_steps_ends_their_plan() -> None:
    harness = Harness(max_steps=16)
    (first,) = harness.submit(prompt_of(20), max_new_tokens=40)
    for _ in range(5):
        harness.step()
    assert harness.scheduler.steps.plan_goes_on
    assert len(harness.outputs[first].token_ids) == 5
    (second,) = harness.submit(prompt_of(30, 1), max_new_tokens=40)
    assert not harness.scheduler.steps.plan_goes_on
    assert harness.scheduler.requests.kv.usage().private + harness.scheduler.requests.kv.usage().protected == 24
    harness.scheduler.requests.kv.check_integrity()
    harness.step()
    assert len(harness.outputs[second].token_ids) == 1, "it is in the very next step"
    for _ in range(4):
        harness.step()
    harness.abort(first)
    harness.run()
    assert harness.outputs[first].token_ids == harness.expected(prompt_of(20), 40)[:10]
    assert harness.outputs[second].token_ids == harness.expected(prompt_of(30, 1), 40)
    assert harness.scheduler.requests.stats.steps_total == 5 + 40


def test_a_server_looks_for_messages_between_plans_and_not_between_their_steps() -> None:
    harness = Harness(max_steps=16)
    looked: list[int] = []

    class Messages:
        heartbeat_due = False
        descriptors = ()

        def recv(self, timeout_s: float) -> list[TokenizedGenerateReqInput | ShutdownReq]:
            done = harness.scheduler.requests.stats.steps_total
            looked.append(done)
            if not done:
                params = SamplingParams(temperature=0.0, max_new_tokens=33)
                ids = np.array(prompt_of(20), dtype="<i4").tobytes()
                return [TokenizedGenerateReqInput(["a"], ids, params, stream=True)] if len(looked) == 1 else []
            return [ShutdownReq()] if done == 33 else []

        def send_to_tokenizer(self, message: object) -> None:
            pass

    harness.scheduler.run_event_loop(Messages())
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(20), 33)
    assert sorted(set(looked)) == [0, 1, 17, 33]


def test_steps_and_their_time_are_counted_once() -> None:
    for fields in ({}, {"stream": False}, {"stop_token_ids": (999,)}):
        harness = Harness(max_steps=16, duration=StepDuration(per_step=0.01, clock="virtual"))
        (rid,) = harness.submit(prompt_of(20), max_new_tokens=100, **fields)
        harness.run()
        assert len(harness.outputs[rid].token_ids) == 100
        assert harness.scheduler.requests.stats.steps_total == 100
        assert harness.scheduler.reports.stats().step_seconds_total == pytest.approx(1.0)
        assert harness.scheduler.planner.cost_model.seconds(1, 100.0) == pytest.approx(0.01, rel=0.1)


def test_who_waits_for_memory_beside_streams_gets_it_soon() -> None:
    firsts = []
    for max_steps in (1, 32):
        harness = Harness(max_steps=max_steps, max_total_num_tokens=1320, context_len=1024, max_running_requests=8)
        for seed in range(2):
            harness.submit(prompt_of(20, seed), max_new_tokens=900)
        for _ in range(3):
            harness.step()
        (late,) = harness.submit(prompt_of(300, 9), max_new_tokens=200)
        while late not in harness.outputs:
            harness.step()
        firsts.append(harness.scheduler.requests.stats.steps_total)
    assert firsts[0] < firsts[1] + 1 <= firsts[0] + 5, "once there is memory, the plan that runs has at most four steps"


def test_plans_have_one_step_until_the_output_may_end() -> None:
    for eos, expected in (([999], [1] * 10 + [16, 4]), ([], [1, 16, 13])):
        harness = Harness(max_steps=16, eos_token_ids=eos)
        (rid,) = harness.submit(prompt_of(20), max_new_tokens=30, min_new_tokens=10, stream=False)
        harness.run()
        assert [plan.num_steps for plan, _ in harness.worker.steps] == expected
        assert harness.outputs[rid].token_ids == harness.expected(prompt_of(20), 30)


def test_steps_follow_one_another_up_to_a_stream_s_next_delta() -> None:
    harness = Harness(max_steps=16)
    (streaming,) = harness.submit(prompt_of(20), max_new_tokens=31, stream_interval=5)
    (whole,) = harness.submit(prompt_of(20, 1), max_new_tokens=31, stream=False)
    harness.run()
    assert [len(delta.token_ids) for delta in harness.outputs[streaming].deltas] == [1, *[5] * 6]
    assert harness.outputs[whole].token_ids == harness.expected(prompt_of(20, 1), 31)
    assert [plan.num_steps for plan, _ in harness.worker.steps] == [1, *[5] * 6]


def test_most_steps_in_a_row_are_those_of_the_option_and_none_with_overlap() -> None:
    for fields, expected in (
        ({"num_continuous_decode_steps": 4}, 4),
        ({"overlap": True}, 1),
        ({"overlap": "ahead"}, 1),
    ):
        harness = Harness(max_steps=16, **fields)
        harness.submit(prompt_of(20), max_new_tokens=30, stream=False)
        harness.run()
        harness.close()
        assert max(plan.num_steps for plan, _ in harness.worker.steps) == expected


def test_several_steps_in_a_row_are_refused_where_there_can_be_but_one() -> None:
    for fields in [{}, {"max_steps": 16, "overlap": True}]:
        assert Harness(num_continuous_decode_steps=1, **fields).scheduler is not None
        with pytest.raises(
            ConfigError, match="--num-continuous-decode-steps 2 is for text models on native CPU"
        ) as caught:
            Harness(num_continuous_decode_steps=2, **fields)
        assert caught.value.param == "num_continuous_decode_steps"


def test_what_was_set_aside_for_steps_that_did_not_run_is_free_again() -> None:
    for page_size in (1, 4):
        harness = Harness(max_steps=16, page_size=page_size)
        rids = [harness.submit(prompt_of(20, seed), max_new_tokens=40, stream=False)[0] for seed in range(2)]
        harness.step()
        harness.worker.worker.model_runner.stops_early = lambda: True
        harness.step()
        plan, result = harness.worker.steps[-1]
        assert (plan.num_steps, result.num_steps) == (16, 1)
        kv = harness.scheduler.requests.kv
        kv.check_integrity()
        assert kv.usage().private + kv.usage().protected == 2 * -(-21 // page_size) * page_size
        (late,) = harness.submit(prompt_of(30, 5), max_new_tokens=10)
        harness.run()
        for rid, prompt, count in (
            (rids[0], prompt_of(20, 0), 40),
            (rids[1], prompt_of(20, 1), 40),
            (late, prompt_of(30, 5), 10),
        ):
            assert harness.outputs[rid].token_ids == harness.expected(prompt, count)


def test_steps_follow_one_another_while_others_wait_for_a_place() -> None:
    harness = Harness(max_steps=16, max_running_requests=2)
    prompts = [prompt_of(20, seed) for seed in range(4)]
    rids = [harness.submit(prompt, max_new_tokens=33, stream=False)[0] for prompt in prompts]
    harness.run()
    assert [harness.outputs[rid].token_ids for rid in rids] == [harness.expected(prompt, 33) for prompt in prompts]
    assert [plan.num_steps for plan, _ in harness.worker.steps] == [1, 16, 16, 1, 16, 16]


def test_a_full_cache_does_not_keep_steps_from_following_one_another() -> None:
    for page_size in [1, 16]:
        harness = Harness(max_steps=16, max_total_num_tokens=512, page_size=page_size)
        for seed in range(16):
            harness.submit(prompt_of(32, seed), max_new_tokens=1)
        harness.run()
        assert harness.scheduler.requests.kv.allocator.available_size < 32
        del harness.worker.steps[:]
        rids = [harness.submit(prompt_of(20, 100 + seed), max_new_tokens=49, stream=False)[0] for seed in range(4)]
        harness.run()
        assert [plan.num_steps for plan, _ in harness.worker.steps] == [1, 16, 16, 16]
        for seed, rid in enumerate(rids):
            assert harness.outputs[rid].token_ids == harness.expected(prompt_of(20, 100 + seed), 49)


def test_as_many_steps_follow_one_another_as_there_is_memory_for() -> None:
    for page_size in [1, 16]:
        harness = Harness(
            max_steps=16, max_total_num_tokens=64, page_size=page_size, context_len=64, schedule_conservativeness=0.1
        )
        rids = [harness.submit(prompt_of(16, seed), max_new_tokens=40, stream=False)[0] for seed in range(2)]
        harness.run()
        # 64 tokens are 32 for each of two: 16 behind the prompt, and then one has to make room.
        assert [plan.num_steps for plan, _ in harness.worker.steps][:2] == [1, 16]
        assert harness.scheduler.requests.stats.num_retracted_total > 0
        for seed, rid in enumerate(rids):
            assert harness.outputs[rid].token_ids == harness.expected(prompt_of(16, seed), 40)


def test_steps_in_a_row_end_when_their_time_is_over_and_before_a_deadline() -> None:
    duration = StepDuration(per_step=0.01, clock="virtual")
    harness = Harness(max_steps=32, duration=duration, context_len=4096, max_total_num_tokens=8192)
    harness.submit(prompt_of(20), max_new_tokens=2000, stream=False)
    for _ in range(20):
        harness.step()
    assert {result.num_steps for _, result in harness.worker.steps[2:]} <= {19, 20}
    harness.worker.worker.model_runner._duration = StepDuration(per_step=0.15, clock="virtual")
    for _ in range(20):
        harness.step()
    assert {result.num_steps for _, result in harness.worker.steps[-20:]} == {1}

    harness = Harness(max_steps=32, duration=duration, request_timeout=60.0)
    harness.submit(prompt_of(20), max_new_tokens=300, stream=False, timeout=0.05)
    for _ in range(2):
        harness.step()
    plan, result = harness.worker.steps[-1]
    assert plan.further is None or plan.further.seconds < 0.05
    assert result.num_steps <= 5


def test_estimates_of_memory_follow_the_steps_that_were_run() -> None:
    ratios = []
    for stops in (False, True):
        harness = Harness(max_steps=16)
        harness.worker.worker.model_runner.stops_early = lambda stops=stops: stops
        harness.submit(prompt_of(20), max_new_tokens=33, stream=False)
        while harness.scheduler.requests.stats.steps_total < 33:
            harness.step()
        ratios.append(harness.scheduler.planner.ratio.value)
    assert ratios[0] == pytest.approx(ratios[1])
    assert ratios[0] < harness.scheduler.planner.ratio._initial


def test_what_arrives_ends_steps_in_a_row() -> None:
    ports = PortArgs.create()
    harness = Harness(max_steps=32)
    channels, main = SchedulerChannels(ports, has_detokenizer=False), TokenizerChannels(ports)
    loop = threading.Thread(target=harness.scheduler.run_event_loop, args=(channels,))
    fake = harness.worker.worker
    interrupt_on, looks = fake.interrupt_on, itertools.count(1)
    sent_during: list[int] = []

    def interrupt_on_and_send(descriptors: Sequence[int]) -> None:
        interrupt_on(descriptors)
        has_news = fake.model_runner.stops_early

        def stops_early() -> bool:
            if next(looks) in (5, 40, 80):
                sent_during.append(len(harness.worker.steps))
                main.send(AbortReq("nobody"))
                eventually(has_news, 20)
            return has_news()

        fake.model_runner.stops_early = stops_early

    fake.interrupt_on = interrupt_on_and_send  # type: ignore[method-assign]
    try:
        ids = np.array(prompt_of(20), dtype="<i4").tobytes()
        params = SamplingParams(temperature=0.0, max_new_tokens=300)
        main.send(TokenizedGenerateReqInput(["long"], ids, params, stream=False))
        loop.start()
        assert eventually(lambda: sum(result.num_steps for _, result in harness.worker.steps) == 300, 20)
        main.send(ShutdownReq())
        loop.join(20)
        assert not loop.is_alive()
        shortened = [i for i, (plan, result) in enumerate(harness.worker.steps) if result.num_steps < plan.num_steps]
        assert len(shortened) == 3
        assert shortened == sent_during
    finally:
        harness.scheduler.shutting_down = True
        loop.join(20)
        for each in (channels, main):
            each.close()
        ports.cleanup()
