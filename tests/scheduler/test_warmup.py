from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bough.model_executor.fake_model_runner import FakeWorker
from bough.scheduler.warmup import measure_step_costs
from bough.step_plan import FUTURE_TOKEN, StepPlan


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
