"""Every plan that a fake device gets in these tests has been sent, as it would be to another process."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from bough.constrained.masks import StepMasks
from bough.step_codec import decode_plan, encode_masks, encode_plan
from bough.step_plan import StepPlan, StepResult
from bough_fake.worker import FakeWorker


def assert_same(sent: Any, received: Any) -> None:
    """Compare plans member by member, arrays with their types and bits; masks are compared when they are there."""
    if isinstance(sent, StepMasks):
        assert_same(sent.rows, received.rows)
        return
    assert type(sent) is type(received)
    if isinstance(sent, msgspec.Struct):
        for name in sent.__struct_fields__:
            assert_same(getattr(sent, name), getattr(received, name))
    elif isinstance(sent, tuple):
        assert len(sent) == len(received)
        for one, other in zip(sent, received, strict=True):
            assert_same(one, other)
    elif isinstance(sent, np.ndarray):
        assert (sent.dtype, sent.shape, sent.tobytes()) == (received.dtype, received.shape, received.tobytes())
        assert received.flags.writeable
        assert received.flags.aligned
    else:
        assert sent == received


@pytest.fixture(autouse=True)
def plans_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    run = FakeWorker.forward_batch_generation

    def send_and_run(worker: FakeWorker, plan: StepPlan) -> StepResult:
        if sys.getprofile() is not None:  # calls are counted
            return run(worker, plan)
        masks = plan.masks
        owes = masks is not None and plan.step_id % 2 == 1
        frames = [bytes(frame) for frame in encode_plan(plan, owes_masks=owes)]
        received = decode_plan(frames, lambda: [bytes(frame) for frame in encode_masks(masks)] if masks else [])
        assert_same(plan, received)
        result = run(worker, received)
        if masks is not None and received.masks is not None:
            settled = [(each.bits, each.has_failed, each.ended) for each in (masks, received.masks)]
            assert_same(*settled)
        return result

    monkeypatch.setattr(FakeWorker, "forward_batch_generation", send_and_run)
