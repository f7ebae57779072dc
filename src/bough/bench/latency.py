"""``bough bench latency``: how long one batch takes, from its prompts to its last token, without HTTP."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bough import __version__
from bough.bench.datasets import vocab_size_from
from bough.bench.options import (
    engine_arguments,
    flags_of_length,
    options_of_engine,
    output_file,
    result_path,
    write_json,
)
from bough.config.command_line import given_options
from bough.config.options import OptionTable, option
from bough.errors import ConfigError
from bough.observability.progress import Progress

if TYPE_CHECKING:
    from bough import Engine

run_option = partial(option, group="Run")

_SEED = 42

_NOTES = """\
first token: until every output of the batch has one; per token: each further one of an output
decode: tokens of all outputs per second after that; output: all of their tokens per second of the whole time,
which the prompts are part of, as in bench offline"""


def _batch_sizes(text: str) -> str | None:
    words = text.split(",")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        return "must be numbers like 1,8,32"
    return None if len(set(map(int, words))) == len(words) else "must be different numbers"


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchLatencyArgs(OptionTable):
    """Which batches are measured."""

    batch_sizes: str = run_option(
        "1,8,32", help="Requests of a batch; several numbers, several batches.", rule=_batch_sizes
    )
    input_len: int = run_option(256, help="Length of each prompt, random ids.", unit="tokens", minimum=1)
    output_len: int = run_option(64, help="Length of each output.", unit="tokens", minimum=2, aliases=("max-tokens",))
    repeats: int = run_option(5, help="Times that each batch is measured; the median counts.", minimum=1)
    output_file: str | None = output_file("Run")


def measure_batch(engine: Engine, prompts: list[list[int]], output_len: int) -> dict[str, float | None]:
    """Answer a batch of prompts that no cache knows.

    Args:
        engine: an idle engine, with ``incremental_streaming_output``.
        output_len: tokens of each output; ends of sequence are ignored.

    Returns:
        ``ttft_ms``, until each has its first token; ``tpot_ms``, for each further token of the one that began last;
        ``latency_ms``, until the last; ``decode_throughput``, tokens a second from when each has its first token;
        ``output_throughput``, all tokens of the outputs by the whole time, as the other benchmarks have it. The time
        and the throughput after the first token are ``None`` if all tokens come at once.

    Raises:
        ConfigError: if outputs of this length do not fit the context.
    """
    engine.flush_cache()
    sampling = {"temperature": 0.0, "max_new_tokens": output_len, "ignore_eos": True}
    started = time.perf_counter()
    lengths = [0] * len(prompts)
    waiting = len(prompts)
    first, before, begun = started, 0, 0
    for event in _events(engine, prompts, sampling):
        index = event.get("index", 0)
        is_first = lengths[index] == 0
        lengths[index] = event["meta_info"]["completion_tokens"]
        if is_first:
            waiting -= 1
            if waiting == 0:
                first, before, begun = time.perf_counter(), sum(lengths), lengths[index]
    ended = time.perf_counter()
    if min(lengths) < output_len:
        raise ConfigError(
            f"--input-len {len(prompts[0])} and --output-len {output_len} do not fit the context of "
            f"{engine.get_server_info()['context_len']} tokens: an output ended after {min(lengths)}"
        )
    return {
        "ttft_ms": (first - started) * 1e3,
        "tpot_ms": (ended - first) / (output_len - begun) * 1e3 if begun < output_len else None,
        "latency_ms": (ended - started) * 1e3,
        "decode_throughput": (sum(lengths) - before) / (ended - first) if before < sum(lengths) else None,
        "output_throughput": sum(lengths) / (ended - started),
    }


def _events(engine: Engine, prompts: list[list[int]], sampling: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with flags_of_length(f"--input-len {len(prompts[0])}"):
        yield from engine.generate(input_ids=prompts, sampling_params=sampling, stream=True)


def run_latency(engine: Engine, args: BenchLatencyArgs, vocab_size: int) -> list[dict[str, Any]]:
    """Measure every batch size; of each, one batch before the others does not count."""
    rng = np.random.default_rng(_SEED)
    results = []
    sizes = [int(size) for size in args.batch_sizes.split(",")]

    def measure(size: int, progress: Progress) -> dict[str, float | None]:
        prompts = rng.integers(0, vocab_size, (size, args.input_len)).tolist()
        figures = measure_batch(engine, prompts, args.output_len)
        progress.advance(1)
        return figures

    with Progress("Measuring", len(sizes) * (1 + args.repeats), unit="batches", elsewhere="nothing") as progress:
        for size in sizes:
            measure(size, progress)
            runs = [measure(size, progress) for _ in range(args.repeats)]
            medians = {name: _median([run[name] for run in runs]) for name in runs[0]}
            results.append({"batch_size": size, "input_len": args.input_len, "output_len": args.output_len, **medians})
    return results


def _median(values: list[float | None]) -> float | None:
    """Of those that were measured; ``None`` if none was."""
    measured = [value for value in values if value is not None]
    return statistics.median(measured) if measured else None


def latency_table(results: list[dict[str, Any]]) -> str:
    """The figures for a reader."""
    head = (
        f"{'batch':>5}  {'first token, ms':>15}  {'per token, ms':>13}  {'whole, ms':>9}"
        f"  {'decode, tokens/s':>16}  {'output, tokens/s':>16}"
    )
    rows = [
        f"{each['batch_size']:>5}  {each['ttft_ms']:>15.1f}  {_shown(each['tpot_ms'], '.2f'):>13}"
        f"  {each['latency_ms']:>9.1f}  {_shown(each['decode_throughput'], ',.1f'):>16}"
        f"  {each['output_throughput']:>16,.1f}"
        for each in results
    ]
    return "\n".join([head, *rows, "", _NOTES])


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def main(argv: list[str]) -> int:
    """Run ``bough bench latency``."""
    namespace, engine_options = engine_arguments(
        argv, "latency", "Measure how long one batch takes, for several batch sizes.", BenchLatencyArgs
    )
    args = BenchLatencyArgs(**given_options(namespace, BenchLatencyArgs))
    output = result_path(args.output_file)
    from bough import Engine

    # Deltas cost the same however long outputs are; the engine's default is all the text so far.
    engine_options["incremental_streaming_output"] = True
    with Engine(**engine_options) as engine:
        model = engine.get_model_info()["served_model_name"]
        options = options_of_engine(engine)
        results = run_latency(engine, args, vocab_size_from(engine.get_server_info()))
    print(latency_table(results))
    if output is not None:
        write_json(output, {"version": __version__, "model": model, "options": options, "batches": results})
    return 0
