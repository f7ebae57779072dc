"""Pictures of results: distributions of latencies, batches by their size, throughputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bough.errors import ConfigError, StartupError
from bough.schema_keywords import is_number

PLOT_SUFFIXES = (".png", ".svg", ".pdf")

_Result = dict[str, Any]

_LATENCIES: tuple[tuple[str, Callable[[dict[str, Any]], list[float]]], ...] = (
    ("Time to first token", lambda request: [] if request["ttft"] is None else [request["ttft"]]),
    ("Time between output tokens", lambda request: request["itl"]),
    ("Time of a whole answer", lambda request: [request["latency"]]),
)

_OF_BATCHES = (
    ("Time to first token", "ttft_ms", "ms"),
    ("Time per token after it", "tpot_ms", "ms"),
    ("Tokens after it, all outputs", "decode_throughput", "per second"),
)

_THROUGHPUTS = (
    ("Requests", "request_throughput"),
    ("Output tokens", "output_throughput"),
    ("All tokens", "total_throughput"),
)


def plot(names: list[str], results: list[_Result], path: Path) -> None:
    """Draw what the results have in common.

    With the requests of ``bench serve``, a curve for each result: which share of the latencies is below which time;
    those of requests that failed are below none.
    With the batches of ``bench latency``, a line for each over the size of the batch. Else bars of throughputs.

    Raises:
        ConfigError: if there is nothing that all of them have.
        StartupError: if matplotlib is missing, or the file cannot be written.
    """
    draw = _drawing_of(results)
    if draw is None:
        raise ConfigError(
            f"{', '.join(names)} have nothing to draw in common: bench serve writes what --plot draws with "
            f"--output-details"
        )
    pyplot = import_pyplot()
    figure, axes = pyplot.subplots(1, 3, figsize=(13.5, 3.5), layout="constrained")
    draw(axes, names, results)
    for panel in axes:
        panel.grid(alpha=0.3)
    try:
        figure.savefig(path)
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
    finally:
        pyplot.close(figure)


def _drawing_of(results: list[_Result]) -> Callable[[Any, list[str], list[_Result]], None] | None:
    if all(result.get("requests") for result in results):
        return _draw_latencies
    measured = [name for _, name, _ in _OF_BATCHES]
    if all(
        result.get("batches") and all(is_number(batch.get(name)) for batch in result["batches"] for name in measured)
        for result in results
    ):
        return _draw_batches
    if all(is_number(result.get(name)) for result in results for _, name in _THROUGHPUTS):
        return _draw_throughputs
    return None


def _draw_latencies(axes: Any, names: list[str], results: list[_Result]) -> None:
    for panel, (title, values_of) in zip(axes, _LATENCIES, strict=True):
        for name, result in zip(names, results, strict=True):
            good = [request for request in result["requests"] if request["error"] is None]
            values = np.sort(np.array([value for request in good for value in values_of(request)]) * 1e3)
            # What fails is never there: its curve ends below 1, and does not look better for it.
            part = len(good) / len(result["requests"])
            shares = part * np.arange(len(values) + 1) / max(len(values), 1)
            panel.step(
                [*values[:1], *values], shares[: len(values) + 1 if len(values) else 0], where="post", label=name
            )
        panel.set(title=title, xlabel="ms", ylim=(0, 1.02), xlim=(0, None))
    axes[0].set_ylabel("share of all")
    axes[0].legend()


def _draw_batches(axes: Any, names: list[str], results: list[_Result]) -> None:
    for panel, (title, figure, unit) in zip(axes, _OF_BATCHES, strict=True):
        for name, result in zip(names, results, strict=True):
            points = sorted((batch["batch_size"], batch[figure]) for batch in result["batches"])
            panel.plot(*zip(*points, strict=True), marker="o", label=name)
        panel.set(title=title, xlabel="requests of a batch", ylabel=unit, ylim=(0, None))
    axes[0].legend()


def _draw_throughputs(axes: Any, names: list[str], results: list[_Result]) -> None:
    for panel, (title, figure) in zip(axes, _THROUGHPUTS, strict=True):
        panel.bar(names, [result[figure] for result in results], width=0.6)
        panel.set(title=title)
    axes[0].set_ylabel("per second")


def import_pyplot() -> ModuleType:
    """What draws, without a screen.

    Raises:
        StartupError: if it is not installed.
    """
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError:
        raise StartupError("--plot needs matplotlib: pip install matplotlib") from None
    return pyplot
