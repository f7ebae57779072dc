"""Processor time that the controller of replicas takes for a prompt, with real sockets and without models.

Prompts of 1,000 tokens go from the front end's channels through a controller process to the channels of two replicas,
some at a time. All threads of the controller count, those of ZeroMQ too; with one prompt at a time each of them falls
asleep and is woken for every prompt.

    python benchmarks/controller.py --output results/controller.json
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import time
from array import array
from pathlib import Path

from bough.bench.options import write_json
from bough.config.port_args import PortArgs
from bough.config.ranks import ParallelLayout
from bough.ipc.channels import SchedulerChannels, TokenizerChannels
from bough.ipc.controller_channels import ControllerChannels
from bough.ipc.messages import ShutdownReq, TokenizedGenerateReqInput
from bough.managers.data_parallel_controller import DataParallelController
from bough.managers.load_balance import POLICIES
from bough.sampling.sampling_params import SamplingParams

LAYOUT = ParallelLayout(dp_size=2)
METHODS = ("cache_aware", "total_tokens", "total_requests", "round_robin")
PROMPT_TOKENS, VOCAB_SIZE = 1000, 150_000
PROMPTS = 64
"""Of a turn."""


def run_controller(endpoints: tuple[str, str, str, str], method: str) -> None:
    """Forward what arrives, in a process of its own."""
    channels = ControllerChannels(PortArgs(*endpoints), LAYOUT.leaders)
    DataParallelController(LAYOUT.leaders, POLICIES[method](LAYOUT.dp_size)).event_loop(channels)
    channels.close()


def processor_us(pid: int) -> float:
    """Processor time of all threads of a process so far, in microseconds; proc(5), schedstat."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e3


def measure(method: str, at_once: int, turns: int) -> float:
    """Median microseconds of the controller for a prompt."""
    rng = random.Random(0)
    ports = PortArgs.create()
    replicas = [SchedulerChannels(ports, key, has_detokenizer=False) for key in LAYOUT.leaders]
    front = TokenizerChannels(ports, LAYOUT)
    ends = ports.scheduler_input_ipc_name, ports.detokenizer_ipc_name, ports.tokenizer_ipc_name
    spawning = multiprocessing.get_context("spawn")
    child = spawning.Process(target=run_controller, args=((ports.directory, *ends), method))
    child.start()
    costs = []
    for _ in range(turns + 1):
        prompts = [array("i", rng.choices(range(VOCAB_SIZE), k=PROMPT_TOKENS)).tobytes() for _ in range(PROMPTS)]
        before = processor_us(child.pid or 0)
        for start in range(0, PROMPTS, at_once):
            for index in range(start, start + at_once):
                front.send(TokenizedGenerateReqInput([str(index)], prompts[index], SamplingParams()))
            missing = at_once
            while missing:
                missing -= sum(len(replica.recv(0.001)) for replica in replicas)
        costs.append((processor_us(child.pid or 0) - before) / PROMPTS)
    front.send(ShutdownReq())
    child.join()
    for end in (*replicas, front):
        end.close()
    ports.cleanup()
    return statistics.median(costs[1:])  # the first turn waits for the controller to start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--output", type=Path, default=Path("results/controller.json"))
    args = parser.parse_args()
    results = []
    for method in METHODS:
        for at_once in (1, 16, PROMPTS):
            cost = measure(method, at_once, args.turns)
            results.append({"method": method, "prompts_at_once": at_once, "us_per_prompt": cost})
            print(f"{method:>16}, {at_once:2} prompts at once: {cost:6.1f} us a prompt", flush=True)
            time.sleep(0.1)
    write_json(args.output, results)


if __name__ == "__main__":
    main()
