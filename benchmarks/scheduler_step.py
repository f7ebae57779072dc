"""Host time of a scheduler step, with the device's compute taken away.

For each number of running requests: median time of a decode step minus the fake device's own time, with every request
streaming one delta per token. Then the same with thousands of requests waiting: for a slot, which costs nothing, and
for memory while there are slots, so that the policy is asked in every step.

    python benchmarks/scheduler_step.py --output results/scheduler_step.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np

from bough.config.server_args import ServerArgs, resolve
from bough.ipc.messages import BatchTokenIDOutput, OutputDelta, TokenizedGenerateReqInput
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.scheduler import Scheduler
from bough.step_plan import StepPlan, StepResult

sys.path.append(str(Path(__file__).parents[1] / "tests" / "fake_model"))
from bough_fake.worker import FakeWorker

STEPS = 200
PROMPT_TOKENS = 32
ROOM = PROMPT_TOKENS + STEPS + 64
"""Tokens of the pool for each running request."""


class StopwatchWorker(Worker):
    """Adds up the time spent in the fake device."""

    def __init__(self, worker: FakeWorker) -> None:
        self._worker = worker
        self.seconds = 0.0

    def get_worker_info(self) -> WorkerInfo:
        return self._worker.get_worker_info()

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        start = time.perf_counter()
        result = self._worker.forward_batch_generation(plan)
        self.seconds += time.perf_counter() - start
        return result


def measure(running: int, waiting: int, policy: str, *, free_slots: int = 0) -> dict[str, float]:
    worker = StopwatchWorker(
        FakeWorker(
            vocab_size=8192,
            max_total_num_tokens=running * ROOM,
            max_running_requests=running + free_slots,
            context_len=running * ROOM,
            page_size=1,
        )
    )
    encoder = msgspec.msgpack.Encoder()

    def send(deltas: list[OutputDelta]) -> None:
        encoder.encode(BatchTokenIDOutput(deltas))

    scheduler = Scheduler(
        resolve(ServerArgs(schedule_policy=policy, decode_log_interval=40)),
        SimpleNamespace(eos_token_ids=(0,)),  # type: ignore[arg-type]
        worker,
        None,
        send_to_detokenizer=send,
    )
    rng = np.random.default_rng(0)
    params = SamplingParams(temperature=0.0, max_new_tokens=STEPS + 20, ignore_eos=True)

    def submit(count: int, length: int, name: str) -> None:
        for index in range(count):
            ids = rng.integers(1, 8192, length).astype("<i4").tobytes()
            message = TokenizedGenerateReqInput([f"{name}{index:024d}"], ids, params, stream=True)
            scheduler.process_input_requests([message])

    submit(running, PROMPT_TOKENS, "running_")
    while scheduler.requests.num_holding < running:
        scheduler.step()
    # With slots free, of more tokens than are free beside the prompts of those that run, so that none gets in.
    submit(waiting, running * ROOM - running * PROMPT_TOKENS // 2 if free_slots else PROMPT_TOKENS, "waiting_")
    for _ in range(10):
        scheduler.step()
    host: list[float] = []
    for _ in range(STEPS - 20):
        worker.seconds = 0.0
        start = time.perf_counter()
        scheduler.step()
        host.append(time.perf_counter() - start - worker.seconds)
    if scheduler.requests.num_holding != running:
        raise RuntimeError(f"{scheduler.requests.num_holding} requests hold memory in place of {running}")
    return {
        "running": running,
        "waiting": waiting,
        "free_slots": free_slots,
        "host_us_median": statistics.median(host) * 1e6,
        "host_us_p99": sorted(host)[int(len(host) * 0.99)] * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    rows = [measure(*case) for case in [(1, 0, "lpm"), (64, 0, "lpm"), (256, 0, "lpm"), (256, 10_000, "lpm")]]
    rows += [measure(64, waiting, "lpm", free_slots=64) for waiting in (100, 2000)]
    print(f"{'running':>8} {'waiting':>8} {'free slots':>11} {'host µs, median':>16} {'p99':>8}")
    for row in rows:
        print(
            f"{row['running']:8} {row['waiting']:8} {row['free_slots']:11} {row['host_us_median']:16.0f} "
            f"{row['host_us_p99']:8.0f}"
        )
    print(f"ratio with 10,000 waiting to none: {rows[3]['host_us_median'] / rows[2]['host_us_median']:.2f}")
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
