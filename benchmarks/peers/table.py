"""From the figures of a run to the table: medians, ratios, and what they say about the goals."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.peers.cells import (
    BANDWIDTH_GOALS,
    COLUMNS,
    GOALS,
    PARITY_MET_AT,
    PEERS,
    REFERENCE_SHARE,
    REFERENCES,
    SERVER_GOALS,
    SGLANG_GOAL,
)

BOUGH = "bough"
OFFLINE = "bough offline"
"""The engine without its server."""
CLIENTS = (BOUGH, "llama.cpp", "sglang", "vllm")
"""Engines that are measured through HTTP."""
JOBS_ONLY = {"sglang": {"server": SGLANG_GOAL}, "vllm": {}}
"""Engines that are measured in jobs only, and what Bough wants to be beside them: column to ratio."""
Figures = Mapping[str, Any]
"""Of one cell, as written to the results file: ``rates``, engine to tokens per second of each repetition."""


@dataclass(frozen=True, slots=True)
class Row:
    """A cell of the table, judged."""

    cell: str
    medians: dict[str, float]
    """Engine to tokens per second."""
    reference_shares: dict[str, float]
    """Peer to what it reached as a share of its reference figure."""
    ratio: float | None
    """Bough to the better peer: the median over the repetitions."""
    better: str | None
    missing: tuple[str, ...]
    """Peers without a figure."""
    goal: float | None
    bandwidth_share: float | None
    """Of the memory bandwidth measured between the repetitions; at batch 1."""

    @property
    def threshold(self) -> float | None:
        """The ratio at which the goal counts as reached."""
        return PARITY_MET_AT if self.goal == 1.0 else self.goal

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached, whatever the peers reached; ``None`` if there is no goal or no figure."""
        if self.ratio is None or self.threshold is None:
            return None
        return self.ratio >= self.threshold

    @property
    def peers_at_reference(self) -> bool:
        """Whether the peers are as fast as they were found to be elsewhere, so that beating them counts."""
        return all(share >= REFERENCE_SHARE for share in self.reference_shares.values())


def judge(cell: str, figures: Figures) -> Row:
    """One cell's row.

    Args:
        cell: ``SHAPE/PRECISION/COLUMN``.
        figures: of that cell.
    """
    shape, precision, column = cell.split("/")
    rates: dict[str, list[float]] = figures["rates"]
    medians = {engine: statistics.median(each) for engine, each in rates.items() if each}
    ratios = {
        peer: statistics.median(ours / theirs for ours, theirs in zip(rates[BOUGH], rates[peer], strict=True))
        for peer in PEERS
        if rates.get(BOUGH) and rates.get(peer)
    }
    better = min(ratios, key=ratios.__getitem__, default=None)
    return Row(
        cell,
        medians,
        _reference_shares(shape, precision, column, medians),
        None if better is None else ratios[better],
        better,
        tuple(peer for peer in PEERS if peer not in ratios),
        _goal(precision, column),
        _bandwidth_share(figures),
    )


def _reference_shares(shape: str, precision: str, column: str, medians: Mapping[str, float]) -> dict[str, float]:
    if column not in COLUMNS:
        return {}
    at = COLUMNS.index(column)
    return {
        peer: medians[peer] / by_shape[shape][precision][at]
        for peer, by_shape in REFERENCES.items()
        if peer in medians and precision in by_shape.get(shape, {})
    }


def _goal(precision: str, column: str) -> float | None:
    if column in COLUMNS:
        return GOALS[precision][COLUMNS.index(column)]
    return SERVER_GOALS.get(column, {}).get(precision)


def _bandwidth_share(figures: Figures) -> float | None:
    """The median over the repetitions: memory may be twice as fast in one as in another."""
    rates: list[float] = figures["rates"].get(BOUGH, [])
    bandwidth: list[float] = figures.get("bandwidth") or []
    if not rates or not bandwidth:
        return None
    weight_bytes: int = figures["facts"][BOUGH]["weight_bytes"]
    return statistics.median(rate * weight_bytes / of_turn for rate, of_turn in zip(rates, bandwidth, strict=True))


def render(cells: Mapping[str, Figures]) -> str:
    """The table, in Markdown: tokens per second, in brackets a peer's share of its reference figure."""
    engines = list(dict.fromkeys(engine for figures in cells.values() for engine in figures["rates"]))
    heads = ["cell", *engines, "ratio to the better peer", "goal", "", "share of bandwidth"]
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    lines += [" | ".join(_columns(judge(cell, figures), figures, engines)) for cell, figures in cells.items()]
    return "\n".join(f"| {line} |" for line in lines)


