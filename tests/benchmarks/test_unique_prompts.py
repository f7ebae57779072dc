"""What the prefix cache costs prompts that share nothing."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from benchmarks.unique_prompts import WARM_UP, Cost, share_of_calls

from benchmarks import unique_prompts


def test_calls_of_warm_up_jobs_are_not_in_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Cost(0.0, 0.0)
    jobs = 0

    def call() -> None:
        """Takes two seconds, one of them of the processor."""
        nonlocal now
        now = Cost(now.processor + 1.0, now.duration + 2.0)

    cache = SimpleNamespace(**dict.fromkeys(("match_prefix", "matched_len", "insert", "lock", "unlock", "evict"), call))

    def run_job(engine: object, prompts: list[list[int]]) -> Cost:
        nonlocal jobs
        jobs += 1
        for _ in range(1 if jobs > WARM_UP else 100):
            cache.insert()
        return Cost(processor=10.0, duration=10.0)

    clock = SimpleNamespace(perf_counter=lambda: now.duration, thread_time=lambda: now.processor)
    monkeypatch.setattr(unique_prompts, "time", clock)
    monkeypatch.setattr(unique_prompts, "RadixCache", cache)
    monkeypatch.setattr(unique_prompts, "LLMEngine", lambda **_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(unique_prompts, "run_job", run_job)
    share = share_of_calls(4, random.Random(0))
    assert (share.processor, share.duration) == pytest.approx((0.1, 0.2))
    assert jobs == WARM_UP + 4
