"""From timed answers to figures, and from figures to a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bough.bench.client import Answer, Measurement

_PERCENTILES = (50, 90, 95, 99)
_LATENCIES = {
    "ttft": "Time to first token",
    "tpot": "Time per output token after the first",
    "itl": "Time between output tokens",
    "e2e_latency": "Time of a whole answer",
}
_MOST_ERRORS_SHOWN = 5


def summarise(measurement: Measurement) -> dict[str, Any]:
    """The figures of one run, as plain values.

    Latencies are in milliseconds (``mean_ttft_ms``, ``p99_itl_ms``, …) and ``None`` where nothing was measured.
    Throughputs are per second of the whole run. ``concurrency`` is the mean number of requests in flight.
    """
    good = [answer for answer in measurement.answers if answer.error is None]
    duration = measurement.duration
    prompt = sum(answer.prompt_tokens for answer in good)
    cached = sum(answer.cached_tokens for answer in good)
    output = sum(answer.output_tokens for answer in good)
    events = sum(answer.events for answer in good)
    samples = {
        "ttft": [answer.ttft for answer in good if answer.ttft is not None],
        "tpot": [time for answer in good if (time := _time_per_token(answer)) is not None],
        "itl": [gap for answer in good for gap in answer.gaps],
        "e2e_latency": [answer.latency for answer in good],
    }
    figures: dict[str, Any] = {
        **throughputs(len(good), duration, prompt, cached, output),
        "failed": len(measurement.answers) - len(good),
        "total_events": events,
        "concurrency": sum(answer.latency for answer in good) / duration,
        "client_cpu_seconds": measurement.client_cpu,
        "client_cpu_share": measurement.client_cpu / duration,
    }
    for name, values in samples.items():
        figures.update(_statistics(name, values))
    errors = Counter(answer.error for answer in measurement.answers if answer.error is not None)
    figures["errors"] = dict(errors.most_common(_MOST_ERRORS_SHOWN))
    return figures


def throughputs(completed: int, duration: float, prompt: int, cached: int, output: int) -> dict[str, Any]:
    """Counts of answers and tokens in a run of some seconds, and each per second."""
    return {
        "completed": completed,
        "duration": duration,
        "total_input_tokens": prompt,
        "total_cached_tokens": cached,
        "total_computed_input_tokens": prompt - cached,
        "total_output_tokens": output,
        "request_throughput": completed / duration,
        "input_throughput": prompt / duration,
        "output_throughput": output / duration,
        "total_throughput": (prompt + output) / duration,
    }


def details(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """What was measured for every request, as plain values; times in seconds."""
    return [
        {
            "ttft": answer.ttft,
            "latency": answer.latency,
            "itl": answer.gaps,
            "prompt_tokens": answer.prompt_tokens,
            "cached_tokens": answer.cached_tokens,
            "output_tokens": answer.output_tokens,
            "error": answer.error,
        }
        for answer in answers
    ]


def table(figures: dict[str, Any], title: str) -> str:
    """The figures for a reader."""
    rows = [
        *throughput_rows(figures),
        ("Requests failed", f"{figures['failed']}"),
        ("Requests in flight, mean", f"{figures['concurrency']:.2f}"),
        (
            "CPU time of this client",
            f"{figures['client_cpu_seconds']:.2f} s ({figures['client_cpu_share']:.0%} of a core)",
        ),
    ]
    width = max(map(len, [*(label for label, _ in rows), *_LATENCIES.values()]))
    lines = [title, "-" * len(title), *(f"{label:<{width}}  {value:>12}" for label, value in rows), ""]
    columns = ("mean", *(f"p{p}" for p in _PERCENTILES))
    lines.append(f"{'Milliseconds':<{width}}  " + "".join(f"{column:>10}" for column in columns))
    for name, label in _LATENCIES.items():
        values = [figures[f"{column}_{name}_ms"] for column in columns]
        lines.append(
            f"{label:<{width}}  " + "".join(f"{'-' if value is None else format(value, '.2f'):>10}" for value in values)
        )
    for error, count in figures["errors"].items():
        lines.append(f"{count} x {error}")
    return "\n".join(lines)


def throughput_rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Label the figures of :func:`throughputs` for a reader."""
    return [
        ("Requests completed", f"{figures['completed']}"),
        ("Duration", f"{figures['duration']:.2f} s"),
        ("Prompt tokens", f"{figures['total_input_tokens']:,}"),
        ("  of these computed, not reused", f"{figures['total_computed_input_tokens']:,}"),
        ("Output tokens", f"{figures['total_output_tokens']:,}"),
        ("Requests per second", f"{figures['request_throughput']:.2f}"),
        ("Prompt tokens per second", f"{figures['input_throughput']:,.1f}"),
        ("Output tokens per second", f"{figures['output_throughput']:,.1f}"),
    ]


def _time_per_token(answer: Answer) -> float | None:
    """Seconds for each token after those of the first event; ``None`` where no other event came."""
    tokens = answer.output_tokens - answer.first_tokens
    if answer.ttft is None or answer.events < 2 or tokens < 1:
        return None
    return (answer.latency - answer.ttft) / tokens


def _statistics(name: str, seconds: Sequence[float]) -> dict[str, float | None]:
    columns = ("mean", "std", "max", *(f"p{p}" for p in _PERCENTILES))
    if not seconds:
        return {f"{column}_{name}_ms": None for column in columns}
    values = np.asarray(seconds, dtype=np.float64) * 1e3
    statistics = (values.mean(), values.std(), values.max(), *np.percentile(values, _PERCENTILES))
    return {f"{column}_{name}_ms": float(value) for column, value in zip(columns, statistics, strict=True)}
