"""Where the time of a decode step on a CPU goes: kernels, Python around them, scheduling.

A language model of the given shape with random weights decodes under a real scheduler, without HTTP. Per step, medians:

- kernels: inside the native call;
- runner: the rest of what the worker does, Python that makes the call and reads its result;
- scheduler: all that is not the worker's.

``outside`` is the share of runner and scheduler. Tokens are streamed one by one, each after a step of its own, or told
when the answer is whole, so that many steps follow one another in one call. The same is done with as many layers of
hardly any width, where all of the time is overhead, natively and with torch: what a step costs in Python without a
recorded program.

    python -m benchmarks.cpu_graphs [--threads N] [--running 1 8 32] [--quantization none int8 int4] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, get_args
from unittest import mock

import msgspec
import numpy as np
from benchmarks.peers.shapes import SHAPES

from bough.config.engine_args import MAX_STEPS_IN_A_ROW, Quantization
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.ipc.messages import BatchTokenIDOutput, OutputDelta, TokenizedGenerateReqInput
from bough.kernels.program import Program
from bough.model_executor.tp_worker import TpModelWorker
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.scheduler import Scheduler
from bough.step_plan import StepPlan, StepResult

PROMPT_TOKENS = 128
WARM_UP = 5

SHAPE = SHAPES["qwen"] | {"max_position_embeddings": 2048, "bos_token_id": 0, "eos_token_id": 0}
"""Qwen2.5-0.5B."""

NARROW = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2, "vocab_size": 1024}


class Stopwatch:
    """Adds up the time in the worker, and in native programs."""

    def __init__(self, worker: TpModelWorker) -> None:
        self._worker = worker
        self.worker_seconds = self.kernel_seconds = 0.0
        self.get_worker_info = worker.get_worker_info
        self.interrupt_on = worker.interrupt_on

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        begin = time.perf_counter()
        result = self._worker.forward_batch_generation(plan)
        self.worker_seconds += time.perf_counter() - begin
        return result

    def forward_further(self) -> StepResult:
        begin = time.perf_counter()
        result = self._worker.forward_further()
        self.worker_seconds += time.perf_counter() - begin
        return result

    def timed(self, run: Any) -> Any:
        """A method of ``Program`` that runs it, measured."""

        def run_program(program: Program, *args: Any) -> Any:
            begin = time.perf_counter()
            result = run(program, *args)
            self.kernel_seconds += time.perf_counter() - begin
            return result

        return run_program


def measure(
    shape: dict[str, Any],
    running: int,
    threads: int,
    steps: int,
    *,
    native: bool,
    stream: bool = True,
    quantization: Quantization = "none",
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(shape))
        args = resolve(
            ServerArgs(
                model_path=directory,
                load_format="dummy",
                device="cpu",
                quantization=quantization,
                cpu_threads=threads,
                random_seed=0,
                skip_tokenizer_init=True,
                max_running_requests=running,
                max_total_tokens=running * (PROMPT_TOKENS + steps + (WARM_UP + 2) * MAX_STEPS_IN_A_ROW) // 16 * 16,
            )
        )
        config = ModelConfig.from_path(directory, device="cpu")
        without = mock.patch("bough.model_executor.execution_choice.native_threads", return_value=None)
        if native:
            stopwatch = Stopwatch(TpModelWorker(args, config))
        else:
            with without:
                stopwatch = Stopwatch(TpModelWorker(args, config))
    encoder = msgspec.msgpack.Encoder()

    def send(deltas: list[OutputDelta]) -> None:
        encoder.encode(BatchTokenIDOutput(deltas))

    scheduler = Scheduler(args, config, stopwatch, None, send_to_detokenizer=send)
    rng = np.random.default_rng(0)
    params = SamplingParams(temperature=0.0, max_new_tokens=steps + (WARM_UP + 1) * MAX_STEPS_IN_A_ROW, ignore_eos=True)
    for index in range(running):
        ids = rng.integers(1, shape["vocab_size"], PROMPT_TOKENS).astype("<i4").tobytes()
        scheduler.process_input_requests([TokenizedGenerateReqInput([f"{index:032d}"], ids, params, stream=stream)])
    while scheduler.requests.num_holding < running:
        scheduler.step()
    for _ in range(WARM_UP):
        scheduler.step()
    while scheduler.steps.plan_goes_on:
        scheduler.step()
    kernels, runner, host = [], [], []
    timed = {name: stopwatch.timed(getattr(Program, name)) for name in ("run", "decode")}
    first = done = scheduler.log.steps
    with mock.patch.multiple(Program, **timed):
        while done < first + steps:
            stopwatch.worker_seconds = stopwatch.kernel_seconds = 0.0
            begin = time.perf_counter()
            scheduler.step()
            while scheduler.steps.plan_goes_on:
                scheduler.step()
            seconds = time.perf_counter() - begin
            before, done = done, scheduler.log.steps
            kernels.append(stopwatch.kernel_seconds / (done - before))
            runner.append((stopwatch.worker_seconds - stopwatch.kernel_seconds) / (done - before))
            host.append((seconds - stopwatch.worker_seconds) / (done - before))
    medians = [statistics.median(each) * 1e6 for each in (kernels, runner, host)]
    return {
        "running": running,
        "kernels_us": medians[0],
        "runner_us": medians[1],
        "scheduler_us": medians[2],
        "outside": (medians[1] + medians[2]) / sum(medians),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="default: one per core")
    parser.add_argument("--running", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--quantization", nargs="+", choices=get_args(Quantization), default=["none"], help="of 0.5B")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'model':<22} {'running':>8} {'kernels µs':>11} {'runner µs':>10} {'scheduler µs':>13} {'outside':>8}")
    variants: list[tuple[str, dict[str, Any], bool, bool, Quantization]] = [
        *(
            (f"0.5B, {'bf16' if each == 'none' else each}, {told}", SHAPE, True, told == "streamed", each)
            for each in args.quantization
            for told in ("streamed", "whole")
        ),
        ("24 layers, streamed", SHAPE | NARROW, True, True, "none"),
        ("24 layers, whole", SHAPE | NARROW, True, False, "none"),
        ("24 layers, torch", SHAPE | NARROW, False, True, "none"),
    ]
    for name, shape, native, stream, quantization in variants:
        for running in args.running:
            threads = args.threads if native and shape is SHAPE else 1
            figures = measure(
                shape, running, threads, args.steps, native=native, stream=stream, quantization=quantization
            )
            row = {"model": name, **figures}
            rows.append(row)
            print(
                f"{name:<22} {running:8} {row['kernels_us']:11.0f} {row['runner_us']:10.0f} "
                f"{row['scheduler_us']:13.0f} {row['outside']:8.1%}",
                flush=True,
            )
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
