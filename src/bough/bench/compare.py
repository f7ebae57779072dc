"""``bough bench compare``: results of several runs beside each other, as a table and as a picture."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bough.bench.plots import PLOT_SUFFIXES, import_pyplot, plot
from bough.config.command_line import CommandParser, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.user_paths import user_path
from bough.errors import ConfigError
from bough.schema_keywords import is_number

_SETTINGS = (
    "backend",
    "model",
    "stream",
    "request_rate",
    "max_concurrency",
    "warmup_requests",
    "flush_cache",
    "skip_warmup",
)
_OBJECTS_OF_SETTINGS = ("sampling", "dataset", "options")
_WANTED = "give files that bough bench serve, offline or latency has written with --output-file"
_SETTINGS_OF_BATCHES = ("input_len", "output_len")
"""Of ``bench latency``, the same in all batches of a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchCompareArgs(OptionTable):
    """What to make of the results."""

    plot: str | None = option(
        None,
        help="Draw the results into this file (.png, .svg or .pdf): distributions of latencies of bench serve, which "
        "needs its --output-details, batches of bench latency, throughputs of bench offline. Needs matplotlib.",
        group="Output",
        metavar="FILE",
        rule=lambda path: None if path.endswith(PLOT_SUFFIXES) else f"must end with {', '.join(PLOT_SUFFIXES)}",
    )


def read_result(path: Path) -> dict[str, Any]:
    """The figures of a file that one of the benchmarks has written.

    Raises:
        ConfigError: if it is no such file.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON ({error}); {_WANTED}") from None
    except RecursionError:
        raise ConfigError(f"cannot read {path}: it is nested too deeply") from None
    try:
        msgspec.convert(result, _Result)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path} holds no figures of a benchmark ({error}); {_WANTED}") from None
    return dict(result)


def figures_of(result: dict[str, Any]) -> dict[str, float]:
    """The numbers of a result; those of batches begin with ``batch N:``, or ``batch N #2:`` where that is taken."""
    figures = {name: value for name, value in result.items() if is_number(value)}
    measured: Counter[float] = Counter()
    for batch in result.get("batches", ()):
        size = batch["batch_size"]
        measured[size] += 1
        which = f"batch {size}" if measured[size] == 1 else f"batch {size} #{measured[size]}"
        for name, value in batch.items():
            if name != "batch_size" and is_number(value):
                figures[f"{which}: {name}"] = value
    return figures


def comparison(names: list[str], results: list[dict[str, Any]]) -> str:
    """A table of the figures that all results have; beside each but the first, its ratio to the first.

    Raises:
        ConfigError: if they have none in common.
    """
    figures = [figures_of(result) for result in results]
    common = [name for name in figures[0] if all(name in each for each in figures[1:])]
    if not common:
        raise ConfigError(f"{', '.join(names)} have no figures in common")
    width = max(map(len, common))
    columns = [max(len(name), 12) for name in names]
    head = f"{'':<{width}}  {names[0]:>{columns[0]}}"
    head += "".join(f"  {name:>{column}}   ratio" for name, column in zip(names[1:], columns[1:], strict=True))
    lines = [head]
    for name in common:
        base = figures[0][name]
        line = f"{name:<{width}}  {_shown(base):>{columns[0]}}"
        for each, column in zip(figures[1:], columns[1:], strict=True):
            ratio = f"{each[name] / base:.3f}" if base else "-"
            line += f"  {_shown(each[name]):>{column}}  {ratio:>6}"
        lines.append(line)
    return "\n".join(lines)


def settings_of(result: dict[str, Any]) -> dict[str, Any]:
    """What was measured, by name; what is inside of objects as ``dataset.seed``."""
    settings = {name: result[name] for name in _SETTINGS if name in result}
    for name in _OBJECTS_OF_SETTINGS:
        inside = result.get(name)
        settings.update(
            (f"{name}.{inner}", each) for inner, each in (inside if isinstance(inside, dict) else {}).items()
        )
    for batch in result.get("batches", ()):
        settings.update((f"batches: {name}", batch[name]) for name in _SETTINGS_OF_BATCHES if name in batch)
    return settings


def differences(results: list[dict[str, Any]]) -> list[str]:
    """Settings that all results tell and in which they differ, each with its values in the order of the results."""
    settings = [settings_of(result) for result in results]
    values_of = {name: [each[name] for each in settings if name in each] for name in settings[0]}
    return [
        f"{name}: {', '.join(map(json.dumps, values))}"
        for name, values in values_of.items()
        if len(values) == len(results) and any(value != values[0] for value in values)
    ]


def _shown(value: float) -> str:
    """Two decimals, or more where these would leave fewer than three significant digits of something small."""
    return f"{value:,.2f}" if value == 0 or abs(value) >= 1 else f"{value:.3g}"


def main(argv: list[str]) -> int:
    """Run ``bough bench compare``."""
    parser = CommandParser(
        prog="bough bench compare",
        usage="bough bench compare RESULT.json [RESULT.json …] [--plot FILE]",
        description="Put results that bench serve, offline or latency wrote with --output-file beside each other.",
    )
    parser.add_argument(
        "results", metavar="RESULT.json", nargs="+", help="The first is what the others are compared to."
    )
    add_options(parser, BenchCompareArgs)
    namespace = parser.parse_args(argv)
    args = BenchCompareArgs(**given_options(namespace, BenchCompareArgs))
    paths = [user_path(path) for path in namespace.results]
    results = [read_result(path) for path in paths]
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if args.plot is not None:
        import_pyplot()
    print(comparison(names, results))
    differing = differences(results)
    if differing:
        print("Not measured alike:", *differing, sep="\n  ")
    if args.plot is not None:
        plot(names, results, user_path(args.plot))
    return 0


class _Batch(msgspec.Struct):
    batch_size: float


class _Request(msgspec.Struct):
    """The times that are drawn; a request that failed has an error."""

    ttft: float | None
    latency: float
    itl: list[float]
    error: str | None


class _Result(msgspec.Struct):
    """What every file of a benchmark has of these, if anything; the rest is figures and settings."""

    batches: list[_Batch] = []
    requests: list[_Request] = []
