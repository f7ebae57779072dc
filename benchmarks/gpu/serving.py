"""Cells of ``make gpu-bench`` that run a whole scheduler: in one process, without HTTP and text.

``python -m benchmarks.gpu.serving SHAPE DEVICE`` starts one and says ``ready``, for the cell of start-up times.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.gpu.busy import busy_share, device_intervals, keep
from benchmarks.gpu.shapes import SHAPES, TINY
from torch.autograd import DeviceType

_SEED = 0
_ROUNDS = 3
"""That count, beside another engine."""


class Served:
    """A scheduler on a model with random weights, and what became of its requests."""

    def __init__(self, shape: dict[str, Any], device: torch.device, requests: int, **options: Any) -> None:
        from bough.config.model_config import ModelConfig
        from bough.config.server_args import ServerArgs, resolve
        from bough.model_executor.tp_worker import TpModelWorker
        from bough.scheduler.scheduler import Scheduler

        self.device, self.small = device, device.type == "cpu"
        self.shape = shape | TINY if self.small else shape
        self.unfinished = 0
        self.tokens = 0
        """Generated so far."""
        self._dropping = False
        self._sent = 0
        self._rng = np.random.default_rng(_SEED)
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "config.json").write_text(json.dumps(self.shape))
            args = resolve(
                ServerArgs(
                    model_path=directory,
                    load_format="dummy",
                    device=device.type,
                    skip_tokenizer_init=True,
                    random_seed=_SEED,
                    max_running_requests=requests,
                    **options,
                )
            )
            config = ModelConfig.from_path(directory, device=device.type)
            self.worker = TpModelWorker(args, config)
            self.scheduler = Scheduler(args, config, self.worker, None, send_to_detokenizer=self._count)

    def _count(self, deltas: list[Any]) -> None:
        self.tokens += sum(len(delta.token_ids) for delta in deltas)
        reasons = [delta.finish_reason for delta in deltas if delta.finish_reason is not None]
        self.unfinished -= len(reasons)
        failed = next((reason for reason in reasons if reason.type != "length" and not self._dropping), None)
        if failed is not None:
            raise RuntimeError(f"a request has not got all its tokens: {failed.type}, {failed.message}")

    def prompt(self, length: int) -> list[int]:
        return [int(token) for token in self._rng.integers(1, self.shape["vocab_size"], length)]

    def send(self, prompt: list[int], outputs: int, temperature: float = 0.6) -> None:
        from bough.ipc.messages import TokenizedGenerateReqInput
        from bough.sampling.sampling_params import SamplingParams

        params = SamplingParams(temperature=temperature, max_new_tokens=outputs, ignore_eos=True)
        ids = np.array(prompt, dtype="<i4").tobytes()
        self.scheduler.process_input_requests(
            [TokenizedGenerateReqInput([f"{self._sent:032d}"], ids, params, stream=True)]
        )
        self._sent += 1
        self.unfinished += 1

    def finish(self) -> None:
        while self.unfinished:
            self.scheduler.step()

    def drop_all(self) -> None:
        from bough.ipc.messages import AbortReq

        self._dropping = True
        self.scheduler.process_input_requests([AbortReq("", abort_all=True)])
        while self.scheduler.has_unfinished_requests():
            self.scheduler.step()
        self._dropping = False

    def start(self, rows: int, inputs: int, outputs: int) -> None:
        """Requests that all decode."""
        for _ in range(rows):
            self.send(self.prompt(inputs), outputs)
        while self.scheduler.requests.num_waiting or self.scheduler.requests.unfinished:
            self.scheduler.step()


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def offline(
    shape: dict[str, Any], device: torch.device, requests: int = 256, *, lengths: tuple[int, int] = (100, 1024)
) -> dict[str, Any]:
    """All requests at once; prompts and outputs are uniformly as long as ``lengths`` say."""
    if device.type == "cpu":
        requests, lengths = 2, (12, 24)
    served = Served(shape, device, requests)
    drawn = np.random.default_rng(_SEED).integers(lengths[0], lengths[1] + 1, (requests, 2))
    prompts = [(served.prompt(inputs), outputs) for inputs, outputs in drawn.tolist()]
    wait(device)
    begin = time.perf_counter()
    before = served.tokens
    for prompt, outputs in prompts:
        served.send(prompt, outputs)
    served.finish()
    seconds = time.perf_counter() - begin
    inputs, outputs = int(drawn[:, 0].sum()), served.tokens - before
    return {
        "requests": requests,
        "input_tokens": inputs,
        "output_tokens": outputs,
        "duration_seconds": seconds,
        "output_tokens_per_second": outputs / seconds,
    }


def first_token(shape: dict[str, Any], device: torch.device, tokens: int) -> dict[str, Any]:
    """Milliseconds from a prompt to its first token, alone, with recorded forward passes of prompts and without."""
    small = device.type == "cpu"
    tokens, repeats = (4, 1) if small else (tokens, 20)
    figures = {}
    for name, disable in (("recorded", False), ("launched", True)):
        served = Served(shape, device, 8, disable_prefill_cuda_graph=disable, disable_radix_cache=True)
        times = []
        for _ in range(3 + repeats):
            wait(device)
            begin = time.perf_counter()
            served.send(served.prompt(tokens), 1)
            served.finish()
            times.append(time.perf_counter() - begin)
        figures[f"{name}_ms"] = statistics.median(times[3:]) * 1e3
        del served
        gc.collect()
        if not small:
            torch.cuda.empty_cache()
    return {**figures, "ratio": figures["launched_ms"] / figures["recorded_ms"]}


def busy(shape: dict[str, Any], device: torch.device, directory: Path) -> dict[str, Any]:
    """The share of the time in which the device computes while 1, 32 and 256 requests decode; kept with a picture."""
    from torch.profiler import ProfilerActivity, profile

    small = device.type == "cpu"
    sizes, steps = ((1, 2), 2) if small else ((1, 32, 256), 30)
    activity, kind = (ProfilerActivity.CPU, DeviceType.CPU) if small else (ProfilerActivity.CUDA, DeviceType.CUDA)
    served = Served(shape, device, sizes[-1])
    figures: dict[str, Any] = {}
    for rows in sizes:
        served.start(rows, 8 if small else 256, 2000)
        for _ in range(steps):
            served.scheduler.step()
        wait(device)
        with profile(activities=[activity]) as profiled:
            begin = time.perf_counter()
            for _ in range(steps):
                served.scheduler.step()
            seconds = time.perf_counter() - begin
            wait(device)
        intervals = device_intervals(profiled, kind)
        figures |= {f"busy_{rows}": busy_share(intervals), f"step_ms_{rows}": seconds / steps * 1e3}
        keep(intervals, directory / f"gpu-busy-{rows}.json", f"decoding {rows} requests")
        served.drop_all()
    return figures


def rows_in_graphs(shape: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """The share of decode rows that recorded steps compute while requests arrive at random, about 256 running."""
    small = device.type == "cpu"
    running, inputs, outputs, duration = (2, 8, 8, 1.0) if small else (256, 256, 256, 10.0)
    served = Served(shape, device, running)
    runner = served.worker
    rows = {"all": 0, "recorded": 0}
    launch = runner.launch

    def counted_launch(plan: Any) -> Any:
        rows["all"] += plan.num_decode_rows
        return launch(plan)

    runner.launch = counted_launch  # type: ignore[method-assign]
    graphs = runner.step_runner.graph_runner
    if graphs is not None:
        replay = graphs.replay

        def counted_replay(plan: Any, *args: Any, **options: Any) -> Any:
            rows["recorded"] += plan.num_decode_rows
            return replay(plan, *args, **options)

        graphs.replay = counted_replay  # type: ignore[method-assign]
    served.start(running, inputs, outputs)
    begin, steps = time.perf_counter(), 8 if small else 50
    for _ in range(steps):
        served.scheduler.step()
    # As many arrive as would keep 90 % of the places taken if steps took no longer than these.
    rate = 0.9 * running / (outputs * (time.perf_counter() - begin) / steps)
    rows.update(all=0, recorded=0)
    rng = np.random.default_rng(_SEED)
    begin, due, sizes = time.perf_counter(), 0.0, []
    while (now := time.perf_counter() - begin) < duration:
        while due <= now:
            served.send(served.prompt(inputs), outputs)
            due += rng.exponential(1 / rate)
        served.scheduler.step()
        sizes.append(served.scheduler.requests.num_holding)
    served.drop_all()
    return {
        "share": rows["recorded"] / max(rows["all"], 1),
        "decode_rows": rows["all"],
        "requests_per_second": rate,
        "running": float(np.mean(sizes)),
    }


def beside_transformers(shape: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """The same prompts, as many tokens each, by transformers' own continuous batching."""
    import transformers

    small = device.type == "cpu"
    if small:
        return {"skipped": "transformers' continuous batching is for GPUs"}
    requests, outputs = 128, 256
    served = Served(shape, device, requests)
    lengths = np.random.default_rng(_SEED).integers(100, 1025, requests).tolist()
    rounds = [[served.prompt(length) for length in lengths] for _ in range(1 + _ROUNDS)]
    ours, theirs = [], []
    for prompts in rounds:
        before = served.tokens
        for prompt in prompts:
            served.send(prompt, outputs, temperature=0.0)  # as below
        wait(device)
        begin = time.perf_counter()
        served.finish()
        ours.append((served.tokens - before) / (time.perf_counter() - begin))
    del served
    gc.collect()  # a scheduler and its callbacks hold each other, and the memory of the pool
    torch.cuda.empty_cache()
    names = {key: value for key, value in shape.items() if key not in ("architectures", "torch_dtype")}
    config = transformers.AutoConfig.for_model(**names)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    generation = transformers.GenerationConfig(max_new_tokens=outputs, do_sample=False, eos_token_id=None)
    model.eval()
    for prompts in rounds:
        wait(device)
        begin = time.perf_counter()
        # Its pool and graphs stay from one call to the next, as ours do.
        answers = model.generate_batch(prompts, generation_config=generation, persistent_manager=True)
        seconds = time.perf_counter() - begin
        tokens = sum(len(answer.generated_tokens) for answer in answers.values())
        if tokens != requests * outputs:
            raise RuntimeError(f"transformers made {tokens} tokens, not {requests * outputs}")
        theirs.append(tokens / seconds)
    # The first round of both compiles, captures and touches memory.
    our_rate, their_rate = statistics.median(ours[1:]), statistics.median(theirs[1:])
    return {"output_tokens_per_second": our_rate, "transformers": their_rate, "ratio": our_rate / their_rate}


def startup(name: str, device: torch.device) -> dict[str, Any]:
    """Seconds from the start of a scheduler's process until it is ready, with an empty kernel cache and a full one."""
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for kind in ("cold", "warm"):
            environment = {**os.environ, "TRITON_CACHE_DIR": cache}
            begin = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.gpu.serving", name, device.type]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
                assert process.stdout is not None
                ready = any(line.strip() == "ready" for line in process.stdout)
                figures[f"{kind}_seconds"] = time.perf_counter() - begin
            if not ready:
                raise RuntimeError(f"the process has ended with status {process.returncode}")
    return figures


def main() -> None:
    name, device = sys.argv[1:]
    Served(SHAPES[name], torch.device(device), 2 if device == "cpu" else 256)
    print("ready", flush=True)
    os._exit(0)  # what the device holds goes with the process


if __name__ == "__main__":
    main()
