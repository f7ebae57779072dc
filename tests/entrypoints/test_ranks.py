"""Two schedulers with fake devices under one front: requests are shared out, and what they say is told apart."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bough.config.ranks import CONTROLLER, DETOKENIZER, ParallelLayout
from bough.config.server_args import ServerArgs
from bough.entrypoints.launch_plan import LaunchPlan
from bough.entrypoints.running_engine import CHILDREN_GRACE_SECONDS, RunningEngine
from bough.errors import EngineDead, RequestFailed
from bough.managers.io_struct import GenerateReqInput
from bough_fake.model import expected_tokens
from tests.e2e.test_fake_model import make_checkpoint

LAYOUT = ParallelLayout(dp_size=2)
FIRST, SECOND = LAYOUT.leaders
SILENCE_SECONDS = 2.0
TOKENS = 12
GREEDY = {"temperature": 0.0, "ignore_eos": True}


class Front:
    """An engine of two schedulers, on an event loop, and what it has said of deaths."""

    def __init__(self, directory: Path) -> None:
        self.vocab_size = make_checkpoint(directory)
        args = ServerArgs(
            model_path=str(directory), max_total_tokens=4096, watchdog_timeout=SILENCE_SECONDS, log_level="warning"
        )
        self.deaths: list[str] = []
        self.seconds_to_end = 0.0
        self.engine = RunningEngine(replace(LaunchPlan.make(args), layout=LAYOUT), self.deaths.append)

    async def run(self, test: Callable[[Front], Awaitable[None]]) -> None:
        try:
            self.engine.prepare()
            self.engine.launch()
            self.engine.load_text()
            self.engine.wait_until_ready()
            self.manager = await self.engine.start()
            await self.until(lambda: all(key in self.manager.metrics.heartbeats for key in LAYOUT.leaders))
            await test(self)
        finally:
            self.engine.fail(EngineDead("the test is over"), crashed=False)
            begin = time.monotonic()
            await self.engine.close(lambda: bool(self.deaths))
            self.seconds_to_end = time.monotonic() - begin
            self.engine.stop()

    async def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    async def answer(self, prompt: list[int]) -> list[int]:
        request = GenerateReqInput(input_ids=prompt, sampling_params={**GREEDY, "max_new_tokens": TOKENS})
        (answer,) = [each async for each in self.manager.generate_request(request)]
        return answer["output_ids"]

    def expected(self, prompt: list[int]) -> list[int]:
        return expected_tokens(prompt, TOKENS, self.vocab_size)

    def pid(self, index: int) -> int:
        return self.engine.pids[index]


async def reports_heartbeats_replies_and_metrics(front: Front) -> None:
    manager = front.manager
    capacity = manager.scheduler_info["max_total_num_tokens"]
    assert await front.answer([5, 6, 7]) == front.expected([5, 6, 7])
    states = await manager.get_internal_state()
    assert [state["max_total_num_tokens"] for state in states] == [capacity // 2] * 2
    assert sorted(state["decode_tokens_total"] > 0 for state in states) == [False, True]
    assert (await manager.flush_cache(5.0)).success
    await manager.pause_generation()
    assert [state["paused"] for state in await manager.get_internal_state()] == [True, True]
    await manager.continue_generation()
    await front.until(lambda: not manager.health.paused)
    assert set(manager.metrics.heartbeats) == {FIRST, SECOND, CONTROLLER, DETOKENIZER}
    text = manager.metrics.render().decode()
    for rank in ("DP0", "DP1"):
        assert f'process="scheduler",rank="{rank}"' in text
    for rank in (0, 1):
        assert f'bough:max_total_num_tokens{{dp_rank="{rank}",model_name=' in text
    assert not front.deaths


async def requests_for_both(front: Front) -> None:
    """Prompts with a common prefix meet at one scheduler, and the others are spread."""
    prompts = [[group] * 200 + [last] for group in range(10) for last in range(4)]
    answers = await asyncio.gather(*(front.answer(prompt) for prompt in prompts))
    assert answers == [front.expected(prompt) for prompt in prompts]
    outputs = front.manager.generate_request(
        GenerateReqInput(input_ids=[3] * 50, sampling_params={**GREEDY, "n": 3, "max_new_tokens": 400}, rid="long")
    )
    aborted = asyncio.ensure_future(anext(outputs))
    await front.until(lambda: len(front.manager.rid_to_state) == 3)
    front.manager.abort_request("long")
    assert [each["meta_info"]["finish_reason"]["type"] for each in await aborted] == ["abort"] * 3
    states = await front.manager.get_internal_state()
    assert sum(state["decode_tokens_total"] for state in states) >= TOKENS * len(prompts)
    assert min(state["decode_tokens_total"] for state in states) >= TOKENS * 4
    assert [state["kv_discrepancy"] for state in states] == [None, None]
    assert (await front.manager.flush_cache(5.0)).success
    assert not front.deaths


async def a_stopped_scheduler(front: Front) -> None:
    manager = front.manager
    os.kill(front.pid(1), signal.SIGSTOP)
    with pytest.raises(RequestFailed, match=r"^the scheduler DP1 did not answer get_internal_state") as caught:
        await manager.get_internal_state(timeout=0.5)
    assert caught.value.status_code == 504
    await front.until(lambda: bool(front.deaths))
    assert front.deaths[0].startswith("no sign of life from scheduler DP1 for")
    os.kill(front.pid(1), signal.SIGCONT)


async def a_killed_scheduler(front: Front) -> None:
    os.kill(front.pid(1), signal.SIGKILL)
    await front.until(lambda: bool(front.deaths))
    assert front.deaths[0].startswith("the scheduler DP1 process was killed by SIGKILL")


async def a_killed_controller(front: Front) -> None:
    os.kill(front.pid(2), signal.SIGKILL)
    await front.until(lambda: bool(front.deaths))
    assert front.deaths[0].startswith("the controller process was killed by SIGKILL")


@pytest.mark.parametrize(
    "test",
    [
        requests_for_both,
        reports_heartbeats_replies_and_metrics,
        a_stopped_scheduler,
        a_killed_scheduler,
        a_killed_controller,
    ],
)
def test_two_schedulers_are_told_apart(test: Callable[[Front], Awaitable[None]], tmp_path: Path) -> None:
    front = Front(tmp_path)
    pids = front.engine.pids
    asyncio.run(front.run(test))
    assert front.deaths or front.seconds_to_end < CHILDREN_GRACE_SECONDS, "all end when they are asked to"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