def _columns(row: Row, figures: Figures, engines: list[str]) -> list[str]:
    verdict = {True: "met", False: "missed", None: ""}[row.met]
    if verdict and not row.peers_at_reference:
        verdict += ", peers below their reference"
    if verdict and row.missing:
        verdict += f", without {' and '.join(row.missing)}"
    goal = "" if row.goal is None else f"{row.goal:.2f}"
    if row.threshold != row.goal:
        goal += f" (met at {row.threshold:.2f})"
    bandwidth = ""
    if row.bandwidth_share is not None:
        wanted = BANDWIDTH_GOALS[row.cell.split("/")[1]]
        bandwidth = f"{row.bandwidth_share:.2f} (goal {wanted:.2f})"
    return [
        row.cell,
        *(_rate(row, figures, engine) for engine in engines),
        "" if row.ratio is None else f"{row.ratio:.2f} ({row.better})",
        goal,
        verdict,
        bandwidth,
    ]


def _rate(row: Row, figures: Figures, engine: str) -> str:
    if engine not in row.medians:
        return "not supported" if engine in figures.get("refusals", {}) else ""
    text = f"{row.medians[engine]:,.0f}" if row.medians[engine] >= 100 else f"{row.medians[engine]:.1f}"
    share = row.reference_shares.get(engine)
    return text if share is None else f"{text} ({share:.0%})"


def render_remarks(cells: Mapping[str, Figures]) -> str:
    """A line for everything that is not in the table: jobs through servers, first tokens, agreement of outputs."""
    refusals = {
        f"{engine}: {text}" for figures in cells.values() for engine, text in figures.get("refusals", {}).items()
    }
    lines = sorted(refusals)
    for cell, figures in cells.items():
        lines += [f"{cell}, {remark}" for remark in _remarks(figures, cell.split("/")[2])]
    return "\n".join(lines)


def _remarks(figures: Figures, column: str) -> Iterator[str]:
    if "failure" in figures:
        yield f"failed: {figures['failure'].splitlines()[-1]}"
    jobs: dict[str, list[dict[str, float]]] = figures.get("jobs", {})
    for engine, results in jobs.items():
        remark = f"{engine}: {_median(results, 'seconds'):.2f} s"
        if engine in CLIENTS:  # the others' client is the process that computes
            remark += f", the client's processor time {_median(results, 'cpu_seconds'):.2f} s"
        if "computed_prompt_tokens" in results[0]:
            remark += f", {_median(results, 'computed_prompt_tokens'):,.0f} prompt tokens computed"
        yield remark
    if OFFLINE in jobs:
        pairs = zip(jobs[BOUGH], jobs[OFFLINE], strict=True)
        loss = statistics.median(1.0 - alone["seconds"] / served["seconds"] for served, alone in pairs)
        yield f"the server loses {loss:.1%} against the engine alone (goal: at most 5 %)"
    for peer, goals in JOBS_ONLY.items():
        if BOUGH in jobs and peer in jobs:
            ratio = statistics.median(
                theirs["seconds"] / ours["seconds"] for ours, theirs in zip(jobs[BOUGH], jobs[peer], strict=True)
            )
            goal = f" (goal: {goals[column]:.2f})" if column in goals else ""
            yield f"Bough is {ratio:.2f} times as fast as {peer}{goal}"
    yield from _waits(figures)
    if "first_token" in figures:
        ttft, ratio = (_median(figures["first_token"], key) for key in ("ttft_ms", "ratio"))
        yield f"first token after {ttft:.1f} ms, {ratio:.2f} times the forward pass (goal: at most 1.15)"
    for peer, agreeing in figures.get("agreeing_tokens", {}).items():
        yield f"{peer}: greedy tokens in common with Bough, prompt by prompt: {', '.join(map(str, agreeing))}"


def _waits(figures: Figures) -> Iterator[str]:
    """What requests waited for, engine by engine; Bough's shares of what a peer's did."""
    waits = {engine: _milliseconds(repetitions) for engine, repetitions in figures.get("waits", {}).items()}
    for engine, (first, gaps) in waits.items():
        remark = f"{engine}: first token p50 {first[0]:,.0f} ms, p99 {first[1]:,.0f} ms"
        remark += f"; gap p50 {gaps[0]:,.0f} ms, p99 {gaps[1]:,.0f} ms"
        if engine in PEERS and BOUGH in waits:
            ours = waits[BOUGH]
            remark += f"; Bough's p99 to these: {ours[0][1] / first[1]:.2f} and {ours[1][1] / gaps[1]:.2f}"
        if "capacities" in figures:
            share = figures["arrivals_per_second"] / figures["capacities"][engine]
            remark += f"; {figures['arrivals_per_second']:.2f} arrivals/s are {share:.0%} of what it gets done"
        yield remark


def _milliseconds(repetitions: Sequence[Mapping[str, list[float]]]) -> tuple[list[float], list[float]]:
    """p50 and p99 of first tokens and of gaps, over all repetitions."""
    first, gaps = (
        (1e3 * np.percentile([wait for each in repetitions for wait in each[key]], (50, 99))).tolist()
        for key in ("first_token", "gaps")
    )
    return first, gaps


def _median(results: list[dict[str, float]], key: str) -> float:
    return statistics.median(result[key] for result in results)
