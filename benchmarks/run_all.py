"""The benchmarks of this repository on one machine, each with the prefix cache on and off, in turns.

- offline: unrelated prompts in one call of the engine, cache on and off in turns; what the cache costs where it
  cannot help;
- serving: a closed load finds the server's capacity, then requests arrive at random moments at 50 and 80 % of it;
- shared prefix: 32 requests that share 512 of their 544 prompt tokens, 8 at a time, on an empty cache; with outputs
  of one token, the time is that of the prompts.

    python benchmarks/run_all.py [--repeats N] [--output FILE] [flags of bough serve]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import uvloop

from bough import Engine, __version__
from bough.bench.client import connect
from bough.bench.datasets import DatasetArgs, make_requests
from bough.bench.metrics import table
from bough.bench.offline import run_offline
from bough.bench.options import write_json
from bough.bench.plots import is_number
from bough.bench.serve import BenchServeArgs, run_benchmark
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from bough.errors import StartupError

START_SECONDS = 120.0
STOP_SECONDS = 60.0
CACHE_STATES = {"cache on": False, "cache off": True}
"""Name of a run to ``disable_radix_cache``."""

TRAFFIC = DatasetArgs(num_prompts=96, random_input_len=256, random_output_len=64, random_range_ratio=0.5)
WARM_UP = DatasetArgs(num_prompts=2, random_input_len=64, random_output_len=8, random_range_ratio=1.0)
SHARED_TOKENS, OWN_TOKENS, SHARERS = 512, 32, 32
SHARED_CONCURRENCY = 8
CLOSED_CONCURRENCY = 16
VOCAB_SIZE = 2048
"""Ids below it exist in every vocabulary."""
OFFLINE_PAIRS = 5
"""Pairs of offline runs for each repeat of the others: what they differ in is small."""
RATES = (0.5, 0.8)
"""Share of the capacity found by the closed load."""

Result = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAllArgs(OptionTable):
    repeats: int = option(3, help="How often each run is repeated; medians are kept.", group="Run", minimum=1)
    output: str = option("results/benchmarks.json", help="Where the figures go, as JSON.", group="Run", metavar="FILE")


@contextlib.contextmanager
def running_server(options: dict[str, Any]) -> Iterator[str]:
    """A server with ``options`` on a free port; yields its URL, and ends it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        json.dump({"log-level": "warning", **options, "port": port}, config)  # JSON is YAML
        config.flush()
        process = subprocess.Popen([sys.executable, "-m", "bough", "serve", "--config", config.name])
        try:
            asyncio.run(_wait_until_ready(f"http://127.0.0.1:{port}", process))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


async def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    async with connect(url) as client:
        while True:
            try:
                await client.wait_until_ready(0.0)
            except StartupError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.1)
            else:
                return


def unique(seed: int) -> DatasetArgs:
    """Unrelated prompts: no two start alike, and none as with another seed."""
    return DatasetArgs(num_prompts=64, random_input_len=256, random_output_len=32, random_range_ratio=1.0, seed=seed)


def warm_up(url: str) -> None:
    """Requests that nobody counts; what is read of a server's counters afterwards leaves them out."""
    uvloop.run(run_benchmark(BenchServeArgs(base_url=url, max_concurrency=1), WARM_UP))


def serve(url: str, dataset: DatasetArgs, **load: Any) -> Result:
    """One run of ``bough bench serve`` on an empty cache, without a warm-up; with the time that steps with prompt
    tokens took."""
    before = prefill_seconds(url)
    args = BenchServeArgs(base_url=url, flush_cache=True, warmup_requests=0, **load)
    result = uvloop.run(run_benchmark(args, dataset))
    if result["failed"]:
        raise StartupError(f"{result['failed']} requests failed: {result['errors']}")
    return {**result, "prefill_seconds": prefill_seconds(url) - before}


def prefill_seconds(url: str) -> float:
    """Duration so far of the server's steps that computed prompt tokens."""
    with urllib.request.urlopen(url + "/server_info") as answer:
        seconds: float = json.load(answer)["internal_states"][0]["prefill_seconds_total"]
        return seconds


def shared_prefix(output_len: int) -> DatasetArgs:
    """Prompts of ``SHARED_TOKENS`` shared and ``OWN_TOKENS`` own tokens, ``SHARERS`` of them."""
    return DatasetArgs(
        dataset_name="generated-shared-prefix",
        gsp_num_groups=1,
        gsp_prompts_per_group=SHARERS,
        gsp_system_prompt_len=SHARED_TOKENS,
        gsp_question_len=OWN_TOKENS,
        gsp_output_len=output_len,
    )


def medians_of(runs: list[Result]) -> Result:
    """The median of each figure (the lower one of the middle two); what is none is the first run's."""
    return {
        key: statistics.median_low([run[key] for run in runs]) if is_number(first) else first
        for key, first in runs[0].items()
    }


def in_turns(
    urls: Mapping[str, str], datasets: Sequence[DatasetArgs], loads: Mapping[str, dict[str, Any]]
) -> dict[str, Result]:
    """The medians for each server over the datasets, which all get one after the other, under the load of its name."""
    runs: dict[str, list[Result]] = {name: [] for name in urls}
    for turn, dataset in enumerate(datasets):
        for name in sorted(urls, reverse=turn % 2 == 0):
            warm_up(urls[name])
            runs[name].append(serve(urls[name], dataset, **loads[name]))
    return {name: medians_of(each) for name, each in runs.items()}


