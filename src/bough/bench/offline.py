"""``bough bench offline``: throughput of the engine alone, without HTTP."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bough import __version__
from bough.bench.datasets import (
    BenchRequest,
    DatasetArgs,
    custom_requests,
    how_many,
    make_requests,
    prompt_lengths,
    vocab_size_from,
)
from bough.bench.metrics import throughput_rows, throughputs
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
from bough.errors import ConfigError, RequestFailed
from bough.observability.progress import Progress

if TYPE_CHECKING:
    from bough import Engine

run_option = partial(option, group="Run")

_LOOK_SECONDS = 0.2
"""Between two looks at how many answers there are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchOfflineArgs(OptionTable):
    """How the engine is measured."""

    skip_warmup: bool = run_option(False, help="Measure from the first request on.")
    output_file: str | None = output_file("Run")


def run_offline(engine: Engine, requests: list[BenchRequest], *, warm_up: bool) -> dict[str, Any]:
    """Generate all answers in one call, as fast as the engine can.

    Args:
        requests: what to generate; ends of sequence are ignored, so that every output has the length asked for.
        warm_up: whether to answer one request, and forget its prefix, before the clock starts.

    Returns:
        Durations in seconds, token counts, and throughputs per second.

    Raises:
        ConfigError: if some requests have ids and others text, which one call of the engine does not take.
        RequestFailed: if an answer was broken off.
    """
    if len({each.input_ids is None for each in requests}) > 1:
        raise ConfigError(
            "--dataset-path must have input_ids in all of its lines or in none: all prompts go into one call",
            param="dataset_path",
        )
    if warm_up:
        _generate(engine, requests[:1])
        engine.flush_cache()
    started = time.perf_counter()
    outputs = _generate(engine, requests)
    duration = time.perf_counter() - started
    metas = [output["meta_info"] for output in outputs]
    prompt = sum(meta["prompt_tokens"] for meta in metas)
    cached = sum(meta["cached_tokens"] for meta in metas)
    output_tokens = sum(meta["completion_tokens"] for meta in metas)
    return throughputs(len(outputs), duration, prompt, cached, output_tokens)


def _generate(engine: Engine, requests: list[BenchRequest]) -> list[dict[str, Any]]:
    sampling = [{"temperature": 0.0, "max_new_tokens": each.output_len, "ignore_eos": True} for each in requests]
    ids = [each.input_ids for each in requests if each.input_ids is not None]
    if len(ids) == len(requests):
        outputs = engine.generate(input_ids=ids, sampling_params=sampling)
    else:
        outputs = engine.generate([each.as_text() for each in requests], sampling)
    for output in outputs:
        reason = output["meta_info"]["finish_reason"]
        if reason["type"] == "abort":
            raise RequestFailed(f"an answer was broken off: {reason['message']}")
    return list(outputs)


@contextlib.contextmanager
def counting(engine: Engine, progress: Progress) -> Iterator[None]:
    """Advance ``progress`` with the answers that an engine finishes while the block lasts, if anybody sees it.

    The call that is measured returns all answers at once, so a thread beside it reads a counter now and then.
    """
    if not progress.is_shown:
        yield
        return
    metrics = engine.tokenizer_manager.metrics
    before, is_over = metrics.requests.num_requests, threading.Event()

    def look() -> None:
        progress.advance(metrics.requests.num_requests - before - progress.done)

    def look_on() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            look()

    thread = threading.Thread(target=look_on, name="bough-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        look()


def offline_table(figures: dict[str, Any]) -> str:
    """The figures for a reader."""
    rows = [*throughput_rows(figures), ("All tokens per second", f"{figures['total_throughput']:,.1f}")]
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"{label:<{width}}  {value:>12}" for label, value in rows)


def main(argv: list[str]) -> int:
    """Run ``bough bench offline``."""
    namespace, engine_options = engine_arguments(
        argv,
        "offline",
        "Generate all answers in one call of the engine, and measure throughput.",
        BenchOfflineArgs,
        DatasetArgs,
    )
    args = BenchOfflineArgs(**given_options(namespace, BenchOfflineArgs))
    dataset = DatasetArgs(**given_options(namespace, DatasetArgs))
    output = result_path(args.output_file)
    custom = custom_requests(dataset)
    print(f"Measuring {how_many(dataset, custom)}", flush=True)
    from bough import Engine

    with Engine(**engine_options) as engine:
        vocab_size = dataset.vocab_size or vocab_size_from(engine.get_server_info())
        requests = make_requests(dataset, vocab_size=vocab_size, custom=custom)
        model = engine.get_model_info()["served_model_name"]
        options = options_of_engine(engine)
        answers = len(requests) + (not args.skip_warmup)
        progress = Progress("Measuring", answers, unit="requests", elsewhere="nothing")
        with progress, counting(engine, progress), flags_of_length(prompt_lengths(dataset)):
            figures = run_offline(engine, requests, warm_up=not args.skip_warmup)
    print(offline_table(figures))
    if output is not None:
        write_json(
            output,
            {
                "version": __version__,
                "model": model,
                "dataset": dataset.to_dict(),
                "skip_warmup": args.skip_warmup,
                "options": options,
                **figures,
            },
        )
    return 0
