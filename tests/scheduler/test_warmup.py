from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from bough.scheduler import warmup
from bough.scheduler.warmup import measure_step_costs
from bough.step_plan import FUTURE_TOKEN, StepPlan
from bough_fake.worker import FakeWorker


def test_probed_decode_steps_are_such_as_the_scheduler_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = FakeWorker(
        vocab_size=1000, max_total_num_tokens=4096, max_running_requests=32, context_len=1024, verify=False
    )
    plans: list[StepPlan] = []
    run = worker.forward_batch_generation

    def kept(plan: StepPlan) -> Any:
        plans.append(plan)
        return run(plan)

    monkeypatch.setattr(worker, "forward_batch_generation", kept)
    measure_step_costs(worker)
    decode = [plan for plan in plans if plan.num_decode_rows]
    assert {plan.num_rows for plan in decode} == {1, 8, 32}
    assert all((plan.input_ids == FUTURE_TOKEN).all() for plan in decode)
    # Which tokens these are was sampled in the step before.
    assert all(before.sample.all() for before, plan in pairwise(plans) if plan.num_decode_rows)


def test_a_first_pass_that_compiles_for_long_takes_nothing_from_the_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    for device, first, later in [("cpu", 30.0, 0.01), ("cuda", 30.0, 1.0), ("cuda", 0.0, 0.01)]:
        worker = FakeWorker(
            vocab_size=1000, max_total_num_tokens=8192, max_running_requests=32, context_len=4096, verify=False
        )
        info = replace(worker.get_worker_info(), device=device)
        now, sizes = 0.0, list[tuple[int, bool]]()

        def run(plan: StepPlan) -> Any:
            nonlocal now
            now += later if sizes else first
            sizes.append((plan.num_tokens, plan.num_decode_rows > 0))
            return SimpleNamespace(seconds=later)

        monkeypatch.setattr(worker, "get_worker_info", lambda: info)
        monkeypatch.setattr(worker, "forward_batch_generation", run)
        monkeypatch.setattr(warmup, "time", SimpleNamespace(perf_counter=lambda: now))
        measure_step_costs(worker, max_step_tokens=2048)
        prompts = {tokens for tokens, decodes in sizes if not decodes}
        assert {16, 64, 256} <= prompts
        assert (1024 in prompts) == (device == "cuda" and later < 0.1), "where it takes no time that counts"
        assert {tokens for tokens, decodes in sizes if decodes} == {1, 8, 32}
