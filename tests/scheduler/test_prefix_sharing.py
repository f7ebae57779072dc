from __future__ import annotations

from tests.scheduler.harness import Harness, prompt_of


def test_requests_that_arrive_together_compute_their_common_prefix_once() -> None:
    for overlap in [False, True]:
        for chunk in [None, 128]:
            harness = Harness(
                overlap=overlap, max_total_num_tokens=16_384, context_len=1024, chunked_prefill_size=chunk
            )
            shared = prompt_of(512)
            prompts = [shared + prompt_of(32, seed + 1) for seed in range(32)]
            rids = [harness.submit(prompt, max_new_tokens=32)[0] for prompt in prompts]
            harness.run()
            harness.close()
            assert harness.computed_prompt_tokens() == 512 + 32 * 32
            for rid, prompt in zip(rids, prompts, strict=True):
                assert harness.outputs[rid].token_ids == harness.expected(prompt, 32)


def test_parallel_samples_compute_the_prompt_once() -> None:
    harness = Harness()
    rids = harness.submit(prompt_of(300), n=4, max_new_tokens=5)
    harness.run()
    assert harness.computed_prompt_tokens() == 300 + 3
    assert len({tuple(harness.outputs[rid].token_ids) for rid in rids}) == 1


def test_without_the_cache_parallel_samples_each_compute_the_prompt() -> None:
    harness = Harness(disable_radix_cache=True)
    harness.submit(prompt_of(100), n=4, max_new_tokens=5)
    harness.run()
    assert harness.computed_prompt_tokens() == 400


def test_followers_go_on_by_themselves_when_their_leader_is_aborted() -> None:
    harness = Harness(chunked_prefill_size=32, context_len=1024)
    shared = prompt_of(400)
    (leader,) = harness.submit([*shared, 1])
    followers = [harness.submit([*shared, 2, i])[0] for i in range(3)]
    harness.step()
    assert len(harness.scheduler.requests.sharing) == 3
    harness.abort(leader, exact=True)
    harness.run()
    for i, rid in enumerate(followers):
        assert harness.outputs[rid].token_ids == harness.expected([*shared, 2, i], 8)


def test_parked_request_can_be_aborted() -> None:
    harness = Harness(chunked_prefill_size=32, context_len=1024)
    shared = prompt_of(400)
    (leader,) = harness.submit([*shared, 1])
    (follower,) = harness.submit([*shared, 2])
    harness.step()
    harness.abort(follower, exact=True)
    harness.run()
    reason = harness.outputs[follower].finish_reason
    assert reason is not None
    assert reason.type == "abort"
    assert harness.outputs[leader].token_ids == harness.expected([*shared, 1], 8)


def test_nobody_waits_for_a_leader_that_is_slow_for_its_many_logprobs() -> None:
    for start in [0, 20, 128]:
        harness = Harness(context_len=2048, max_total_num_tokens=8192, chunked_prefill_size=512)
        shared = prompt_of(1000)
        many = {"return_logprob": True, "logprob_start_len": start, "token_ids_logprob": list(range(999))}
        harness.submit(shared, rid="leader", max_new_tokens=1, **many)
        harness.step()
        followers = [harness.submit([*shared, 2, i], max_new_tokens=1)[0] for i in range(3)]
        for _ in range(10):
            harness.step()
        assert all(rid in harness.outputs for rid in followers), "waited for the leader"
        assert not harness.outputs["leader"].token_ids
        # The first of them leads the others.
        assert [harness.outputs[rid].cached_tokens >= 1000 for rid in followers] == [False, True, True]
        harness.run()
        for i, rid in enumerate(followers):
            assert harness.outputs[rid].token_ids == harness.expected([*shared, 2, i], 1)
        entries = harness.outputs["leader"].input_logprobs or []
        assert [entry.token_id for entry in entries] == shared[start:]


def test_up_to_where_its_logprobs_begin_a_leader_is_waited_for() -> None:
    for alternatives, cached in [(999, 256), (0, 512)]:
        harness = Harness(context_len=2048, max_total_num_tokens=8192, chunked_prefill_size=64)
        shared = prompt_of(512)
        wanted = {"return_logprob": True, "logprob_start_len": 257, "token_ids_logprob": list(range(alternatives))}
        harness.submit(shared, rid="leader", max_new_tokens=1, **wanted)
        harness.step()
        (follower,) = harness.submit([*shared, 1], max_new_tokens=1)
        harness.step()
        assert len(harness.scheduler.requests.sharing) == 1
        harness.run()
        assert harness.outputs[follower].cached_tokens == cached
        assert harness.outputs[follower].token_ids == harness.expected([*shared, 1], 1)


def test_followers_start_as_soon_as_their_part_is_cached() -> None:
    harness = Harness(chunked_prefill_size=64, context_len=2048, max_total_num_tokens=8192)
    shared = prompt_of(128)
    harness.submit(shared + prompt_of(1000, 1), rid="long")
    (short,) = harness.submit(shared + prompt_of(8, 2))
    for _ in range(8):
        harness.step()
    assert harness.outputs[short].token_ids, "waited for the end of the leader's prompt"
    assert harness.outputs[short].cached_tokens == 128
    harness.run()
