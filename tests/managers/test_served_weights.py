"""Updates that only some of several schedulers could make, or whose callers leave."""

from __future__ import annotations

import asyncio

import pytest

from bough.config.ranks import SCHEDULER, ParallelLayout
from bough.config.server_args import ServerArgs
from bough.errors import RequestFailed
from bough.ipc.messages import CheckAction, ControlReply, ControlReq
from bough.managers.exclusive_changes import ExclusiveChanges
from bough.managers.health import HealthMonitor
from bough.managers.rw_lock import ReaderWriterLock
from bough.managers.scheduler_control import SchedulerControl
from bough.managers.served_weights import ServedWeights, UpdateOutcome

ONE, TWO = ParallelLayout(dp_size=2).leaders
CHANGED = {"num_missing": 0, "num_paused_requests": 0, "output_lens": {}}


@pytest.mark.parametrize(
    ("num_changed", "ends"),
    [(3, True), (0, False)],
    ids=["each with its own weights", "weights shared, and written by the one that failed"],
)
def test_replicas_with_different_weights_end_the_engine(num_changed: int, ends: bool) -> None:
    """The first replica could not make the update, and the second one could."""
    control = Control(fails_at="run", num_changed=num_changed)
    outcome = asyncio.run(update_from_file(control))
    assert outcome.error is not None
    assert "cut short" in outcome.message
    assert control.methods == ["update_weights_from_file", *(["give_up"] if ends else [])]


def test_weights_that_one_replica_refuses_are_written_by_none() -> None:
    control = Control(fails_at="prepare", num_changed=3)
    outcome = asyncio.run(update_from_file(control))
    assert outcome.error is not None
    assert "cut short" in outcome.message
    assert control.methods == []


def test_an_update_of_which_a_replica_says_nothing_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.managers.served_weights.LOADING_TIMEOUT", 0.01)
    control = Control(fails_at="", num_changed=3, is_silent=True)
    with pytest.raises(RequestFailed, match="did not answer update_weights_from_file"):
        asyncio.run(update_from_file(control))
    assert control.methods == ["update_weights_from_file", "give_up"]


@pytest.mark.parametrize(
    ("action", "num_changed", "ends"),
    [("reset_tensors", 3, True), ("reset_tensors", 0, False), ("compare", 0, False)],
    ids=["overwritten", "weights shared, and overwritten by the one that failed", "only compared"],
)
def test_a_check_that_one_replica_fails_ends_the_engine_if_another_one_was_overwritten(
    action: CheckAction, num_changed: int, ends: bool
) -> None:
    control = Control(fails_at="run", num_changed=num_changed)
    outcome = asyncio.run(check(control, action))
    assert not outcome.success
    assert control.methods == ["check_weights", *(["give_up"] if ends else [])]


@pytest.mark.parametrize(("action", "ends"), [("reset_tensors", True), ("snapshot", False)])
def test_a_check_of_which_a_replica_says_nothing_ends_the_engine_if_it_overwrites(
    action: CheckAction, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.managers.served_weights.LOADING_TIMEOUT", 0.01)
    control = Control(fails_at="", num_changed=3, is_silent=True)
    with pytest.raises(RequestFailed, match="did not answer check_weights"):
        asyncio.run(check(control, action))
    assert control.methods == ["check_weights", *(["give_up"] if ends else [])]


def test_an_update_is_discarded_even_if_its_caller_leaves_and_an_end_that_is_refused_leaves_it_open() -> None:
    methods: list[str] = []
    refused: set[str] = set()
    refusal = {"status_code": 400, "param": None, "code": None}

    def send(request: ControlReq) -> None:
        if request.stage in ("promise", "run"):
            methods.append(f"{request.stage} {request.method}")
        success = request.method not in refused
        data = {"num_changed": 1, "num_missing": 0, "has_begun": True, **CHANGED} if success else refusal
        control.on_reply(ControlReply(request.call_id, SCHEDULER, success, "", data))

    async def run() -> None:
        weights = served(control)
        assert (await weights.begin_update()).success
        refused.add("end_weight_update")
        assert not (await weights.end_update()).success
        assert weights.is_staging
        ending = asyncio.ensure_future(weights.end_update(discard=True))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})
        await asyncio.sleep(0.01)
        assert not weights.is_staging
        assert not (await weights.end_update()).success
        assert (await weights.update_from_file("/weights")).success

    control = SchedulerControl(send)
    asyncio.run(run())
    assert methods == [
        *("promise begin_weight_update", "run begin_weight_update"),
        *("promise end_weight_update", "run has_begun_weight_update", "run abandon_weight_update"),
        *("promise update_weights_from_file", "run update_weights_from_file"),
    ]


class Control(SchedulerControl):
    """Control of two schedulers; ``methods`` are those that both were to run.

    The first fails at one stage, or neither says what has become of an update that they were to run.
    """

    def __init__(self, *, fails_at: str, num_changed: int, is_silent: bool = False) -> None:
        super().__init__(self._answer, (ONE, TWO))
        self.methods: list[str] = []
        self._fails_at, self._num_changed, self._is_silent = fails_at, num_changed, is_silent

    def _answer(self, request: ControlReq) -> None:
        gives_up = request.method == "give_up"
        if request.stage == "run":
            self.methods.append(request.method)
            if self._is_silent and not gives_up:
                return
        for key in (ONE, TWO):
            fails = gives_up or (request.stage == self._fails_at and key == ONE)
            done = {"num_changed": self._num_changed, **CHANGED} if request.stage == "run" else {}
            data = {"status_code": 500} if fails else done
            self.on_reply(ControlReply(request.call_id, key, not fails, "cut short" if fails else "", data))


async def update_from_file(control: SchedulerControl) -> UpdateOutcome:
    return await served(control).update_from_file("/weights")


async def check(control: SchedulerControl, action: CheckAction) -> UpdateOutcome:
    return await served(control).check(action)


def served(control: SchedulerControl) -> ServedWeights:
    health = HealthMonitor(max_silence=60.0)
    health.set_ready()
    changes = ExclusiveChanges(ReaderWriterLock(), health, None)  # type: ignore[arg-type]
    return ServedWeights(ServerArgs(), control, None, changes, health, lambda missing: None)
