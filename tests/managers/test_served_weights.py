"""Updates that only some of several schedulers could make."""

from __future__ import annotations

import asyncio

import pytest

from bough.config.ranks import ParallelLayout
from bough.config.server_args import ServerArgs
from bough.ipc.messages import ControlReply, ControlReq
from bough.managers.exclusive_changes import ExclusiveChanges
from bough.managers.health import HealthMonitor
from bough.managers.rw_lock import ReaderWriterLock
from bough.managers.scheduler_control import SchedulerControl
from bough.managers.served_weights import ServedWeights

ONE, TWO = ParallelLayout(dp_size=2).leaders
CHANGED = {"num_paused_requests": 0, "output_lens": {}}


@pytest.mark.parametrize(
    ("num_changed", "ends"), [(3, True), (0, False)], ids=["weights of its own", "weights that the other one writes"]
)
def test_replicas_with_different_weights_end_the_engine(num_changed: int, ends: bool) -> None:
    """The first replica could not make the update, and the second one could."""
    methods: list[str] = []

    def send(request: ControlReq) -> None:
        if request.stage == "run":
            methods.append(request.method)
        for key in (ONE, TWO):
            fails = request.stage == "run" and (key == ONE or request.method == "give_up")
            data = {"status_code": 500} if fails else {"num_changed": num_changed, **CHANGED}
            control.on_reply(ControlReply(request.call_id, key, not fails, "cut short" if fails else "", data))

    async def run() -> None:
        nonlocal control
        control = SchedulerControl(send, (ONE, TWO))
        health = HealthMonitor(max_silence=60.0)
        health.set_ready()
        changes = ExclusiveChanges(ReaderWriterLock(), health, None)  # type: ignore[arg-type]
        weights = ServedWeights(ServerArgs(), control, None, changes, health, lambda missing: None)
        outcome = await weights.update_from_file("/weights")
        assert outcome.error is not None
        assert "cut short" in outcome.message

    control: SchedulerControl
    asyncio.run(run())
    assert methods == ["update_weights_from_file", *(["give_up"] if ends else [])]