def measure_offline(options: dict[str, Any], repeats: int) -> Result:
    """Unrelated prompts through two engines in turns, so that a noisy machine treats both alike."""
    runs: dict[str, list[Result]] = {name: [] for name in CACHE_STATES}
    with contextlib.ExitStack() as stack:
        settings = {"log_level": "warning", **options, "skip_tokenizer_init": True}
        engines = {
            name: stack.enter_context(Engine(**{**settings, "disable_radix_cache": disabled}))
            for name, disabled in CACHE_STATES.items()
        }
        for turn in range(-1, repeats * OFFLINE_PAIRS):
            requests = make_requests(unique(42 + turn), vocab_size=VOCAB_SIZE)
            for name in sorted(engines, reverse=turn % 2 == 0):
                before = cpu_seconds()
                result = run_offline(engines[name], requests, warm_up=False)
                if turn >= 0:
                    runs[name].append({**result, "cpu_seconds": cpu_seconds() - before})
    medians = {name: medians_of(each) for name, each in runs.items()}
    ratios = {
        key: [on[key] / off[key] for on, off in zip(runs["cache on"], runs["cache off"], strict=True)]
        for key in ("duration", "cpu_seconds")
    }
    costs = {key: statistics.median(each) for key, each in ratios.items()}
    for name, result in medians.items():
        print(
            f"offline, {name}: {result['output_throughput']:,.0f} output tokens/s, "
            f"{result['total_throughput']:,.0f} tokens/s in all"
        )
    percent = {key: 100 * (cost - 1) for key, cost in costs.items()}
    print(
        f"offline: where it cannot help, the cache costs {percent['cpu_seconds']:+.1f} % of the processor time, "
        f"{percent['duration']:+.1f} % of the duration"
    )
    return {**medians, "on_over_off": costs, "all_ratios": ratios}


def cpu_seconds() -> float:
    """Processor time so far of this process and of all that it has started."""
    this = psutil.Process()
    times = [process.cpu_times() for process in (this, *this.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def measure_serving(urls: Mapping[str, str], repeats: int) -> dict[str, dict[str, Result]]:
    """Closed load, then random arrivals at shares of its rate; requests and moments are others in every turn."""
    traffic = [replace(TRAFFIC, seed=TRAFFIC.seed + turn) for turn in range(repeats)]
    closed = in_turns(urls, traffic, {name: {"max_concurrency": CLOSED_CONCURRENCY} for name in urls})
    for name, result in closed.items():
        print("\n" + table(result, f"{name}: {CLOSED_CONCURRENCY} at a time"))
    results = {name: {"closed": result} for name, result in closed.items()}
    for share in RATES:
        loads = {name: {"request_rate": share * result["request_throughput"]} for name, result in closed.items()}
        for name, result in in_turns(urls, traffic, loads).items():
            results[name][f"poisson {share:.0%}"] = result
            rate = loads[name]["request_rate"]
            print("\n" + table(result, f"{name}: {rate:.2f} requests/s, {share:.0%} of capacity"))
    return results


def measure_shared_prefix(urls: Mapping[str, str], repeats: int) -> dict[str, dict[str, Result]]:
    """The shared-prefix job, with 32 output tokens and with one."""
    results: dict[str, dict[str, Result]] = {name: {} for name in urls}
    loads = {name: {"max_concurrency": SHARED_CONCURRENCY} for name in urls}
    for output_len in (32, 1):
        for name, result in in_turns(urls, [shared_prefix(output_len)] * repeats, loads).items():
            results[name][f"{output_len} output tokens"] = result
            print("\n" + table(result, f"{name}: shared prefix, {output_len} output tokens"))
    return results


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return {
        "bough": __version__,
        "python": platform.python_version(),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "date": time.strftime("%Y-%m-%d"),
    }


def main(argv: list[str]) -> int:
    parser = CommandParser(
        prog="benchmarks/run_all.py",
        usage="benchmarks/run_all.py [flags]",
        description="Run every benchmark, cache on and off.",
    )
    add_config_option(parser)
    add_options(parser, RunAllArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = RunAllArgs(**given_options(namespace, RunAllArgs))
    options = given_options(namespace, ServerArgs, config=namespace.config)

    results: Result = {"machine": machine(), "options": options, "offline": measure_offline(options, args.repeats)}
    with contextlib.ExitStack() as stack:
        urls = {
            name: stack.enter_context(running_server({**options, "disable_radix_cache": disabled}))
            for name, disabled in CACHE_STATES.items()
        }
        serving = measure_serving(urls, args.repeats)
        sharing = measure_shared_prefix(urls, args.repeats)
    results |= {name: {"serving": serving[name], "shared prefix": sharing[name]} for name in CACHE_STATES}
    on, off = (sharing[name] for name in CACHE_STATES)
    one_token, many_tokens = "1 output tokens", "32 output tokens"
    results["shared prefix"] = {
        "computed_prompt_tokens": on[many_tokens]["total_computed_input_tokens"],
        "perfect": SHARED_TOKENS + SHARERS * OWN_TOKENS,
        "prefill_off_over_on": off[one_token]["prefill_seconds"] / on[one_token]["prefill_seconds"],
        "one_token_time_off_over_on": off[one_token]["duration"] / on[one_token]["duration"],
        "whole_time_off_over_on": off[many_tokens]["duration"] / on[many_tokens]["duration"],
    }
    print(
        "\nShared prefix, cold: {computed_prompt_tokens} prompt tokens computed (perfect: {perfect}); the steps that "
        "compute prompts take {prefill_off_over_on:.1f} times less time than without the cache, the whole job with one "
        "output token {one_token_time_off_over_on:.1f} times, with 32 {whole_time_off_over_on:.1f} times.".format(
            **results["shared prefix"]
        )
    )
    write_json(Path(args.output), results)
    print(f"Written: {args.output}")
    return 0


if __name__ == "__main__":
    from bough.cli import run_reporting_errors

    sys.exit(run_reporting_errors(main, sys.argv[1:]))
