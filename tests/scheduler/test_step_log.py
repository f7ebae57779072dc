"""The lines of the log that people and their scripts read."""

from __future__ import annotations

import logging
import re

import pytest

from bough.ipc.messages import ControlReq
from bough.model_executor.worker_info import KernelCounts
from bough.scheduler.step_log import StepLog
from tests.scheduler.harness import Harness

PREFILL = re.compile(
    r"Prefill batch\. #new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+), token usage: (\d\.\d\d), "
    r"#running-req: (\d+), #queue-req: (\d+), #step: (\d+)"
)
DECODE = re.compile(
    r"Decode batch\. #running-req: (\d+), #token: (\d+), token usage: (\d\.\d\d), "
    r"gen throughput \(token/s\): (\d+\.\d\d), #queue-req: (\d+)"
)


def numbers(pattern: re.Pattern[str], line: str) -> list[float]:
    match = pattern.fullmatch(line)
    assert match is not None, line
    return [float(number) for number in match.groups()]


def test_there_is_a_line_for_each_prefill_and_for_some_steps_of_decoding(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bough.scheduler.step_log")
    harness = Harness(decode_log_interval=4, max_running_requests=2, max_total_num_tokens=400)
    prompt = list(range(20))
    for rid in ("a", "b", "c"):
        harness.submit(prompt, rid=rid, max_new_tokens=9)
    harness.run()
    harness.close()
    records = [record for record in caplog.records if record.name == "bough.scheduler.step_log"]
    prefill, *decodes = [record.getMessage() for record in records[:3]]
    assert [record.__dict__["event"] for record in records] == 2 * ["prefill_batch", "decode_batch", "decode_batch"]
    # Two of three find a place; of what they share, one copy is kept.
    assert numbers(PREFILL, prefill) == [2, 40, 0, 0.1, 2, 1, 1]
    for tokens, line in zip((28, 36), decodes, strict=True):
        running, used, usage, throughput, queued = numbers(DECODE, line)
        assert (running, used, usage, queued) == (2, tokens, tokens / 400, 1)
        assert throughput > 0
    assert numbers(PREFILL, records[3].getMessage()) == [1, 1, 19, 0.05, 1, 0, 1]


@pytest.mark.parametrize("max_new_tokens", [1, 3])
def test_pieces_of_a_long_prompt_share_lines(caplog: pytest.LogCaptureFixture, max_new_tokens: int) -> None:
    caplog.set_level(logging.INFO, "bough.scheduler.step_log")
    harness = Harness(decode_log_interval=4, chunked_prefill_size=10)
    harness.submit(list(range(67)), max_new_tokens=max_new_tokens)
    harness.run()
    harness.scheduler.log.on_idle()
    harness.close()
    lines = [record.getMessage() for record in caplog.records if record.__dict__.get("event") == "prefill_batch"]
    told = [numbers(PREFILL, line) for line in lines]
    assert [(new, tokens, steps) for new, tokens, *_, steps in told] == [(1, 10, 1), (0, 40, 4), (0, 17, 2)]


def test_steps_that_take_long_have_a_line_each(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.scheduler.step_log._LONGEST_SILENCE", 0.0)
    caplog.set_level(logging.INFO, "bough.scheduler.step_log")
    harness = Harness(decode_log_interval=4, chunked_prefill_size=10)
    harness.submit(list(range(67)), max_new_tokens=1)
    harness.run()
    harness.close()
    lines = [record.getMessage() for record in caplog.records if record.__dict__.get("event") == "prefill_batch"]
    assert [numbers(PREFILL, line)[1] for line in lines] == [10, 10, 10, 10, 10, 10, 7]


def test_by_default_lines_are_few_and_lose_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("bough.scheduler.step_log.time.monotonic", lambda: now[0])
    caplog.set_level(logging.INFO, "bough.scheduler.step_log")
    harness = Harness()
    for number in range(60):
        harness.submit([number + 1, 2, 3], max_new_tokens=100)
        harness.run()
        now[0] += 1.0
    now[0] += 30.0
    harness.submit([90, 2, 3], max_new_tokens=1)
    harness.run()
    harness.close()
    records = [record for record in caplog.records if record.name == "bough.scheduler.step_log"]
    events = [record.__dict__["event"] for record in records]
    assert len(events) <= 8
    assert "decode_batch" in events
    lines = [numbers(PREFILL, each.getMessage()) for each in records if each.__dict__["event"] == "prefill_batch"]
    assert sum(line[0] for line in lines) == 61
    assert sum(line[1] + line[2] for line in lines) == 61 * 3


def test_a_log_for_debugging_has_all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "bough.scheduler.step_log")
    harness = Harness()
    for number in range(3):
        harness.submit([number + 1, 2, 3], max_new_tokens=90)
        harness.run()
    harness.close()
    events = [record.__dict__["event"] for record in caplog.records if "event" in record.__dict__]
    assert [events.count("prefill_batch"), events.count("decode_batch")] == [3, 6]


def test_a_pause_counts_for_no_throughput() -> None:
    harness = Harness(decode_log_interval=4)
    harness.submit([1, 2], max_new_tokens=1000)
    log, stats = harness.scheduler.log, harness.scheduler.requests.stats

    def run() -> float:
        before = stats.gen_throughput
        while stats.gen_throughput == before:
            harness.step()
        return stats.gen_throughput

    assert run() > 0
    harness.scheduler.process_input_requests([ControlReq("1", "pause_generation", {"mode": "in_place"})])
    assert stats.gen_throughput == 0
    log._since -= 1000.0
    harness.scheduler.process_input_requests([ControlReq("2", "continue_generation")])
    assert run() > 1, "four tokens in no 1000 s"
    harness.scheduler.process_input_requests([ControlReq("2", "continue_generation")])
    assert stats.gen_throughput > 0, "there was no pause to end"
    harness.abort("r0")
    harness.run()
    harness.close()


def test_a_line_tells_of_lost_cores_where_more_than_noise_were_since_the_last(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bough.scheduler.step_log")
    harness = Harness(decode_log_interval=4)
    counts = iter(
        [KernelCounts(10, 10, 3), KernelCounts(20, 15, 3), KernelCounts(30, 23, 5), KernelCounts(1030, 1023, 45)]
    )
    log = StepLog(harness.scheduler.requests, 4, lambda: next(counts))
    for _ in range(3):
        log._log_decode()
    harness.close()
    records = [record for record in caplog.records if record.__dict__.get("event") == "lost_cores"]
    assert [record.args for record in records] == [{"recomputed": 2, "threads": 1.8}]
